"""Norms that are probed: each by its own settings, and only as they
are called; the probe moves no random state."""

import random
import types
import unittest
import warnings

from watch_help import WatchCase, fake_watch, reference

import torch
import torch.nn.functional as F
from torch import nn

try:
    import numpy
except ImportError:
    numpy = None


class AnyNorm(nn.Module):
    """A layer norm of `dims`, then `act`; its gain and eps come from a config."""

    def __init__(self, width, dims=(-1,), act=None, **config):
        super().__init__()
        self.weight, self.dims, self.act = nn.Parameter(torch.rand(width)), dims, act
        self.config = types.SimpleNamespace(**{"eps": 1e-5, "offset": 0, **config})

    def forward(self, x):
        variance, mean = torch.var_mean(x, self.dims, correction=0, keepdim=True)
        y = (x - mean) * (variance + self.config.eps).rsqrt() * (self.weight + self.config.offset)
        return y if self.act is None else self.act(y)


class PlainConfig:
    def __init__(self, **options):
        vars(self).update(options)


class AddNorm(nn.Module):
    """With an optional second input, and a scale in some calls only."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x, residual=None, scale=None, eps=1e-5):
        x = x if residual is None else x + residual
        y = x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * self.weight
        return y if scale is None else y * (1 + scale)


def decorated(function):
    def forward(self, *given, **named):
        return function(self, *given, **named)

    return forward


class WrappedNorm(AddNorm):
    """Its signature hides its arguments."""

    forward = decorated(AddNorm.forward)


class EitherNorm(nn.Module):
    """One of two functions, and an activation."""

    def __init__(self, width):
        super().__init__()
        self.width = (width,)
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x, mean=True):
        function = F.layer_norm if mean else F.rms_norm
        return function(x, self.width, self.weight).relu()


class RandomNorm(nn.Module):
    """Its forward draws numbers of every kind."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        torch.rand(3), random.random(), numpy is None or numpy.random.rand()
        return F.layer_norm(x, x.shape[-1:], self.weight)


def states():
    return (
        torch.get_rng_state().tolist(),
        random.getstate(),
        None if numpy is None else numpy.random.get_state()[1].tolist(),
    )


class Settings(WatchCase):
    def found(self, *norms):
        """{name: (norm, eps, gain)} of the sites that are recorded of norms in one model."""
        model = nn.Sequential(nn.Linear(5, 6), *norms)
        with fake_watch(model) as run:
            model(torch.randn(3, 4, 5)).square().sum().backward()
            run.step()
        passes = {name: run.recorder.passes(name)[0] for name in run.sites}
        return {
            name: (site["norm"], site["eps"], passes[name]["gamma"])
            for name, site in ((site["name"], site) for site in run.recorder.sites)
        }

    def test_settings_of_any_kind(self):
        for other in (dict(act=torch.tanh), dict(act=nn.functional.softplus), dict(dims=(0, 1))):
            for norms, name in (
                ((AnyNorm(6), AnyNorm(6, **other)), "1"),
                ((AnyNorm(6, **other), AnyNorm(6)), "2"),
            ):
                self.assertEqual(list(self.found(*norms)), [name], other)

    def test_configs(self):
        for form in (types.SimpleNamespace, PlainConfig):
            norms = [AnyNorm(6), AnyNorm(6), AnyNorm(6)]
            for norm, options in zip(norms, (dict(), dict(offset=1), dict(eps=1e-3))):
                norm.config = form(**{"eps": 1e-5, "offset": 0, **options})
            found = self.found(*norms)
            self.assertEqual([eps for _, eps, _ in found.values()], [1e-5, 1e-5, 1e-3])
            for (_, _, gain), norm in zip(found.values(), norms):
                want = norm.weight.double() + norm.config.offset
                self.assertLess(
                    (torch.as_tensor(gain, dtype=torch.float64) - want).abs().max(), 1e-6
                )

    def test_a_setting_that_changes_later(self):
        norm = AnyNorm(6)
        self.assertEqual(self.found(norm)["1"][1], 1e-5)
        norm.config.eps = 1e-3
        self.assertEqual(self.found(norm)["1"][1], 1e-3)

    def test_random_states(self):
        before, model = states(), nn.Sequential(RandomNorm(6))
        fake_watch(model).close()
        self.assertEqual(states(), before)


class Calls(WatchCase):
    def record(self, call, norm=None, steps=3):
        """The run, its warnings, and the last x of the norm; call(norm, x, step)."""
        model = nn.ModuleList([norm or AddNorm(6), nn.LayerNorm(6)])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with fake_watch(model) as run:
                for step in range(steps):
                    x = torch.randn(7, 6, requires_grad=True)
                    y = call(model[0], x, step)
                    y.retain_grad()
                    model[1](y).mul(torch.randn(7, 6)).sum().backward()
                    run.step()
        return run, [str(one.message) for one in said if "statrec" in str(one.message)], (x, y.grad)

    def test_with_its_input_alone(self):
        for call in (
            lambda norm, x, step: norm(x),
            lambda norm, x, step: norm(x=x),
            lambda norm, x, step: norm(x, None, scale=None),
        ):
            run, said, given = self.record(call)
            self.assertEqual(said, [])
            self.close_to(run.recorder.passes("0", 2)[0], reference(*given))

    def test_behind_a_decorator(self):
        for call in (lambda norm, x, step: norm(x), lambda norm, x, step: norm(x=x)):
            run, said, given = self.record(call, WrappedNorm(6))
            self.assertEqual(said, [])
            self.close_to(run.recorder.passes("0", 2)[0], reference(*given))
        run, said, _ = self.record(lambda norm, x, step: norm(x, residual=x), WrappedNorm(6))
        self.assertEqual(run.recorder.passes("0", 2), [])

    def test_with_more_where_nothing_is_recorded(self):
        def call(norm, x, step):
            with torch.no_grad():
                norm(x, x)
            norm.eval()(x, x)
            return norm.train()(x)

        run, said, given = self.record(call)
        self.assertEqual((said, run.recorder.reason), ([], ""))
        self.close_to(run.recorder.passes("0", 2)[0], reference(*given))

    def test_with_more(self):
        other = torch.randn(7, 6)
        for call in (
            lambda norm, x, step: norm(x, other),
            lambda norm, x, step: norm(x, scale=other),
            lambda norm, x, step: norm(residual=other, x=x),
            lambda norm, x, step: norm(x, eps=1.0),
        ):
            run, said, _ = self.record(call)
            self.assertEqual([run.recorder.passes("0", step) for step in range(3)], [[]] * 3)
            self.assertEqual(len(said), 1)
            self.assertIn(
                "not recorded: '0': it was called with more than its input", run.recorder.reason
            )

    def test_with_more_in_one_step(self):
        run, _, given = self.record(
            lambda norm, x, step: norm(x, torch.ones(7, 6)) if step == 1 else norm(x)
        )
        self.assertEqual([len(run.recorder.passes("0", step)) for step in range(3)], [1, 0, 1])
        self.close_to(run.recorder.passes("0", 2)[0], reference(*given))
        self.assertIn("not recorded in 1 of 3 steps: '0': it was called with", run.recorder.reason)

    def test_another_function(self):
        run, _, _ = self.record(lambda norm, x, step: norm(x, step != 1), EitherNorm(6))
        self.assertEqual([len(run.recorder.passes("0", step)) for step in range(3)], [1, 0, 1])
        self.assertIn(
            "not recorded in 1 of 3 steps: '0': it called the function of a rmsnorm",
            run.recorder.reason,
        )


if __name__ == "__main__":
    unittest.main()
