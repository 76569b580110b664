"""statrec.watch on a GPU: its kernels in Triton's interpreter, its copies and its thread on the CPU."""
import ctypes
import gc
import os
import subprocess
import sys
import threading
import unittest
import weakref
from unittest import mock

import watch_help as help_
from fake_recorder import FakeRecorder, Refused
from watch_help import WatchCase, fake_watch, joined, merged, reference
from watch_models import mlp, same_weights, train

import torch
from torch import nn

from statrec._gpu import _board, _cards, _fetch, _kernels, _sent
from statrec._watching import _believed, _sums, _writer

try:
    import triton  # noqa: F401
except ImportError:
    triton = None


class CardCase(WatchCase):
    """Tensors of the CPU take the way of those on a GPU."""

    def setUp(self):
        if triton is None:
            self.skipTest("triton is not installed")
        torch.manual_seed(8)
        self.patch(_sums, "moments", self.no_sums)  # nothing takes the other way

    @staticmethod
    def no_sums(*_):
        raise AssertionError("not by the kernels")

    def step(self, norm, x, weight, steps=1, **options):
        """The run of some equal steps, and x and g of the norm."""
        model = nn.Sequential(nn.Identity(), norm)
        factor = torch.ones((), dtype=x.dtype, requires_grad=True)
        state = help_.weights(model)
        y = norm(x).detach().requires_grad_()
        g, = torch.autograd.grad((y.relu() * weight).float().sum(), y)
        model.load_state_dict(state)
        with fake_watch(model, **options) as run:
            for _ in range(steps):
                (model(factor * x).relu() * weight).float().sum().backward()
                run.step(loss=1.0)
                run._drain()  # what it has seen is known in the next step
        return run, g


class Kernels(CardCase):
    def one(self, norm, shape, first=False, form=None, dtype=torch.float32, tolerance=2e-6):
        x, weight = torch.randn(shape).to(dtype) + 0.5, torch.randn(shape).to(dtype)
        x = form(x) if form else x
        run, g = self.step(norm.to(dtype), x, weight, 3)  # the third one is like the second
        one, = run.recorder.passes("1")
        self.close_to(one, reference(x, g, first), tolerance)
        return run, x, g

    def test_rows(self):
        for shape in ((37, 6), (5, 70, 130), (3, 2, 1)):
            self.one(nn.LayerNorm(shape[-1]), shape)
        self.one(nn.BatchNorm1d(130), (300, 130), True)

    def test_planes_and_channels_last(self):
        last = (lambda t: t.contiguous(memory_format=torch.channels_last))
        for shape in ((5, 6, 4, 3), (2, 3, 40, 30), (70, 2, 1, 3)):
            for form in (None, last):
                self.one(nn.GroupNorm(1, shape[1]), shape, True, form)

    def test_halves_are_read_as_they_are(self):
        for dtype in (torch.bfloat16, torch.float16):
            self.one(nn.LayerNorm(24), (40, 24), dtype=dtype)
            self.one(nn.GroupNorm(2, 6), (5, 6, 4, 3), True, dtype=dtype)

    def test_large_mean(self):
        """By which rounding must not be biased: 2e-6 of the deviation."""
        x = 3000 + torch.randn(600, 5)
        run, g = self.step(nn.LayerNorm(5), x, torch.randn(600, 5))
        got, want = run.recorder.passes("1")[0], reference(x, g)
        self.close_to({**got, "sum_gc": want["sum_gc"]}, want, 1e-5)
        self.assertLess((torch.tensor(got["mean"], dtype=torch.float64) - want["mean"]).abs().max(), 2e-6)

    def test_rounding_has_no_bias(self):
        """A centre of 24 bits rounds x - centre in one direction: 1e-8 in the mean of 100,000 rows."""
        for shape in ((100003, 3), (11, 3, 9000)):
            torch.manual_seed(1)
            x, planes = 1.7 * torch.randn(shape), len(shape) == 3
            board = _board.Board(torch.device("cpu"), {(mock.Mock(), "read", 0): 3})
            slot, = board.slots.values()
            lengths = (11, 9000) if planes else shape[:1]
            _kernels.Sums(x.device, planes, lengths, 3, False, True)(x, torch.randn(shape), None, slot)
            rows = help_.rows_of(x, planes, 1)
            self.assertLess((slot.all[0] / len(rows) - rows.mean(0)).abs().max(), 3e-9)

    def test_norms_of_rows(self):
        for norm in (nn.LayerNorm(24), nn.RMSNorm(24), nn.LayerNorm(24, elementwise_affine=False)):
            for parameter in norm.parameters():
                nn.init.uniform_(parameter, 0.5, 1.5)
            run, x, g = self.one(norm, (50, 24))
            x64 = x.double().requires_grad_()
            dx, = torch.autograd.grad(norm.double()(x64), x64, g.double())
            self.assertAlmostEqual(run.recorder.steps[-1]["scalars"]["1", "dx_norm"] / dx.norm().item(), 1, 6)

    def test_mask(self):
        x, weight, valid = torch.randn(6, 7, 8), torch.randn(6, 7, 8), torch.rand(6, 7) < 0.5
        norm = nn.LayerNorm(8)
        y = norm(x).detach().requires_grad_()
        g, = torch.autograd.grad((y * weight).sum(), y)
        x[~valid] = torch.nan
        model = nn.Sequential(norm)
        with fake_watch(model) as run:
            for _ in range(2):
                run.mask(valid)
                (model(x.requires_grad_() * 1) * weight).sum().backward()
                run.step()
        for step in (0, 1):
            one, = run.recorder.passes("0", step)
            self.close_to(one, reference(x, g, valid=valid))
            self.assertEqual(one["padded"], int((~valid).sum()))

    def test_without_gradient_norms(self):
        run, _ = self.step(nn.LayerNorm(6), torch.randn(20, 6), torch.randn(20, 6), gradient_norms=False)
        self.assertIsNone(run.recorder.passes("1")[0]["sum_gg"])
        self.assertEqual(run.recorder.steps[0]["scalars"], {})


