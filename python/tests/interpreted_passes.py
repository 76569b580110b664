"""statrec.watch on a GPU: passes that share a launch or are like the one before, in Triton's interpreter."""
from unittest import mock

from card_case import CardCase
from watch_help import fake_watch, reference

import torch
from torch import nn

from statrec._gpu import _kernels
from statrec._watching import _believed


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
        """Another width, another eps, a mask, and a large tensor: each has a separate launch."""
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
        """Values that the host overwrites within the backward pass are reported, not recorded; later it may
        overwrite them."""
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
                    with self.assertWarnsRegex(RuntimeWarning, "'2' is not recorded.*overwritten"):
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
        """The same x; y has another type, as after autocast is switched on."""
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
