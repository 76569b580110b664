"""statrec.watch on a GPU: sums by its kernels and by nodes, in Triton's interpreter."""
from unittest import mock

import watch_help as help_
from card_case import CardCase
from watch_help import fake_watch, reference

import torch
from torch import nn

from statrec._gpu import _board, _cards, _kernels
from statrec._watching import _believed


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
        """Rounding of a large mean must not be biased: 2e-6 of the deviation."""
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
        """Unused places are freed: the first step's, which reads x and g, and the places of a site without passes,
        which gets new ones."""
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

    def test_a_site_that_changes_has_both_places(self):
        """A site whose mean is beyond the bound until the next check, and then within it. Each place goes once; if
        needed again, it stays, so that later changes make no new board."""
        model, boards = nn.Sequential(nn.BatchNorm1d(6)), []
        x, weight = torch.randn(9, 6), torch.randn(9, 6)
        with fake_watch(model) as run:
            for step in range(36):
                offset = 9.0 * ((step + 1).bit_length() % 2)
                (model(x + offset * torch.ones((), requires_grad=True)) * weight).sum().backward()
                run.step()
                run._drain()
                boards.append(run._cards.boards[x.device])
        self.assertEqual(sorted(key[1] for key in boards[-1].keys), ["node", "read"])
        self.assertEqual(len(set(map(id, boards[20:]))), 1)
        self.assertEqual(len(self.read), 22)  # step 0, and those whose number has 1, 3 or 5 bits

    def test_scalars_alone_read_nothing(self):
        _, one, want = self.norm(3, gradient_norms=False)
        self.close_to({**one, "sum_gg": want["sum_gg"]}, want, 4e-6)

    def test_gradients_that_the_host_changes_at_once(self):
        """The host changes gradients within the backward pass. If a hook of the parameter announces it, waiting
        values are read before; else they are left out once, with a warning."""
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
                        with self.assertWarnsRegex(RuntimeWarning, "'1' is not recorded.*overwritten"):
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