class Nodes(CardCase):
    """Batch norm by its node where the table believes it, from the second step on."""

    def setUp(self):
        super().setUp()
        self.read, whole = [], _kernels.Sums.__call__
        self.patch(_kernels.Sums, "__call__",
                   lambda sums, *given: (self.read.append(1), whole(sums, *given))[1])
        self.believe(lambda y: True)

    def believe(self, answer):
        self.patch(_believed, "believed", answer)

    def norm(self, steps, offset=0.0, size=1.0, shape=(5, 6, 4, 3), **options):
        norm = nn.BatchNorm2d(6)
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        x = size * torch.randn(shape) + offset
        run, g = self.step(norm, x, torch.randn(shape), steps, **options)
        one, = run.recorder.passes("1")
        return run, one, reference(x, g, True)

    def test_believed(self):
        for form in ((5, 6, 4, 3), (50, 6, 1, 1)):
            self.read.clear()
            _, one, want = self.norm(3, shape=form)
            self.assertEqual(len(self.read), 1)
            self.close_to(one, want, 4e-6)

    def test_not_believed(self):
        self.believe(lambda y: False)
        _, one, want = self.norm(3)
        self.assertEqual(len(self.read), 3)
        self.close_to(one, want)

    def test_its_rounding_shows(self):
        """A mean of ten deviations, and a variance far below eps: read in every step."""
        for given in (dict(offset=10.0), dict(size=1e-3)):
            self.read.clear()
            _, one, want = self.norm(3, **given)
            self.assertEqual(len(self.read), 3)
            self.close_to(one, want, 1e-5)

    def test_places_that_nobody_takes_go(self):
        """Of the first step, which reads x and g; and of a site that rests, which gets another one."""
        model, weight = nn.ModuleList([nn.BatchNorm1d(6), nn.BatchNorm1d(6)]), torch.randn(9, 6)
        x, kinds = torch.randn(9, 6), []
        with fake_watch(model) as run:
            for used in [(0, 1)] * 3 + [(0,)] * 12 + [(0, 1)] * 2:
                for place in used:
                    (model[place](x * torch.ones((), requires_grad=True)) * weight).sum().backward()
                run.step()
                kinds.append(sorted(key[1] for key in run._cards.boards[x.device].keys))
        self.assertEqual(kinds[0], ["read", "read"])
        self.assertEqual(kinds[5], ["node", "node"])
        self.assertEqual(kinds[14], ["node"])
        self.assertEqual(kinds[16], ["node", "node"])
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [2] * 3 + [1] * 12 + [2] * 2)
        for step in run.recorder.steps:
            for one in step["passes"]:
                self.close_to(one, reference(x, weight), 4e-6)

    def test_scalars_alone_read_nothing(self):
        _, one, want = self.norm(3, gradient_norms=False)
        self.close_to({**one, "sum_gg": want["sum_gg"]}, want, 4e-6)

    def test_gradients_that_the_host_changes_at_once(self):
        """Within the backward pass: what waits for its end is read before, if a hook of the parameter says so;
        else it is left out once, with a warning."""
        x = torch.randn(30, 5)
        for hook in ("register_post_accumulate_grad_hook", "node"):
            model = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6))
            nodes = []
            if hook == "node":
                nodes = [one.expand_as(one).grad_fn.next_functions[0][0] for one in model[1].parameters()]
                for node, one in zip(nodes, model[1].parameters()):
                    node.register_hook(lambda *_, one=one: [one.grad.mul_(0), None][1])
            else:
                for one in model[1].parameters():
                    getattr(one, hook)(lambda one: [one.grad.mul_(0), None][1])
            with fake_watch(model, gradient_norms=False) as run:
                for step in range(4):
                    model.zero_grad()
                    model(x).square().sum().backward()
                    if hook == "node" and step == 1:
                        with self.assertWarnsRegex(RuntimeWarning, "1 is not recorded.*overwritten"):
                            run.step()
                    else:
                        run.step()
                    run._drain()
            with self.subTest(hook):
                found = [step["passes"] for step in run.recorder.steps]
                self.assertEqual([len(one) for one in found], [1, 0, 1, 1] if hook == "node" else [1] * 4)
                for one in found[2:]:
                    for a, b in zip(one[0]["sum_g"], found[0][0]["sum_g"]):
                        self.assertAlmostEqual(a, b, 4)

    def test_vectors_wait_for_the_end(self):
        """Without g^2 a backward pass copies the vectors of all sites at once, at its end."""
        copied, whole = [], _cards.copy_all
        self.patch(_cards, "copy_all", lambda to, given: (copied.append(len(to)), whole(to, given))[1])
        model = nn.Sequential(*[nn.BatchNorm1d(6) for _ in range(3)])
        for parameter in model.parameters():
            nn.init.uniform_(parameter, 0.5, 1.5)
        x, weight = torch.randn(30, 6), torch.randn(30, 6)
        with fake_watch(model, gradient_norms=False) as run:
            for _ in range(3):
                copied.clear()
                y = model[:2](x)
                (model[2](y) * weight).sum().backward()
                self.assertEqual(run._cards.vectors, [])
                run.step()
                run._drain()
        self.assertEqual(copied, [12])
        one, = run.recorder.passes("2")
        want = reference(y, weight)
        self.close_to({**one, "sum_gg": want["sum_gg"]}, want, 4e-6)

    def test_gradients_that_the_host_changes(self):
        """.grad may be the node's own tensor, which clipping multiplies in place."""
        model = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6))
        x = torch.randn(30, 5)
        with fake_watch(model) as run:
            for _ in range(2):
                for factor in (1.0, 0.0):
                    model.zero_grad()
                    model(x).square().sum().backward()
                    for parameter in model.parameters():
                        parameter.grad.mul_(factor)
                    run.step()
                    run._drain()
        sums = [step["passes"][0]["sum_g"] for step in run.recorder.steps]
        self.assertEqual(sums[2], sums[3])
        self.assertEqual(len(self.read), 1)


