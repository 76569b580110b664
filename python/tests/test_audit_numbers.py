"""The arithmetic of statrec.audit: intervals, lengths without noise, pooled moments, words."""
import math

from audit_cases import Case, mean, mlp, pairs

import statrec
import torch
import torch.nn.functional as F
from statrec._auditing import _audit_numbers as numbers, _audit_score as scores
from torch import nn


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

    def test_calls(self):
        """Variances of several calls for a batch are within the calls, as PyTorch averages them."""
        make = torch.Generator().manual_seed(8)
        calls = [[shift + torch.randn(n, 3, generator=make, dtype=torch.float64)
                  for n, shift in ((40, 0.0), (40, 4.0))] for _ in range(5)]
        calls[4].pop()
        moments, norm = numbers.Moments(), nn.BatchNorm1d(3, momentum=None).double()
        for place, parts in enumerate(calls):
            moments.add(place, [(len(x), x.mean(0), x.var(0, correction=0)) for x in parts])
            for x in parts:
                norm(x)
        average, variance = moments.pooled()
        self.assertEqual(moments.calls, 2)
        self.assertTrue(torch.allclose(average, norm.running_mean, rtol=1e-12, atol=0))
        within = [torch.cat(list(filter(len, parts))).var(0)
                  for parts in ([one[0] for one in calls], [one[1] for one in calls[:4]])]
        self.assertTrue(torch.allclose(variance, (5 * within[0] + 4 * within[1]) / 9, rtol=1e-12))
        group = numbers.deviations(moments, norm.running_var)
        self.assertLess(group.mean().abs().max().item(), 1e-12)

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
