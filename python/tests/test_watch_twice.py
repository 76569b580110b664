"""statrec.watch of forward passes with several backward passes: two losses, a gradient penalty."""

import unittest
import warnings

from watch_help import WatchCase, fake_watch, reference

import torch
from torch import nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

NORMS = {
    "layer norm": lambda: nn.LayerNorm(8),
    "group norm": lambda: nn.GroupNorm(2, 8),
    "batch norm": lambda: nn.BatchNorm1d(8),
    "batch norm without gain": lambda: nn.BatchNorm1d(8, affine=False),
}


class Steps(WatchCase):
    """Steps of a model Linear, norm, Linear; records with a hook of the norm's output."""

    threads = 1, 4

    def setUp(self):
        torch.manual_seed(7)
        self.addCleanup(torch.set_num_threads, 1)

    def record(self, norm, act, steps=3, **options):
        """act(forward, heard) in each step: the run, its warnings, and the (x, [g, ...]) of each forward pass."""
        model, heard = nn.Sequential(nn.Linear(6, 8), norm, nn.Tanh(), nn.Linear(8, 2)), []

        def forward(x):
            h = model[0](x)
            y = model[1](h)
            heard.append((h, []))
            y.register_hook(lambda g, grads=heard[-1][1]: grads.append(g.detach()) and None)
            return model[2:](y)

        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with fake_watch(model, "1", **options) as run:
                for _ in range(steps):
                    heard.clear()
                    act(forward)
                    run.step()
        texts = [str(one.message) for one in said if "statrec" in str(one.message)]
        return run, texts, heard

    def each(self, act, judge, **options):
        for name, make in NORMS.items():
            for repeat in (None, "last", "merge"):
                for threads in self.threads:
                    torch.set_num_threads(threads)
                    with self.subTest(name, repeat=repeat, threads=threads):
                        judge(*self.record(make(), act, repeat=repeat, **options))


class Twice(Steps):
    """backward() of several losses."""

    def judge_sum(self, run, said, heard):
        """One pass with the rows of one forward pass, and the sum of the gradients."""
        self.assertEqual(said, [])
        ((x, grads),) = heard
        (one,) = run.recorder.passes("1", 2)
        self.assertEqual(one["rows"], 16)
        want = reference(x, sum(grads))
        one = {**one, "sum_gg": want["sum_gg"]}  # it is not known
        self.close_to(one, want, 5e-6)
        self.assertNotIn("dx_norm", {which for _, which in run.recorder.steps[2]["scalars"]})

    def test_two_losses(self):
        def act(forward):
            y = forward(torch.randn(16, 6))
            y[:, 0].mean().backward(retain_graph=True)
            y[:, 1].mean().backward()

        self.each(act, self.judge_sum)

    def test_three_losses(self):
        def act(forward):
            y = forward(torch.randn(16, 6))
            for power in (1, 2, 3):
                (y**power).mean().backward(retain_graph=True)

        self.each(act, self.judge_sum)

    def test_losses_of_micro_batches(self):
        """The gradients of each pass of a merged step add up."""

        def act(forward):
            for _ in range(2):
                y = forward(torch.randn(16, 6))
                y[:, 0].mean().backward(retain_graph=True)
                y[:, 1].mean().backward()

        for name, make in NORMS.items():
            with self.subTest(name):
                run, said, heard = self.record(make(), act, repeat="merge")
                self.assertEqual(said, [])
                for one, (x, grads) in zip(run.recorder.passes("1", 2), heard):
                    want = reference(x, sum(grads))
                    self.close_to({**one, "sum_gg": want["sum_gg"]}, want, 5e-6)

    def test_checkpointed(self):
        def act(forward):
            x = torch.randn(16, 6, requires_grad=True)
            y = checkpoint(forward, x, use_reentrant=False)
            y[:, 0].mean().backward(retain_graph=True)
            y[:, 1].mean().backward()

        for name, make in NORMS.items():
            run, said, heard = self.record(make(), act)
            self.assertEqual(said, [])
            (one,) = run.recorder.passes("1", 2)
            x, grads = heard[0][0], [g for _, several in heard for g in several]
            want = reference(x, sum(grads))
            self.close_to({**one, "sum_gg": want["sum_gg"]}, want, 5e-6)

    def test_graph_that_was_freed(self):
        """An output whose node saves nothing: the second gradient comes, x is gone."""
        model = nn.ModuleDict({"norm": nn.LayerNorm(8), "same": nn.Identity()})
        with fake_watch(model, observe="same") as run:
            y = model["same"](torch.randn(4, 8, requires_grad=True) + 1)
            for _ in range(2):
                y.sum().backward()
            with self.assertWarnsRegex(RuntimeWarning, "'same' is not recorded: .*graph was freed"):
                run.step()
        self.assertEqual(run.recorder.steps[0]["passes"], [])


