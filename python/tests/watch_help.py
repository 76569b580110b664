"""Plain references for the tests of statrec.watch. Without torch, tests that import it are skipped."""
import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

from fake_recorder import FakeRecorder  # noqa: E402
from statrec.watch import watch  # noqa: E402

torch.set_num_threads(1)


def fake_watch(model, *sites, **options):
    """A run whose recorder keeps its arguments."""
    options.setdefault("recorder", FakeRecorder)
    options.setdefault("verbose", False)
    return watch(model, "run.h5", **({"sites": list(sites)} if sites else {}), **options)


def rows_of(tensor, first, trailing, valid=None):
    """[rows, features] in float64 of the valid rows, written out without any of the package."""
    tensor = tensor.detach().double()
    if first and tensor.dim() > 2:
        order = [0, *range(2, tensor.dim()), 1]
        tensor = tensor.permute(order)
    features = tensor.shape[-1] if first else tensor[(0,) * (tensor.dim() - trailing)].numel()
    tensor = tensor.reshape(-1, features)
    return tensor if valid is None else tensor[valid.reshape(-1).bool()]


def reference(x, g, first=False, trailing=1, valid=None):
    """Expected values of a pass, in float64."""
    x, g = (rows_of(t, first, trailing, valid) for t in (x, g))
    mean = x.sum(0) / x.shape[0]
    centred = x - mean
    return dict(rows=x.shape[0], mean=mean, variance=((x - mean) ** 2).sum(0) / x.shape[0],
                mean_square=(x ** 2).sum(0) / x.shape[0], sum_g=g.sum(0),
                sum_gc=(g * centred).sum(0), sum_gg=(g ** 2).sum(0))


def joined(parts):
    """reference of [(x, g)] as one batch; both [rows, features]."""
    return reference(torch.cat([x for x, _ in parts]), torch.cat([g for _, g in parts]))


def merged(passes):
    """Passes as one (Chan et al.), as the recorder does it."""
    t = {name: [torch.tensor(one[name], dtype=torch.float64) for one in passes]
         for name in ("mean", "variance", "sum_g", "sum_gc", "sum_gg")}
    n = [one["rows"] for one in passes]
    mean = sum(k * m for k, m in zip(n, t["mean"])) / sum(n)
    variance = sum(k * (v + (m - mean) ** 2)
                   for k, v, m in zip(n, t["variance"], t["mean"])) / sum(n)
    sum_gc = sum(c + (m - mean) * s for c, m, s in zip(t["sum_gc"], t["mean"], t["sum_g"]))
    return dict(rows=sum(n), mean=mean, variance=variance, mean_square=variance + mean ** 2,
                sum_g=sum(t["sum_g"]), sum_gc=sum_gc, sum_gg=sum(t["sum_gg"]))


class WatchCase(unittest.TestCase):
    """Compares passes with references."""

    def patch(self, where, name, value):
        """Sets where.name to value until the end of the test."""
        patcher = mock.patch.object(where, name, value)
        patcher.start()
        self.addCleanup(patcher.stop)

    def close_to(self, got, want, tolerance=2e-6):
        """Every number within tolerance of the largest of its kind."""
        self.assertEqual(got["rows"], want["rows"])
        for name in ("mean", "variance", "mean_square", "sum_g", "sum_gc", "sum_gg"):
            a, b = torch.as_tensor(got[name], dtype=torch.float64), want[name]
            self.assertEqual(a.shape, b.shape, name)
            scale = b.abs().max().item()
            self.assertLessEqual((a - b).abs().max().item(), tolerance * scale + 1e-300, name)


def weights(model):
    """All parameters and buffers, to be compared bit by bit."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
