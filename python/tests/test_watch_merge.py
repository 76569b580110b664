"""repeat="merge" with the library: statistics of single passes and of merged rows."""
import os
import tempfile
import unittest

from watch_help import watch

import torch
from torch import nn

try:
    import statrec
    from statrec._library import library
    from statrec._watching import _passes
    library()
except Exception as error:  # other tests report missing packages
    raise unittest.SkipTest(f"no libstatrec: {error}") from None

PASSES, ROWS, WIDTH = 4, 8, 64


def discrepancy(x, mu, sigma2):
    """tid_mean and tid_var of rows [n, width], in float64."""
    sigma = sigma2.sqrt()
    return [((part - other).norm() / sigma.norm()).item()
            for part, other in ((x.mean(0), mu), (x.var(0, correction=0).sqrt(), sigma))]


class Joined(unittest.TestCase):
    def test_passes_weigh_by_their_rows(self):
        """The joined sums of passes of 3, 5 and 40 rows equal the sums of 48 rows."""
        torch.manual_seed(3)
        sizes, gain = (3, 5, 40), torch.randn(WIDTH, dtype=torch.float64)
        x = [torch.randn(rows, WIDTH, dtype=torch.float64) + rows for rows in sizes]
        g = [torch.randn(rows, WIDTH, dtype=torch.float64) for rows in sizes]

        def block(x, g):
            mean, variance = x.mean(0), x.var(0, correction=0)
            return torch.stack([mean, variance, variance + mean ** 2, g.sum(0),
                                (g * (x - mean)).sum(0), g.square().sum(0), gain])
        got = _passes.merged([
            _passes.HostPass(None, (rows, 1, 2), block(*one), 0, WIDTH, True)
            for rows, one in zip(sizes, zip(x, g))])
        torch.testing.assert_close(got.block, block(torch.cat(x), torch.cat(g)), rtol=1e-12, atol=1e-12)
        self.assertEqual((got.rows, got.samples, got.padded), (48, 3, 6))


