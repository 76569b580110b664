"""Output beside the file: trackers, notebooks, trainers; stubs replace their packages."""
import os
import sys
import tempfile
import types
import unittest
import warnings
from unittest import mock

from fake_recorder import FakeRecorder
from watch_help import watch
from watch_models import mlp

import torch
from torch import nn

import statrec
from statrec.adapters import accelerate, composer, huggingface, lightning

try:
    statrec._library.library()
    LOADED = True
except statrec.Error:
    LOADED = False


class Board:
    """A tensorboard SummaryWriter."""

    def __init__(self, directory=""):
        self.numbers, self.texts, self.closed = [], [], False
        Board.last = self

    def add_scalar(self, name, value, step):
        self.numbers.append((name, value, step))

    def add_text(self, name, text, step):
        self.texts.append((name, text, step))

    def close(self):
        self.closed = True


class Wandb:
    """wandb and trackio."""

    def __init__(self):
        self.rows, self.defined = [], []

    def define_metric(self, name, step_metric):
        self.defined.append((name, step_metric))

    def log(self, values):
        self.rows.append(values)


class MlFlow:
    def __init__(self):
        self.rows, self.texts = [], []

    def log_metrics(self, values, step):
        self.rows.append((values, step))

    def log_text(self, text, file):
        self.texts.append((file, text))


