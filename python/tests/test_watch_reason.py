"""statrec.watch: the warning and /state/reason of steps and sites without rows, and in how many steps."""

import unittest
import warnings

from watch_help import WatchCase, fake_watch, reference

import torch
from torch import nn

NORMS = (nn.LayerNorm, nn.BatchNorm1d, lambda width: nn.GroupNorm(2, width))


class Shared(nn.Module):
    """A norm that is called twice in a forward pass."""

    def __init__(self, norm):
        super().__init__()
        self.a, self.n = nn.Linear(8, 8), norm(8)

    def forward(self, x):
        return self.n(self.a(self.n(self.a(x))))


class Reason(WatchCase):
    def record(self, model, act, steps=4, **options):
        """act(run, step) in each step: the run and its warnings."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with fake_watch(model, **options) as run:
                for step in range(steps):
                    act(run, step)
        return run, [str(one.message) for one in said if "statrec" in str(one.message)]

    def rows(self, run):
        return [len(step["passes"]) for step in run.recorder.steps]

    def backward(self, model):
        model(torch.randn(16, 8)).square().mean().backward()

    def test_a_norm_that_is_called_twice(self):
        for norm in NORMS:
            model = Shared(norm)

            def act(run, step):
                self.backward(model)
                run.step()

            run, said = self.record(model, act)
            self.assertEqual(len(said), 1, said)
            self.assertIn("'n' had several backward passes in a step, and the last is recorded", said[0])
            self.assertEqual(run.recorder.reason, "of several backward passes in a step the last is recorded: 'n'")
            for repeat in ("last", "merge"):
                run, said = self.record(model, act, repeat=repeat)
                self.assertEqual((said, run.recorder.reason), ([], ""))

    def test_step_before_backward(self):
        for norm in NORMS:
            for every in (1, 2):
                model = nn.Sequential(nn.Linear(8, 8), norm(8))

                def act(run, step):
                    loss = model(torch.randn(16, 8)).square().mean()
                    run.step()
                    loss.backward()

                run, said = self.record(model, act, every=every)
                self.assertEqual(self.rows(run), [0] * 4)
                self.assertIn("call step() after backward()", said[-1])
                self.assertIn("step() came between", run.recorder.reason)

    def test_one_step_before_backward(self):
        """Steps around it are right."""
        model, seen = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)), []

        def act(run, step):
            h = model[0](torch.randn(16, 8))
            y, weight = model[1](h), torch.randn(16, 8)
            seen.append((h, weight))
            if step == 1:
                run.step()
            (y * weight).sum().backward()
            if step != 1:
                run.step()

        run, said = self.record(model, act)
        self.assertEqual(self.rows(run), [1, 0, 1, 1])
        self.assertIn("step() came between their forward pass and backward()", run.recorder.reason)
        for step in (0, 2, 3):
            self.close_to(run.recorder.passes("1", step)[0], reference(*seen[step]))

    def test_steps_without_passes(self):
        model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8))

        def act(run, step):
            if step < 3:
                self.backward(model)
            run.step()

        run, said = self.record(model, act)
        self.assertEqual(len(said), 1)
        self.assertRegex(run.recorder.reason, "^nothing is recorded in 1 of 4 steps: ")

    def test_no_steps_at_all(self):
        run, said = self.record(nn.LayerNorm(8), lambda run, step: run.step())
        self.assertEqual(len(said), 1)
        self.assertRegex(run.recorder.reason, "^nothing is recorded: no backward pass of any site was seen")

    def test_a_site_that_is_never_recorded(self):
        model = nn.ModuleDict({"one": nn.LayerNorm(8), "late": nn.Tanh()})

        def act(run, step):
            self.backward(model["one"])
            if step:
                model["late"](torch.randn(16, 8, requires_grad=True)).sum().backward()
            run.step()

        run, said = self.record(model, act, observe="late")
        self.assertEqual(len(said), 1)
        self.assertIn("not recorded: 'late': it had no forward pass before the first step", run.recorder.reason)


if __name__ == "__main__":
    unittest.main()
