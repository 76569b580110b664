"""Figures of study runs with only their evaluations kept: the run files made of them, stat-gap on those files, and the
block that draws them."""
import contextlib
import io
import os
import subprocess
import types

import statrec
from statrec.study import documents, experiment, restored
from support import InDirectory

CONF = """#: seed = 1 2
#: norm = ln bn pn-ls:pn+ls
#: archive = after
#: after evals = stat-curve RUN.h5 --evals
model = transformer
data = parallel
"""
HEAD = "\n".join(["# program: stat-curve 0.1.0", "# column run: run file as given", "# column step: step", "# column epoch: passes",
                  "# column valid_accuracy: right ones (percent); more is better",
                  *(f"# column {name}: a loss, of (all) words (nats per token); less is better"
                    for name in ("valid_loss", "valid_loss_batch", "train_loss_batch")), ""])
COLUMNS = "run\tstep\tepoch\tvalid_accuracy\tvalid_loss\tvalid_loss_batch\ttrain_loss_batch\n"
LOSSES = {"ln": (3.0, 3.0, 2.5), "bn": (3.5, 3.25, 2.625), "pn-ls": (3.0, 3.0, 2.75)} # V, B, T


class Figures(InDirectory):
    def setUp(self):
        super().setUp()
        os.mkdir("out")
        self.write("grid.conf", CONF)
        self.args = types.SimpleNamespace(confs=["grid.conf"], out="out", bin=os.environ.get("STATREC_BIN", ""), samples="",
                                          doc="page.md")
        for seed in (1, 2):
            for norm, losses in LOSSES.items():
                rows = [f"x\t{step}\t{step / 10}\t{50 + seed}\t" + "\t".join(f"{loss + seed - step / 100}" for loss in losses)
                        for step in (10, 20, 30)]
                self.write(f"out/grid-{seed}-{norm}-evals.tsv", HEAD + COLUMNS + "\n".join(rows) + "\n")

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def restored(self, name):
        return restored.restored(self.args, experiment.Experiment("grid.conf"), name, "evals")

    def stopped(self, call):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
            call()
        return said.getvalue()

    def test_evaluations_of_the_file(self):
        with statrec.open(self.restored("grid-2-bn")) as run:
            self.assertEqual([float(x) for x in run.evals["valid_loss"]], [5.4, 5.3, 5.2])
            self.assertEqual([int(x) for x in run.evals["step"]], [10, 20, 30])
            self.assertEqual([float(x) for x in run.evals["epoch"]], [1.0, 2.0, 3.0])
            self.assertEqual(set(run.metrics), {"valid_accuracy", "valid_loss", "valid_loss_batch", "train_loss_batch"})
            metric = run.metrics["valid_accuracy"]
            self.assertEqual((metric.unit, metric.definition, metric.better), ("percent", "right ones", "more"))
            self.assertEqual(run.metrics["valid_loss"].definition, "a loss, of (all) words")
            self.assertEqual((run.info["status"], run.info["seed"], run.info["model"]), ("complete", 2, "transformer"))
            self.assertEqual(run.info["config"], "model = transformer\ndata = parallel\nseed = 2\nnorm = bn\n")

    def test_statistics_over_the_batch(self):
        """If validation by batches equals validation, no statistic covers the batch."""
        for name, family in (("grid-1-bn", "sigma"), ("grid-1-ln", "row"), ("grid-1-pn-ls", "row")):
            with statrec.open(self.restored(name)) as run:
                self.assertEqual(run.sites["evaluations"].family, family)
        with statrec.open("out/evaluations/grid-1-pn-ls.h5") as run:
            self.assertEqual(run.sites["evaluations"].norm, "pn+ls")

    def test_split_of_the_files(self):
        paths = [self.restored(f"grid-{seed}-{norm}") for seed in (1, 2) for norm in LOSSES]
        told = subprocess.run([os.path.join(self.args.bin, "stat-gap"), *paths, "--split", "last-third"], capture_output=True,
                              text=True, check=True).stdout
        head, *rows = [line.split("\t") for line in told.splitlines() if not line.startswith("#")]
        self.assertEqual(len(rows), 2)
        for row, parts in zip(rows, ((0.125, 0.125, 0.25, 0.5), (0.25, -0.25, 0.0, 0.0))):
            found = dict(zip(head, row))
            self.assertEqual(found["pairs"], "2")
            for name, value in zip(("training", "generalization", "discrepancy", "total"), parts):
                self.assertAlmostEqual(float(found[name]), value)

    def test_block(self):
        words = 'figure=gap.svg by="statplot gap" grid after=evals norm=ln,bn alt="The split"'
        os.remove("out/grid-2-bn-evals.tsv")
        lines = documents.block_of(words, "page.md:1").lines(self.args)
        self.assertEqual(lines, ["![The split](gap.svg)", "", "`statplot gap` of 3 of 4 runs of `grid`.", ""])
        with open("gap.svg", encoding="utf-8") as file:
            drawing = file.read()
        for part in ("training", "generalization", "discrepancy", "difference"):
            self.assertIn(part, drawing)
        self.assertEqual(sorted(os.listdir("out/evaluations")), ["grid-1-bn.h5", "grid-1-ln.h5", "grid-2-ln.h5"])
        self.assertIsNone(documents.block_of(words.replace(" after=evals", ""), "page.md:1").lines(self.args))

    def test_a_run_with_its_file(self):
        """Its own file is drawn, which has more than evaluations."""
        self.write("out/grid-1-ln.h5", "")
        self.assertEqual(self.restored("grid-1-ln"), "out/grid-1-ln.h5")

    def test_mistakes(self):
        self.assertEqual(self.stopped(lambda: restored.write("x.h5", HEAD + COLUMNS + "x\t1\t1\t1\t1\t1\t1\n", {"seed": "a"}, "words")),
                         "statrec study: words: seed: a whole number is wanted, got 'a'\n")
        self.write("out/grid-1-bn-evals.tsv", "# column step: step\nstep\n1\n")
        self.assertEqual(self.stopped(lambda: self.restored("grid-1-bn")),
                         "statrec study: out/grid-1-bn-evals.tsv: no table of stat-curve --evals\n")
        os.remove("out/grid-1-bn-evals.tsv")
        self.assertEqual(self.stopped(lambda: self.restored("grid-1-bn")),
                         "statrec study: out/grid-1-bn-evals.tsv: No such file or directory\n")
