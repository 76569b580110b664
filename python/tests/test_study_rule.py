"""The rule of the reproduction study's verdicts, and the tables that it judges: evaluations are written by hand."""
import contextlib
import io
import math
import os
import tempfile
import types
import unittest

from statrec.study import documents, evaluations, experiment, printed, rule, tables
from support import SAMPLES

STEPS = range(1, 13) # the last third: 9 to 12
NOISE = {"1": -0.002, "2": 0.0, "3": 0.002} # of the seeds


def series(value, noise=0.0):
    return {step: value(step) + noise for step in STEPS}


def pairs(value):
    return [series(value, noise) for noise in NOISE.values()]


class Rule(unittest.TestCase):
    def test_last_third_is_rounded_up(self):
        for count, kept in ((1, 1), (2, 1), (3, 1), (4, 2), (6, 2), (7, 3), (12, 4)):
            third = rule.last_third({step: 0.0 for step in range(count)})
            self.assertEqual([step for step, _ in third], list(range(count - kept, count)))

    def test_rise_is_that_of_a_line(self):
        self.assertAlmostEqual(rule.rise([(10, 1.0), (20, 3.0)]), 2.0)
        # an end point off the line counts little
        self.assertAlmostEqual(rule.rise([(0, 0.0), (1, 0.0), (2, 0.0), (3, 1.0)]), 0.9)
        self.assertAlmostEqual(rule.rise([(0, 5.0), (1, 4.0), (3, 2.0)]), -3.0)

    def test_settled_difference(self):
        found = rule.judge(pairs(lambda step: 0.1), True, "higher")
        self.assertEqual((found.verdict, found.pairs), (rule.AS_CLAIMED, 3))
        self.assertAlmostEqual(found.difference, 0.1)
        self.assertAlmostEqual(found.half, 4.30265 * 0.002 / math.sqrt(3))
        self.assertAlmostEqual(found.change, 0.0)
        self.assertEqual(rule.judge(pairs(lambda step: -0.1), True, "higher").verdict, rule.OPPOSITE)
        self.assertEqual(rule.judge(pairs(lambda step: -0.1), True, "lower").verdict, rule.AS_CLAIMED)
        self.assertEqual(rule.judge(pairs(lambda step: 0.1), True, "none").verdict, rule.OPPOSITE)
        self.assertEqual(rule.judge(pairs(lambda step: 0.1), True).text(), "difference seen: higher")

    def test_mean_of_the_last_third_not_one_evaluation(self):
        """Two evaluations of one run, some updates apart, differ: the last one alone has the other sign."""
        found = rule.judge(pairs(lambda step: {9: 0.12, 10: 0.08, 11: 0.1, 12: -0.02}.get(step, 0.1)), False)
        self.assertAlmostEqual(found.difference, 0.07)

    def test_transient_that_falls_through_zero(self):
        """Only at its end does the difference agree with the claim."""
        found = rule.judge(pairs(lambda step: 0.01 * (step - 10)), True, "higher")
        self.assertEqual(found.verdict, rule.SHORT)
        self.assertIn("still changes", found.text())
        self.assertAlmostEqual(found.change, 0.03)
        # far from zero, and by half of itself in the last third
        found = rule.judge(pairs(lambda step: 0.2 - 0.03 * (step - 9)), True, "higher")
        self.assertEqual((found.verdict, found.text()[-13:]), (rule.SHORT, "higher so far"))
        self.assertEqual(rule.judge(pairs(lambda step: 0.2 - 0.03 * (step - 9) / 2), True).verdict,
                         rule.SEEN)

    def test_wide_interval(self):
        """The mean change is nothing, the seeds' changes are not."""
        slopes = (-0.03, 0.0, 0.03)
        found = rule.judge([series(lambda step, k=slope: 0.1 + k * (step - 10.5) / 3) for slope in slopes], True)
        self.assertAlmostEqual(found.change, 0.0)
        self.assertAlmostEqual(found.change_half, 4.30265 * 0.03 / math.sqrt(3))
        self.assertEqual(found.verdict, rule.SHORT)
        slopes = (-0.015, 0.0, 0.015) # 0.037 is less than half of 0.1
        found = rule.judge([series(lambda step, k=slope: 0.1 + k * (step - 10.5) / 3) for slope in slopes], True)
        self.assertEqual(found.verdict, rule.SEEN)

    def test_unfinished_schedule(self):
        found = rule.judge(pairs(lambda step: 0.1), False, "higher")
        self.assertEqual(found.text(), "too short to tell (learning rate not at its end), higher so far")

    def test_no_difference(self):
        """If no difference is claimed, a hundredth of a nat counts as no change."""
        near = pairs(lambda step: 0.0)
        self.assertEqual(rule.judge(near, True, "higher").verdict, rule.NONE)
        moved = pairs(lambda step: 0.004 * (step - 10.5))
        self.assertIsNone(rule.judge(moved, True).higher)
        self.assertEqual(rule.judge(moved, True).verdict, rule.SHORT)
        self.assertEqual(rule.judge(moved, True, within=0.02).verdict, rule.NONE)

    def test_no_difference_of_a_wide_interval(self):
        """An interval that contains zero and much else is inconclusive: its bound is twice the bound of a change."""
        wide = [series(lambda step: 0.005, noise) for noise in (-0.007, 0.0, 0.007)]  # 0.005 +- 0.0174
        found = rule.judge(wide, True)
        self.assertEqual((found.verdict, found.text()), (rule.SHORT, "too short to tell (the interval is too wide)"))
        self.assertEqual(rule.judge(wide, True, within=0.0112).verdict, rule.NONE)
        self.assertEqual(rule.judge([series(lambda step: 0.0, noise) for noise in (-0.007, 0.0, 0.007)], True).verdict, rule.NONE)

    def test_too_few(self):
        self.assertEqual(rule.judge([], True).verdict, rule.MISSING)
        one = rule.judge(pairs(lambda step: 0.1)[:1], True, "higher")
        self.assertEqual(one.verdict, rule.MISSING)
        self.assertAlmostEqual(one.difference, 0.098)
        short = rule.judge([{1: 0.1, 2: 0.1, 3: 0.1}] * 3, True)
        self.assertEqual(short.text(), "too short to tell (one evaluation in the last third), higher so far")
        gone = rule.judge([None, *pairs(lambda step: 0.1)], True)
        self.assertEqual(gone.text(), "diverged: 1 of 4 pairs")