class Penalty(Steps):
    """torch.autograd.grad() beside backward()."""

    @staticmethod
    def penalty(forward):
        x = torch.randn(16, 6, requires_grad=True)
        y = forward(x)
        (gx,) = torch.autograd.grad(y[:, 0].sum(), x, create_graph=True)
        return (gx.norm(dim=1) - 1).square().mean() + y[:, 0].mean()

    def judge_last(self, run, said, heard):
        self.assertEqual(said, [])
        ((x, grads),) = heard
        self.assertEqual(len(grads), 2)
        (one,) = run.recorder.passes("1", 2)
        self.close_to(one, reference(x, grads[-1]), 2e-5)

    def test_gradient_penalty(self):
        self.each(lambda forward: self.penalty(forward).backward(), self.judge_last)

    def test_second_derivative(self):
        """The loss's backward() comes first, the product with the Hessian after it."""

        def act(forward):
            x = torch.randn(16, 6, requires_grad=True)
            y = forward(x)
            (gx,) = torch.autograd.grad(y.mean(), x, retain_graph=True)
            y.square().mean().backward(create_graph=True)
            torch.autograd.grad(x.grad, x, torch.ones_like(x), retain_graph=True)

        def judge(run, said, heard):
            self.assertEqual(said, [])
            ((x, grads),) = heard
            self.assertEqual(len(grads), 3)
            self.close_to(run.recorder.passes("1", 2)[0], reference(x, grads[1]), 2e-5)

        self.each(act, judge)

    def test_without_backward(self):
        """One torch.autograd.grad() is recorded. With two, it is unknown which one belongs to the loss."""
        model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.BatchNorm1d(8))
        with fake_watch(model) as run:
            for count in (1, 2, 1):
                y = model(torch.randn(16, 6)).square().mean()
                for _ in range(count):
                    torch.autograd.grad(y, list(model.parameters()), retain_graph=True)
                if count == 1:
                    run.step()
                else:
                    with self.assertWarnsRegex(RuntimeWarning, "no backward"):
                        run.step()
        self.assertEqual([len(one["passes"]) for one in run.recorder.steps], [2, 0, 2])
        self.assertIn("torch.autograd.grad", run.recorder.reason)

    def test_of_other_forward_passes(self):
        """An attack on the input before the loss: its forward passes are not the loss's."""

        def act(forward):
            x = torch.randn(16, 6, requires_grad=True)
            torch.autograd.grad(forward(x).sum(), x)
            forward(x.detach()).square().mean().backward()

        for name in ("layer norm", "batch norm"):
            run, said, heard = self.record(NORMS[name](), act, repeat="merge")
            self.assertEqual(said, [])
            (one,) = run.recorder.passes("1", 2)
            x, (g,) = heard[1]
            self.close_to(one, reference(x, g), 5e-6)


class Functional(Steps):
    """torch.func.functional_call: parameters from outside the module."""

    def test_gain(self):
        for name in ("layer norm", "group norm", "batch norm"):
            norm = NORMS[name]()
            model = nn.Sequential(nn.Linear(6, 8), norm)
            others = [{n: (v.detach() * k).requires_grad_() for n, v in model.named_parameters()} for k in (3, 5)]
            with self.subTest(name), fake_watch(model, repeat="merge") as run:
                for _ in range(3):
                    for other in others:
                        functional_call(model, other, (torch.randn(16, 6),)).square().mean().backward()
                    model(torch.randn(16, 6)).square().mean().backward()
                    run.step()
            for step in range(3):
                self.assertEqual([one["gamma"] for one in run.recorder.passes("1", step)], [[k] * 8 for k in (3, 5, 1)])

    def test_passes_that_wait(self):
        """Forward passes with two gains before any backward pass."""
        model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8))
        other = {name: (value.detach() * 3).requires_grad_() for name, value in model.named_parameters()}
        with fake_watch(model, repeat="merge") as run:
            for _ in range(3):
                y = model(torch.randn(16, 6)), functional_call(model, other, (torch.randn(16, 6),))
                sum(one.square().mean() for one in y).backward()
                run.step()
        for step in range(3):
            gains = sorted(one["gamma"][0] for one in run.recorder.passes("1", step))
            self.assertEqual(gains, [1, 3])


if __name__ == "__main__":
    unittest.main()