class Merged(unittest.TestCase):
    def setUp(self):
        where = tempfile.TemporaryDirectory()
        self.addCleanup(where.cleanup)
        self.path = os.path.join(where.name, "run.h5")
        torch.manual_seed(5)

    def record(self, norm, steps, passes=PASSES, rows=ROWS, running=None, **options):
        """Passes of `rows` rows each, merged; what hooks of the test see, [tid_mean, tid_var] of
        every step: means over passes, and of the merged rows."""
        model = nn.Sequential(nn.Linear(WIDTH, WIDTH), norm, nn.Linear(WIDTH, 1))
        seen, of_passes, of_merged = [], [], []
        model[1].register_forward_pre_hook(lambda m, a: seen.append(a[0].detach().double()))
        with watch(model, self.path, repeat="merge", verbose=False, **options) as run:
            for _ in range(steps):
                mu, sigma2 = running or (norm.running_mean.double(), norm.running_var.double())
                for _ in range(passes):
                    model(torch.randn(rows, WIDTH)).square().mean().backward()
                run.step(loss=1.0, tokens=passes * rows)
                each = torch.tensor([discrepancy(x, mu, sigma2) for x in seen])
                whole = torch.cat(seen)
                of_passes.append(each.mean(0).tolist())
                of_merged.append(discrepancy(whole, mu, sigma2))
                if running:
                    running = (0.9 * mu + 0.1 * whole.mean(0),
                               0.9 * sigma2 + 0.1 * whole.var(0, correction=0))
                seen.clear()
        return torch.tensor(of_passes), torch.tensor(of_merged)

    def check(self, name, want):
        with statrec.open(self.path) as run:
            got = torch.tensor([float(value) for value in run.scalar(name, "1")])
        self.assertLess((got - want).abs().max().item(), 2e-6 * want.abs().max().item(), name)

    def median(self, name):
        with statrec.open(self.path) as run:
            values = [float(value) for value in run.scalar(name, "1")]
        return sorted(values[len(values) // 2:])[len(values) // 4]

    def test_discrepancy_of_own_rows(self):
        """4 x 8 rows: BN's TID is for 8 rows, not for 32."""
        passes, whole = self.record(nn.BatchNorm1d(WIDTH), 60)
        for name, want in (("pass_tid_mean", passes[:, 0]), ("pass_tid_var", passes[:, 1]),
                           ("tid_mean", whole[:, 0]), ("tid_var", whole[:, 1])):
            self.check(name, want)
        self.assertAlmostEqual(self.median("pass_tid_mean"), 0.34, delta=0.03)
        self.assertAlmostEqual(self.median("tid_mean"), 0.18, delta=0.03)
        for name, number in (("passes", PASSES), ("pass_rows", ROWS), ("rows", PASSES * ROWS)):
            self.assertEqual(self.median(name), number)

    def test_a_norm_without_running_statistics(self):
        """Uses the observer's statistics, which the recorder updates by merged rows."""
        start = torch.zeros(WIDTH).double(), torch.ones(WIDTH).double()
        passes, whole = self.record(nn.LayerNorm(WIDTH), 12, running=start)
        for name, want in (("pass_tid_mean", passes[:, 0]), ("pass_tid_var", passes[:, 1]),
                           ("tid_mean", whole[:, 0])):
            self.check(name, want)

    def test_one_pass(self):
        """The statistics of a single pass equal the step's."""
        self.record(nn.BatchNorm1d(WIDTH), 5, passes=1)
        with statrec.open(self.path) as run:
            for name in ("tid_mean", "tid_var", "rows"):
                pairs = zip(run.scalar(name, "1"), run.scalar(f"pass_{name}", "1"))
                self.assertTrue(all(abs(a - b) <= 1e-6 * a for a, b in pairs), name)

    def answer(self, question):
        rows = [row for row in statrec.diagnose(self.path) if row["question"] == question]
        self.assertEqual(len(rows), 1)
        return rows[0]

    def test_diagnose_judges_own_rows(self):
        """The limit of tid_mean lies between 0.18 and 0.34 here: merged rows would be in order."""
        self.record(nn.BatchNorm1d(WIDTH), 120)
        row = self.answer("inference")
        self.assertIn(row["statistic"], ("tid_mean", "tid_var"))
        self.assertAlmostEqual(row["value"], self.median("pass_" + row["statistic"]), delta=0.02)
        self.assertAlmostEqual(self.answer("rows")["value"], (2 / (1.9 * ROWS)) ** 0.5, places=6)
        self.assertEqual(row["verdict"], "found")

    def test_would_bn_asks_of_own_rows(self):
        start = torch.zeros(WIDTH).double(), torch.ones(WIDTH).double()
        self.record(nn.LayerNorm(WIDTH), 120, running=start)
        page = " ".join(str(statrec.diagnose(self.path)).split())
        self.assertIn("A batch has 8 rows", page)
        self.assertNotIn("32 rows", page)

    def test_merged_rows_alone_are_not_judged(self):
        """A custom program that merges passes and keeps no single pass."""
        with statrec.Recorder(self.path, program="tests") as recorder:
            site = recorder.add_site("bn", norm="bn", width=2, eps=1e-5, alpha=0.9, repeat="merge")
            for step in range(1, 121):
                recorder.begin_step(step)
                for sign in (1, -1):
                    recorder.put_forward(site, 8, [sign * 2.0, 0.1], [1.0, 1.0], [5.0, 1.01])
                    recorder.put_backward(site, [1.0, 1.0], [0.1, 0.1])
                recorder.end_step(update=step, tokens=16, loss=1.0)
        row = self.answer("inference")
        self.assertEqual(row["verdict"], "not-asked")
        self.assertIn("passes are merged", str(statrec.diagnose(self.path)))


if __name__ == "__main__":
    unittest.main()