class Schedules(unittest.TestCase):
    def test_end_of_a_schedule(self):
        for options, peak, last, ended in (
                ({}, 0.3, 0.11, False), ({}, 0.3, 0.09, True),
                ({"lr-scheduler": "inverse_sqrt"}, 0.002, 0.002 * math.sqrt(60 / 240), False),
                ({"lr-scheduler": "inverse_sqrt"}, 0.002, 0.002 * math.sqrt(400 / 5000), True),
                ({"lr-scheduler": "cosine"}, 1.0, 0.2, False), ({"lr-scheduler": "cosine"}, 1.0, 0.04, True),
                ({"lr-scheduler": "cosine", "lr-min": "0.3"}, 1.0, 0.301, True),
                ({"lr-scheduler": "linear"}, 1.0, 0.2, False),
                ({"lr-steps": "30,45"}, 0.1, 0.01, False), ({"lr-steps": "30,45"}, 0.1, 0.001, True),
                ({"lr-steps": "30", "lr-factor": "0.5"}, 0.1, 0.05, True), ({"lr-steps": ""}, 0.1, 0.1, False)):
            with self.subTest(options=options, last=last):
                self.assertEqual(evaluations.at_end(options, peak, last), ended)


HEAD = "# program: stat-curve 0.1.0\n# column step: s\n# column valid_loss: nats\n# column valid_f1: percent\n"
CONF = """#: minutes = 1
#: seed = 1 2 3
#: norm = ln bn pn
#: max-tokens = 256 2048
#: archive = after
#: after evals = stat-curve RUN.h5 --evals
#: after loss = stat-curve RUN.h5 --stat lr
"""


class Pages(unittest.TestCase):
    def test_pages_are_short(self):
        docs = os.path.join(SAMPLES, "..", "docs")
        pages = [os.path.join(docs, name) for name in ("reproduction.md", "why-bn-loses.md")]
        pages += [os.path.join(docs, "reproduction", name) for name in os.listdir(os.path.join(docs, "reproduction")) if name.endswith(".md")]
        self.assertGreater(len(pages), 20)
        for page in pages:
            with self.subTest(page), open(page, encoding="utf-8") as file:
                words = [word for word in file.read().split() if any(letter.isalnum() for letter in word)]  # no bars of tables
                self.assertLessEqual(len(words), 900)