class Believed(unittest.TestCase):
    def test_table(self):
        planes = torch.zeros(2, 3, 4, 5)
        last = planes.contiguous(memory_format=torch.channels_last)
        for y, dtype, version, want in (
                (planes, torch.bfloat16, (2, 11), False), (last, torch.bfloat16, (2, 11), True),
                (planes, torch.float32, (2, 11), True), (planes, torch.float16, (2, 11), True),
                (planes, torch.float64, (2, 11), False), (last, torch.bfloat16, (2, 12), False),
                (planes[:, :, ::2], torch.float32, (2, 11), False)):
            self.assertEqual(_believed.believed(y.to(dtype) if y.is_contiguous() else y.to(dtype), version), want)


class Together(CardCase):
    """Small tensors that look alike share a launch."""

    def setUp(self):
        super().setUp()
        self.launched, whole = [], _kernels.Launch.__call__
        self.patch(_kernels.Launch, "__call__", lambda launch, *given: (
            self.launched.append((given[4] if len(given) > 4 else launch.grid)[2]),
            whole(launch, *given))[1])

    def watched(self, model, batch, steps=1, **options):
        with fake_watch(model, **options) as run:
            for _ in range(steps):
                self.launched.clear()
                model(batch).square().sum().backward()
                run.step()
        return run

    def test_launches_and_sums(self):
        for norm, shape, sites, want in (
                (lambda: nn.LayerNorm(6), (33, 6), 1, [1]), (lambda: nn.LayerNorm(6), (5, 7, 6), 6, [2, 4]),
                (lambda: nn.RMSNorm(6), (33, 6), 4, [4]), (lambda: nn.GroupNorm(2, 6), (5, 6, 4, 3), 3, [3])):
            model = nn.Sequential(*[norm() for _ in range(sites)])
            for parameter in model.parameters():
                nn.init.uniform_(parameter, 0.5, 1.5)
            self.watched(model, torch.randn(shape))
            self.assertEqual(sorted(self.launched), want)
            self.compare(model, shape)

    def compare(self, model, shape):
        """With a launch for each site, in a run of the same batch."""
        batch = torch.randn(shape)
        with mock.patch.object(_kernels, "SMALL", 0):
            one = self.watched(model, batch)
            self.assertEqual(self.launched, [1] * len(model))
        other = self.watched(model, batch)
        found, wanted = (run.recorder.steps[0]["scalars"] for run in (other, one))
        self.assertEqual(found.keys(), wanted.keys())
        for key, value in wanted.items():
            self.assertAlmostEqual(found[key] / value, 1, 12)
        for site in other.sites:
            a, b = one.recorder.passes(site)[0], other.recorder.passes(site)[0]
            for name, values in a.items():
                for x, y in zip(values, b[name]) if isinstance(values, list) else ():
                    self.assertLessEqual(abs(x - y), 1e-12 * max(map(abs, values)), (site, name))

    def test_what_looks_different(self):
        """Another width, another eps, a mask, and a tensor that is large: each a launch of its own."""
        wide = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 6),
                             nn.LayerNorm(6, eps=1e-3), nn.LayerNorm(6))
        self.watched(wide, torch.randn(9, 6))
        self.assertEqual(sorted(self.launched), [1, 1, 2])
        large = nn.Sequential(nn.LayerNorm(64), nn.LayerNorm(64))
        self.watched(large, torch.randn(513, 64))  # 128 KiB and a row
        self.assertEqual(self.launched, [1, 1])
        self.watched(large, torch.randn(512, 64))
        self.assertEqual(self.launched, [2])
        model = nn.Sequential(nn.LayerNorm(6), nn.LayerNorm(6))
        with fake_watch(model) as run:
            run.mask(torch.ones(9))
            self.launched.clear()
            model(torch.randn(9, 6)).sum().backward()
            run.step()
            self.assertEqual(self.launched, [1, 1])

    def test_what_waits_is_little(self):
        """TOGETHER - 1 sites, whose x and g are at most SMALL: below 1 MiB on the card."""
        self.assertLess((_kernels.TOGETHER - 1) * 2 * _kernels.SMALL, 1 << 20)
        model, waiting = nn.Sequential(*[nn.LayerNorm(6) for _ in range(7)]), []
        whole = _kernels.Together.add

        def add(together, *given):
            whole(together, *given)
            waiting.append(sum(map(len, together._waiting.values())))
        self.patch(_kernels.Together, "add", add)
        self.watched(model, torch.randn(9, 6))
        self.assertEqual(waiting, [1, 2, 3, 0, 1, 2, 3])

    def test_overwritten_while_it_waits(self):
        """What the host overwrites within the backward pass is told, not recorded; later it may."""
        model, kept = nn.Sequential(nn.Identity(), nn.LayerNorm(6), nn.LayerNorm(6)), []
        model[2].register_forward_pre_hook(lambda module, args: kept.append(args[0]))
        batches, weight, inside = torch.randn(3, 9, 6), torch.randn(9, 6), []

        def overwrite(_=None):
            with torch.no_grad():
                kept[-1].add_(1)
        with fake_watch(model) as run:
            for step, batch in enumerate(batches):
                batch = batch.requires_grad_() * 1
                batch.register_hook(lambda g, step=step: overwrite() if step == 1 else None)
                y = model(batch)
                (y * weight).sum().backward()
                inside.append(kept[-1].detach().clone())
                if step == 1:
                    with self.assertWarnsRegex(RuntimeWarning, "2 is not recorded.*overwritten"):
                        run.step()
                else:
                    overwrite()
                    run.step()
        self.assertEqual([[one["site"] for one in step["passes"]] for step in run.recorder.steps],
                         [["1", "2"], ["1"], ["1", "2"]])
        for step in (0, 2):
            self.close_to(run.recorder.passes("2", step)[0], reference(inside[step], weight))

    def test_a_backward_pass_that_fails(self):
        """Its end never comes: step() reads what waits, and the next one ends as usual."""
        model = nn.Sequential(nn.Identity(), nn.LayerNorm(6), nn.Identity(), nn.LayerNorm(6))
        x, weight = torch.randn(9, 6), torch.randn(9, 6)

        def fail(module, grads):
            raise ArithmeticError("of the host")
        with fake_watch(model) as run:
            handle = model[2].register_full_backward_pre_hook(fail)
            with self.assertRaises(ArithmeticError):
                (model(x.requires_grad_() * 1) * weight).sum().backward()
            run.step()
            handle.remove()
            (model(x * 1) * weight).sum().backward()
            self.assertEqual(run._cards.together._waiting, {})
            run.step()
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [1, 2])
        self.close_to(run.recorder.passes("3", 1)[0], reference(model[1](x), weight))

    def test_the_last_of_two_passes(self):
        """The first one is read before its place is cleared for the second."""
        model = nn.Sequential(nn.Identity(), nn.LayerNorm(6))
        x, weight = torch.randn(2, 9, 6), torch.randn(2, 9, 6)
        with fake_watch(model, repeat="last") as run:
            for _ in range(2):
                for one in range(2):
                    (model(x[one]) * weight[one]).sum().backward()
                run.step()
        self.close_to(run.recorder.passes("1")[0], reference(x[1], weight[1]))


