"""statrec.watch with the library: contents of the file, and training continues after a failure."""
import gc
import os
import shutil
import tempfile
import unittest
import warnings
from unittest import mock

from watch_help import joined, reference, watch

import torch
from torch import nn

try:
    import statrec
    from statrec._watching import _derived, _taps
    from statrec._library import library
    library()
except Exception as error:  # other tests report missing packages
    raise unittest.SkipTest(f"no libstatrec: {error}") from None


def model_of():
    torch.manual_seed(12)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Linear(8, 8),
                         nn.LayerNorm(8), nn.Linear(8, 1))


def weigh(x):
    return x.square().mean()


class File(unittest.TestCase):
    def setUp(self):
        self.where = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.where, True)
        self.path = os.path.join(self.where, "run.h5")

    def gradient(self, model, at, x):
        y = model[at](x).detach().requires_grad_()
        g, = torch.autograd.grad(weigh(model[at + 1:](y)), y)
        return g

    def vector(self, name, site, step=0):
        with statrec.open(self.path) as run:
            return torch.as_tensor([float(value) for value in run.vector(name, site)[step]],
                                   dtype=torch.float64)

    def near(self, got, want, tolerance=1e-5):
        self.assertLessEqual((got - want).abs().max().item(), tolerance * want.abs().max().item())

    def test_vectors_of_merged_passes(self):
        model, batches = model_of(), [torch.randn(n, 5) for n in (17, 30)]
        parts = []
        for batch in batches:
            x = model[:4](batch).detach()
            parts.append((x.double(), self.gradient(model, 4, x).double()))
        want = joined(parts)
        model = model_of()
        with watch(model, self.path, repeat="merge", vectors_every=1) as run:
            for batch in batches:
                weigh(model(batch)).backward()
            run.step(loss=1.0, tokens=47)
        self.near(self.vector("mu_B", "4"), want["mean"])
        self.near(self.vector("sigma2_B", "4"), want["variance"])
        self.near(self.vector("sum_g", "4"), want["sum_g"])
        self.near(self.vector("sum_gx", "4"), want["sum_gc"] / (want["variance"] + 1e-5).sqrt())

    def test_batch_norm(self):
        """sum_gx is the gradient of the weight, sum_g of the bias; mu is from before."""
        model, batch = model_of(), torch.randn(40, 5)
        with watch(model, self.path, vectors_every=1) as run:
            weigh(model(batch)).backward()
            run.step(loss=1.0)
        self.near(self.vector("sum_gx", "1"), model[1].weight.grad.double())
        self.near(self.vector("sum_g", "1"), model[1].bias.grad.double())
        self.assertEqual(self.vector("sigma2", "1").tolist(), [1.0] * 8)
        x = model[0](batch).detach()
        self.near(self.vector("mu_B", "1"), reference(x, x)["mean"])
        with statrec.open(self.path) as file:
            self.assertEqual(file.info["status"], "complete")
            self.assertEqual([site for site in file.sites], ["1", "4"])

    def test_diagnosed_while_it_runs(self):
        model = model_of()
        run = watch(model, self.path, vectors_every=1)
        for _ in range(120):
            weigh(model(torch.randn(9, 5))).backward()
            run.step(loss=1.0)
        during = run.diagnose()
        run.close()
        behind = run.diagnose()
        asked = {row["question"] for row in behind if row["verdict"] != "not-asked"}
        self.assertIn("inference", asked)
        self.assertEqual(asked, {row["question"] for row in during if row["verdict"] != "not-asked"})
        self.assertIn("120 steps", str(behind))

    def test_directory_goes_away(self):
        model = model_of()
        run = watch(model, self.path, flush_steps=1)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for step in range(4):
                weigh(model(torch.randn(9, 5))).backward()
                run.step(loss=1.0)
                if step == 1:
                    shutil.rmtree(self.where)
            run.close()
        self.assertLessEqual(len(told), 1)
        self.assertFalse(any(module._forward_hooks for module in model.modules()))

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_figures_over_steps(self):
        """step() without an epoch: figures are over steps, evaluations too."""
        model = model_of()
        with watch(model, self.path) as run:
            run.metric("valid_loss", "nats", "", "less")
            for _ in range(30):
                weigh(model(torch.randn(9, 5))).backward()
                run.step(loss=1.0, lr=0.1)
            run.evaluate(valid_loss=2.0)
            for figure in ("overview", "curves", "modes"):
                self.assertIn(">step<", run.plot(figure)._repr_svg_(), figure)

    def test_file_exists(self):
        open(self.path, "w").close()
        model = model_of()
        with self.assertRaises(statrec.Error):
            watch(model, self.path)
        self.assertFalse(any(module._forward_hooks for module in model.modules()))

    def test_failures_of_watch_leave_nothing(self):
        """No file or hook remains after any failure that follows the creation of the file."""
        for where, name in ((_taps.Tap, "__init__"), (_derived.Derived, "of_modules"), (_taps.Tap, "prepare")):
            model = model_of()
            with mock.patch.object(where, name, side_effect=KeyError("planted")):
                with self.assertRaisesRegex(KeyError, "planted"), warnings.catch_warnings():
                    warnings.simplefilter("error")
                    watch(model, self.path)
            gc.collect()
            self.assertEqual(os.listdir(self.where), [])
            self.assertFalse(any(module._forward_hooks for module in model.modules()))
        with watch(model_of(), self.path, verbose=False):
            pass

    def test_collected_in_a_cycle(self):
        """The run, its recorder and the model are garbage of one cycle: the file is closed as without one."""
        def trained():
            model = model_of()
            run = watch(model, self.path, verbose=False)
            weigh(model(torch.randn(9, 5))).backward()
            run.step(loss=1.0)
            cycle = [run, model]
            cycle.append(cycle)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trained()
            gc.collect()
        self.assertEqual(os.listdir(self.where), ["run.h5"])
        with statrec.open(self.path) as file:
            self.assertEqual((file.info["status"], file.info["steps"]), ("interrupted", 1))
            self.assertIn("dropped without close()", file.info["reason"])

    def test_exception_and_no_step(self):
        with self.assertRaises(ValueError):
            with watch(model_of(), self.path):
                raise ValueError("bad batch")
        if os.path.exists(self.path):
            with statrec.open(self.path) as file:
                self.assertEqual(file.info["status"], "failed")


