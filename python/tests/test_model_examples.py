"""The code of docs/checkpoints-in-pytorch.md, and the programs of examples/pytorch on made-up data."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys

import statrec
from support import PACKAGE, TOP, InDirectory, module, wants
from test_models import statrec_program, write_images, write_sentences

torch = module("torch")
if torch is not None:
    import statrec.nn as sn
EXAMPLES = os.path.join(TOP, "examples", "pytorch")


@wants("torch", "numpy", "h5py")
class Page(InDirectory):
    def test_code(self):
        """As printed: the command, then the Python code, one block after the other."""
        with open(os.path.join(TOP, "docs", "checkpoints-in-pytorch.md"), encoding="utf-8") as page:
            text = page.read()
        blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertEqual([kind for kind, _ in blocks], ["sh"] + ["python"] * 4)
        statrec_program(*shlex.split(blocks[0][1].replace("\\\n", ""))[1:], "--quiet")
        with contextlib.redirect_stdout(io.StringIO()) as said:
            names = {}
            for _, block in blocks[1:]:
                exec(block, names)
        self.assertIn("bn 1088 BatchNorm", said.getvalue())
        self.assertIn("'encoder.0.norm1', 'encoder.0.norm2'", said.getvalue())
        for file in ("start.npz", "next.npz"):
            self.assertTrue(os.path.exists(file))


@wants("torch", "numpy", "h5py")
class Examples(InDirectory):
    def setUp(self):
        super().setUp()
        write_images("data_batch_1.bin", 12, 1)
        write_images("test_batch.bin", 6, 2)
        for number, name in enumerate(("train.de", "train.en", "valid.de", "valid.en")):
            write_sentences(name, 30, number)

    def run_example(self, name, *options):
        script = os.path.join(EXAMPLES, name)
        return subprocess.run([sys.executable, script, "--data", ".", "--device", "cpu", *options],
                              capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, "PYTHONPATH": PACKAGE})

    def recorded(self, name, *options):
        done = self.run_example(name, *options)
        self.assertEqual(done.returncode, 0, done.stderr[-1500:])
        self.assertIn("statplot fig2 images.h5 text.h5", done.stdout)
        return done

    def check_run(self, path, metric, sites, norm):
        with statrec.open(path) as run:
            self.assertEqual(len(run.steps["loss"]), 2)
            self.assertEqual(run.info["status"], "complete")
            self.assertEqual(len(run.sites), sites)
            self.assertEqual(next(iter(run.sites.values())).norm, norm)
            self.assertEqual(len(run.evals[metric]), 1)

    def test_two_steps(self):
        self.recorded("images.py", "--steps", "2", "--batch-size", "4")
        self.check_run("images.h5", "test_accuracy", 19, "bn")
        self.recorded("text.py", "--steps", "2", "--max-tokens", "60", "--norm", "pn")
        self.check_run("text.h5", "valid_nll", 17, "pn")
        with self.assertWarnsRegex(UserWarning, "not comparable"):  # rows of a batch differ
            statrec.plot("fig2", "images.h5", "text.h5", output="fig2.svg", form="relative")
        self.assertGreater(os.path.getsize("fig2.svg"), 1000)

    def test_time_and_errors(self):
        done = self.recorded("text.py", "--seconds", "0.01", "--norm", "rbn", "-o", "timed.h5")
        self.assertIn("step 1 ", done.stdout)
        self.assertNotEqual(self.run_example("text.py", "--steps", "1", "-o", "timed.h5").returncode, 0)
        done = self.run_example("images.py", "--norm", "bm")
        self.assertIn("no normalization is called 'bm'", done.stderr)
        os.remove("test_batch.bin"), os.remove("data_batch_1.bin")
        done = self.run_example("images.py")
        self.assertRegex(done.stderr, "has none of data_batch_1.bin")

    def test_lengths(self):
        programs = [name for name in os.listdir(EXAMPLES) if name.endswith(".py")]
        self.assertGreater(len(programs), 2)
        for name in programs:
            with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
                self.assertLessEqual(len(file.readlines()), 200, name)