class Again(CardCase):
    """From the third step on a pass like the one before takes the short way; here something is different."""

    def train(self, run, model, batch, by=lambda y: y, weight=None):
        """One backward pass: x and g of the norm."""
        x = batch * torch.ones((), requires_grad=True)
        y = model(x)
        y.retain_grad()
        z = by(y)
        (z * (torch.randn(z.shape) if weight is None else weight)).sum().backward()
        return x.detach(), y.grad

    def watched(self, norm, changes, first=False, shape=(9, 6), plain=4, **options):
        """Each change is a step between two plain ones. changes: functions of (run, model) that return
        (x, g) of the step's passes, or of a mask (x, g, valid)."""
        model = nn.Sequential(nn.Identity(), norm)
        for parameter in model.parameters():
            nn.init.uniform_(parameter, 0.5, 1.5)
        one = lambda run, model: [self.train(run, model, torch.randn(shape) + 0.5)]
        want = []
        with fake_watch(model, **options) as run:
            for change in [one] * plain + [step for change in changes for step in (change, one)]:
                want.append(change(run, model))
                run.step(**({"grad_scale": change.scale} if hasattr(change, "scale") else {}))
                run._drain()
        return run, want

    def compare(self, run, want, first=False, site="1", tolerance=4e-6):
        for step, pairs in enumerate(want):
            got = run.recorder.passes(site, step)
            self.assertEqual(len(got), len(pairs), step)
            for a, (x, g, *valid) in zip(got, pairs):
                self.close_to(a, reference(x, g, first, valid=valid[0] if valid else None), tolerance)

    def test_shapes_strides_and_several(self):
        def scaled(run, model):
            x, g = self.train(run, model, torch.randn(9, 6))
            return [(x, g / 4)]
        scaled.scale = 4.0
        changes = [
            lambda run, model: [self.train(run, model, torch.randn(7, 6))],
            lambda run, model: [self.train(run, model, torch.randn(9, 6), lambda y: y.t())],
            lambda run, model: [self.train(run, model, torch.randn(6, 9).t())],
            lambda run, model: [self.train(run, model, torch.randn(3, 3, 6))],
            lambda run, model: [self.train(run, model, torch.randn(9, 6)) for _ in range(2)], scaled]
        for small in (_kernels.SMALL, 0):
            self.patch(_kernels, "SMALL", small)
            for norm, first in ((nn.LayerNorm(6), False), (nn.BatchNorm1d(6), True)):
                some = [change for place, change in enumerate(changes) if place != 3 or not first]
                self.compare(*self.watched(norm, some, repeat="merge"), first)

    def test_nodes(self):
        self.patch(_believed, "believed", lambda y: True)
        for options in ({}, {"gradient_norms": False}):
            changes = [lambda run, model: [self.train(run, model, torch.randn(7, 6) + 0.5)],
                       lambda run, model: [self.train(run, model, torch.randn(9, 6), lambda y: y.t())],
                       lambda run, model: [self.train(run, model, torch.randn(9, 6)) for _ in range(2)]]
            run, want = self.watched(nn.BatchNorm1d(6), changes, repeat="merge", **options)
            if options:
                for step in run.recorder.steps:
                    for one, (_, g) in zip(step["passes"], want[step["step"] - 1]):
                        one["sum_gg"] = g.double().square().sum(0)
            self.compare(run, want, True)

    def test_gradient_of_another_type(self):
        """The same x; y is of another type, as where autocast is switched on."""
        class Cast(nn.Module):
            kind = torch.bfloat16

            def forward(self, x):
                return (x * 1).to(self.kind)
        model, seen, launches = nn.Sequential(nn.Identity(), Cast()), [], []
        with fake_watch(model, observe=Cast, sites=[]) as run:
            for step in range(7):
                model[1].kind = torch.bfloat16 if step < 4 else torch.float32
                x = torch.randn(9, 6).bfloat16() * torch.ones((), dtype=torch.bfloat16, requires_grad=True)
                y = model(x)
                y.retain_grad()
                (y * torch.randn(9, 6).to(y.dtype)).sum().backward()
                seen.append((x.detach(), y.grad))
                run.step()
                known = run._taps[0].card.read
                launches.append(known and known.launch)  # compiled for the types of both
        for step, pair in enumerate(seen):
            self.close_to(run.recorder.passes("1", step)[0], reference(*pair))
        self.assertIs(launches[3], launches[1])
        self.assertIsNot(launches[6], launches[3])

    def test_masks_and_evaluation(self):
        valid = torch.tensor([1, 0, 1, 1, 0, 1, 1, 1, 0])

        def masked(run, model):
            run.mask(valid)
            return [(*self.train(run, model, torch.randn(9, 6)), valid)]

        def evaluated(run, model):
            model.eval()
            self.train(run, model, torch.randn(9, 6))
            model.train()
            return []
        with mock.patch("warnings.warn"):
            self.compare(*self.watched(nn.LayerNorm(6), [masked, evaluated]))

    def test_phases(self):
        def inside(name):
            def step(run, model):
                with run.phase(name):
                    return [self.train(run, model, torch.randn(9, 6))]
            return step
        with mock.patch("warnings.warn"):
            run, want = self.watched(nn.LayerNorm(6), [inside("a")] * 4 + [inside("b")] * 4, phases=("a", "b"))
        found = [[one["site"] for one in step["passes"]] for step in run.recorder.steps]
        self.assertEqual(found, [[]] * 4 + [["a:1"], []] * 4 + [["b:1"], []] * 4)

    def test_order_of_passes(self):
        """Two sites, whose places are read in the order of the step's passes; one of them rests."""
        model, weight = nn.ModuleList([nn.LayerNorm(6), nn.LayerNorm(6)]), torch.randn(9, 6)
        xs = [torch.randn(9, 6), 3 + torch.randn(9, 6)]
        with fake_watch(model) as run:
            for used in ((0, 1), (0, 1), (0, 1), (1,), (0,), (0, 1)):
                for place in used:
                    (model[place](xs[place] * torch.ones((), requires_grad=True)) * weight).sum().backward()
                run.step()
        for step in run.recorder.steps:
            for one in step["passes"]:
                self.close_to(one, reference(xs[int(one["site"])], weight))
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [2, 2, 2, 1, 1, 2])

    def test_norms_of_unit_norm(self):
        """Rows that are divided by sqrt(sum x^2 + eps)."""
        import statrec.nn as sn
        norm = sn.make("unit", 6, channels_last=True, eps=0.5)
        model, x, weight = nn.Sequential(norm), torch.randn(9, 6), torch.randn(9, 6)
        with fake_watch(model) as run:
            for _ in range(3):
                (model(x.requires_grad_() * 1.0) * weight).sum().backward()
                run.step(grad_scale=4.0)
        wide = x.detach().double().requires_grad_()
        dx, = torch.autograd.grad(norm.double()(wide), wide, weight.double())
        got = run.recorder.steps[-1]["scalars"]["0", "dx_norm"]
        self.assertAlmostEqual(4 * got / dx.norm().item(), 1, 6)


