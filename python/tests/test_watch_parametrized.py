"""Gains made by a parametrization: the gain of the pass is recorded, without running it again."""

import copy
import unittest

from watch_help import WatchCase, fake_watch

import statrec
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize


class Counted(nn.Module):
    """Another gain in each call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, weight):
        self.calls += 1
        return weight * (1 + 0.1 * self.calls)


class Registered(nn.Module):
    """Its class is registered; a module with a parametrization has another class."""

    def __init__(self, width):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.rand(width) + 0.5), 1e-5

    def forward(self, x):
        return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt() * self.weight


def dropout(norm):
    parametrize.register_parametrization(norm, "weight", nn.Dropout(0.4))
    return norm


def counted(norm):
    parametrize.register_parametrization(norm, "weight", Counted())
    (
        parametrize.register_parametrization(norm, "bias", Counted())
        if getattr(norm, "bias", None) is not None
        else None
    )
    return norm


def build(*norms):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 6), *norms, nn.Linear(6, 2))


def train(model, watched, **options):
    """Three steps: the run, the weights, the random state, and the gains that norms made."""
    gains, run = [], fake_watch(model, **options) if watched else None
    handles = [
        module.register_forward_hook(lambda module, args, made: gains.append(made.detach().clone()))
        for name, module in model.named_modules()
        if name.endswith("parametrizations.weight")
    ]
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    torch.manual_seed(5)
    for _ in range(3):
        model(torch.randn(7, 5)).square().mean().backward()
        if run is not None:
            run.step()
        optimizer.step()
        optimizer.zero_grad()
    for handle in handles:
        handle.remove()
    if run is not None:
        run.close()
    return run, copy.deepcopy(model.state_dict()), torch.get_rng_state(), gains


class Parametrized(WatchCase):
    def check(self, make, recorded=True, **options):
        torch.manual_seed(1)
        model = build(make())
        twin = build(make())
        twin.load_state_dict(model.state_dict())
        _, want, state, _ = train(twin, False)
        run, got, here, gains = train(model, True, **options)
        self.assertIsNone(run.failure)
        self.assertTrue(torch.equal(here, state))
        for name, value in want.items():
            self.assertTrue(torch.equal(got[name], value), (make, name))
        if recorded:
            self.assertEqual((len(gains), run.recorder.reason), (3, ""))
        for step, gain in enumerate(gains if recorded else ()):
            (one,) = run.recorder.passes("1", step)
            found = torch.as_tensor(one["gamma"], dtype=torch.float64)
            self.assertLess((found - gain.reshape(-1).double()).abs().max(), 1e-6)

    def test_what_the_pass_had(self):
        for change in (
            dropout,
            counted,
            lambda norm: parametrizations.weight_norm(norm, "weight", dim=None),
        ):
            for norm in (
                nn.LayerNorm,
                nn.BatchNorm1d,
                nn.RMSNorm,
                lambda width: nn.GroupNorm(2, width),
            ):
                for options in (dict(), dict(activations_every=1)):
                    self.check(lambda: change(norm(6)), **options)

    def test_a_registered_norm(self):
        def make():
            norm = dropout(Registered(6))
            statrec.register(type(norm), "rmsnorm", gain=lambda module: 0 + module.weight)
            return norm

        self.check(make)

    def test_forward_alone(self):
        model, twin = build(counted(nn.LayerNorm(6))), build(counted(nn.LayerNorm(6)))
        with torch.no_grad(), fake_watch(model, forward=True) as run:
            model(torch.randn(7, 5)), twin(torch.randn(7, 5))
            run.step()
        name = "1.parametrizations.weight.0.calls"
        self.assertEqual(model.state_dict()[name], twin.state_dict()[name])

    def test_one_that_came_after_watch(self):
        """Is named, and runs no more often."""
        model = build(nn.LayerNorm(6))
        with self.assertWarnsRegex(
            RuntimeWarning, "'1' is not recorded: a parametrization made its gain"
        ):
            with fake_watch(model) as run:
                counted(model[1])
                for _ in range(2):
                    model(torch.randn(7, 5)).square().sum().backward()
                    run.step()
        self.assertEqual(
            model[1].parametrizations.weight[0].calls, 3
        )  # one of register_parametrization
        self.assertIsNone(run.failure)
        self.assertIn("not recorded: '1': a parametrization made its gain", run.recorder.reason)


if __name__ == "__main__":
    unittest.main()
