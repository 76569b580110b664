"""Situations of public reports: their values against float64 code, their verdicts."""
import copy
import math
from types import SimpleNamespace

from audit_cases import Case, accuracy, inputs_of, loss_of, mean, mlp, norms_of, pairs, trained

import statrec
import torch
import torch.nn.functional as F
from statrec._auditing import _audit_report
from statrec._auditing._audit_score import Measure
from torch import nn


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

    def test_one_batch_not_finite(self):
        """It compares nothing, and hides no cost of the others."""
        batches = pairs(8)
        model = trained(mlp(nn.BatchNorm1d), batches)
        bad = [(x.clone(), y) for x, y in batches]
        bad[3][0][0, 0] = math.nan
        good = batches[:3] + batches[4:]
        for value in (5.0, math.nan):
            model[1].running_mean.fill_(value)
            audit, want = (statrec.audit(model, some, F.cross_entropy) for some in (bad, good))
            self.assertEqual((audit.verdict, audit.culprit), ("severe", "1"))
            self.assertEqual(str(audit.cost), str(want.cost))
            self.near(audit.measures["loss"].mean("recomputed").value,
                      want.measures["loss"].mean("recomputed").value)
            self.assertIn("1 of 8 batches left out (4): the loss is not finite", str(audit))
            self.assertIn("its input is not finite in 1 batch", str(audit))
            self.assertEqual(str(audit.sites[0].shift), str(want.sites[0].shift))
            for name, tensor in audit.repair().items():
                self.assertTrue(torch.allclose(tensor, want.repair()[name], rtol=1e-6), name)
        shifted = statrec.compare(model.eval(), bad, good)
        self.assertEqual(shifted.sites[0].lost, (1, 0))
        self.assertEqual(shifted.sites[0].shift.value, 0.0)
        self.assertIn("not finite in 1 batch of a and 0 of b", str(shifted))

    def test_a_metric_undefined_in_one_batch(self):
        def recall(output, y):
            return (output.argmax(1)[y == 1] == 1).double().mean()
        batches = pairs(8)
        model = trained(mlp(nn.BatchNorm1d), batches)
        model[1].running_mean += 9
        batches[7] = batches[7][0], torch.zeros(64, dtype=torch.long)
        audit = statrec.audit(model, batches, metric=recall)
        self.assertEqual(audit.verdict, "severe")
        self.assertTrue(math.isfinite(audit.cost.value))
        self.assertIn("(8): the recall is not finite", str(audit))
        audit = statrec.audit(model, [(x, 0 * y) for x, y in batches], metric=recall)
        self.assertEqual(audit.verdict, "no verdict")
        self.assertIn("no verdict: the recall is not finite with batch statistics", str(audit))

    def test_half_precision(self):
        """Batch statistics are those of training, in float32, whatever the buffers can hold."""
        class Scaled(nn.Module):
            def __init__(self, scale, shift):
                super().__init__()
                self.norm, self.linear = nn.BatchNorm1d(5), nn.Linear(5, 2)
                self.scale, self.shift = scale, shift

            def forward(self, x):
                return self.linear(self.norm(x * self.scale + self.shift))

        class Called(Scaled):
            """With a norm that is a functional call."""

            def __init__(self, scale, shift):
                super().__init__(scale, shift)
                self.norm = Called.Act(5)

            class Act(nn.BatchNorm1d):
                def forward(self, x):
                    return F.relu(F.batch_norm(x, self.running_mean, self.running_var, self.weight,
                                               self.bias, self.training, 0.1, self.eps))

        for kind, scale, shift in ((Scaled, 1000.0, 0.0), (Called, 1000.0, 0.0),
                                   (Scaled, 1.0, 200.0)):
            batches = pairs(8)
            model = trained(kind(scale, shift), batches, 20).half()
            half = [(x.half(), y) for x, y in batches]
            audit = statrec.audit(model, half, lambda output, y: F.cross_entropy(output.float(), y))
            twin = copy.deepcopy(model).double().train()
            want = [F.cross_entropy(twin.linear(twin.norm((x * scale + shift).double())), y).item()
                    for x, y in half]
            for got, value in zip(audit.measures["loss"].values["batch"], want):
                self.near(got, value, 1e-2)
            if scale > 1:
                self.assertEqual((audit.verdict, audit.culprit), ("severe", "norm"))
                self.assertEqual(audit.repair(), {})
                self.assertTrue(math.isnan(audit.sites[0].tid_mean.value))
                self.assertIn("float16 cannot hold its recomputed statistics", str(audit))
                self.assertNotIn("batches differ", str(audit))
            else:
                self.assertEqual(len(audit.repair()), 2)

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
        self.assertIn("cost nothing here: they are better than batch statistics by 0.00672 [0.00272, 0.0107] nats",
                      str(audit))
        self.assertEqual(statrec.audit(model, batches).verdict, "nothing")

    def page(self, running, batch, recomputed=None, name="loss", unit="nats"):
        """The lines of an audit with these numbers of each batch."""
        measure = Measure(name, unit=unit)
        measure.values = {"running": running, "batch": batch, "recomputed": recomputed or batch}
        word, against, cost = measure.worst()
        site = SimpleNamespace(name="bn1", share=0.964, finite=True, drifts=False, overflows=False,
                               notes=[])
        audit = SimpleNamespace(main=measure, measures={name: measure}, verdict=word, against=against, cost=cost, batches=len(batch),
                                culprit="bn1", sites=[site], left_out=[], unaudited=[], tried=1)
        return [_audit_report.verdict(audit), *_audit_report.explanation(audit)]

    def test_texts_without_a_verdict(self):
        for running, text in (
                ([1.0, 1.1, 1.2], "running statistics cost nothing here: they are better than batch statistics by "
                                  "0.0333 [0.019, 0.0477] nats of loss"),
                ([1.034, 1.133, 1.243], "running statistics cost little here, less than 0.01 nats: 0.00333 [0.0"),
                ([1.039, 1.131, 1.24], "running statistics cost nothing measurable here: ")):
            line, = self.page(running, [1.03, 1.13, 1.24])
            self.assertTrue(line.startswith(text), line)

    def test_texts_of_a_cost(self):
        verdict, culprit, recomputed = self.page([1.6, 1.7, 1.8], [1.0, 1.1, 1.2], [1.02, 1.11, 1.21])
        self.assertEqual(culprit, "culprit: bn1: batch statistics at this site alone close 96 % of the gap")
        self.assertIn("recomputed statistics return 98 % of the cost against batch statistics, 0.587 [", recomputed)
        self.assertIn("] of 0.6: model.load_state_dict", recomputed)
        _, _, recomputed = self.page([1.6, 1.7, 1.8], [1.0, 1.1, 1.2], [1.7, 1.8, 1.9])
        self.assertIn("recomputed statistics return nothing, -0.1 [-0.1, -0.1] of 0.6: batches differ", recomputed)
        _, culprit, recomputed = self.page([1.6, 1.7, 1.8], [1.7, 1.8, 1.9], [1.02, 1.11, 1.21])
        self.assertIn("recomputed statistics at this site alone", culprit)
        self.assertIn("recomputed statistics are better by 0.587 [", recomputed)

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
