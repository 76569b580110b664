"""statrec.watch on a GPU with padding and views, in Triton's interpreter."""

import time
import warnings
from unittest import mock

from card_case import CardCase
from watch_help import fake_watch, reference, rows_of
from test_watch_missing import Turned

import torch
import torch.nn.functional as F
from torch import nn

from statrec._gpu import _board, _kernels, _sent


class Padding(CardCase):
    def sums(self, x, g, valid, planes):
        """Errors of the mean (in deviations), variance and sum g (x - mean) of one launch."""
        width = x.shape[1]
        board = _board.Board(torch.device("cpu"), {(mock.Mock(), "read", 0): width})
        (slot,) = board.slots.values()
        lengths = (x.shape[0], x[0, 0].numel()) if planes else x.shape[:1]
        norm = None if planes else (1e-5, False)
        _kernels.Sums(x.device, planes, lengths, width, True, True, norm)(
            x, g, valid.view(torch.uint8), slot
        )
        rows, grads = (rows_of(t, planes, 1)[valid.reshape(-1)] for t in (x, g))
        self.assertEqual(slot.more[2].item(), len(rows))
        mean, centred = rows.mean(0), rows - rows.mean(0)
        found = slot.all[0] / len(rows)
        variance, sum_gc = slot.all[1] / len(rows) - found**2, slot.all[3] - found * slot.all[2]
        want, want_gc = centred.square().mean(0), (grads * centred).sum(0)
        return (
            (found - mean) / want.sqrt(),
            variance / want - 1,
            (sum_gc - want_gc) / want_gc.abs().max(),
        )

    def test_a_large_mean_costs_no_digits(self):
        """With padding in the first rows or samples of each program."""
        rows = torch.arange(16 * 128)
        planes = torch.zeros(64, 6, 5, dtype=torch.bool)
        planes[:, :, 2:] = True
        planes[:50] = False
        planes[60] = True
        for shape, valid in (
            ((2048, 64), rows % 128 >= 64),
            ((2048, 256), rows % 128 >= 100),
            ((2048, 64), rows >= 2000),
            ((2048, 300), rows % 1024 >= 1000),
            ((64, 3, 6, 5), planes),
        ):
            x, g = torch.randn(shape) + 300, torch.randn(shape)
            mean, variance, sum_gc = self.sums(x, g, valid, len(shape) == 4)
            for error, most in ((mean, 2e-6), (variance, 2e-6), (sum_gc, 5e-6)):
                self.assertLess(error.abs().max(), most, (shape, int(valid.sum())))

    def test_nothing_is_valid_in_a_program(self):
        x, g, valid = (
            torch.randn(2048, 8),
            torch.randn(2048, 8),
            torch.zeros(2048, dtype=torch.bool),
        )
        valid[:3] = True
        self.assertLess(self.sums(x, g, valid, False)[0].abs().max(), 1e-6)

    def test_a_mask_that_the_host_writes_again(self):
        model, valid = nn.Sequential(nn.LayerNorm(8)), torch.rand(6, 7) < 0.6
        x, weight = torch.randn(6, 7, 8), torch.randn(6, 7, 8)
        y = model(x).detach().requires_grad_()
        (g,) = torch.autograd.grad((y * weight).sum(), y)
        want = reference(x, g, valid=valid)
        with fake_watch(model) as run:
            run.mask(valid)
            loss = (model(x.requires_grad_() * 1) * weight).sum()
            valid.zero_()[0] = True
            loss.backward()
            run.step()
        self.close_to(run.recorder.passes("0")[0], want)


class Layouts(CardCase):
    def test_norms_over_groups(self):
        last = torch.channels_last
        for norm, shape, form in (
            (nn.GroupNorm(2, 6), (5, 6, 4, 3), last),
            (nn.InstanceNorm2d(6), (5, 6, 4, 3), last),
            (nn.GroupNorm(1, 6), (5, 6, 1, 1), last),
            (nn.GroupNorm(2, 6), (9, 6), None),
            (nn.GroupNorm(2, 6), (5, 6, 4, 3), None),
        ):
            x = torch.randn(shape) + 0.5
            x, weight = x if form is None else x.contiguous(memory_format=form), torch.randn(shape)
            run, g = self.step(norm, x, weight, 3)
            x64 = x.double().requires_grad_()
            (dx,) = torch.autograd.grad(norm.double()(x64), x64, g.double())
            for step in run.recorder.steps:
                self.assertAlmostEqual(step["scalars"]["1", "dx_norm"] / dx.norm().item(), 1, 5)


class Writer(CardCase):
    def test_sites_are_those_of_the_first_step(self):
        """However late the thread writes it."""
        received = _sent.Sent.received
        for delay in (0.0, 0.5):
            model = nn.ModuleList([nn.LayerNorm(6), nn.Tanh(), nn.LayerNorm(6)])
            self.patch(
                _sent.Sent, "received", lambda sent, at: (time.sleep(delay), received(sent, at))[1]
            )
            with warnings.catch_warnings(record=True), fake_watch(model, observe="1") as run:
                for step in range(3):
                    x = torch.randn(7, 6, requires_grad=True)
                    for module in ((model[0],) if step == 0 else (model[1], model[2], model[0])):
                        x = module(x)
                    x.sum().backward()
                    run.step()
                    time.sleep(0.3 if delay == 0 else 0)
            self.assertEqual(
                [(site["name"], site["depth"]) for site in run.recorder.sites], [("0", 0), ("2", 1)]
            )
            self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [1, 2, 2])


class Views(CardCase):
    def test_what_comes_in_place_behind_a_permuted_view(self):
        for shape in ((4, 6, 5, 7), (6, 6, 6, 6)):
            model = nn.Sequential(nn.Identity(), Turned(6), nn.ReLU(inplace=True))
            nn.init.uniform_(model[1].weight, 0.5, 1.5)
            want = []
            with fake_watch(model) as run:
                for _ in range(4):
                    x, weight = torch.randn(shape), torch.randn(shape)
                    y = (
                        F.layer_norm(x.movedim(1, -1), (6,), model[1].weight, model[1].bias)
                        .movedim(-1, 1)
                        .detach()
                    )
                    (g,) = torch.autograd.grad((F.relu(y.requires_grad_()) * weight).sum(), y)
                    want.append(reference(x, g, True))
                    (model(x.requires_grad_() * 1) * weight).sum().backward()
                    run.step()
                    run._drain()
            for step in range(4):
                self.close_to(run.recorder.passes("1", step)[0], want[step])