class Steps(CardCase):
    def test_several_passes(self):
        norm, pairs, want = nn.LayerNorm(6), [], []
        model = nn.Sequential(nn.Identity(), norm)
        for _ in range(3):
            x, weight = torch.randn(20, 6), torch.randn(20, 6)
            pairs.append((x, weight))
            want.append((x.double(), weight.double()))
        for repeat in ("merge", "last"):
            with fake_watch(model, repeat=repeat) as run:
                for _ in range(3):
                    for x, weight in pairs:
                        (model(x.requires_grad_() * 1) * weight).sum().backward()
                    run.step()
            for step in range(3):
                passes = run.recorder.passes("1", step)
                if repeat == "merge":
                    self.assertEqual(len(passes), 3)
                    self.close_to(merged(passes), joined(want))
                else:
                    self.close_to(passes[0], reference(*pairs[2]))

    def test_every(self):
        """Other steps: no hook looks at anything, and their rows are there."""
        model, called = mlp(), []
        for name in ("forward", "again"):
            whole = getattr(_cards.Cards, name)
            self.patch(_cards.Cards, name, lambda *given, whole=whole: (called.append(1), whole(*given))[1])
        with fake_watch(model, every=3) as run:
            train(model, torch.randn(7, 12, 5), run)
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [0, 0, 2, 0, 0, 2, 0])
        self.assertEqual(len(called), 2 * 3)  # also the first step, which gives the order of the sites
        self.assertEqual([step["step"] for step in run.recorder.steps], list(range(1, 8)))

    def test_weights_are_the_same_bits(self):
        for norm in (nn.LayerNorm, nn.BatchNorm1d):
            plain, watched, data = mlp(norm), mlp(norm), torch.randn(4, 12, 5)
            losses = train(plain, data)
            with fake_watch(watched) as run:
                self.assertEqual(train(watched, data, run), losses)
            self.assertTrue(same_weights(plain, watched))
            self.assertEqual([step["loss"] for step in run.recorder.steps], losses)

    def test_numbers_are_those_of_their_step(self):
        """Tensors that the host overwrites after step()."""
        model, loss, scale = mlp(), torch.zeros(()), torch.ones(())
        with fake_watch(model) as run:
            run.scalar("one", "1", "of the step")
            run.scalar("each", "1", "of the site", scope="site")
            for step in range(1, 4):
                loss.fill_(step)
                scale.fill_(2.0 ** step)
                (scale * model(torch.ones(4, 5)).sum()).backward()
                run.step(loss=loss, lr=loss * 2, one=loss * 3, each={"1": loss * 4}, grad_scale=scale)
                loss.fill_(-1)
                scale.fill_(-1)
        for number, step in enumerate(run.recorder.steps, 1):
            self.assertEqual((step["loss"], step["lr"]), (number, 2 * number))
            self.assertEqual(list(step["numbers"].values()), [3 * number])
            self.assertEqual(step["scalars"]["1", run.recorder.steps and 1002], 4 * number)
        sums = [step["passes"][0]["sum_g"] for step in run.recorder.steps]
        self.assertEqual(sums[0], sums[1])

    def test_gain_of_the_forward_pass(self):
        model = mlp()
        gains = []
        with fake_watch(model) as run:
            for _ in range(3):
                gains.append(model[1].weight.tolist())
                model(torch.randn(4, 5)).sum().backward()
                with torch.no_grad():
                    model[1].weight.mul_(3)
                run.step()
        self.assertEqual([step["passes"][0]["gamma"] for step in run.recorder.steps], gains)

    def test_nothing_is_held(self):
        gc.collect()
        gc.disable()
        try:
            model = mlp()
            run = fake_watch(model)
            train(model, torch.randn(3, 12, 5), run)
            here = [weakref.ref(model), weakref.ref(run), weakref.ref(run._taps[0])]
            run.close()
            del model, run
            self.assertEqual([one() for one in here], [None] * 3)
        finally:
            gc.enable()


