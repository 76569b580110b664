"""The callbacks for trainers, called as the trainers call them: stubs replace the libraries."""
import sys
import types
import unittest

import watch_help as help_  # noqa: F401  (the path of the package)
from fake_recorder import FakeRecorder

import torch
from torch import nn

from statrec.adapters import huggingface, lightning


def stand_in(test, **modules):
    """Modules in the place of libraries, for one test; others imported meanwhile stay."""
    for name, module in modules.items():
        sys.modules[name.replace("__", ".")] = module
        test.addCleanup(sys.modules.pop, name.replace("__", "."))


def model_of():
    torch.manual_seed(11)
    return nn.Sequential(nn.Linear(5, 4), nn.LayerNorm(4), nn.Linear(4, 1))


class HuggingFace(unittest.TestCase):
    """on_step_end, on_log and on_evaluate come in this order; the loss is known in on_log."""

    def setUp(self):
        stub = types.ModuleType("transformers")
        stub.TrainerCallback = type("TrainerCallback", (), {})
        stand_in(self, transformers=stub)
        self.model = model_of()
        self.state = types.SimpleNamespace(global_step=0, epoch=0.0, max_steps=3)

    def update(self, callback, uses=1, loss=None):
        callback.on_step_begin(None, self.state, None)
        for _ in range(uses):
            self.model(torch.randn(6, 5)).sum().backward()
        self.state.global_step += 1
        self.state.epoch += 0.5
        callback.on_step_end(None, self.state, None)
        if loss is not None:
            callback.on_log(None, self.state, None,
                            logs={"loss": loss, "learning_rate": 0.1, "grad_norm": 2.0,
                                  "epoch": self.state.epoch})

    def test_training(self):
        callback = huggingface.callback("run.h5", recorder=FakeRecorder,
                                        metrics={"eval_loss": ("nats", "mean", "less")})
        self.assertIsInstance(callback, sys.modules["transformers"].TrainerCallback)
        callback.on_train_begin(None, self.state, None, model=self.model)
        self.update(callback, uses=2, loss=3.0)
        self.update(callback)
        callback.on_log(None, self.state, None, logs={"eval_loss": 1.0})
        callback.on_evaluate(None, self.state, None, metrics={"eval_loss": 1.0, "eval_x": "a"})
        self.update(callback, loss=1.5)
        callback.on_save(None, self.state, None)
        callback.on_train_end(None, self.state, None)
        recorder = callback.recording.run.recorder
        self.assertEqual([len(step["passes"]) for step in recorder.steps], [2, 1, 1])
        self.assertEqual([step["update"] for step in recorder.steps], [1, 2, 3])
        losses = [step["loss"] for step in recorder.steps]
        self.assertEqual((losses[0], losses[2]), (3.0, 1.5))
        self.assertNotEqual(losses[1], losses[1])
        self.assertEqual((recorder.steps[0]["lr"], recorder.steps[0]["grad_norm"]), (0.1, 2.0))
        self.assertEqual(recorder.evals, [dict(step=2, epoch=1.0, eval_loss=1.0)])
        self.assertEqual((recorder.status, recorder.flushed), ("complete", 1))
        self.assertEqual(recorder.options["planned_steps"], 3)


class Lightning(unittest.TestCase):
    def setUp(self):
        stub = types.ModuleType("lightning.pytorch")
        stub.Callback = type("Callback", (), {})
        whole = types.ModuleType("lightning")
        whole.pytorch = stub
        stand_in(self, lightning=whole, lightning__pytorch=stub)
        self.model = model_of()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.trainer = types.SimpleNamespace(
            global_step=0, current_epoch=0, callback_metrics={}, sanity_checking=False,
            optimizers=[self.optimizer], estimated_stepping_batches=4)

    def batches(self, callback, uses):
        for use in range(uses):
            loss = self.model(torch.randn(6, 5)).sum()
            loss.backward()
            if use == uses - 1:
                callback.on_before_optimizer_step(self.trainer, self.model, self.optimizer)
                self.optimizer.param_groups[0]["lr"] *= 0.5  # a scheduler
                self.trainer.global_step += 1
            callback.on_train_batch_end(self.trainer, self.model, {"loss": loss}, None, use)
        return loss.item()

    def test_training(self):
        callback = lightning.callback("run.h5", recorder=FakeRecorder, metrics=["val_loss"])
        self.trainer.sanity_checking = True
        callback.on_validation_end(self.trainer, self.model)
        self.trainer.sanity_checking = False
        callback.on_train_start(self.trainer, self.model)
        losses = [self.batches(callback, 2), self.batches(callback, 1)]
        self.trainer.callback_metrics = {"val_loss": torch.tensor(0.5), "other": 1}
        callback.on_validation_end(self.trainer, self.model)
        callback.on_train_end(self.trainer, self.model)
        recorder = callback.recording.run.recorder
        self.assertEqual([len(step["passes"]) for step in recorder.steps], [2, 1])
        self.assertEqual([step["loss"] for step in recorder.steps], losses)
        self.assertEqual([step["lr"] for step in recorder.steps], [0.1, 0.05])
        self.assertEqual(recorder.evals, [dict(step=2, epoch=0.0, val_loss=0.5)])
        self.assertEqual(recorder.status, "complete")

    def test_scale_and_exception(self):
        self.trainer.precision_plugin = types.SimpleNamespace(
            scaler=types.SimpleNamespace(get_scale=lambda: 4.0))
        callback = lightning.callback("run.h5", recorder=FakeRecorder)
        callback.on_train_start(self.trainer, self.model)
        torch.manual_seed(3)
        self.batches(callback, 1)
        callback.on_exception(self.trainer, self.model, KeyboardInterrupt())
        recorder = callback.recording.run.recorder
        self.assertEqual(recorder.status, "interrupted")
        want = self.model[2].weight.detach()[0].double() * 6 / 4
        got = torch.tensor(recorder.steps[0]["passes"][0]["sum_g"], dtype=torch.float64)
        self.assertTrue(torch.allclose(got, want, rtol=1e-6))


if __name__ == "__main__":
    unittest.main()