@unittest.skipUnless(LOADED, "no libstatrec")
class Recorded(unittest.TestCase):
    def setUp(self):
        where = tempfile.TemporaryDirectory()
        self.addCleanup(where.cleanup)
        self.path = os.path.join(where.name, "run.h5")

    def record(self, *writers, steps=5, **options):
        model = mlp(nn.BatchNorm1d)
        with watch(model, self.path, verbose=False) as run:
            for writer in writers:
                run.log_to(writer, **options)
            for step in range(steps):
                model(torch.randn(6, 5)).square().mean().backward()
                run.step(loss=1.0 + step)
        return run

    def scalars(self, name, site):
        with statrec.open(self.path) as run:
            return [float(value) for value in run.scalar(name, site)]

    def test_all_kinds_of_writers(self):
        board, wandb, mlflow = Board(), Wandb(), MlFlow()
        self.record(board, wandb, mlflow, sites="4", scalars=["tid_mean"], every=2)
        want, tag = self.scalars("tid_mean", "4"), "statrec/tid_mean/4"
        steps = list(range(1, 6))
        self.assertEqual([row for row in board.numbers if row[0] == tag],
                         [(tag, value, step) for value, step in zip(want, steps)])
        self.assertEqual({name for name, _, _ in board.numbers}, {tag, "statrec/findings"})
        self.assertEqual([row for row in wandb.rows if tag in row],
                         [{tag: value, "statrec/step": step} for value, step in zip(want, steps)])
        self.assertEqual(wandb.defined, [("statrec/*", "statrec/step")])
        self.assertEqual(mlflow.rows[:5], [({tag: value}, step) for value, step in zip(want, steps)])
        for text in (board.texts[0][1], wandb.rows[-1]["statrec/diagnosis"], mlflow.texts[0][1]):
            self.assertIn(self.path, text)

    def test_steps_without_values(self):
        """A step that did not record its sites sends nothing, not even NaN."""
        model, board = mlp(nn.BatchNorm1d), Board()
        with watch(model, self.path, verbose=False, every=2) as run:
            run.log_to(board, sites="4", scalars=["tid_mean"], every=1)
            for _ in range(4):
                model(torch.randn(6, 5)).square().mean().backward()
                run.step(loss=1.0)
        self.assertEqual([step for name, _, step in board.numbers if name == "statrec/tid_mean/4"],
                         [2, 4])

    def test_every(self):
        """Rows wait for the third step, whatever its number, and the last ones for the end."""
        for apart in (1, 3):
            model, board, sent = mlp(nn.BatchNorm1d), Board(), []
            with watch(model, self.path, verbose=False, force=True) as run:
                run.log_to(board, sites="4", scalars=["tid_mean"], every=3)
                for step in range(1, 6):
                    model(torch.randn(6, 5)).square().mean().backward()
                    run.step(loss=1.0, step=apart * step)
                    sent.append(len(board.numbers))
            rows = [step for name, _, step in board.numbers if name == "statrec/tid_mean/4"]
            self.assertEqual((sent, rows), ([0, 0, 3, 3, 3], [apart * step for step in range(1, 6)]))

    def test_a_tracker_that_fails(self):
        class Broken(Board):
            def add_scalar(self, *row):
                raise OSError("no network")

        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            run = self.record(Broken(), every=1)
        self.assertEqual([str(one.message) for one in told], ["statrec: log_to: OSError: no network"])
        self.assertEqual((run.failure, len(self.scalars("tid_mean", "1"))), (None, 5))

    def test_no_tracker(self):
        with self.assertRaisesRegex(TypeError, "object has none of add_scalar, log_metrics, log"):
            self.record(object())

    def diagnosed(self, findings):
        """Findings of diagnose, a list for each call."""
        from statrec import _trackers
        rows = iter(findings)
        ask = lambda files: statrec._plot.Diagnosis(
            {"question": name, "verdict": "found", "rank": n, "steps": len(files[0].steps["step"])}
            for n, name in enumerate(next(rows)))
        patcher = mock.patch.object(_trackers, "diagnosed", ask)
        patcher.start()
        self.addCleanup(patcher.stop)

    def watched(self, told, steps=7, **options):
        model = mlp(nn.BatchNorm1d)
        with watch(model, self.path, verbose=False, on_finding=told, **options) as run:
            for _ in range(steps):
                model(torch.randn(6, 5)).square().mean().backward()
                run.step(loss=1.0)
        return run

    def test_findings_once_each(self):
        """Diagnosed in steps 3 and 6 and at the end; each finding is reported once."""
        self.diagnosed([["rows"], ["rows", "alpha"], ["alpha", "inference", "rows"]])
        told = []
        self.watched(lambda finding: told.append((finding["question"], finding["steps"])),
                     findings_every=3)
        self.assertEqual(told, [("rows", 3), ("alpha", 6), ("inference", 7)])

    def test_a_function_that_raises(self):
        """One warning; the run continues."""
        self.diagnosed([["rows"], ["alpha"], ["inference"]])

        def told(finding):
            raise OSError("no mail")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            run = self.watched(told, findings_every=2)
        self.assertEqual([str(one.message) for one in said], ["statrec: on_finding: OSError: no mail"])
        self.assertEqual((run.failure, len(self.scalars("tid_mean", "1"))), (None, 7))

    def test_findings_of_diagnose(self):
        """The program's own: five rows are too few. The training is the same to the bit."""
        try:
            statrec._plot.program_path("statrec")
        except statrec.Error as error:
            self.skipTest(str(error))
        told, weights = [], []
        for options in ({}, dict(on_finding=told.append, findings_every=60)):
            model = mlp(nn.BatchNorm1d)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            torch.manual_seed(1)
            with watch(model, self.path, verbose=False, force=True, **options) as run:
                for _ in range(150):
                    optimizer.zero_grad()
                    loss = model(torch.randn(5, 5)).square().mean()
                    loss.backward()
                    run.step(loss=loss)
                    optimizer.step()
            weights.append(model.state_dict())
        names = [finding["question"] for finding in told]
        self.assertIn("rows", names)
        self.assertEqual(len(names), len(set(names)))
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(*(w.values() for w in weights))))

    def test_wrong_functions(self):
        for options, told in ((dict(on_finding=1), "on_finding: a function"),
                              (dict(on_finding=print, findings_every=0), "findings_every: a number")):
            with self.assertRaisesRegex((TypeError, ValueError), told):
                watch(mlp(), self.path, **options)

    def test_to_tensorboard(self):
        module = types.ModuleType("torch.utils.tensorboard")
        module.SummaryWriter = Board
        self.record()
        with mock.patch.dict(sys.modules, {"torch.utils.tensorboard": module}):
            statrec.to_tensorboard(self.path, "logs", scalars=["tid_var"])
        want = self.scalars("tid_var", "1")
        got = [row for row in Board.last.numbers if row[0] == "statrec/tid_var/1"]
        self.assertEqual([value for _, value, _ in got], want)
        self.assertIn(("loss", 5.0, 5), Board.last.numbers)
        self.assertTrue(Board.last.closed)

    def test_no_package_of_tensorboard(self):
        self.record()
        absent = {"torch.utils.tensorboard": None, "tensorboardX": None}
        with mock.patch.dict(sys.modules, absent), \
                self.assertRaisesRegex(ImportError, "pip install tensorboard .*tensorboardX"):
            statrec.to_tensorboard(self.path, "logs")

    def test_notebooks(self):
        run = self.record()
        with statrec.open(self.path) as file:
            for text in (file._repr_html_(), run._repr_html_()):
                self.assertIn("<td>bn</td>", text)
                self.assertIn(self.path, text)
            diagnosis = file.diagnose()
        self.assertIn("<pre>", diagnosis._repr_html_())
        for text in (str(diagnosis), repr(diagnosis), str(statrec._plot.Diagnosis(diagnosis))):
            self.assertNotIn("{", text)
            self.assertIn("inference", text.lower())
        self.assertIn("closed", file._repr_html_())


