"""statrec.watch with the library: what is in the file, and training goes on when it breaks."""
import os
import shutil
import tempfile
import unittest
import warnings

from watch_help import joined, reference, watch

import torch
from torch import nn

try:
    import statrec
    from statrec._library import library
    library()
except Exception as error:  # other tests tell what is missing
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
        """sum_gx is the gradient of the weight, sum_g that of the bias; mu is from before."""
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

    def test_exception_and_no_step(self):
        with self.assertRaises(ValueError):
            with watch(model_of(), self.path):
                raise ValueError("bad batch")
        if os.path.exists(self.path):
            with statrec.open(self.path) as file:
                self.assertEqual(file.info["status"], "failed")


if __name__ == "__main__":
    unittest.main()
