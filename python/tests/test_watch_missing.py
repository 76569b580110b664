"""Sites without rows while others have some: recorded right, or named when the run is closed."""

import contextlib
import io
import unittest

from watch_help import WatchCase, fake_watch, reference

import torch
import torch.nn.functional as F
from torch import nn


class Turned(nn.LayerNorm):
    """Over dimension 1 by a permuted view, as timm and torchvision have it."""

    def forward(self, x):
        if x.dim() < 3:
            raise ValueError("images or sequences")
        last = [0, *range(2, x.dim()), 1]
        back = [0, x.dim() - 1, *range(1, x.dim() - 1)]
        return F.layer_norm(
            x.permute(last), self.normalized_shape, self.weight, self.bias, self.eps
        ).permute(back)


class PermutedViews(WatchCase):
    def passes(self, act, shape, form=lambda x: x, **options):
        """Records Turned before act in three steps; returns the recorded and the expected values."""
        torch.manual_seed(2)
        kind = nn.Conv2d if len(shape) == 4 else nn.Conv1d
        model = nn.Sequential(
            kind(shape[1], shape[1], 1),
            nn.BatchNorm2d(shape[1]) if len(shape) == 4 else nn.Tanh(),
            Turned(shape[1]),
            act,
        )
        nn.init.uniform_(model[2].weight, 0.5, 1.5)
        want, recorded = [], []
        with fake_watch(model, "2", **options) as run:
            for _ in range(3):
                x, weight = form(torch.randn(shape)), torch.randn(shape)
                h = model[1](model[0](x)).detach()
                y = (
                    F.layer_norm(h.movedim(1, -1), shape[1:2], model[2].weight, model[2].bias)
                    .movedim(-1, 1)
                    .detach()
                )
                (g,) = torch.autograd.grad((F.relu(y.requires_grad_()) * weight).sum(), y)
                want.append(reference(h, g, True))
                (model(x) * weight).sum().backward()
                run.step()
        for step in range(3):
            recorded += run.recorder.passes("2", step)
        return run, recorded, want

    def test_what_comes_in_place_behind_them(self):
        last = lambda x: x.contiguous(memory_format=torch.channels_last)
        for act in (nn.ReLU(inplace=True), nn.ReLU()):
            for shape in ((4, 6, 5, 7), (6, 6, 6, 6), (1, 6, 1, 5), (2, 6, 1, 1), (4, 6, 5)):
                for form in (lambda x: x, last) if len(shape) == 4 else (lambda x: x,):
                    for options in (dict(), dict(activations_every=1)):
                        run, recorded, want = self.passes(act, shape, form, **options)
                        self.assertEqual(len(recorded), 3, (act, shape))
                        for one, must in zip(recorded, want):
                            self.close_to(one, must, 4e-6)
                        self.assertEqual(
                            len(run.recorder.steps[1]["scalars"]), 10 if options else 2
                        )


class Missing(WatchCase):
    def record(self, model, act, steps=4, **options):
        """act(run, model, step) before each step(): the run and what close() prints."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), fake_watch(model, verbose=True, **options) as run:
            for step in range(steps):
                act(run, model, step)
                run.step()
        return run, [line for line in said.getvalue().splitlines()[1:] if "sites 3" not in line]

    def model(self):
        return nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6), nn.BatchNorm1d(6), nn.LayerNorm(6))

    def train(self, run, model, step):
        model(torch.randn(7, 5)).square().sum().backward()

    def test_a_module_that_was_replaced(self):
        def act(run, model, step):
            model[2] = nn.BatchNorm1d(6) if step == 0 else model[2]
            self.train(run, model, step)

        run, said = self.record(self.model(), act)
        text = (
            "'2': no rows (no forward pass in training mode; "
            "modules that came after watch() have no hooks)"
        )
        self.assertEqual((said, run.recorder.reason), ([f"statrec: run.h5: {text}"], text))

    def test_replaced_in_the_middle(self):
        def act(run, model, step):
            model[2] = nn.BatchNorm1d(6) if step == 3 else model[2]
            self.train(run, model, step)

        run, _ = self.record(self.model(), act)
        self.assertEqual(run.recorder.reason, "'2': no rows in 1 of 4 steps")

    def test_without_a_backward_pass(self):
        def act(run, model, step):
            self.train(run, model, step)
            aside(torch.randn(7, 6))

        model = self.model()
        aside = model.aside = nn.LayerNorm(6)
        model.forward = lambda x: model[3](model[2](model[1](model[0](x))))
        run, said = self.record(model, act)
        text = "'aside': no rows (no backward pass of it came)"
        self.assertEqual((said, run.recorder.reason), ([f"statrec: run.h5: {text}"], text))

    def test_no_step_is_recorded(self):
        run, _ = self.record(self.model(), self.train, every=10)
        text = "'1' and 2 more: no rows (no step was recorded: every= leaves steps out)"
        self.assertEqual(run.recorder.reason, text)

    def test_in_some_steps(self):
        def act(run, model, step):
            model[2].train(step > 1)
            (model if step else model[1:])(
                torch.randn(7, 5 if step else 6)
            ).square().sum().backward()

        run, said = self.record(self.model(), act)
        self.assertEqual((said, run.recorder.reason), ([], "'2': no rows in 2 of 4 steps"))

    def test_nothing_to_say(self):
        for options in (dict(), dict(every=2), dict(repeat="merge")):
            run, said = self.record(self.model(), self.train, **options)
            self.assertEqual((said, run.recorder.reason), ([], ""))


if __name__ == "__main__":
    unittest.main()
