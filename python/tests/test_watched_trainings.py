"""sample_runs/watched: 20 healthy trainings and ten to calibrate by."""
import contextlib
import io
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

from support import TOP
from watch_help import same, weights

import torch

import statrec

WHERE = os.path.join(TOP, "sample_runs", "watched")


@unittest.skipUnless(os.path.isdir(WHERE), "no sample_runs")
class Trainings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, WHERE)
        import train
        cls.train = train

    @classmethod
    def tearDownClass(cls):
        sys.path.remove(WHERE)

    def test_two_sets(self):
        """Twenty, and ten that share neither a seed nor a training with them."""
        first, others = self.train.trainings(False), self.train.trainings(True)
        self.assertEqual((len(first), len(others)), (20, 10))
        self.assertEqual(len({one.name for one in first + others}), 30)
        self.assertEqual(len({one.seed for one in first + others}), 30)
        for one in first + others:
            self.assertTrue(150 <= one.steps <= 400 and 16 <= one.batch <= 256, one.name)

    def test_models_and_data(self):
        """Each model learns from a batch of its data; validation both ways leaves it as it was."""
        for one in self.train.trainings(False) + self.train.trainings(True):
            with self.subTest(one.name):
                torch.manual_seed(one.seed)
                task = one.task(one.seed)
                self.assertEqual((len(task.x), len(task.valid_x)), (4096, 1024))
                model = one.model(task)
                loss = self.train.loss_of(task, model(task.x[:16]), task.y[:16])
                loss.backward()
                task.valid_x, task.valid_y = task.valid_x[:32], task.valid_y[:32]
                before = weights(model)
                running, batch = self.train.validated(model, task, 16)
                self.assertTrue(same(before, weights(model)) and model.training)
                batch_norms = any("running_mean" in name for name in before)
                self.assertEqual(running != batch, batch_norms)

    def test_a_file(self):
        try:
            statrec._library.library()
        except statrec.Error as error:
            self.skipTest(f"no libstatrec: {error}")
        one = self.train.trainings(False)[0]
        one.steps = 60
        with tempfile.TemporaryDirectory() as where:
            self.train.record([one], where)
            with statrec.open(os.path.join(where, f"{one.name}.h5")) as file:
                self.assertTrue(file.info["version"].startswith("statrec.watch "))
                self.assertEqual([int(step) for step in file.evals["step"]], [25, 50])
                for name in ("valid_loss", "valid_loss_batch"):
                    self.assertEqual((file.metrics[name].better, file.metrics[name].unit),
                                     ("less", "nats"))
                    self.assertLess(file.evals[name][1], file.evals[name][0])

    def test_false_alarms(self):
        """Two notable findings of all files are allowed, and no severe one."""
        def found(*severities):
            findings = [dict(question="gradient", severity=word, site="a", statistic="g_mu_share",
                             value=1.0, low=0.9, high=1.1, limit=0.5) for word in severities]
            return types.SimpleNamespace(findings=findings)
        with tempfile.TemporaryDirectory() as where:
            for name in ("a.h5", "b.h5"):
                open(os.path.join(where, name), "w").close()
            for first, second, fails in ((("notable",), ("notable", "minor"), False),
                                         (("notable",), ("notable", "notable"), True),
                                         (("severe",), (), True)):
                answers = iter((found(*first), found(*second)))
                with mock.patch.object(statrec, "diagnose", lambda path: next(answers)), \
                        contextlib.redirect_stdout(io.StringIO()):
                    if fails:
                        self.assertRaises(SystemExit, self.train.diagnose, where)
                    else:
                        self.train.diagnose(where)


if __name__ == "__main__":
    unittest.main()