class Trainers(unittest.TestCase):
    def stub(self, name, **contents):
        module = types.ModuleType(name)
        vars(module).update(contents)
        sys.modules[name] = module
        self.addCleanup(sys.modules.pop, name)

    def test_hugging_face_scale_and_tokens(self):
        self.stub("transformers", TrainerCallback=object)
        model, scaler = mlp(), types.SimpleNamespace(get_scale=lambda: 8.0)
        state = types.SimpleNamespace(global_step=0, epoch=0.0, max_steps=2, num_input_tokens_seen=10)
        callback = huggingface.callback("run.h5", recorder=FakeRecorder, verbose=False)
        callback.on_train_begin(None, state, None, model=model)
        (8 * model(torch.ones(6, 5)).sum()).backward()
        callback.on_pre_optimizer_step(None, state, None,
                                       optimizer=types.SimpleNamespace(scaler=scaler))
        state.global_step, state.num_input_tokens_seen = 1, 52
        callback.on_step_end(None, state, None)
        callback.on_train_end(None, state, None)
        step, = callback.recording.run.recorder.steps
        self.assertEqual(step["tokens"], 42)
        total = sum(abs(value) for value in step["passes"][1]["sum_g"])
        self.assertLessEqual(total, 6 * model[6].weight.abs().sum().item() * 1.0001)

    def test_lightning_tokens(self):
        self.stub("lightning.pytorch", Callback=object)
        self.stub("lightning")
        model = mlp()
        trainer = types.SimpleNamespace(global_step=0, current_epoch=0, optimizers=[])
        callback = lightning.callback("run.h5", tokens=len, recorder=FakeRecorder, verbose=False)
        callback.on_train_start(trainer, model)
        for number, rows in enumerate((6, 4)):
            model(torch.ones(rows, 5)).sum().backward()
            trainer.global_step = number
            callback.on_train_batch_end(trainer, model, None, torch.ones(rows, 5), number)
        callback.on_train_end(trainer, model)
        self.assertEqual([row["tokens"] for row in callback.recording.run.recorder.steps], [10])

    def test_accelerate(self):
        model = mlp()
        accelerator = types.SimpleNamespace(unwrap_model=lambda wrapped: wrapped[0], scaler=None,
                                            sync_gradients=False)
        run = accelerate.watch(accelerator, nn.Sequential(model), "run.h5", recorder=FakeRecorder,
                               verbose=False)
        for accelerator.sync_gradients in (False, True):
            model(torch.ones(6, 5)).sum().backward()
            accelerate.step(run, accelerator, loss=2.0, tokens=3)
        step, = run.recorder.steps
        self.assertEqual((step["loss"], step["tokens"], len(run.recorder.passes("1"))), (2.0, 3, 2))

    def test_composer(self):
        self.stub("composer", Callback=type("Callback", (), {}))
        model, parameter = mlp(), nn.Parameter(torch.ones(1))
        state = types.SimpleNamespace(
            model=model, timestamp=types.SimpleNamespace(batch=4, epoch=1), scaler=None,
            loss=torch.tensor(3.0), batch={"ids": torch.ones(2, 7)},
            optimizers=[torch.optim.SGD([parameter], lr=0.5)])
        callback = composer.callback("run.h5", tokens=lambda batch: batch["ids"].numel(),
                                     recorder=FakeRecorder, verbose=False)
        callback.fit_start(state, None)
        one, two = torch.tensor([1.0, 2.0]), torch.tensor(3.0)
        losses = [(two, 3.0), ({"a": one, "total": two}, 3.0), ({"a": one, "b": two}, 4.5),
                  ((one, two), 4.5)]
        for state.loss, _ in losses:
            model(torch.ones(6, 5)).sum().backward()
            callback.after_train_batch(state, None)
        callback.fit_end(state, None)
        recorder = callback.recording.run.recorder
        self.assertEqual([step["loss"] for step in recorder.steps], [want for _, want in losses])
        step = recorder.steps[0]
        self.assertEqual((step["step"], step["tokens"], step["lr"]), (5, 14, 0.5))
        self.assertEqual(recorder.status, "complete")


if __name__ == "__main__":
    unittest.main()