class Slow(FakeRecorder):
    """A recorder whose steps wait for `gate`."""
    gate = None

    def end_step(self, **row):
        self.gate.wait()
        super().end_step(**row)


class Thread(CardCase):
    def test_steps_do_not_wait_and_close_does(self):
        """Three steps ended while the file has none of them; the fourth would wait."""
        Slow.gate = threading.Event()
        model = mlp()
        run = fake_watch(model, recorder=Slow)
        train(model, torch.randn(3, 12, 5), run)
        self.assertEqual(run._recorder.steps, [])
        late = threading.Thread(target=train, args=(model, torch.randn(1, 12, 5), run))
        late.start()
        late.join(0.3)
        self.assertTrue(late.is_alive())  # one is written, two wait
        Slow.gate.set()
        late.join()
        run.close()
        self.assertEqual([step["step"] for step in run.recorder.steps], [1, 2, 3, 4])
        self.assertEqual(run.recorder.status, "complete")

    def test_a_file_that_fails(self):
        model = mlp()
        run = fake_watch(model, recorder=lambda path, **options: FakeRecorder(path, fail_at=2, **options))
        train(model, torch.randn(2, 12, 5), run)
        run._cards.writer._jobs.join()
        with self.assertWarnsRegex(RuntimeWarning, "not recorded any further: Refused"):
            train(model, torch.randn(1, 12, 5), run)
        self.assertEqual(len(run.recorder.steps), 1)
        self.assertFalse(any(module._forward_hooks for module in model.modules()))
        self.assertEqual(run.recorder.status, "failed")

    def test_a_file_that_fails_at_the_end(self):
        model = mlp()
        run = fake_watch(model, on_error="raise",
                         recorder=lambda path, **options: FakeRecorder(path, fail_at=2, **options))
        train(model, torch.randn(2, 12, 5), run)
        with self.assertRaises(Refused):
            run.close()

    def test_diverged(self):
        model = mlp()
        run = fake_watch(model)
        model(torch.randn(4, 5)).sum().backward()
        run.step(loss=torch.tensor(torch.nan))
        run.close()
        self.assertEqual(run.recorder.status, "diverged")

    def test_evaluation_comes_after_its_step(self):
        model = mlp()
        with fake_watch(model) as run:
            run.metric("accuracy")
            for _ in range(2):
                train(model, torch.randn(1, 12, 5), run)
                run.evaluate(accuracy=1.0)
                self.assertEqual(len(run._recorder.steps), run.steps)

    def test_order_and_errors(self):
        seen, writer = [], _writer.Writer()
        for number in range(20):
            writer.put(lambda number=number: seen.append(number))
        writer.drain()
        self.assertEqual(seen, list(range(20)))
        writer.put(lambda: 1 / 0)
        writer._jobs.join()
        with self.assertRaises(ZeroDivisionError):
            writer.put(lambda: seen.append(-1))
        writer.stop()
        self.assertNotIn(-1, seen)


