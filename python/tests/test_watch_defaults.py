"""torch.set_default_device and set_default_dtype are for the host's tensors alone."""

import contextlib
import unittest

from watch_help import WatchCase, fake_watch

import statrec
import torch
from statrec._watching import _probe
from torch import nn


class OwnNorm(nn.Module):
    """Is probed."""

    def __init__(self, width):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.rand(width) + 0.5), 1e-5

    def forward(self, x):
        ones = torch.ones(x.shape[-1], device=x.device, dtype=x.dtype)
        return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt() * self.weight * ones


def model():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 6, 1),
        nn.BatchNorm2d(6),
        nn.GroupNorm(2, 6),
        nn.Flatten(2),
        nn.LayerNorm(20),
        OwnNorm(20),
        nn.LazyBatchNorm1d(),
        nn.Linear(20, 5),
        nn.RMSNorm(5),
    )


@contextlib.contextmanager
def dtype(wanted):
    before = torch.get_default_dtype()
    torch.set_default_dtype(wanted)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def record(around, **options):
    """Returns the recorder's input in three steps of two passes."""
    net, rows = model(), torch.Generator().manual_seed(5)
    batches = torch.randn(6, 7, 3, 4, 5, generator=rows)
    with around, fake_watch(net, **options) as run:
        for step in range(3):
            if "forward" not in options:
                run.mask([True] * 5 + [False] * 2)
            for batch in batches[2 * step : 2 * step + 2]:
                loss = net(batch).square().sum()
                loss.backward()
            run.step(loss=loss, lr=0.1)
    return run.recorder.sites, run.recorder.steps, run.failure


class Defaults(WatchCase):
    def test_they_do_not_matter(self):
        for options in (
            dict(),
            dict(repeat="merge", activations_every=1),
            dict(forward=True),
            dict(every=2),
        ):
            want = record(contextlib.nullcontext(), **options)
            self.assertIsNone(want[2])
            self.assertGreater(len(want[1][1]["passes"]), 4)
            for around in (torch.device("meta"), dtype(torch.float64), dtype(torch.float16)):
                _probe._by_kind.clear()
                self.assertEqual(repr(record(around, **options)), repr(want), (around, options))

    def test_set_for_the_process(self):
        self.addCleanup(torch.set_default_device, None)
        want = record(contextlib.nullcontext())
        torch.set_default_device("meta")
        with torch.device("cpu"):
            net = model()
        with fake_watch(net) as run:
            batch = torch.randn(7, 3, 4, 5, device="cpu")
            net(batch).square().sum().backward()
            run.step()
        self.assertEqual(len(run.recorder.steps[0]["passes"]), len(want[0]))

    def test_the_library_alone(self):
        x = torch.randn(50, 4)
        want = statrec._native.moments(x)
        with torch.device("meta"):
            self.assertTrue(torch.equal(statrec._native.moments(x), want))


if __name__ == "__main__":
    unittest.main()
