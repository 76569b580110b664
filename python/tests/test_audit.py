"""statrec.audit and statrec.compare: values against float64 code, state as it was, verdicts."""
import contextlib
import copy
import inspect
import io
import math
import os
import random
import re
import sys
import tempfile
import types
import unittest
import warnings

from watch_help import rows_of
from watch_models import convnet, mlp

import statrec
import torch
import torch.nn.functional as F
from statrec import _audit
from statrec._auditing import _audit_compare, _audit_numbers as numbers, _audit_score as scores
from torch import nn

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 2, "docs",
                    "audit.md")


def pairs(count=12, rows=64, shift=0.0, seed=1):
    """Batches (x [rows, 5], label) of two classes."""
    make = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        x = torch.randn(rows, 5, generator=make)
        found.append((x + shift, (x.sum(1) > 0).long()))
    return found


def trained(model, batches, rounds=8):
    """The model after some training; in training mode, without gradients."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches * rounds:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    optimizer.zero_grad()
    return model


def accuracy(output, target):
    return (output.argmax(1) == target).double().mean()


def norms_of(model):
    return [module for module in model.modules()
            if isinstance(module, nn.modules.batchnorm._BatchNorm)]


def inputs_of(model, module, x, training=True):
    """Input rows of a module of a copy in float64, with batch or running statistics everywhere."""
    twin = copy.deepcopy(model).double().eval()
    for norm in norms_of(twin):
        norm.training = training
    place = [id(one) for one in model.modules()].index(id(module))
    caught = []
    list(twin.modules())[place].register_forward_pre_hook(lambda _, args: caught.append(args[0]))
    twin(x.double())
    return rows_of(caught[0], True, 1)


def loss_of(model, batch, training):
    """Loss of a copy in float64; training: names of the norms that use batch statistics."""
    twin = copy.deepcopy(model).double().eval()
    for name, module in twin.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.training = training is True or name in training
    with torch.no_grad():
        return F.cross_entropy(twin(batch[0].double()), batch[1]).item()


def mean(values):
    return sum(values) / len(values)


class Case(unittest.TestCase):
    def near(self, got, want, tolerance=1e-5):
        self.assertLessEqual(abs(got - want), tolerance * max(1e-3, abs(want)), (got, want))

    def site(self, audit, name):
        return next(site for site in audit.sites if site.name == name)


class Reports(Case):
    """Situations of public reports, with their values."""

    def drifted(self):
        batches = pairs()
        model = trained(mlp(nn.BatchNorm1d), batches)
        model[4].running_mean += 3 * model[4].running_var.sqrt()
        return model, batches

    def test_drifted_site(self):
        model, batches = self.drifted()
        audit = statrec.audit(model, batches, loss=nn.CrossEntropyLoss(), metric=accuracy)
        self.assertEqual((audit.verdict, audit.culprit), ("severe", "4"))
        loss = audit.measures["loss"]
        self.assertEqual(loss.unit, "nats")
        for regime, training in (("running", ()), ("batch", True)):
            for got, batch in zip(loss.values[regime], batches):
                self.near(got, loss_of(model, batch, training))
        for site in audit.sites:
            parts = [loss_of(model, batch, (site.name,)) for batch in batches[:8]]
            gap = [loss_of(model, batch, ()) - loss_of(model, batch, True) for batch in batches[:8]]
            whole = [loss_of(model, batch, ()) for batch in batches[:8]]
            self.near(site.share, (sum(whole) - sum(parts)) / sum(gap), 1e-4)
        self.assertIn("culprit: 4", str(audit))
        self.assertIn("drift", self.site(audit, "4").notes)
        self.assertNotIn("drift", self.site(audit, "1").notes)

    def test_statistics_of_a_site(self):
        model, batches = self.drifted()
        site = self.site(statrec.audit(model, batches), "4")
        rows = [inputs_of(model, model[4], x) for x, _ in batches]
        mu, sigma = model[4].running_mean.double(), model[4].running_var.double().sqrt()
        means = torch.stack([x.sum(0) / len(x) for x in rows])
        squares = torch.stack([((x - x.mean(0)) ** 2).sum(0) for x in rows])
        self.near(site.tid_mean.value, mean(((means - mu).norm(dim=1) / sigma.norm()).tolist()))
        uneven = (squares / 64).sqrt() - sigma
        self.near(site.tid_var.value, mean((uneven.norm(dim=1) / sigma.norm()).tolist()))
        self.near(site.shift.value, self.pairwise(means - mu) / sigma.norm().item())
        v = squares.mean(0) / 63
        parts = (squares / 63 - sigma ** 2) / (v.sqrt() + sigma)
        self.near(site.spread.value, self.pairwise(parts) / sigma.norm().item(), 1e-4)
        ratio = (means.mean(0) - mu) / sigma
        self.assertEqual(site.feature, int(ratio.abs().argmax()))
        self.near(site.largest.value, ratio[site.feature].item())
        self.assertTrue(site.shift.low < site.shift.value < site.shift.high)
        self.assertEqual(site.rows, 64)

    def pairwise(self, parts):
        """sqrt of the mean of products of different batches: no noise in it."""
        count = len(parts)
        total = sum(float(parts[i] @ parts[j])
                    for i in range(count) for j in range(count) if i != j)
        return math.sqrt(max(total / count / (count - 1), 0))

    def constant(self, rows, depth=1):
        """A model whose running statistics have settled on one batch."""
        torch.manual_seed(3)
        x = torch.randn(rows, 6)
        model = nn.Sequential(*[nn.BatchNorm1d(6, affine=False) for _ in range(depth)])
        for norm in model:
            norm.momentum = 0.5
        for _ in range(60):
            model(x)
        return model, [x.clone() for _ in range(10)]

    def test_divisor_bias(self):
        for rows, depth, want in ((64, 20, 0.0078), (5, 1, 0.1056)):
            model, batches = self.constant(rows, depth)
            audit = statrec.audit(model, batches)
            self.assertEqual(len(audit.sites), depth)
            for site in audit.sites:
                self.assertLess(site.tid_mean.value, 1e-5)
                self.assertAlmostEqual(site.tid_var.value, want, 4)
                self.near(site.tid_var.value, 1 - math.sqrt((rows - 1) / rows), 1e-3)
                self.assertLess(site.spread.value, 1e-5)
                self.assertIn("divisor bias, no drift", " ".join(site.notes))
                self.assertNotIn("drift", site.notes)

    def test_not_finite(self):
        batches = pairs()
        model = trained(mlp(nn.BatchNorm1d), batches)
        whole = mean([loss_of(model, batch, True) for batch in batches])
        for norm in norms_of(model):
            norm.running_mean.fill_(math.nan)
        audit = statrec.audit(model, batches, F.cross_entropy, accuracy)
        self.assertEqual((audit.verdict, audit.culprit), ("severe", "1"))
        self.assertIn("not finite", str(audit))
        self.assertIn("all weights are finite", str(audit))
        self.assertTrue(math.isnan(audit.measures["loss"].mean("running").value))
        self.near(audit.measures["loss"].mean("batch").value, whole)
        model.load_state_dict(audit.repair(), strict=False)
        self.near(mean([loss_of(model, batch, ()) for batch in batches]),
                  audit.measures["loss"].mean("recomputed").value)
        self.assertGreater(audit.measures["accuracy"].mean("recomputed").value, 0.9)
        self.assertNotEqual(statrec.audit(model, batches, F.cross_entropy).verdict, "severe")

    def test_one_site_not_finite(self):
        model, batches = self.drifted()
        model[4].running_var.fill_(math.inf * 0)
        audit = statrec.audit(model, batches, F.cross_entropy)
        self.assertEqual(audit.culprit, "4")
        self.assertEqual([site.share for site in audit.sites], [0.0, 1.0])

    def test_stale_copy(self):
        batches = pairs()
        model = mlp(nn.BatchNorm1d)
        stale = copy.deepcopy(model)
        trained(model, batches, 20)
        stale.load_state_dict({name: value for name, value in model.state_dict().items()
                               if "running" not in name and "tracked" not in name}, strict=False)
        audit = statrec.audit(stale, batches, F.cross_entropy)
        site = self.site(audit, "1")
        rows = [inputs_of(stale, stale[1], x) for x, _ in batches]
        want = mean([((x.mean(0) - 0).norm() / math.sqrt(8)).item() for x in rows])
        self.near(site.tid_mean.value, want)
        self.assertIn("never updated", site.notes)
        self.assertEqual(audit.verdict, "severe")
        self.assertGreater(self.site(audit, "4").share, site.share)  # and the first one is named
        self.assertGreater(site.share, 0.5)
        self.assertEqual(audit.culprit, "1")
        self.assertIn("load_state_dict", str(audit))

    def test_frozen(self):
        model, batches = self.drifted()
        model[4].eval()
        audit = statrec.audit(model, batches, F.cross_entropy)
        site = self.site(audit, "4")
        self.assertTrue(site.frozen)
        self.assertGreater(site.shift.low, 2)
        self.assertEqual(sorted(audit.repair()), ["1.running_mean", "1.running_var"])
        for got, batch in zip(audit.measures["loss"].values["batch"], batches):
            self.near(got, loss_of(model, batch, ("1",)))
        self.assertIsNone(site.share)
        self.assertEqual(audit.verdict, "nothing")

    def test_tracking_switched_off(self):
        batches = pairs()
        model = mlp(nn.BatchNorm1d)
        for norm in norms_of(model):
            norm.track_running_stats = False
        trained(model, batches)
        audit = statrec.audit(model, batches, F.cross_entropy)
        self.assertEqual(audit.verdict, "severe")
        for site in audit.sites:
            self.assertIn("track_running_stats is False", " ".join(site.notes))
        got = audit.measures["loss"].values["running"]
        for value, batch in zip(got, batches):
            self.near(value, loss_of(model, batch, ()))  # by its buffers, 0 and 1

    def test_sound(self):
        batches = pairs(30, 128)
        model = trained(mlp(nn.BatchNorm1d), batches, 4)
        audit = statrec.audit(model, batches, F.cross_entropy, accuracy)
        self.assertEqual((audit.verdict, audit.culprit, audit.forwards), ("nothing", None, 90))
        self.assertIn("cost nothing measurable here", str(audit))
        self.assertEqual(statrec.audit(model, batches).verdict, "nothing")

    def test_shifted_data(self):
        batches = pairs()
        model = trained(mlp(nn.BatchNorm1d), batches)
        other = pairs(9, 48, shift=0.5, seed=7)
        found = statrec.compare(model, batches, other)
        self.assertEqual(found.batches, (12, 9))
        for site, norm in zip(found.sites, norms_of(model)):
            a, b = ([inputs_of(model, norm, x, False) for x, _ in some]
                    for some in (batches, other))
            sigma = torch.stack([x.var(0) for x in a]).mean(0).sqrt()
            means = [torch.stack([x.mean(0) for x in some]) for some in (a, b)]
            noise = sum(part.var(0).sum().item() / len(part) for part in means)
            square = (means[1].mean(0) - means[0].mean(0)).square().sum().item() - noise
            self.near(site.shift.value, math.sqrt(square) / sigma.norm().item(), 1e-4)
            self.assertGreater(site.shift.low, 0.1)
            ratio = (means[1].mean(0) - means[0].mean(0)) / sigma
            self.assertEqual(site.feature, int(ratio.abs().argmax()))
            self.near(site.largest.value, ratio[site.feature].item(), 1e-4)
        again = statrec.compare(model, batches, pairs(9, 48, seed=7))
        for site in again.sites:
            self.assertEqual(site.shift.low, 0)
            self.assertLess(site.shift.value, 0.05)
        self.assertEqual(found.worst, max(found.sites, key=lambda site: site.shift.value).name)
        self.assertIn(f"largest shift: {found.worst}", str(found))
        self.assertIn("<table>", found._repr_html_())


class Numbers(Case):
    def test_student(self):
        for freedom, want in ((1, 12.7062), (2, 4.30265), (3, 3.18245), (4, 2.77645), (5, 2.57058),
                              (10, 2.22814), (49, 2.00958), (1000, 1.96234)):
            self.assertAlmostEqual(numbers.student(freedom), want, 4)

    def test_mean_of(self):
        found = numbers.mean_of([1.0, 2.0, 4.0])
        self.near(found.value, 7 / 3)
        half = 4.30265 * math.sqrt(7 / 3 / 3)
        self.near(found.high - found.value, half)
        self.near(found.value - found.low, half)
        self.assertTrue(math.isnan(numbers.mean_of([1.0]).low))

    def test_length_without_noise(self):
        """Squares are unbiased, also with unequal rows, and intervals hold the truth."""
        make, squares, inside, truth = torch.Generator().manual_seed(5), [], 0, 0.3
        rows = torch.tensor([40.0, 40, 40, 40, 40, 40, 10, 10], dtype=torch.float64)
        for _ in range(400):
            parts = torch.randn(8, 20, generator=make, dtype=torch.float64) / rows.sqrt()[:, None]
            parts[:, 0] += truth
            group = [numbers.Group(parts, rows)]
            squares.append(numbers._square(group))
            found = numbers.length(group, 1.0)
            inside += found.low <= truth <= found.high
        self.assertLess(abs(mean(squares) - truth ** 2), 0.008)
        self.assertGreater(inside, 0.88 * 400)

    def test_length_of_equal_batches(self):
        parts = torch.tensor([[3.0, 4.0]]).double().repeat(4, 1)
        self.assertEqual(numbers.length([numbers.Group(parts, torch.ones(4).double())], 2.0),
                         (2.5, 2.5, 2.5))

    def test_pooled(self):
        """Rows of unequal batches far from zero, as if they were one."""
        make = torch.Generator().manual_seed(6)
        parts = [1e4 + torch.randn(n, 3, generator=make, dtype=torch.float64) for n in (5, 60, 7)]
        moments = numbers.Moments()
        for place, part in enumerate(parts):
            moments.add(place, [(len(part), part.mean(0), part.var(0, correction=0))])
        average, variance = moments.pooled()
        rows = torch.cat(parts)
        self.assertTrue(torch.allclose(average, rows.mean(0), rtol=1e-14, atol=0))
        self.assertTrue(torch.allclose(variance, rows.var(0), rtol=1e-10, atol=0))
        group = numbers.deviations(moments, torch.full((3,), 2.0, dtype=torch.float64))
        unbiased = sum((len(part) - 1) * part.var(0) for part in parts) / 69
        self.assertTrue(torch.allclose(group.mean(), unbiased.sqrt() - math.sqrt(2)))

    def measure(self, cost, unit="nats", spread=0.0, more=False):
        one = scores.Measure("loss", more, unit)
        sign = -1 if more else 1
        around = [spread, -spread, spread, -spread]
        one.values = {"batch": [2.0] * 4, "running": [2 + sign * (cost + e) for e in around]}
        one.values["recomputed"] = one.values["batch"]
        return one.worst()[0]

    def test_words(self):
        for cost, word in ((0.0099, "nothing"), (0.0101, "notable"), (0.099, "notable"),
                           (0.101, "severe"), (-0.5, "nothing")):
            self.assertEqual(self.measure(cost), word, cost)
        self.assertEqual(self.measure(0.2, spread=0.2), "nothing")
        for cost, word in ((0.0039, "nothing"), (0.0041, "notable"), (0.039, "notable"),
                           (0.0425, "severe")):
            self.assertEqual(self.measure(cost, ""), word, cost)
            self.assertEqual(self.measure(cost, "", more=True), word, cost)
        self.assertEqual(self.measure(-0.5, "", more=True), "nothing")

    def test_unit_of_the_loss(self):
        batches = pairs(3)
        model = mlp(nn.BatchNorm1d)
        for loss, unit, want in ((F.cross_entropy, None, "nats"),
                                 (nn.CrossEntropyLoss(), None, "nats"),
                                 (nn.CrossEntropyLoss(reduction="sum"), None, ""),
                                 (lambda o, t: 2 * F.cross_entropy(o, t), None, ""),
                                 (lambda o, t: 2 * F.cross_entropy(o, t), "nats", "nats"),
                                 (lambda o, t: F.mse_loss(o, F.one_hot(t, 2).float()), None, "")):
            audit = statrec.audit(model, batches, loss, unit=unit)
            self.assertEqual(audit.measures["loss"].unit, want)


class Broken(Exception):
    pass


class State(Case):
    """What an audit finds, it leaves."""

    def everything(self, model):
        """Bits and identities of all that must stay."""
        tensors = {name: (id(value), value._version, value.detach().clone(),
                          None if getattr(value, "grad", None) is None else
                          (id(value.grad), value.grad.clone()))
                   for name, value in [*model.named_parameters(), *model.named_buffers()]}
        modules = [(id(module), module.training, list(module._buffers), list(module._parameters),
                    list(module.__dict__), dict(module._forward_hooks),
                    dict(module._forward_pre_hooks),
                    dict(module._backward_hooks), dict(module._forward_hooks_always_called),
                    dict(module._forward_pre_hooks_with_kwargs)) for module in model.modules()]
        return tensors, modules

    def same(self, before, after):
        self.assertEqual(before[1], after[1])
        self.assertEqual(before[0].keys(), after[0].keys())
        for name, (place, version, value, grad) in before[0].items():
            place2, version2, value2, grad2 = after[0][name]
            self.assertEqual((place, version), (place2, version2), name)
            self.assertEqual(value.numpy().tobytes(), value2.numpy().tobytes(), name)
            self.assertEqual(grad is None, grad2 is None)
            if grad is not None:
                self.assertEqual(grad[0], grad2[0])
                self.assertTrue(torch.equal(grad[1], grad2[1]))

    def model(self):
        model = nn.Sequential(convnet()[:4], nn.Dropout(0.5), convnet()[4:])
        x = torch.randn(9, 3, 8, 8)
        F.cross_entropy(model(x), torch.zeros(9).long()).backward()
        model[1].eval()
        model[0][1].running_mean[0] = math.nan
        model.register_buffer("nothing", None)
        model.register_buffer("tied", model[0][1].running_var)
        model[0][1].register_forward_hook(lambda *_: None)
        model[0].register_forward_pre_hook(lambda *_: None)
        return model

    def batches(self):
        make = torch.Generator().manual_seed(2)
        return [(torch.randn(9, 3, 8, 8, generator=make), torch.zeros(9).long()) for _ in range(4)]

    def randoms(self):
        numpy = sys.modules.get("numpy")
        return (random.getstate(), torch.get_rng_state().tolist(),
                None if numpy is None else str(numpy.random.get_state()))

    def unchanged(self, work, error=None):
        """The model and the random states are as they were after work(model)."""
        model = self.model()
        before, randoms = self.everything(model), self.randoms()
        grad = torch.is_grad_enabled()
        if error is None:
            work(model)
        else:
            with self.assertRaises(error):
                work(model)
        self.same(before, self.everything(model))
        self.assertEqual(randoms, self.randoms())
        self.assertEqual(torch.is_grad_enabled(), grad)
        self.assertIs(model.tied, model[0][1].running_var)

    def test_all_stays(self):
        self.unchanged(lambda model: statrec.audit(model, self.batches(), F.cross_entropy))
        self.unchanged(lambda model: statrec.audit(model, self.batches(), each_site=True))
        self.unchanged(lambda model: statrec.compare(model, self.batches(), self.batches()))

    def test_after_exceptions(self):
        def broken(*_):
            raise Broken

        def loader():
            yield from self.batches()[:2]
            raise Broken

        def late(output, target, calls=[]):
            calls.append(0)
            if len(calls) > 7:
                raise KeyboardInterrupt
            return F.cross_entropy(output, target)
        self.unchanged(lambda model: statrec.audit(model, self.batches(), broken), Broken)
        self.unchanged(lambda model: statrec.audit(model, self.batches(), late), KeyboardInterrupt)
        self.unchanged(lambda model: statrec.audit(model, self.batches(), call=broken), Broken)
        self.unchanged(lambda model: statrec.audit(model, loader()), Broken)
        self.unchanged(lambda model: statrec.compare(model, self.batches(), loader()), Broken)

    def test_random_states(self):
        def noisy(output, target):
            random.random()
            torch.rand(3)
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.rand()
            return F.cross_entropy(output, target)
        self.unchanged(lambda model: statrec.audit(model, self.batches(), noisy))

    def test_generator_of_the_loader(self):
        make = torch.Generator().manual_seed(9)
        data = torch.utils.data.TensorDataset(torch.randn(40, 5))
        loader = torch.utils.data.DataLoader(data, 8, shuffle=True, generator=make)
        before = make.get_state()
        statrec.audit(mlp(nn.BatchNorm1d), loader)
        self.assertTrue(torch.equal(before, make.get_state()))

    @unittest.skipUnless(torch.cuda.is_available(), "no CUDA device")
    def test_on_a_gpu(self):
        model, batches = trained(mlp(nn.BatchNorm1d), pairs(4)), pairs(4)
        want = statrec.audit(model, batches, F.cross_entropy)
        model.cuda()
        before = [value.clone() for value in model.state_dict().values()]
        state = torch.cuda.get_rng_state()

        def noisy(output, target):
            torch.rand(3, device="cuda")
            return F.cross_entropy(output, target)
        audit = statrec.audit(model, batches, noisy)
        self.assertTrue(torch.equal(state, torch.cuda.get_rng_state()))
        self.assertTrue(all(map(torch.equal, before, model.state_dict().values())))
        for regime, values in audit.measures["loss"].values.items():
            for got, value in zip(values, want.measures["loss"].values[regime]):
                self.near(got, value, 1e-3)
        self.assertEqual(audit.repair()["1.running_mean"].device, model[1].running_mean.device)

    def test_repair_leaves_the_model(self):
        model, batches = mlp(nn.BatchNorm1d), pairs(3)
        before = self.everything(model)
        audit = statrec.audit(model, batches, F.cross_entropy)
        found = audit.repair()
        self.same(before, self.everything(model))
        rows = torch.cat([inputs_of(model, model[1], x) for x, _ in batches])
        self.assertTrue(torch.allclose(found["1.running_mean"].double(), rows.mean(0), atol=1e-6))
        self.assertTrue(torch.allclose(found["1.running_var"].double(), rows.var(0), rtol=1e-6))
        self.assertEqual(found["1.running_mean"].dtype, torch.float32)
        missing = model.load_state_dict(found, strict=False)
        self.assertEqual(missing.unexpected_keys, [])
        self.assertTrue(torch.equal(model[4].running_var, found["4.running_var"]))
        found["4.running_var"].zero_()
        self.assertTrue(audit.repair()["4.running_var"].all())

    def test_input_is_not_changed(self):
        class InPlace(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(5)

            def forward(self, x):
                return self.norm(x.mul_(2))
        batches = pairs(4)
        kept = [x.clone() for x, _ in batches]
        statrec.audit(InPlace(), batches)
        self.assertTrue(all(torch.equal(x, other) for (x, _), other in zip(batches, kept)))

    def test_reassigned_buffers(self):
        class Counts(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(5)
                self.register_buffer("count", torch.zeros(()))

            def forward(self, x):
                self.count = self.count + 1
                self.norm.num_batches_tracked.add_(1)
                return self.norm(x)
        model = Counts()
        before = self.everything(model)
        statrec.audit(model, pairs(3))
        self.same(before, self.everything(model))


class Forwards(Case):
    def counting(self, model):
        calls = []
        model.register_forward_pre_hook(lambda *_: calls.append(0))
        return calls

    def wrong(self, depth=12):
        torch.manual_seed(0)
        layers = [part for _ in range(depth) for part in (nn.Linear(5, 5), nn.BatchNorm1d(5))]
        model = trained(nn.Sequential(*layers, nn.Linear(5, 2)), pairs(), 1)
        for norm in norms_of(model):
            norm.running_mean += 1
        return model

    def test_six_passes(self):
        for batches in (1, 2, 3, 8, 20):
            for loss in (F.cross_entropy, None):
                model, loads = self.wrong(), []
                calls = self.counting(model)

                def loader():
                    for batch in pairs(30):
                        loads.append(0)
                        yield batch
                audit = statrec.audit(model, loader(), loss, batches=batches)
                self.assertEqual(len(calls), audit.forwards)
                self.assertLessEqual(len(calls), 6 * batches)
                self.assertEqual(len(loads), batches)
                if batches > 3:
                    self.assertEqual(audit.verdict, "severe")
                    self.assertEqual(audit.tried, 12 if batches > 7 or loss else 7)
                    self.assertGreater(len(calls), 5 * batches)

    def test_each_site(self):
        model = self.wrong(4)
        calls = self.counting(model)
        audit = statrec.audit(model, pairs(), F.cross_entropy, each_site=True, batches=10)
        self.assertEqual(len(calls), 10 * (3 + 4))
        for site in audit.sites:
            parts = [loss_of(model, batch, (site.name,)) for batch in pairs(10)]
            whole = [loss_of(model, batch, ()) for batch in pairs(10)]
            gap = mean(whole) - mean([loss_of(model, batch, True) for batch in pairs(10)])
            self.near(site.share, (mean(whole) - mean(parts)) / gap, 1e-3)
            self.near(site.value.value, mean(parts), 1e-4)

    def same_as_training(self, model, make):
        """Running and batch statistics give what torch's modes give."""
        batches = [(make(), None) for _ in range(3)]
        model.eval()
        audit = statrec.audit(model, batches, lambda output, _: output.square().mean())
        for regime, training in (("running", False), ("batch", True)):
            for got, (x, _) in zip(audit.measures["loss"].values[regime], batches):
                twin = copy.deepcopy(model).train(training)
                with torch.no_grad():
                    self.near(got, twin(x).double().square().mean().item(), 3e-6)
        return audit

    def test_kinds(self):
        class Act(nn.BatchNorm2d):
            def forward(self, x):
                y = F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
                                 self.training, self.momentum, self.eps)
                return F.relu(y)

        class Last(nn.BatchNorm1d):
            """Features last; the norm within it has them in dimension 1."""

            def forward(self, x):
                y = F.batch_norm(x.transpose(1, 2), self.running_mean, self.running_var,
                                 self.weight, self.bias, self.training, self.momentum, self.eps)
                return F.relu(y.transpose(1, 2))
        torch.manual_seed(8)
        for norm, shape in ((nn.BatchNorm1d(4), (6, 4)), (nn.BatchNorm1d(4), (6, 4, 7)),
                            (nn.BatchNorm2d(4), (6, 4, 3, 5)), (nn.BatchNorm3d(4), (6, 4, 3, 2, 2)),
                            (nn.SyncBatchNorm(4), (6, 4, 3)), (Act(4), (6, 4, 3, 5)),
                            (Last(4), (6, 5, 4)), (nn.BatchNorm2d(4, momentum=None), (6, 4, 3, 5))):
            norm.running_mean.uniform_(-1, 1)
            norm.running_var.uniform_(0.5, 2)
            audit = self.same_as_training(nn.Sequential(norm, nn.Tanh()),
                                          lambda: 3 * torch.randn(shape) + 1)
            self.assertEqual(len(audit.sites), 1, norm)
            rows = math.prod(shape) / 4
            self.assertEqual(audit.sites[0].rows, rows, norm)

    def test_shared_module(self):
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(5)

            def forward(self, x):
                return self.norm(self.norm(x) * 2 + 1)
        audit = self.same_as_training(Twice(), lambda: torch.randn(6, 5) * 3)
        self.assertEqual(audit.sites[0].rows, 12)

    def test_scripted_part(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            part = torch.jit.script(nn.Sequential(nn.Dropout(), nn.BatchNorm1d(5)))
        model = nn.Sequential(part, nn.BatchNorm1d(5)).train()
        before = {name: value.clone() for name, value in model.state_dict().items()}
        audit = statrec.audit(model, pairs(3))
        self.assertEqual([site.name for site in audit.sites], ["1"])
        self.assertTrue(all(module.training for module in model.modules()))
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)

    def test_each_site_of_a_sound_model(self):
        batches = pairs(30, 128)
        model = trained(mlp(nn.BatchNorm1d), batches, 4)
        audit = statrec.audit(model, batches, F.cross_entropy, each_site=True)
        for site in audit.sites:
            self.assertIsNone(site.share)
            self.near(site.value.value, mean([loss_of(model, batch, (site.name,))
                                              for batch in batches]), 1e-4)
        self.assertIn("alone", str(audit))

    def test_dropout_is_off(self):
        batches = pairs(4)
        model = nn.Sequential(nn.Dropout(0.9), nn.BatchNorm1d(5), nn.Linear(5, 2)).train()
        audit = statrec.audit(model, batches, F.cross_entropy)
        for got, batch in zip(audit.measures["loss"].values["batch"], batches):
            self.near(got, loss_of(model, batch, True))

    def test_random_models_are_paired(self):
        class Noisy(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(5)

            def forward(self, x):
                return self.norm(x) + torch.randn(len(x), 5)
        model, batches = Noisy(), pairs(1) * 4
        model.norm.running_mean.copy_(batches[0][0].mean(0))
        model.norm.running_var.copy_(batches[0][0].var(0, correction=0))
        audit = statrec.audit(model, batches, lambda output, _: output.sum())
        self.assertLess(abs(audit.measures["loss"].cost("running", "batch").value), 1e-3)

    def test_wrappers(self):
        batches, plain = pairs(4), mlp(nn.BatchNorm1d)
        want = statrec.audit(plain, batches, F.cross_entropy)
        for wrapped, prefix in self.wrapped(plain):
            audit = statrec.audit(wrapped, batches, F.cross_entropy)
            self.assertEqual(audit.measures["loss"].values, want.measures["loss"].values)
            self.assertEqual([site.name for site in audit.sites], ["1", "4"])
            self.assertIn(f"{prefix}1.running_mean", audit.repair())
            taken = wrapped.load_state_dict(audit.repair(), strict=False)
            self.assertEqual(taken.unexpected_keys, [])
            plain.load_state_dict(mlp(nn.BatchNorm1d).state_dict())

    def wrapped(self, model):
        yield nn.DataParallel(model), "module."
        compiled = torch.compile(model, backend="eager")
        yield compiled, "_orig_mod."
        with torch.no_grad():
            compiled.eval()(torch.randn(3, 5))
        yield compiled, "_orig_mod."
        inside = nn.Sequential(model, nn.Identity())
        model.compile(backend="eager")
        self.addCleanup(torch.compiler.reset)
        if torch.distributed.is_available() and torch.distributed.is_gloo_available():
            with tempfile.TemporaryDirectory() as where:
                torch.distributed.init_process_group("gloo", init_method=f"file://{where}/store",
                                                     rank=0, world_size=1)
                try:
                    yield nn.parallel.DistributedDataParallel(model), "module."
                finally:
                    torch.distributed.destroy_process_group()
        del inside


class Ranks(Case):
    def test_one_rank_alone(self):
        """Nothing waits for the other ranks, and no buffer comes from them."""
        with tempfile.TemporaryDirectory() as where:
            torch.multiprocessing.spawn(one_rank, (where,), nprocs=2)
            self.assertEqual(sorted(os.listdir(where))[:2], ["done0", "done1"])


def one_rank(rank, where):
    """In a process: rank 1 audits a model with buffers of its own, rank 0 does not."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{where}/store", rank=rank,
                                         world_size=2)
    model = nn.parallel.DistributedDataParallel(mlp(nn.BatchNorm1d))
    if rank == 1:
        statrec.audit(mlp(nn.SyncBatchNorm), pairs(2), F.cross_entropy)
        model.module[1].running_mean.fill_(3.0)
        audit = statrec.audit(model, pairs(4), F.cross_entropy)
        assert audit.sites[0].shift.value > 2, str(audit)
        assert model.module[1].running_mean.eq(3).all()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    with open(f"{where}/done{rank}", "w", encoding="utf-8"):
        pass


class Inputs(Case):
    """What loaders yield."""

    def model(self):
        class Named(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = mlp(nn.BatchNorm1d)

            def forward(self, input_ids=None, labels=None):
                logits = self.inner(input_ids)
                loss = None if labels is None else F.cross_entropy(logits, labels)
                return types.SimpleNamespace(loss=loss, logits=logits)
        model = Named()
        trained(model.inner, pairs())
        model.inner[4].running_mean.add_(2)
        return model

    def test_dicts_with_their_loss(self):
        model = self.model()
        batches = [{"input_ids": x, "labels": y} for x, y in pairs(4)]
        want = statrec.audit(model.inner, pairs(4), F.cross_entropy)
        for audit in (statrec.audit(model, batches),
                      statrec.audit(model, batches, lambda out, batch: F.cross_entropy(
                          out.logits, batch["labels"])),
                      statrec.audit(model, [(b["input_ids"], b["labels"], 0) for b in batches],
                                    lambda out, batch: F.cross_entropy(out.logits, batch[1]),
                                    call=lambda model, batch: model(batch[0]))):
            self.assertEqual(audit.measures["loss"].unit, "nats")
            self.assertEqual(audit.measures["loss"].values, want.measures["loss"].values)
            self.assertEqual((audit.verdict, audit.culprit), ("severe", "inner.4"))

    def test_outputs_of_dicts(self):
        audit = statrec.audit(self.model(), [{"input_ids": x} for x, _ in pairs(8)])
        self.assertEqual((list(audit.measures), audit.verdict, audit.culprit),
                         (["outputs"], "severe", "inner.4"))
        self.assertIn("severe: the outputs with running statistics are by", str(audit))

    def test_outputs(self):
        model, batches = self.model().inner, [x for x, _ in pairs(8)]
        audit = statrec.audit(model, batches)
        twin = copy.deepcopy(model).double()
        for got, x in zip(audit.measures["outputs"].values["running"], batches):
            with torch.no_grad():
                running, batch = (copy.deepcopy(twin).train(mode)(x.double())
                                  for mode in (False, True))
            self.near(got, ((running - batch).norm() / batch.norm()).item())
        self.assertEqual(audit.measures["outputs"].values["batch"], [0.0] * 8)

    def test_target_of_inputs(self):
        seen = []
        statrec.audit(mlp(nn.BatchNorm1d), [x for x, _ in pairs(2)],
                      lambda output, target: seen.append(target.shape) or output.mean())
        self.assertEqual(set(seen), {(64, 5)})

    def test_wrong_arguments(self):
        model, batches = mlp(nn.BatchNorm1d), pairs(2)
        for error, text, work in (
                (ValueError, "no batch", lambda: statrec.audit(model, [])),
                (ValueError, "batches: at least 1",
                 lambda: statrec.audit(model, batches, batches=0)),
                (ValueError, "yields 3 values", lambda: statrec.audit(model, [(1, 2, 3)])),
                (TypeError, "Module is wanted", lambda: statrec.audit(lambda x: x, batches)),
                (TypeError, "loss: a function", lambda: statrec.audit(model, batches, loss=3)),
                (TypeError, "a number is wanted",
                 lambda: statrec.audit(model, batches, lambda output, target: "much")),
                (ValueError, "no normalization module",
                 lambda: statrec.audit(nn.Linear(5, 2), batches)),
                (ValueError, "none of the 2 normalizations has running statistics",
                 lambda: statrec.audit(mlp(nn.LayerNorm), batches)),
                (ValueError, "run it on one batch first",
                 lambda: statrec.audit(nn.Sequential(nn.LazyBatchNorm1d()), batches))):
            with self.assertRaisesRegex(error, text):
                work()

    def test_norms_that_are_not_recognized(self):
        class StrangeNorm(nn.Module):
            def forward(self, x):
                return x / (1 + x.abs().sum())
        audit = statrec.audit(nn.Sequential(StrangeNorm(), nn.BatchNorm1d(5)), pairs(2))
        self.assertIn("not recognized: StrangeNorm x1", str(audit))

    def test_one_batch(self):
        audit = statrec.audit(mlp(nn.BatchNorm1d), pairs(1), F.cross_entropy)
        self.assertEqual(audit.verdict, "nothing")
        self.assertIn("one batch has no interval", str(audit))

    def test_memory(self):
        self.assertEqual(statrec.audit(mlp(nn.BatchNorm1d), pairs(3)).memory, 3 * 64 * (5 * 4 + 8))


    def test_signatures(self):
        for name, own in (("audit", _audit.audit), ("compare", _audit_compare.compare)):
            shown, kept = (inspect.signature(function).parameters
                           for function in (getattr(statrec, name), own))
            self.assertEqual([(one.name, one.kind, one.default) for one in shown.values()],
                             [(one.name, one.kind, one.default) for one in kept.values()])
            for parameter in shown:
                self.assertRegex(getattr(statrec, name).__doc__, rf"\b{parameter}\b")


class Pages(Case):
    def setUp(self):
        self.where = tempfile.mkdtemp()
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.where)

    def test_html(self):
        model = trained(mlp(nn.BatchNorm1d), pairs())
        model[1].running_mean += 5
        page = statrec.audit(model, pairs(), F.cross_entropy)._repr_html_()
        self.assertIn("culprit: 1", page)
        self.assertIn("<table>", page)
        self.assertEqual(page.count("<table>"), page.count("</table>"))

    def test_file(self):
        try:
            statrec._library.library()
        except statrec.Error as error:
            self.skipTest(str(error))
        model, batches = trained(mlp(nn.BatchNorm1d), pairs()), pairs()
        model[4].running_mean += 2
        audit = statrec.audit(model, batches, F.cross_entropy, accuracy, path="audit.h5")
        self.assertEqual(statrec.check("audit.h5"), [])
        with statrec.open("audit.h5") as run:
            self.assertEqual((run.info["steps"], run.info["status"]), (12, "complete"))
            for site in audit.sites:
                found = [float(value) for value in run.scalar("tid_mean", site.name)]
                self.near(mean(found), site.tid_mean.value, 1e-5)
                self.near(float(run.scalar("audit_share", site.name)[-1]), site.share, 1e-5)
                mu = [float(value) for value in run.vector("mu", site.name)[0]]
                self.assertTrue(torch.allclose(torch.tensor(mu), dict(model.named_modules())[
                    site.name].running_mean))
            for name, regime in (("loss", "running"), ("loss_batch", "batch"),
                                 ("accuracy_recomputed", "recomputed")):
                got = [float(value) for value in run.evals[name]]
                want = audit.measures[name.split("_")[0]].values[regime]
                for a, b in zip(got, want):
                    self.near(a, b)
            self.assertEqual(run.metrics["loss"].unit, "nats")
            self.assertTrue(math.isnan(run.sites["1"].alpha))
        with self.assertRaisesRegex(statrec.Error, "exists"):
            statrec.audit(model, [], path="audit.h5")

    def test_docs(self):
        with open(PAGE, encoding="utf-8") as page:
            blocks = re.findall(r"^```python\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), 3)
        names = {}
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as printed:
            warnings.simplefilter("error")
            for text in blocks:
                exec(compile(text, "docs/audit.md", "exec"), names)
        self.assertEqual((names["audit"].verdict, names["audit"].culprit), ("severe", "4"))
        self.assertEqual(names["again"].verdict, "nothing")
        self.assertIn("culprit: 4", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
