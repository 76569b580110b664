"""statrec.watch: a wrong argument is rejected by its name, and recording continues."""
import math
import unittest
import warnings

from support import InDirectory
from watch_help import WatchCase, fake_watch
from watch_models import mlp

import statrec
import torch
from statrec._watching import _given
from statrec.watch import watch
from torch import nn


class Refused(WatchCase):
    def setUp(self):
        self.model = mlp(nn.BatchNorm1d)
        self.run = fake_watch(self.model, start=10)
        self.addCleanup(self.run.close)
        self.run.metric("accuracy")
        self.run.scalar("ratio", "1", "of updates")
        self.run.scalar("entropy", "nats", "of attention", scope="site")

    def step(self, **row):
        self.model(torch.randn(4, 5)).square().mean().backward()
        self.run.step(**row)

    def refused(self, kind, pattern, call, *given, **named):
        """The call raises, and the next step is recorded."""
        with self.assertRaisesRegex(kind, pattern):
            call(*given, **named)
        self.assertIsNone(self.run.failure)
        before = len(self.run.recorder.steps)
        self.step(loss=1.0)
        self.assertEqual(len(self.run.recorder.steps), before + 1)
        self.assertEqual(len(self.run.recorder.passes("1")), 1)

    def test_metrics(self):
        evaluate = self.run.evaluate
        self.refused(TypeError, "no metric 'acuracy' was declared; declared: 'accuracy'; did you mean 'accuracy'",
                     evaluate, acuracy=0.5)
        self.refused(TypeError, r"evaluate: accuracy: a number .* got shape \(3,\)", evaluate, accuracy=torch.zeros(3))
        self.refused(TypeError, "evaluate: accuracy: .* got 'x'", evaluate, accuracy="x")
        self.refused(TypeError, "evaluate: epoch: .* got 'x'", evaluate, epoch="x", accuracy=1)
        evaluate(accuracy=0.5)
        self.assertEqual([one["accuracy"] for one in self.run.recorder.evals], [0.5])

    def test_numbers_of_a_step(self):
        for name in ("loss", "lr", "tokens", "epoch", "grad_norm", "update", "ratio", "step"):
            for value, got in ((torch.randn(3), r"shape \(3,\)"), ("abc", "'abc'"), (torch.zeros(0), r"shape \(0,\)")):
                self.refused(TypeError, rf"step: {name}: a number or a tensor with one element is wanted, got {got}",
                             self.run.step, **{name: value})
        self.refused(TypeError, "step: loss: a real number", self.run.step, loss=torch.tensor(1j))
        for name, value in (("lr", -1), ("tokens", -5), ("update", -1), ("tokens", math.nan),
                            ("tokens", 2 ** 63), ("tokens", 1.5), ("update", 0.5), ("step", 11.5), ("step", 10), ("step", 10 ** 20)):
            if name == "step":
                self.step()
            self.refused(ValueError, f"step: {name}: .* got", self.run.step, **{name: value})
        for scale in (0, -1, math.inf, None):
            self.refused(ValueError, "grad_scale: the positive factor", self.run.step, grad_scale=scale)
        self.refused(TypeError, "scaler: a GradScaler is wanted, got int", self.run.step, scaler=3)

    def test_numbers_that_are_accepted(self):
        for value in (2, 2.0, torch.tensor(2), torch.tensor([[2.0]]), torch.tensor(2.0, requires_grad=True)):
            self.step(loss=value, lr=value, tokens=value, epoch=value, grad_norm=value, ratio=value)
            row = self.run.recorder.steps[-1]
            self.assertEqual([row[name] for name in ("loss", "lr", "tokens", "epoch", "grad_norm")], [2] * 5)
        self.step(loss=math.nan, lr=math.nan, epoch=-1, grad_norm=math.inf)
        self.assertTrue(math.isnan(self.run.recorder.steps[-1]["loss"]))

    def test_nothing_declared(self):
        for by in "metric", "scalar":
            self.assertEqual(_given.unknown("evaluate: no metric 'a'", by, "a", {}),
                             f"evaluate: no metric 'a' was declared; declared: none; run.{by}() declares one")

    def test_scalars(self):
        self.refused(TypeError, "no scalar 'lrate' was declared; declared: 'ratio', 'entropy'", self.run.step, lrate=1)
        self.refused(TypeError, "did you mean 'tokens'", self.run.step, token=1)
        self.refused(ValueError, "entropy: no site '11'; did you mean '1'", self.run.step, entropy={"11": 1.0})
        self.refused(TypeError, r"entropy\['1'\]: a number", self.run.step, entropy={"1": "x"})

    def test_declarations(self):
        self.refused(ValueError, "metric: accuracy is declared already", self.run.metric, "accuracy")
        self.run = fake_watch(self.model)
        self.addCleanup(self.run.close)
        self.run.scalar("ratio", "1", "of updates")
        self.refused(ValueError, "scalar: ratio is declared already", self.run.scalar, "ratio", "1", "")
        self.refused(ValueError, "scalar: late is declared after the first step", self.run.scalar, "late", "1", "")
        self.refused(ValueError, "metric: late is declared after the first step", self.run.metric, "late")
        for name in ("a/b", "", ".x", "x" * 64, "a\nb", "epoch"):
            self.refused(ValueError, "metric: ", self.run.metric, name)

    def test_value_of_a_site_without_width(self):
        """A site that was not used in the first step is known, but has no place in the file."""
        class Spare(nn.Module):
            def __init__(self, main):
                super().__init__()
                self.main, self.spare = main, nn.Linear(3, 3)

            def forward(self, x):
                return self.main(x)

        model = Spare(mlp(nn.BatchNorm1d))
        run = fake_watch(model, observe="spare")
        self.addCleanup(run.close)
        run.scalar("entropy", "nats", "of attention", scope="site")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model(torch.randn(4, 5)).square().mean().backward()
            run.step(entropy={"spare": 1.0, "main.1": 2.0})
        self.assertIsNone(run.failure)
        which = 1001 + list(run.recorder.declared).index("entropy")
        self.assertEqual(run.recorder.steps[0]["scalars"]["main.1", which], 2.0)

    def test_after_close(self):
        self.step()
        self.run.close()
        for call in (self.run.step, lambda: self.run.evaluate(accuracy=1), lambda: self.run.metric("other")):
            self.run._notices._said.clear()
            with self.assertWarnsRegex(RuntimeWarning, r"run.h5 is closed: \w+\(\) after close\(\) records nothing"):
                call()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.run.step()
        self.assertEqual(told, [])  # once
        self.assertEqual(len(self.run.recorder.steps), 1)


