"""Shared by the tests of statrec.nn: modules with short schedules, batches, a training call. Without torch, tests that
import it are skipped."""

import unittest

from support import module

torch = module("torch")
if torch is None:
    raise unittest.SkipTest("no torch")

import statrec.nn as sn  # noqa: E402

OPTIONS = {
    "un": {"warmup": 0, "window": 3},
    "mabn": {"warmup": 3, "buffer": 3, "clip_calls": 3},
    "brn": {"warmup": 1, "r_calls": 4, "d_calls": 4},
    "repbn": {"t0": 4},
    "pn-released": {"warmup": 2},
}
# Methods whose backward pass is the derivative of the forward pass in every call.
EXACT = (
    "bn",
    "bn-powernorm",
    "ln",
    "ln-simple",
    "rmsnorm",
    "pnv",
    "ls",
    "rbn",
    "rbn-released",
    "dyt",
    "derf",
    "repbn",
    "unit",
)
# Largest difference from float64 in units of the type's epsilon: outputs and gradients of a normal
# batch, each divided by its largest number.
EPSILONS = 24


def make(name, features=6, **options):
    return sn.make(name, features, **{**OPTIONS.get(name, {}), **options})


def step(norm, x, g, mask=None):
    """y and dx of a training call, without the penalty."""
    x = x.detach().clone().requires_grad_()
    y = norm(x, mask)
    if isinstance(norm, sn.Norm):
        sn.penalty(norm)
    y.backward(g)
    return y.detach(), x.grad


def batches(count, rows=16, features=6, dtype=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        x, g = (
            torch.randn(rows, features, generator=generator, dtype=torch.float64) for _ in range(2)
        )
        yield (1.5 * x + 0.5).to(dtype or torch.float64), g.to(dtype or torch.float64)


def gained(norm):
    """The module in float64 with a gain and a bias that are not 1 and 0."""
    norm = norm.double()
    with torch.no_grad():
        for i, parameter in enumerate(norm.parameters()):
            parameter.add_(
                torch.linspace(-0.3, 0.4, parameter.numel(), dtype=torch.float64).view(
                    parameter.shape
                )
                * (1 + i)
            )
    return norm