class Movement(CardCase):
    """mu_moved and mu_apart, of buffers on the CPU and of those that take the way of a GPU's."""

    def of_cpu(self, taps):
        """Running.of without its look at the device."""
        pairs = [(tap, tap.module().num_features) for tap in taps
                 if not nn.parameter.is_lazy(tap.module().running_mean)]
        return [_sent.Running(torch.device("cpu"), pairs)] if pairs else []

    def watched(self, model, batches, **options):
        """Pairs (got, want) of the steps that have them, of site "1"; want in float64."""
        want, norm = [], model[1]
        norm.register_forward_pre_hook(lambda module, args: want.append(
            [help_.rows_of(args[0], True, 1).mean(0), module.running_mean.double().clone()
             if not nn.parameter.is_lazy(module.running_mean) else torch.zeros(6).double()]))
        norm.register_forward_hook(lambda module, args, y: want[-1].append(
            module.running_mean.double().clone()))
        with fake_watch(model, **options) as run:
            for batch in batches:
                model(batch).square().mean().backward()
                run.step()
                for parameter in model.parameters():
                    parameter.grad = None
        pairs = []
        for step, (mean, before, after) in zip(run.recorder.steps, want):
            if ("1", "mu_moved") in step["scalars"]:
                apart, moved = mean - before, after - before
                pairs.append(([step["scalars"]["1", name] for name in ("mu_moved", "mu_apart")],
                              [(moved * apart).sum().item(), (apart * apart).sum().item()]))
                self.assertEqual(step["vectors"]["1", "mu"], before.tolist())
        return pairs

    def test_both_ways(self):
        for of in (_sent.Running.of, self.of_cpu):
            for lazy in (False, True):
                for every in (1, 2, 3):
                    with self.subTest(of=of, lazy=lazy, every=every):
                        self.patch(_sent.Running, "of", of)
                        norm = nn.LazyBatchNorm1d() if lazy else nn.BatchNorm1d(6)
                        model = nn.Sequential(nn.Linear(5, 6), norm, nn.Linear(6, 2))
                        pairs = self.watched(model, list(torch.randn(7, 12, 5)), every=every)
                        self.assertEqual(len(pairs), 7 // every)
                        for got, want in pairs:
                            self.assertLess(abs(want[0] / want[1] - 0.1), 1e-4)
                            for a, b in zip(got, want):
                                self.assertLess(abs(a / b - 1), 1e-5)


class CachedLaunch(unittest.TestCase):
    """What Triton has compiled is called with prepared arguments, after both ways have been compared."""

    class Kernel:
        """Adds 1 to the first double of a slot. slow: calls by Triton's own way; fast: direct ones."""
        device_caches = {}

        def __init__(self, direct=1.0):
            self.slow, self.fast, self.adds, self.direct = [], [], 1.0, direct

        def __getitem__(self, grid):
            def launch(x, slot, *given, num_warps, **constants):
                slot[0] += self.adds
                self.slow.append((grid, given, constants, num_warps))
                return mock.Mock(spec=("run", "function", "packed_metadata"), function="F",
                                 packed_metadata="M", run=self.run)
            return launch

        def run(self, *given):
            ctypes.c_double.from_address(given[10]).value += self.direct * self.adds
            self.fast.append(given)

    def setUp(self):
        patched = mock.patch.object(torch._C, "_cuda_getCurrentRawStream", lambda index: 7, create=True)
        patched.start()
        self.addCleanup(patched.stop)
        self.x, self.slot = torch.zeros(64), torch.zeros(64, dtype=torch.float64)
        self.make(self.Kernel())

    def make(self, kernel):
        self.kernel = kernel
        self.launch = _kernels.Launch(kernel, (3, 2), (10, 6, 0.5), dict(MASKED=False, HIGH=16), 8)

    def call(self, x=None, stride=16, *grid):
        self.launch((self.x if x is None else x,), (self.slot,), (self.slot.data_ptr(),), stride, *grid)

    def counts(self):
        return len(self.kernel.slow), len(self.kernel.fast)

    def test_once_by_triton(self):
        """And once for the comparison, in copies."""
        for count in (1, 2, 3):
            self.call()
            self.assertEqual(self.slot[0], count)
        self.assertEqual(self.kernel.slow, 2 * [((3, 2, 1), (16, 10, 6, 0.5), dict(MASKED=False, HIGH=16), 8)])
        self.assertEqual(self.kernel.fast[1:], 2 * [(3, 2, 1, 7, "F", "M", None, None, None, self.x.data_ptr(),
                                                     self.slot.data_ptr(), 16, 10, 6, 0.5, False, 16)])

    def test_what_is_not_the_same(self):
        """A launcher that does nothing, something else, or raises: never used again."""
        for direct in (0.0, 1 + 1e-6, "x"):
            self.make(self.Kernel(direct))
            self.slot.zero_()
            for count in (1, 2, 3):
                self.call()
                self.assertEqual(self.slot[0], count)
            self.assertEqual(self.counts()[0], 4)
            self.assertLessEqual(self.counts()[1], 1)

    def test_nothing_to_compare(self):
        """Sums of zeros show nothing; the comparison is tried again, not in every step."""
        self.kernel.adds = 0.0
        for _ in range(2):
            self.call()
        self.kernel.adds = 1.0
        for count in (1, 2):
            self.call()
            self.assertEqual(self.slot[0], count)
        self.assertEqual(self.counts(), (6, 4))
        self.make(self.Kernel())
        self.kernel.adds = 0.0
        for _ in range(9):
            self.call()
        self.assertEqual(self.counts(), (12, 3))

    def test_grid_of_several(self):
        for count in (2, 4, 3):
            self.call(None, 16, (3, 2, count))
        self.assertEqual([given[:3] for given in self.kernel.fast], [(3, 2, 2), (3, 2, 4), (3, 2, 3)])

    def test_what_the_code_assumes(self):
        """Another alignment or another stride is for Triton to look at."""
        odd = torch.zeros(65)[1:]
        self.call(odd)
        self.call(odd)
        self.assertEqual(self.counts(), (2, 0))
        self.call()
        self.call(odd)
        self.assertEqual(self.counts(), (5, 1))
        self.call(None, 32)
        self.call(None, 32)
        self.assertEqual(self.counts(), (6, 2))


class Copies(unittest.TestCase):
    def test_values_are_those_of_now(self):
        tensors = [torch.ones(2, 3), torch.tensor(4.0), torch.ones(5, dtype=torch.float64)]
        fetch = _fetch.Fetch(tensors)
        for tensor in tensors:
            tensor.zero_()
        self.assertEqual([one.sum().item() for one in fetch.get()], [6, 4, 5])

    def test_places_do_not_touch(self):
        taps = [mock.Mock(), mock.Mock()]
        taps[0].plain_gain, taps[1].plain_gain = (lambda: None), (lambda: torch.full((3,), 2.0))
        for tap in taps:
            tap.site.eps = 0.1
        board = _board.Board(torch.device("cpu"), {(taps[0], "read", 0): 17, (taps[1], "node", 0): 3,
                                                   (taps[1], "read", 0): 3})
        board.take_gains()
        for number, slot in enumerate(board.slots.values(), 1):
            slot.all.fill_(number)
            slot.more.fill_(number)
            self.assertEqual([slot.sums.data_ptr() % 16, slot.more.data_ptr() % 16], [0, 0])
        for number, slot in enumerate(board.slots.values(), 1):
            self.assertTrue(bool((slot.all == number).all()) and bool((slot.more == number).all()))
        self.assertEqual([slot.gained for slot in board.slots.values()], [False, True, True])


class Interpreted(unittest.TestCase):
    """Triton reads TRITON_INTERPRET when it is imported: the tests above run in a process of their own."""

    def test_all(self):
        if triton is None:
            self.skipTest("triton is not installed")
        here = os.path.dirname(os.path.abspath(__file__))
        done = subprocess.run([sys.executable, "-m", "unittest", "test_watch_cards"], cwd=here, text=True,
                              capture_output=True, env={**os.environ, "TRITON_INTERPRET": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)


def load_tests(loader, tests, pattern):
    """Interpreted alone, or within its process all others."""
    mine = Interpreted, Believed, Copies, CachedLaunch
    inside = os.environ.get("TRITON_INTERPRET") == "1"
    return unittest.TestSuite(test for suite in tests for test in suite
                              if (not isinstance(test, Interpreted) if inside else isinstance(test, mine)))


if __name__ == "__main__":
    unittest.main()