class Resumed(unittest.TestCase):
    setUp = File.setUp

    def record(self, steps, model=None, **options):
        """Steps of the file afterwards, and of its evaluations: one before the first step."""
        model = model or model_of()
        with watch(model, self.path, verbose=False, **options) as run:
            run.metric("loss", "nats")
            run.evaluate(loss=1.0)
            for _ in range(steps):
                weigh(model(torch.randn(9, 5))).backward()
                run.step(loss=1.0)
        self.assertIsNone(run.failure)
        self.assertEqual(statrec.check(self.path), [])
        with statrec.open(self.path) as file:
            return [int(step) for step in file.steps["step"]], [int(step) for step in file.evals["step"]]

    def test_goes_on(self):
        self.record(5)
        self.assertEqual(self.record(2, resume=True), ([*range(1, 8)], [0, 5]))
        self.assertEqual(self.record(1, resume=True, start=4), ([*range(1, 6)], [0, 4]))
        self.assertEqual(self.record(0, resume=True), ([*range(1, 6)], [0, 4, 5]))

    def test_number_of_the_first_step(self):
        self.record(5)
        model = model_of()
        with watch(model, self.path, verbose=False, resume=True) as run:
            with self.assertRaisesRegex(ValueError, "step: step: a number after 0 is wanted, got 0"):
                run.step(step=0)
            weigh(model(torch.randn(9, 5))).backward()
            run.step(step=4)
        self.assertIsNone(run.failure)
        with statrec.open(self.path) as file:
            self.assertEqual([int(step) for step in file.steps["step"]], [1, 2, 3, 4])

    def test_after_a_crash(self):
        """Recording continues the unfinished file."""
        self.record(2)
        os.rename(self.path, self.path + ".part")
        self.assertEqual(self.record(1, resume=True), ([1, 2, 3], [0, 2]))
        shutil.copy(self.path, self.path + ".part")
        with open(self.path + ".part", "r+b") as file:
            file.truncate(100)  # the other file continues
        self.assertEqual(self.record(1, resume=True), ([1, 2, 3, 4], [0, 2, 3]))

    def test_order_and_width_of_the_file(self):
        """A site that the first step leaves out has its place and its features from the file."""
        def make():
            return nn.ModuleDict({"a": nn.LayerNorm(5), "b": nn.Linear(5, 5)})
        for names, options in (("ba", {}), ("a", {"resume": True})):
            model = make()
            with watch(model, self.path, verbose=False, observe="b", **options) as run:
                for name in names:
                    weigh(model[name](torch.randn(9, 5, requires_grad=True) * 1)).backward()
                run.step()
            self.assertIsNone(run.failure)
        with statrec.open(self.path) as file:
            self.assertEqual([*file.sites], ["b", "a"])
            self.assertEqual([[str(float(n)) for n in file["rows"][name][:]] for name in "ab"], [["9.0", "9.0"], ["9.0", "nan"]])

    def test_errors_of_watch(self):
        others = ((nn.Sequential(nn.LayerNorm(8)), "'1', '4' only in the file; '0' only in the model"),
                  (nn.Sequential(*model_of()[:4], nn.LayerNorm(7)), "'4' is ln of 8 features in the file and ln of 7 features in"))
        with self.assertRaisesRegex(statrec.Error, "resume=True: there is no such run file"):
            watch(model_of(), self.path, resume=True)
        self.record(3)
        for model, text in others:
            with self.assertRaisesRegex(statrec.Error, f"resume=True: its sites are not the model's: {text}"):
                watch(model, self.path, resume=True)
            self.assertFalse(any(module._forward_hooks for module in model.modules()))
            self.assertEqual(os.listdir(self.where), ["run.h5"])


if __name__ == "__main__":
    unittest.main()
