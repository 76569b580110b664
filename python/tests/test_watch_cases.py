"""Cases of public reports, recorded by watch and diagnosed: how running values move."""
import math
import os
import tempfile
import unittest

from watch_help import watch

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import statrec


def model_of(momentum=0.1):
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16, momentum=momentum), nn.ReLU(),
                         nn.Linear(16, 1))


class Cases(unittest.TestCase):
    def setUp(self):
        try:
            statrec._plot.program_path("statrec")
        except statrec.Error as error:
            self.skipTest(str(error))
        where = tempfile.TemporaryDirectory()
        self.addCleanup(where.cleanup)
        self.path = os.path.join(where.name, "run.h5")

    def record(self, model, update, steps=120, rows=64, **options):
        """update(model, batch, step): forward and backward passes of a step; the question's row."""
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        random = torch.Generator().manual_seed(3)
        with watch(model, self.path, verbose=False, **options) as run:
            for step in range(1, steps + 1):
                batch = 0.5 + torch.randn(rows, 5, generator=random)
                optimizer.zero_grad()
                loss = update(model, batch, step)
                run.step(loss=loss)
                optimizer.step()
        with statrec.open(self.path) as file:
            moved, apart = (file[name]["1"][:] for name in ("mu_moved", "mu_apart"))
            known = [(float(a), float(b)) for a, b in zip(moved, apart) if math.isfinite(a)]
        self.speed = sum(a for a, _ in known) / sum(b for _, b in known)
        found = {row["question"]: row for row in statrec._plot.diagnosed([self.path])}
        if "momentum" not in found:
            self.skipTest("this statrec diagnose does not ask how running values move")
        return found["momentum"]

    @staticmethod
    def plain(model, batch, step):
        loss = model(batch).square().mean()
        loss.backward()
        return loss

    def test_one_update(self):
        row = self.record(model_of(), self.plain)
        self.assertEqual(row["verdict"], "in-order", row)
        self.assertAlmostEqual(self.speed, 0.1, 4)

    def test_checkpointing(self):
        def update(model, batch, step):
            loss = checkpoint(model, batch.requires_grad_(), use_reentrant=False).square().mean()
            loss.backward()
            return loss
        row = self.record(model_of(), update)
        self.assertAlmostEqual(self.speed, 0.19, 4)
        self.assertEqual((row["verdict"], round(row["value"], 2)), ("found", 2), row)

    def test_two_passes(self):
        """SAM."""
        def update(model, batch, step):
            self.plain(model, batch, step)
            with torch.no_grad():
                model[0].weight += 1e-3
            loss = self.plain(model, batch, step)
            with torch.no_grad():
                model[0].weight -= 1e-3
            return loss
        row = self.record(model_of(), update, repeat="last")
        self.assertAlmostEqual(self.speed, 0.19, 2)
        self.assertEqual((row["verdict"], round(row["value"])), ("found", 2), row)

    def test_accumulation(self):
        def update(model, batch, step):
            losses = [self.plain(model, part, step) for part in batch.chunk(4)]
            return sum(losses) / 4
        row = self.record(model_of(), update, repeat="merge", steps=300)
        self.assertAlmostEqual(self.speed, 0.344, 1)
        self.assertEqual((row["verdict"], round(row["value"])), ("found", 4), row)

    def test_momentum_zero(self):
        row = self.record(model_of(0.0), self.plain)
        self.assertEqual((self.speed, row["verdict"]), (0, "found"), row)
        self.assertIn("never move", row["text"])

    def test_thaw(self):
        def update(model, batch, step):
            model.train()
            model[1].train(step >= 60)
            return self.plain(model, batch, step)
        with self.assertWarnsRegex(RuntimeWarning, "no backward pass"):  # it is the only site
            row = self.record(model_of(), update)
        self.assertEqual((row["verdict"], row["at_step"]), ("found", 60), row)

    def test_overflow(self):
        """NaN stays in the buffers; the weights are sound."""
        def update(model, batch, step):
            if step != 50:
                return self.plain(model, batch, step)
            with torch.no_grad():
                batch[0] = math.inf
            loss = model(batch).square().mean()
            loss.backward()
            for parameter in model.parameters():
                parameter.grad = None
            return torch.tensor(1.0)
        row = self.record(model_of(), update)
        self.assertEqual(row["verdict"], "found", row)
        self.assertIn("51", row["text"])

    def test_five_rows(self):
        """One batch repeated: the divisors n and n - 1."""
        torch.manual_seed(6)
        batch = torch.randn(5, 5)
        model = nn.Sequential(nn.Identity(), nn.BatchNorm1d(5), nn.Linear(5, 1))
        row = self.record(model, lambda model, _, step: self.plain(model, batch, step))
        with statrec.open(self.path) as file:
            tid = float(file["tid_var"]["1"][-1])
        self.assertAlmostEqual(tid, 1 - math.sqrt(4 / 5), 3)
        self.assertEqual(row["verdict"], "found", row)


if __name__ == "__main__":
    unittest.main()
