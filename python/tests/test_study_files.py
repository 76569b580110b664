"""Tables of the study made of run files: runs that diverged, by their status or by a metric that is no number at its end, and the unit
of what is compared."""
import contextlib
import io
import math
import os
import tempfile
import types
import unittest

import statrec
from statrec.study import documents, printed

NAN = math.nan
VERDICT = "verdict=far of=norm against=ln value=valid_loss"


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = folder.name
        self.args = types.SimpleNamespace(confs=[self.out], out=self.out, bin=os.environ.get("STATREC_BIN", ""), samples="")
        with open(f"{self.out}/far.conf", "w", encoding="utf-8") as file:
            file.write("#: seed = 1 2 3\n#: norm = ln bn\n")
        for seed in 1, 2, 3:
            for norm in "ln", "bn":
                self.run_of(seed, norm)

    def run_of(self, seed, norm, gone=(), status="complete", scale=1.0, unit="nats per token", more=None):
        """gone: evaluations, 1 to 12, without a number; more: metrics of a second call for each evaluation."""
        path = f"{self.out}/far-{seed}-{norm}.h5"
        printed._printed.cache_clear() # what was printed of the file before
        with statrec.Recorder(path, force=True, seed=seed, config=f"norm = {norm}\nlr-scheduler = cosine\n") as made:
            site = made.add_site("a", norm=norm, family="sigma" if norm == "bn" else "row", width=1, eps=1e-5, alpha=0.9)
            made.add_metric("valid_loss", unit, "a loss", "less")
            for name in more or {}:
                made.add_metric(name, "percent", "another", "more")
            for step in range(1, 13):
                made.begin_step(step)
                made.put_forward(site, 4, [0.0], [1.0], [1.0], [1.0])
                made.put_backward(site, [0.0], [0.0], [1.0])
                made.end_step(update=step, tokens=4, loss=1.0, lr=1 - step / 12)
                loss = scale * (3 + 0.01 * seed + (0.1 + 0.001 * seed) * (norm == "bn"))
                made.evaluate(step, valid_loss=NAN if step in gone else loss)
                if more:
                    made.evaluate(step, **more)
            made.close(status, "")

    def block(self, text):
        return documents.block_of(text, "doc.md:1").lines(self.args)

    def row(self, text=VERDICT):
        return self.block(text)[2]

    def test_a_metric_that_is_no_number_at_the_end(self):
        """Whatever came before, on either side, and named."""
        for norm, gone in (("bn", range(1, 13)), ("ln", range(1, 13)), ("bn", [6, 12]), ("ln", [1, 12]), ("bn", range(2, 13, 2)), ("bn", [12])):
            with self.subTest(norm=norm, gone=gone):
                self.run_of(2, norm, gone)
                self.assertTrue(self.row().endswith(f"| diverged: 1 of 3 pairs (far-2-{norm}) |"), self.row())
                self.assertTrue(self.row("split=far of=norm against=ln").endswith(f"| diverged: 1 of 3 pairs (far-2-{norm}) |"))
                self.run_of(2, norm)
        self.run_of(2, "bn", [6])
        self.assertTrue(self.row().endswith("| difference seen: higher |"), self.row())

    def test_many_runs_that_diverged(self):
        for seed, norm in ((1, "bn"), (2, "bn"), (2, "ln"), (3, "bn")):
            self.run_of(seed, norm, [12])
        self.assertIn("diverged: 3 of 3 pairs (far-1-bn, far-2-bn, far-2-ln and 1 more) |", self.row())

    def test_a_statistic_of_runs_that_diverged(self):
        text = "verdict=far of=norm against=ln value=best_valid_loss by=stat-table"
        self.assertTrue(self.row(text).endswith("| difference seen: higher |"))
        for seed, more in ((1, {"status": "diverged"}), (3, {"gone": [11, 12]})):
            with self.subTest(more):
                self.run_of(seed, "bn", **more)
                self.assertTrue(self.row(text).endswith(f"| diverged: 1 of 3 pairs (far-{seed}-bn) |"))
                self.run_of(seed, "bn")

    def test_other_tables_of_runs_that_diverged(self):
        self.run_of(2, "bn", range(1, 13))
        lines = self.block("far rows=norm value=best_valid_loss")
        self.assertEqual(lines[3], "| bn | 1 of 3 diverged |")
        self.assertTrue(lines[-2].endswith("6 of 6 runs of `far`. Diverged: far-2-bn."), lines[-2])
        lines = self.block("paired=far of=norm against=ln value=valid_loss")
        self.assertTrue(lines[-2].endswith("Without the pairs of far-2-bn: diverged."), lines[-2])

    def test_a_metric_that_is_recorded_at_some_steps(self):
        """NaN beside a number of another metric may mean that it was not recorded."""
        for seed in 1, 2, 3:
            for norm in "ln", "bn":
                self.run_of(seed, norm, [step for step in range(1, 13) if step % 3 != 2], more={"valid_accuracy": 50.0})
        self.assertTrue(self.row().startswith("| bn | 3 of 3 | +0.102 ±"), self.row())

    def test_evaluations_of_one_step(self):
        """Two calls of one step are one evaluation."""
        for seed in 1, 2, 3:
            for norm in "ln", "bn":
                self.run_of(seed, norm, more={"valid_accuracy": 50.0})
        self.assertTrue(self.row().endswith("| difference seen: higher |"), self.row())

    def test_unit_of_the_loss(self):
        """The bound of 0.01 is of nats, whatever the metric's name."""
        self.assertIn("`valid_loss` in nats, minus ln", self.block(VERDICT)[-2])
        for seed in 1, 2, 3:
            for norm in "ln", "bn":
                self.run_of(seed, norm, scale=1 / 500, unit="1")
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
            self.block(VERDICT)
        self.assertEqual(said.getvalue(), "statrec study: doc.md:1: within=X is wanted, the change of valid_loss that counts as none: its unit "
                         "is '1', not in nats, where 0.01 does\n")
        lines = self.block(f"{VERDICT} within=1e-5 digits=6")
        self.assertTrue(lines[2].endswith("| difference seen: higher |"), lines[2])
        self.assertTrue(lines[-2].startswith("`valid_loss`, minus ln"), lines[-2])
        self.assertTrue(self.block("paired=far of=norm against=ln value=valid_loss digits=6")[2].startswith("| 1 | +0.000204 ±"))
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            self.block("split=far of=norm against=ln")


if __name__ == "__main__":
    unittest.main()
