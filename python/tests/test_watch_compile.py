"""statrec.watch under torch.compile: registered before compiling, the sums are the same."""
import os
import shutil
import unittest
import warnings

import watch_help as help_
from watch_help import WatchCase, fake_watch, merged, reference

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

COMPILER = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")


def model_of(norm, plain=False):
    torch.manual_seed(6)
    return nn.Sequential(nn.Linear(5, 8), norm, nn.ReLU(inplace=not plain), nn.Linear(8, 2))


def truth(norm, batch):
    model = model_of(norm, True)
    state = help_.weights(model)
    x = model[0](batch).detach()
    y = model[1](x).detach().requires_grad_()
    g, = torch.autograd.grad(model[2:](y).square().mean(), y)
    model.load_state_dict(state)
    return model_of(norm), x, g


class Traced(WatchCase):
    """The traced graph without code generation: quick, and needs no C++ compiler."""
    backend = "aot_eager"

    def setUp(self):
        torch.manual_seed(7)
        torch._dynamo.reset()

    def compiled(self, model):
        return torch.compile(model, fullgraph=True, backend=self.backend)

    def step(self, run, model, batch, times=1):
        for _ in range(times):
            model(batch).square().mean().backward()
        run.step()

    def test_modules(self):
        for make, shape in ((lambda: nn.LayerNorm(8), (6, 7, 5)),
                            (lambda: nn.BatchNorm1d(8), (40, 5)),
                            (lambda: nn.RMSNorm(8), (6, 7, 5)),
                            (lambda: nn.GroupNorm(2, 8), (40, 5))):
            with self.subTest(make().__class__.__name__):
                batch, first = torch.randn(shape), len(shape) == 2
                model, x, g = truth(make(), batch)
                with fake_watch(model) as run:
                    self.step(run, self.compiled(model), batch)
                one, = run.recorder.passes("1")
                self.close_to(one, reference(x, g, first))
                self.assertEqual(one["padded"], 0)
                if one["gamma"] is not None:
                    self.assertEqual(one["gamma"], model[1].weight.double().tolist())

    def test_planes_and_samples(self):
        torch.manual_seed(6)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        batch = torch.randn(5, 3, 8, 8)
        with fake_watch(model) as want:
            self.step(want, model, batch)
        with fake_watch(model) as run:
            self.step(run, self.compiled(model), batch)
        got, one = run.recorder.passes("1")[0], want.recorder.passes("1")[0]
        self.assertEqual(got["samples"], 5)
        self.close_to(got, {name: torch.tensor(value, dtype=torch.float64)
                            if isinstance(value, list) else value for name, value in one.items()})

    def test_mask(self):
        batch, valid = torch.randn(6, 7, 5), torch.rand(6, 7) < 0.5
        model, x, g = truth(nn.LayerNorm(8), batch)
        with fake_watch(model) as run:
            run.mask(valid)
            self.step(run, self.compiled(model), batch)
        one, = run.recorder.passes("1")
        self.close_to(one, reference(x, g, valid=valid))
        self.assertEqual(one["padded"], int((~valid).sum()))

    def test_empty_mask(self):
        model = model_of(nn.LayerNorm(8))
        with fake_watch(model) as run:
            run.mask(torch.zeros(6, 7))
            compiled = self.compiled(model)
            self.step(run, compiled, torch.randn(6, 7, 5))
            losses = []
            for valid in (torch.zeros(6, 7), torch.ones(6, 7)):  # two uses, one backward call
                run.mask(valid)
                losses.append(compiled(torch.randn(6, 7, 5)).square().mean())
            sum(losses).backward()
            run.step()
        self.assertEqual(run.recorder.passes("1", 0), [])
        one, = run.recorder.passes("1", 1)
        self.assertEqual((one["rows"], one["padded"]), (42, 42))
        for value in one["mean"] + one["variance"]:
            self.assertLess(abs(value), 1e3)

    def test_accumulation_and_other_shapes(self):
        """Two backward calls are two passes; a new batch size is traced again."""
        batch = torch.randn(12, 5)
        model, x, g = truth(nn.LayerNorm(8), batch)
        compiled = self.compiled(model)
        with fake_watch(model, repeat="merge") as run:
            self.step(run, compiled, batch, times=2)
            self.step(run, compiled, torch.randn(17, 5))
            self.step(run, compiled, torch.randn(19, 5))
        want = reference(torch.cat([x, x]), torch.cat([g, g]))
        self.close_to(merged(run.recorder.passes("1", 0)), want)
        rows = [[one["rows"] for one in step["passes"]] for step in run.recorder.steps]
        self.assertEqual(rows, [[12, 12], [17], [19]])

    def test_large_mean(self):
        batch = torch.randn(300, 5)
        model, x, g = truth(nn.LayerNorm(8), batch)
        with torch.no_grad():
            model[0].bias += 1e4
        with fake_watch(model) as run:
            self.step(run, self.compiled(model), batch)
        one, want = run.recorder.passes("1")[0], reference(model[0](batch), g)
        for got, true in zip(one["variance"], want["variance"].tolist()):
            self.assertAlmostEqual(got / true, 1, delta=2e-4)

    def test_uses_of_a_shared_module(self):
        """One backward call adds the leaf's gradients: the uses are merged."""
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.linear = nn.LayerNorm(6), nn.Linear(6, 6)

            def forward(self, x):
                return self.norm(self.linear(self.norm(x)).relu() + 3)
        model, batch = Twice(), torch.randn(20, 6)
        one = model.norm(batch).detach().requires_grad_()
        between = model.linear(one).relu() + 3
        two = model.norm(between)
        g = torch.autograd.grad(two.square().mean() + two[0].sum(), [one, two])
        with fake_watch(model, repeat="merge") as run:
            out = self.compiled(model)(batch)
            (out.square().mean() + out[0].sum()).backward()
            run.step()
        got, = run.recorder.passes("norm")
        self.close_to(got, reference(torch.cat([batch, between]), torch.cat(g)), 5e-6)

    def test_checkpoint_within(self):
        batch = torch.randn(12, 5)
        model, x, g = truth(nn.LayerNorm(8), batch)

        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = model

            def forward(self, x):
                return checkpoint(self.inner, x, use_reentrant=False)
        outer = Outer()
        with fake_watch(outer, repeat="merge") as run:
            self.step(run, self.compiled(outer), batch)
        self.close_to(run.recorder.passes("inner.1")[0], reference(x, g))

    def test_evaluation_and_detach(self):
        model, batch = model_of(nn.LayerNorm(8)), torch.randn(12, 5)
        compiled = self.compiled(model)
        run = fake_watch(model, repeat="merge")
        model.eval()
        with torch.no_grad():
            compiled(batch)
        model.train()
        self.step(run, compiled, batch)
        run.detach()
        compiled(batch).sum().backward()
        run.close()
        self.assertEqual(len(run.recorder.passes("1", 0)), 1)
        self.assertTrue(all(not tap.passes for tap in run._taps))

    def test_weights_are_the_same(self):
        """Bit by bit: the traced operations of the host are the same ones."""
        finals = []
        for watched in (False, True):
            model = model_of(nn.BatchNorm1d(8))
            torch._dynamo.reset()
            compiled = self.compiled(model)
            run = fake_watch(model) if watched else None
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            torch.manual_seed(8)
            for _ in range(3):
                optimizer.zero_grad()
                compiled(torch.randn(12, 5)).square().mean().backward()
                optimizer.step()
                if run:
                    run.step()
            if run:
                run.close()
                self.assertEqual([len(s["passes"]) for s in run.recorder.steps], [1, 1, 1])
            finals.append(help_.weights(model))
        self.assertTrue(help_.same(*finals))

    def test_observed(self):
        torch.manual_seed(6)
        model = nn.Sequential(nn.Linear(5, 8), nn.Sigmoid(), nn.Identity(), nn.Linear(8, 1))
        batch = torch.randn(12, 5)
        x = model[:2](batch).detach().requires_grad_()
        g, = torch.autograd.grad(model[3](x).square().mean(), x)
        with fake_watch(model, sites=[], observe="2") as run:
            self.step(run, model, batch)
            torch.manual_seed(6)
            self.step(run, self.compiled(model), batch)
        for step in (0, 1):
            self.close_to(run.recorder.passes("2", step)[0], reference(x, g), 2e-5)

    def test_width_not_known(self):
        model = nn.Sequential(nn.Linear(5, 8), nn.Identity(), nn.Linear(8, 1))
        with fake_watch(model, sites=[], observe="1") as run:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                self.step(run, self.compiled(model), torch.randn(4, 5))
        self.assertTrue(any("'1' is not recorded" in str(one.message) for one in told))

    def test_autocast(self):
        model, batch = model_of(nn.LayerNorm(8)), torch.randn(200, 5)
        with torch.autocast("cpu", torch.bfloat16):
            with fake_watch(model) as want:
                self.step(want, model, batch)
            with fake_watch(model) as run:
                self.step(run, self.compiled(model), batch)
        got, one = run.recorder.passes("1")[0], want.recorder.passes("1")[0]
        self.close_to(got, {name: torch.tensor(value, dtype=torch.float64)
                            if isinstance(value, list) else value for name, value in one.items()},
                      5e-3)


@unittest.skipUnless(COMPILER, "no C++ compiler for torch.compile")
class Generated(WatchCase):
    """The same with generated code; slow to compile, hence one model with all in it."""

    def test_inductor(self):
        torch.manual_seed(7)
        torch._dynamo.reset()
        batch, valid = torch.randn(6, 70, 5), torch.rand(6, 70) < 0.5
        model, x, g = truth(nn.LayerNorm(8), batch)
        with fake_watch(model) as run:
            compiled = torch.compile(model, fullgraph=True)
            for mask in (None, valid):
                run.mask(mask)
                compiled(batch).square().mean().backward()
                run.step()
        self.close_to(run.recorder.passes("1", 0)[0], reference(x, g))
        self.close_to(run.recorder.passes("1", 1)[0], reference(x, g, valid=valid))


if __name__ == "__main__":
    unittest.main()