class Blocks(unittest.TestCase):
    """Blocks of runs with only their tables kept."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.conf, self.out = (os.path.join(folder.name, name) for name in ("conf", "out"))
        os.mkdir(self.conf)
        os.mkdir(self.out)
        self.args = types.SimpleNamespace(confs=[self.conf], out=self.out, bin=os.environ.get("STATREC_BIN", ""),
                                          samples=SAMPLES)
        self.put("conf/far.conf", CONF)
        for seed, noise in NOISE.items():
            for norm, size in (("ln", 0.0), ("bn", 0.1), ("pn", 0.04)):
                for tokens in "256", "2048":
                    more = size * (1.5 if tokens == "256" else 1.0)
                    self.run_of(f"far-{seed}-{norm}-{tokens}", series(lambda step, more=more: 3 + more, 5 * noise if norm == "ln" else 6 * noise))

    def put(self, path, text):
        with open(os.path.join(os.path.dirname(self.conf), path), "w", encoding="utf-8") as file:
            file.write(text)

    def run_of(self, name, losses, last_rate=0.1):
        rows = "".join(f"{step}\t{loss!r}\t{100 * loss!r}\n" for step, loss in losses.items())
        self.put(f"out/{name}-evals.tsv", HEAD + "step\tvalid_loss\tvalid_f1\n" + rows)
        self.put(f"out/{name}-loss.tsv", "# program: stat-curve\n# column lr: rate\nlr\n0.5\n1\n" + "".join(
            f"{last_rate * more}\n" for more in (1, 1.2, 1.5))) # smallest, median and largest of the last part

    def block(self, text):
        made = documents.block_of(text, "doc.md:1")
        return made.lines(self.args)

    def mistake(self, text):
        with self.assertRaises(SystemExit) as stopped, contextlib.redirect_stderr(io.StringIO()) as said:
            self.block(text)
        self.assertEqual(said.getvalue().count("\n"), 1)
        self.assertEqual(stopped.exception.code, 2)

    def test_verdict(self):
        lines = self.block("verdict=far of=norm against=ln value=valid_loss claim=higher max-tokens=2048 digits=3")
        self.assertEqual(lines[0], "| norm | pairs | difference from ln | its change | learning rate | verdict |")
        self.assertEqual(lines[2], "| bn | 3 of 3 | +0.100 ± 0.005 | +0.000 ± 0.000 | ended at 0.1 | as claimed: higher |")
        self.assertTrue(lines[3].startswith("| pn | 3 of 3 | +0.040 ± 0.005 |"))

    def test_less_another_column(self):
        lines = self.block("verdict=far of=norm against=ln value=valid_loss less=max-tokens:2048 norm=bn")
        self.assertEqual(len(lines[2:]), 4) # a row, a blank one, the definitions, a blank one
        self.assertTrue(lines[2].startswith("| bn | 3 of 3 | +0.050 ± 0.000 |"), lines[2])

    def test_published_values_and_their_notes(self):
        self.put("conf/said.tsv", "# a comment\ntable\tsource\tnorm\tmetric\tvalue\nt\tP, table 1\tln\tbleu\t35.5\n"
                 "t\tP, table 1\tbn\tbleu\t34.4\nt\tP, table 1\tbn\tbleu.note\tuncertain: two values\n"
                 "t\tP, table 1\tbn\tppl\tnan\nt\tP, table 1\tbn\tppl.note\tanother\n")
        self.args.published = os.path.join(self.conf, "said.tsv")
        self.assertEqual(self.block("published=t metric=bleu"),
                         ["| published | t bleu |", "|---|---|", "| ln | 35.5 |", "| bn | 34.4† |", "", "P, table 1.", "",
                          "† uncertain: two values.", ""])
        self.assertEqual(self.block("published=t norm=ln")[2:], ["| ln | 35.5 |", "", "P, table 1.", ""])
        self.assertIn("| bn | 34.4† | diverged† |", self.block("published=t"))

    def test_a_run_that_is_missing(self):
        os.remove(os.path.join(self.out, "far-2-bn-2048-evals.tsv"))
        lines = self.block("verdict=far of=norm against=ln value=valid_loss norm=bn max-tokens=2048")
        self.assertTrue(lines[2].startswith("| bn | 2 of 3 |"))
        os.remove(os.path.join(self.out, "far-1-ln-2048-evals.tsv")) # from another pair
        lines = self.block("verdict=far of=norm against=ln value=valid_loss norm=bn max-tokens=2048")
        self.assertTrue(lines[2].startswith("| bn | 1 of 3 | +0.102 | – |"), lines[2])
        self.assertTrue(lines[2].endswith("| runs missing |"))

    def test_one_schedule_that_is_not_at_its_end(self):
        self.run_of("far-3-bn-2048", series(lambda step: 3.1), last_rate=0.4)
        lines = self.block("verdict=far of=norm against=ln value=valid_loss norm=bn max-tokens=2048")
        self.assertIn("ended at 0.1; not ended at 0.4 | too short to tell", lines[2])

    def test_runs_that_end_at_different_steps(self):
        """The end of one run is not compared with the middle of the other."""
        text = "verdict=far of=norm against=ln value=valid_loss norm=bn max-tokens=2048"
        for steps, said in ((range(1, 31), "runs end at different steps"), (range(1, 13), ""), (range(2, 13, 2), ""),
                            ([*range(1, 7), *range(8, 13)], ""), ([*range(1, 7), 12], "runs are evaluated at different steps"),
                            ([*range(1, 7), 7.5, 8.5, 9.5, 10.5, 11.5], "runs are evaluated at different steps")):
            with self.subTest(steps):
                for seed, noise in NOISE.items():
                    self.run_of(f"far-{seed}-ln-2048", {int(10 * step): 3.0 + noise for step in steps})
                    self.run_of(f"far-{seed}-bn-2048", {10 * step: 3.1 + noise for step in STEPS})
                row = self.block(text)[2]
                self.assertIn("+0.100" if not said else "| – | – |", row)
                self.assertIn(f"| too short to tell ({said}) |" if said else "| difference seen: higher |", row)

    def test_metric_that_is_no_number_at_the_end(self):
        nan, inf = math.nan, math.inf
        for values, gone in (([1.0] * 12, False), ([1.0] * 11 + [nan], True), ([1.0, 1.0, nan, inf] + [1.0] * 8, False),
                             ([1.0] * 10 + [inf, 1.0], True), ([nan, nan, 1.0] * 3 + [nan] * 5, False),
                             ([nan, nan, 1.0] * 3 + [nan] * 6, True), ([1.0 if step in (1, 2, 4, 8, 16) else nan for step in range(1, 32)], False),
                             ([nan] * 12, True), ([], False), ([1.0] * 5 + [nan] + [1.0] * 5 + [nan], True), ([nan] + [1.0] * 9 + [nan], True),
                             ([1.0, 1.0, nan] * 4, False), ([1.0, 1.0, nan] * 4 + [nan] * 3, True)):
            with self.subTest(values):
                self.assertEqual(evaluations.lost(dict(enumerate(values))), gone)
        self.run_of("far-2-bn-2048", {step: 3.1 if step < 5 else nan for step in STEPS})
        row = self.block("verdict=far of=norm against=ln value=valid_loss norm=bn max-tokens=2048")[2]
        self.assertTrue(row.endswith("| diverged: 1 of 3 pairs (far-2-bn-2048) |"), row)
        self.assertEqual(tables.cell([3.0, inf, 3.1], 3, 3), "1 of 3 diverged")

    def test_nothing_to_compare(self):
        """Missing metrics are named, and no pair counts."""
        for value, said in (("valid_f2", "no valid_f2 in far-1-bn-2048"), ("valid_f2,valid_f3", "no valid_f2 or valid_f3 in far-1-bn-2048")):
            row = self.block(f"verdict=far of=norm against=ln value={value} within=1 norm=bn max-tokens=2048")[2]
            self.assertEqual(row, f"| bn | 0 of 3 | – | – | ended at 0.1 | nothing to compare: {said} |")
        for seed in NOISE:
            self.run_of(f"far-{seed}-ln-2048", {20: 3.0})
        row = self.block("verdict=far of=norm against=ln value=valid_loss norm=bn max-tokens=2048")[2]
        self.assertEqual(row, "| bn | 0 of 3 | – | – | ended at 0.1 | nothing to compare: no evaluation in common |")

    def test_metrics_are_not_mixed(self):
        """With several metrics, a row has the first one that all its runs have."""
        text = "verdict=far of=norm against=ln value=valid_bleu,valid_f1 within=1 norm=bn max-tokens=2048 digits=0"
        for seed, norms in (("1", ["bn"]), ("1", ["ln"]), ("2", ["ln", "bn"]), ("3", ["ln", "bn"])):
            for norm in norms:
                rows = "".join(f"{step}\t{20 + 5 * (norm == 'bn')}\t{300 + 10 * (norm == 'bn')}\n" for step in STEPS)
                self.put(f"out/far-{seed}-{norm}-2048-evals.tsv", HEAD + "step\tvalid_bleu\tvalid_f1\n" + rows)
            self.assertIn("| +10 ±" if seed != "3" else "| +5 ±", self.block(text)[2])
        for norm, name in (("ln", "valid_bleu"), ("bn", "valid_f1")):
            for seed in NOISE:
                self.put(f"out/far-{seed}-{norm}-2048-evals.tsv", HEAD + f"step\t{name}\n" + "".join(f"{step}\t1\n" for step in STEPS))
        self.assertIn("nothing to compare: no one of valid_bleu, valid_f1 in all runs", self.block(text)[2])

    def test_without_a_pair(self):
        for name in os.listdir(self.out):
            if "-ln-" not in name:
                os.remove(os.path.join(self.out, name))
        block = documents.block_of("verdict=far of=norm against=ln value=valid_loss", "doc.md:1")
        self.assertIsNone(block.lines(self.args))
        self.assertEqual(documents.nothing_of(block), "No pair of runs is done yet, 6 runs are done.")

    def test_seeds_by_another_name(self):
        experiment.note.cache_clear()
        self.put("conf/far.conf", CONF.replace("seed", "random-seed"))
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.block("verdict=far of=norm against=ln value=valid_loss norm=bn max-tokens=2048")
            self.block("verdict=far of=norm against=ln value=valid_loss norm=bn max-tokens=2048")
        self.assertEqual(said.getvalue(), "statrec study: doc.md:1: far: no line '#: seed = ...', so no pairs of runs with the same seed\n")

    def test_bars_in_a_table(self):
        self.assertEqual(printed.drawn(["a|b", "c"], [["1", r"x\|y"]]), [r"| a\|b | c |", "|---|---|", r"| 1 | x\|y |"])

    def test_a_split_is_of_the_validation_loss(self):
        self.mistake("split=far of=norm against=ln value=valid_f1")

    def test_runs_that_differ_by_more_than_the_seed(self):
        for name in os.listdir(self.out):
            self.put(f"out/{name}", "# column steps: s\nrun\tsteps\nx\t2\n")
        for text, said in (("far rows=norm", "6 runs (with all max-tokens)"), ("far rows=norm columns=max-tokens", "3 runs."),
                           ("far rows=norm max-tokens=256", "3 runs.")):
            self.assertIn(f"interval of {said}", " ".join(self.block(f"{text} value=steps by=after after=evals")))

    def test_pages_keep_their_line_ends(self):
        page = "# Head\r\n\r\n<!-- study: far rows=norm value=steps by=after after=evals max-tokens=256 -->\r\n<!-- study: end -->\r\n  <!-- study: x -->\r\n"
        for name in os.listdir(self.out):
            self.put(f"out/{name}", "# column steps: s\nrun\tsteps\nx\t2\n")
        self.args.docs = [os.path.join(self.conf, "page.md")]
        with open(self.args.docs[0], "w", encoding="utf-8", newline="") as file:
            file.write(page)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            documents.report(self.args)
        with open(self.args.docs[0], "rb") as file:
            made = file.read()
        self.assertEqual(made.count(b"\n"), made.count(b"\r\n"))
        self.assertIn(b"| bn | 2.000 \xc2\xb1 0.000 |\r\n", made)
        self.assertEqual(said.getvalue(), f"statrec study: {self.args.docs[0]}:5: an indented block is left as it is\n")

    def test_points_need_a_bound_of_their_own(self):
        self.mistake("verdict=far of=norm against=ln value=valid_f1")
        lines = self.block("verdict=far of=norm against=ln value=valid_f1 within=0.5 norm=bn max-tokens=2048 digits=1")
        self.assertTrue(lines[2].startswith("| bn | 3 of 3 | +10.0 ± 0.5 |"), lines[2])

    def test_difference_of_two_metrics_of_a_run(self):
        lines = self.block("verdict=far of=norm against=ln value=valid_f1-valid_loss within=1 norm=bn max-tokens=2048 digits=1")
        self.assertTrue(lines[2].startswith("| bn | 3 of 3 | +9.9 ± 0.5 |"), lines[2])

    def test_statistic_of_what_came_after(self):
        """By its interval alone."""
        for seed, noise in NOISE.items():
            for norm, value in (("ln", 0.0), ("bn", 0.01)):
                self.put(f"out/far-{seed}-{norm}-2048-evals.tsv", "name\tsite\tvalue\tunit\tdefinition\n"
                         f"tid_mean\ta\t{value + (noise if norm == 'bn' else 0)}\t1\tof a site\n")
        lines = self.block("verdict=far of=norm against=ln value=tid_mean@a by='after evals' norm=bn max-tokens=2048 claim=lower")
        self.assertEqual(lines[0], "| norm | pairs | difference from ln | verdict |")
        self.assertEqual(lines[2], "| bn | 3 of 3 | +0.010 ± 0.005 | the opposite: higher |")

    def test_split_adds_up(self):
        """Training, generalization and discrepancy, each with its interval."""
        head = HEAD + "# column train_loss_batch: nats\n# column valid_loss_batch: nats\nstep\tvalid_loss\ttrain_loss_batch\tvalid_loss_batch\n"
        for seed, noise in NOISE.items():
            for norm, parts in (("ln", (0, 0, 0)), ("bn", (0.01 + noise, 0.05, 0.04 - noise))):
                train, batch = 3 + parts[0], 3.5 + parts[0] + parts[1]
                self.put(f"out/far-{seed}-{norm}-2048-evals.tsv", head + "".join(
                    f"{step}\t{batch + parts[2]!r}\t{train!r}\t{batch!r}\n" for step in STEPS))
        lines = self.block("split=far of=norm against=ln max-tokens=2048 norm=bn")
        self.assertEqual(lines[0], "| norm | pairs | difference | training | generalization | discrepancy | verdict |")
        self.assertEqual(lines[2], "| bn | 3 of 3 | +0.100 ± 0.000 | +0.010 ± 0.005 | +0.050 ± 0.000 | +0.040 ± 0.005 | difference seen: higher |")
        self.put("conf/near.conf", CONF)
        self.assertIn("No pair yet: `near`.", self.block("split=far,near of=norm against=ln max-tokens=2048 norm=bn")[-2])

    def test_split_of_other_steps(self):
        """The parts cover the steps that all runs have, and add up."""
        head = HEAD + "# column train_loss_batch: nats\n# column valid_loss_batch: nats\nstep\tvalid_loss\ttrain_loss_batch\tvalid_loss_batch\n"
        for every, wanted in ((3, "+0.1050 ± 0.0000 | +0.0500 ± 0.0000 | +0.0500 ± 0.0000 | +0.0050 ± 0.0000"),
                              (7, "+0.1150 ± 0.0000 | – | – | –")):
            for seed in NOISE:
                for norm, size in (("ln", 0.0), ("bn", 1.0)):
                    self.put(f"out/far-{seed}-{norm}-2048-evals.tsv", head + "".join(
                        f"{step}\t{3 + size * (0.1 + 0.01 * (step % 4))!r}\t{2 + 0.05 * size if step % every == 0 else math.nan!r}\t"
                        f"{2.5 + 0.1 * size!r}\n" for step in range(1, 13)))
            row = self.block("split=far of=norm against=ln max-tokens=2048 norm=bn digits=4")[2]
            self.assertIn(wanted, row)

    def test_opening_is_quoted(self):
        self.args.doc = os.path.join(os.path.dirname(self.conf), "README.md")
        self.put("page.md", "# Head\n\nOne is here. Two\nis there. Three too.\n\nOther.\n")
        self.assertEqual(self.block("opening=page.md sentences=2"), ["One is here. Two is there.", ""])
        self.mistake("opening=page.md sentences=4")
        self.mistake("opening=page.md sentences=few")

    def test_lines_with_a_text(self):
        lines = self.block("lines=far after=evals rows=step value=valid_loss step=3")
        self.assertEqual({line.split(" | ")[0] for line in lines[2:-3]}, {"| 3"})
        self.mistake("lines=far after=evals rows=step value=valid_loss stride=3")

    def test_statistic_that_is_no_number(self):
        for seed in NOISE:
            for norm in "ln", "bn":
                self.put(f"out/far-{seed}-{norm}-2048-evals.tsv", "name\tsite\tvalue\tunit\tdefinition\n"
                         f"tid_mean\ta\t{'nan' if (seed, norm) == ('2', 'bn') else seed}\t1\tof a site\n")
        row = self.block("verdict=far of=norm against=ln value=tid_mean@a by='after evals' norm=bn max-tokens=2048")[2]
        self.assertTrue(row.endswith("| nothing to compare: tid_mean@a is no number in 1 of 3 pairs |"), row)

    def test_rate_that_is_always_zero(self):
        self.put("out/far-1-bn-2048-loss.tsv", "# program: stat-curve\n# column lr: rate\nlr\n0\n0\n0\n")
        row = self.block("verdict=far of=norm against=ln value=valid_loss norm=bn max-tokens=2048")[2]
        self.assertIn("| always 0; ended at 0.1 | too short to tell (learning rate not at its end)", row)

    def test_table_of_unequal_seeds(self):
        self.put("conf/near.conf", CONF.replace("1 2 3", "1 2 3 4").replace("#: after loss = stat-curve RUN.h5 --stat lr\n", ""))
        for norm in "ln", "bn", "pn":
            for tokens in "256", "2048":
                for seed in "1234":
                    self.put(f"out/near-{seed}-{norm}-{tokens}-evals.tsv", "run\tsteps\n# column steps: s\nx\t3\n")
        for name in os.listdir(self.out):
            if name.startswith("far"):
                self.put(f"out/{name}", "# column steps: s\nrun\tsteps\nx\t2\n")
        text = "far near rows=experiment value=steps by=after against=far norm=bn max-tokens=256 digits=1 after=evals"
        self.assertIn("| near | 1.0 ± 0.0 |", self.block(text))

    def test_at_each_evaluation(self):
        for seed, noise in NOISE.items():
            self.run_of(f"far-{seed}-bn-2048", series(lambda step: 3 + step / 100, noise))
            self.run_of(f"far-{seed}-ln-2048", series(lambda step: 3.0))
        lines = self.block("paired=far of=norm against=ln value=valid_loss norm=bn max-tokens=2048 since=4")
        self.assertEqual(lines[2], "| 1 | +0.010 ± 0.005 | – |")
        self.assertEqual(lines[13], "| 12 | +0.120 ± 0.005 | +0.080 ± 0.000 |")

    def test_at_each_evaluation_of_each_combination(self):
        lines = self.block("paired=far of=norm against=ln value=valid_loss norm=bn")
        self.assertEqual(lines[0], "| update | bn 256 | bn 2048 |")
        self.assertEqual(lines[2], "| 1 | +0.150 ± 0.005 | +0.100 ± 0.005 |")

    def test_at_each_evaluation_without_one_in_common(self):
        """A pair without one is left out; the others keep their seeds."""
        self.put("conf/near.conf", CONF)
        for norm, loss in (("ln", 3.0), ("bn", 3.2)):
            self.run_of(f"near-2-{norm}-2048", {20: loss})
        self.run_of("far-1-bn-2048", {100: 9.0})
        lines = self.block("paired=far,near of=norm against=ln value=valid_loss norm=bn max-tokens=2048 since=12")
        self.assertEqual(lines[-4], "| 20 | +0.200 | +0.100 |")

    def test_mistakes(self):
        for text in ("verdict=far", "verdict=far of=norm against=ln value=valid_loss claim=better", "verdict=far of=norm against=rbn "
                     "value=valid_loss", "verdict=nothing of=norm against=ln value=valid_loss", "bound=far value=step",
                     "order=far value=step across=step of=1 against=2 claim=more", "claim=none", "claims all",
                     "verdict=far of=norm against=ln value=valid_loss norm=bn,rbn", "far rows=norm value=loss max-tokens=1,256",
                     "lines=far after=evals rows=step value=valid_loss step=3,1000",
                     "verdict=far of=norm against=ln value=valid_loss within=zero", "verdict=far of=norm against=ln value=valid_loss within=-1",
                     "paired=far of=norm against=ln value=valid_loss since=last",
                     "bound=far after=evals value=valid_loss rows=step claim=below limit=9 step=1000",
                     "order=far after=evals value=valid_loss across=step of=1 against=1000 claim=higher"):
            with self.subTest(text):
                self.mistake(text)

    def test_bound(self):
        text = "bound=far after=evals value=valid_loss rows=step claim={} limit={}"
        below = documents.block_of(text.format("below", 3.2), "doc.md:1")
        self.assertEqual(below.judged(self.args)[2], "as claimed: all values are below")
        below = documents.block_of(text.format("below", 3.139), "doc.md:1") # bn with 256: 3.138 to 3.162
        self.assertEqual(below.judged(self.args)[2], "not as claimed: 24 of 216 values are not below")
        reach = documents.block_of(text.format("reach", 6), "doc.md:1")
        self.assertEqual(reach.judged(self.args)[2], "not reached: none of 216 values")
        self.assertIn("largest 3.16, the limit is 6", reach.judged(self.args)[1])

    def test_order(self):
        table = "run\tstatistic\tmedian\n" + "".join(f"{run}.h5\tdist_psi2\t{a}\n{run}.h5\tdist_sigma2\t{b}\n"
                                                    for run, a, b in (("x", 2, 1), ("y", 3, 2), ("z", 1, 4)))
        self.put("out/far-1-ln-256-evals.tsv", table)
        for name in os.listdir(self.out):
            if name.endswith("-evals.tsv") and name != "far-1-ln-256-evals.tsv":
                os.remove(os.path.join(self.out, name))
        text = "order=far after=evals across=statistic of=dist_psi2 against=dist_sigma2 value=median claim={}"
        for claim, verdict in (("higher", "either way: dist_psi2 is higher in 2 of 3 runs"),
                               ("lower", "either way: dist_psi2 is lower in 1 of 3 runs")):
            found = documents.block_of(text.format(claim), "doc.md:1").judged(self.args)
            self.assertEqual(found, (3, "dist_psi2 / dist_sigma2 from 0.25 to 2.00", verdict))
        self.put("out/far-1-ln-256-evals.tsv", "\n".join(table.split("\n")[:5]))
        for claim, verdict in (("higher", "as claimed: dist_psi2 is higher in 2 of 2 runs"),
                               ("lower", "the opposite: dist_psi2 is lower in 0 of 2 runs")):
            self.assertEqual(documents.block_of(text.format(claim), "doc.md:1").judged(self.args)[2], verdict)

    def test_claims(self):
        claim = ("[first]\nclaim = BN is worse\nsource = A paper, table 1\nprinted = large\nused = small\npage = docs/reproduction/first.md\n"
                 "tests =\n  verdict=far of=norm against=ln value=valid_loss claim=higher max-tokens=2048 show=^bn\n"
                 "  paired=far of=norm against=ln value=valid_loss norm=bn max-tokens=2048\n"
                 "  verdict=far of=norm against=ln value=valid_loss max-tokens=256 show=none\n")
        self.put("conf/claims.conf", claim)
        self.assertEqual(self.block("claims")[2], "| [BN is worse](reproduction/first.md) | A paper, table 1 | as claimed |")
        page = self.block("claim=first")
        self.assertEqual(page[0], "**Claim** (A paper, table 1): BN is worse.")
        self.assertIn("| large | small |", page)
        self.assertIn("| bn | 3 of 3 | +0.100 ± 0.005 | +0.000 ± 0.000 | ended at 0.1 | as claimed: higher |", page)
        self.put("conf/claims.conf", claim.replace("show=^bn", "show=^(bn|pn)").replace("valid_loss claim=higher", "valid_loss claim=lower norm=bn,pn"))
        self.assertIn("| the opposite |", self.block("claims")[2]) # of both
        self.put("conf/claims.conf", claim.replace("printed = large\n", ""))
        self.mistake("claims")


if __name__ == "__main__":
    unittest.main()