class Options(InDirectory):
    def watched(self, path="run.h5", **options):
        run = statrec.watch(mlp(nn.BatchNorm1d), path, verbose=False, **options)
        self.addCleanup(run.close)
        return run

    def test_intervals(self):
        for name, value, text in (("vectors_every", -2, "a number of steps is wanted, 0 for no vectors, or -1"),
                                  ("planned_steps", -1, "a number from 0"), ("flush_steps", 0, "a number from 1"),
                                  ("overhead", -0.5, "a number from 0"), ("size_limit", -1, "a number from 0")):
            self.fails("usage", f"^{name}: {text}.* got {value}", self.watched, **{name: value})
        for name in ("every", "activations_every", "start"):
            with self.assertRaisesRegex(ValueError, f"{name}: a number of .* got -1"):
                self.watched(**{name: -1})
        for name, values in (("alpha", (1.5, -1, math.nan, None)), ("eps", (-1e-5, math.nan, math.inf, None)),
                             ("every", (0, 1.5, "x", None)), ("activations_every", (1.5, None)),
                             ("start", (1.5, "x", 2 ** 63)), ("findings_every", (0, 1.5, "x"))):
            for value in values:
                with self.assertRaisesRegex(ValueError, f"^{name}: .* is wanted, got {value!r}"):
                    self.watched(**{name: value})
        for name in ("alpha", "eps"):
            with self.assertRaisesRegex(TypeError, f"^{name}: a number .* got 'x'"):
                self.watched(**{name: "x"})
        run = self.watched(vectors_every=-1, alpha=1)
        run.step(loss=1.0)
        self.assertEqual(run.recorder.vectors_every, 1)  # as without it
        for every in (0, -1, "x"):
            with self.assertRaisesRegex(ValueError, "log_to: every is a number of steps from 1"):
                run.log_to(None, every=every)

    def test_texts_of_the_file(self):
        """A text that the file cannot store is rejected on the call; names of modules are adapted."""
        for kind, error in (("a\nb", ValueError), ("x" * 16, ValueError), (3, TypeError), (lambda name: None, TypeError)):
            with self.assertRaisesRegex(error, "^kind: a text .*is wanted, got"):
                self.watched(kind=kind)
        with self.assertRaisesRegex(ValueError, "phases: a list of names without control characters"):
            self.watched(phases=["a\nb"])
        with self.assertRaisesRegex(ValueError, "register: norm: a text of at most 63 bytes"):
            statrec.register(nn.LayerNorm, "none", norm="x" * 64)
        for name in ("", 3, None):
            with self.assertRaisesRegex(TypeError, "tap: a name is wanted, got"):
                statrec.tap(torch.ones(2, 3), name)
        model = nn.Sequential(nn.Linear(5, 8))
        model.add_module("a\nb", nn.LayerNorm(8))
        with statrec.watch(model, "run.h5", verbose=False) as run:
            for declare in (run.scalar, run.metric):
                for unit, definition in (("a\nb", ""), ("x" * 64, ""), ("", "a\nb"), ("", "x" * 512)):
                    with self.assertRaisesRegex(ValueError, "(unit|definition): a text of at most"):
                        declare("name", unit, definition)
            statrec.tap(model(torch.randn(3, 5)), "c\td@2").sum().backward()
            run.step()
        self.assertIsNone(run.failure)
        with statrec.open("run.h5") as file:
            self.assertEqual([*file.sites], ["a\\nb", "c\\td@~2"])

    def test_inputs_without_rows(self):
        for x, text in ((torch.randn(5), r"its input has the shape \(5,\), without a dimension of rows"),
                        (torch.randn(3, 5, dtype=torch.complex64), "its input is torch.complex64, no real floating")):
            model = nn.Sequential(nn.Identity())
            with fake_watch(model, observe="0") as run, self.assertWarnsRegex(RuntimeWarning, text):
                model(x.requires_grad_() * 1).abs().sum().backward()
                run.step()

    def test_eps_of_registered_classes(self):
        class Registered(nn.Module):
            eps = None

            def forward(self, x):
                return x * 1

        for eps in (-1.0, math.nan, None):
            with self.assertRaisesRegex((TypeError, ValueError), "register: eps"):
                statrec.register(Registered, "rmsnorm", gain=None, eps=eps)
        statrec.register(Registered, "rmsnorm", gain=None)
        run = fake_watch(Registered())
        run.step()
        run.close()
        self.assertEqual(run.sites, ["Registered"])

    def test_one_path_twice(self):
        run = self.watched()
        for again in (self.watched, lambda **options: statrec.Recorder("run.h5", **options)):
            for options in ({}, {"force": True}, {"resume": True}):
                self.fails("exists", r"run.h5: this process records into it already .*close\(\)", again, **options)
        run.close()
        self.watched(force=True)

    def test_warnings_point_at_the_host(self):
        run = self.watched()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            run.step()
            statrec.tap(torch.ones(2, 3, requires_grad=True) * 1, "late")
            run.close()
            run.step()
        self.assertEqual([one.filename for one in told], [__file__] * 3)

    def test_names_in_quotes(self):
        with self.assertRaisesRegex(ValueError, "no module matches 'nrom.'; there are: '1', '4'"):
            self.watched(sites="nrom*")
        norm = nn.LayerNorm(8)
        with self.assertRaisesRegex(ValueError, "sites: '2' is the module '1': choose it by this name"):
            watch(nn.Sequential(nn.Linear(5, 8), norm, norm), "run.h5", sites="2")
        with self.assertRaisesRegex(ValueError, r"there are: '' \(the model itself\)"):
            watch(nn.LayerNorm(3), "run.h5", sites="nrom*")


if __name__ == "__main__":
    unittest.main()
