"""statrec.watch leaves no trace in its host program, and causes no failure."""
import collections
import contextlib
import copy
import gc
import itertools
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings
import weakref
from unittest import mock

from fake_recorder import FakeRecorder, Refused
from test_watch_adapters import FuncNormAct
from watch_help import WatchCase, fake_watch, reference
from watch_models import convnet, mlp, parts, same_weights, train

import torch
from statrec._watching import _sums
from torch import nn
from torch.utils.checkpoint import checkpoint


def fails_at(k, function):
    """The function, which fails at its k-th call."""
    calls = itertools.count(1)

    def called(*given):
        if next(calls) == k:
            raise ArithmeticError("broken for the test")
        return function(*given)
    return called


def _heard(module, args, output):
    """A hook of the host."""


class NoTrace(WatchCase):
    def test_weights_are_the_same_bits(self):
        batches = torch.randn(5, 6, 3, 8, 8)
        for make, data in ((convnet, batches), (mlp, torch.randn(5, 12, 5)),
                           (lambda: mlp(nn.RMSNorm), torch.randn(5, 12, 5))):
            plain, watched = make(), make()
            losses = train(plain, data)
            with fake_watch(watched) as run:
                self.assertEqual(train(watched, data, run), losses)
            self.assertTrue(same_weights(plain, watched))
            self.assertEqual(len(run.recorder.steps), 5)
            self.assertTrue(all(len(step["passes"]) == 2 for step in run.recorder.steps))

    def test_state_dict_and_hooks(self):
        model = mlp()
        before, buffers = list(model.state_dict()), list(model.named_parameters())
        run = fake_watch(model)
        self.assertEqual(list(model.state_dict()), before)
        self.assertEqual(len(list(model.named_parameters())), len(buffers))
        run.detach()
        self.assertFalse(any(module._forward_hooks for module in model.modules()))
        self.assertFalse(any(module._forward_pre_hooks or module._backward_hooks
                             for module in model.modules()))
        run.close()

    def test_no_reference_cycle(self):
        gc.collect()
        gc.disable()
        try:
            for forward in (None, "checkpoint"):
                model = convnet()
                run = fake_watch(model)
                train(model, torch.randn(2, 6, 3, 8, 8), run,
                      forward and (lambda x, m=model: checkpoint(m, x, use_reentrant=False)))
                run.detach()
                run.close()
                here = [weakref.ref(model), weakref.ref(run), weakref.ref(run._taps[0]),
                        weakref.ref(model[1])]
                del run, model
                self.assertEqual([ref() for ref in here], [None] * 4)
        finally:
            gc.enable()

    def test_model_is_not_held(self):
        gc.disable()
        try:
            model = mlp()
            run, here = fake_watch(model), [weakref.ref(model), weakref.ref(model[1])]
            train(model, torch.randn(2, 6, 5), run)
            del model
            self.assertEqual([ref() for ref in here], [None, None])
            run.close()
        finally:
            gc.enable()

    def test_activations_are_released(self):
        """After the backward pass nothing of the run holds the input, while the loss lives."""
        norm, gone = nn.LayerNorm(4), []
        with fake_watch(norm):
            x = torch.randn(3, 4, requires_grad=True) * 2
            gone.append(weakref.ref(x.untyped_storage()))
            loss = norm(x).sum()
            del x
            loss.backward()
            self.assertIsNone(gone[0]())

    def test_checkpointing_still_forgets(self):
        """The norm's input is freed after the forward pass, although its gradient sums need it."""
        seen = []

        class Look(nn.Module):
            def forward(self, x):
                x = x * 2
                seen.append(weakref.ref(x.untyped_storage()))
                return x
        model = nn.Sequential(nn.Linear(4, 4), Look(), nn.LayerNorm(4), nn.Linear(4, 4))
        with fake_watch(model) as run:
            loss = checkpoint(model, torch.randn(3, 4), use_reentrant=False).square().sum()
            self.assertIsNone(seen[0]())
            loss.backward()
            run.step()
        self.assertEqual(len(run.recorder.passes("2")), 1)

    def checkpointed(self, watched, broken=None):
        """Three checkpointed segments that end with a norm, for two steps: model, run, warnings."""
        torch.manual_seed(3)
        model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
                                for _ in range(3)], nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run = fake_watch(model) if watched else None
        with warnings.catch_warnings(record=True) as caught, contextlib.ExitStack() as stack:
            warnings.simplefilter("always")
            if broken:
                failing = fails_at(2, getattr(_sums, broken))
                stack.enter_context(mock.patch.object(_sums, broken, failing))
            for batch in torch.randn(2, 8, 4):
                for segment in model[:3]:
                    batch = checkpoint(segment, batch, use_reentrant=False)
                optimizer.zero_grad()
                model[3](batch).square().mean().backward()
                if run:
                    run.step()
                optimizer.step()
        return model, run, caught

    def test_norm_at_the_end_of_a_checkpointed_segment(self):
        plain, _, _ = self.checkpointed(False)
        watched, run, caught = self.checkpointed(True)
        self.assertEqual(caught, [])
        self.assertTrue(same_weights(plain, watched))
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [3, 3])
        run.close()

    def test_forward_replaced_by_a_checkpointed_one(self):
        """Reading the node would run the forward again, and update the buffers twice."""
        plain, watched = convnet(), convnet()
        for model in (plain, watched):
            own = model[1].forward
            model[1].forward = lambda x, own=own: checkpoint(own, x, use_reentrant=False)
        batches = torch.randn(2, 6, 3, 8, 8)
        with fake_watch(watched) as run:
            self.assertEqual(train(watched, batches, run), train(plain, batches))
        self.assertTrue(same_weights(plain, watched))
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [2, 2])

    def test_failure_between_a_checkpointed_pass_and_its_recomputation(self):
        """Saved tensors for backward stay the same, or torch raises CheckpointError."""
        plain, _, _ = self.checkpointed(False)
        for broken in ("moments", "gradient_sums"):
            with self.subTest(broken):
                watched, run, caught = self.checkpointed(True, broken)
                self.assertTrue(same_weights(plain, watched))
                self.assertIn("broken for the test", run.failure)
                self.assertEqual(len(caught), 1)

    def test_copies_do_not_record(self):
        model = mlp()
        with fake_watch(model, repeat="merge") as run:
            for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
                twin(torch.randn(3, 5)).sum().backward()
            model(torch.randn(4, 5)).sum().backward()
            run.step()
        self.assertEqual([one["rows"] for one in run.recorder.passes("1")], [4])

    def hooks(self, model):
        """(module, dict, hooks) of all dicts of hooks that are not empty."""
        return [(place, name, list(value)) for place, module in enumerate(model) for name, value in vars(module).items()
                if "_forward" in name and "_hooks" in name and value]

    def test_copies_and_pickles_have_no_hook(self):
        model = nn.Sequential(*mlp(), FuncNormAct(2))
        plain = pickle.dumps(model)
        with fake_watch(model), fake_watch(model):
            self.assertGreater(len(self.hooks(model)), 3)
            for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
                self.assertEqual(self.hooks(twin), [])
                torch.jit.script(twin[:-1])
            self.assertEqual(pickle.dumps(model), plain)
        self.assertEqual((self.hooks(model), pickle.dumps(model)), ([], plain))
        self.assertIs(type(vars(model[1])["_forward_hooks"]), collections.OrderedDict)

    def test_hooks_of_the_host(self):
        """Stay as they are; beside them a copy has one that needs nothing of this package."""
        for early in (True, False):
            model, handle = mlp(), None
            with contextlib.ExitStack() as stack:
                for first in (early, not early):
                    if first:
                        handle = model[1].register_forward_hook(_heard)
                    else:
                        stack.enter_context(fake_watch(model))
                kept = pickle.dumps(model)
                self.assertNotIn(b"statrec", kept)
                twin = pickle.loads(kept)
                self.assertEqual(twin(torch.ones(3, 5)).shape, model(torch.ones(3, 5)).shape)
            self.assertEqual([len(one[2]) for one in self.hooks(model)], [1])
            handle.remove()
            self.assertEqual(self.hooks(model), [])

    def test_two_runs_on_one_model(self):
        model, batch = mlp(), torch.randn(10, 5)
        want = reference(*parts(model, 1, batch))
        for forward in (model, lambda x: checkpoint(model, x, use_reentrant=False)):
            with fake_watch(model) as one, fake_watch(model) as two:
                forward(batch).square().mean().backward()
                one.step()
                two.step()
            self.close_to(one.recorder.passes("1")[0], want)
            self.close_to(two.recorder.passes("1")[0], want)


class Failures(WatchCase):
    def test_recorder_fails(self):
        for make in (mlp, convnet):
            plain, model = make(), make()
            data = torch.randn(4, 6, 3, 8, 8) if make is convnet else torch.randn(4, 6, 5)
            train(plain, data)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                with fake_watch(model, recorder=lambda p, **o: FakeRecorder(p, 2, **o)) as run:
                    run.metric("accuracy")
                    train(model, data, run)
                    run.mask(torch.ones(3))
                    run.evaluate(accuracy=1)
                    run.flush()
            self.assertEqual(len([w for w in told if "no space" in str(w.message)]), 1)
            self.assertEqual(len(told), 1)
            self.assertIn("no space", run.failure)
            self.assertFalse(any(module._forward_hooks for module in model.modules()))
            self.assertTrue(same_weights(plain, model))
            self.assertEqual(run.recorder.status, "failed")

    def test_on_error_raise(self):
        model = mlp()
        run = fake_watch(model, on_error="raise", recorder=lambda p, **o: FakeRecorder(p, 1, **o))
        with self.assertRaisesRegex(Refused, "no space"):
            train(model, torch.randn(1, 4, 5), run)
        self.assertFalse(any(module._forward_hooks for module in model.modules()))

    def test_a_tap_that_fails(self):
        """A defect in a hook ends the recording, not the training."""
        from statrec._watching._caught import Stored
        model, kept = mlp(), Stored.read
        try:
            Stored.read = lambda *given: 1 / 0
            with fake_watch(model) as run, self.assertWarnsRegex(RuntimeWarning, "division"):
                train(model, torch.randn(2, 4, 5), run)
        finally:
            Stored.read = kept
        self.assertIn("ZeroDivisionError", run.failure)

    def test_a_failure_holds_nothing(self):
        """Neither the tensors of the hook that failed nor the run, before and after step()."""
        from statrec._watching._caught import Stored
        model, kept = mlp(), Stored.read
        run, here = fake_watch(model), []
        gc.collect()
        gc.disable()
        try:
            def fail(stored, layout, g, x, *given):
                here.extend([weakref.ref(g), weakref.ref(x)])
                raise MemoryError("full")
            Stored.read = fail
            model(torch.randn(3, 5)).sum().backward()
            self.assertEqual([ref() for ref in here], [None] * 2)
            with self.assertWarnsRegex(RuntimeWarning, "MemoryError: full"):
                run.step()
            here = [weakref.ref(run), weakref.ref(model), weakref.ref(run._shared)]
            del run, model
            self.assertEqual([ref() for ref in here], [None] * 3)
        finally:
            Stored.read = kept
            gc.enable()

    def test_status(self):
        for error, status in ((ValueError("bad batch"), "failed"),
                              (KeyboardInterrupt(), "interrupted"), (None, "complete")):
            run = fake_watch(mlp())
            try:
                with run:
                    if error is not None:
                        raise error
            except (ValueError, KeyboardInterrupt):
                pass
            self.assertEqual(run.recorder.status, status)
            self.assertEqual(run.recorder.reason, "" if error is None
                             else f"{type(error).__name__}: {error}")

    def test_dropped(self):
        model = mlp()
        run = fake_watch(model)
        recorder = run.recorder
        del run
        gc.collect()
        self.assertEqual(recorder.status, "interrupted")
        self.assertFalse(any(module._forward_hooks for module in model.modules()))

    def script(self, body):
        """Returns the output of a program whose recorder prints how it was closed."""
        here = os.path.dirname(os.path.abspath(__file__))
        text = textwrap.dedent("""
            import sys; sys.path.insert(0, {here!r})
            from watch_help import *
            from torch import nn
            class Loud(FakeRecorder):
                def close(self, status="complete", reason=""):
                    print("closed", status, reason, flush=True)
            model = nn.Sequential(nn.Linear(5, 4), nn.LayerNorm(4))
            run = fake_watch(model, recorder=Loud)
        """).format(here=here) + textwrap.dedent(body)
        with tempfile.TemporaryDirectory() as where:
            path = os.path.join(where, "program.py")
            with open(path, "w") as file:
                file.write(text)
            done = subprocess.run([sys.executable, path], capture_output=True, text=True,
                                  timeout=120)
        return done.stdout

    def test_interpreter_ends(self):
        self.assertIn("closed interrupted the interpreter ended", self.script("pass"))

    def test_uncaught_exception(self):
        self.assertIn("closed interrupted", self.script("raise KeyboardInterrupt"))

    def test_forked_loader(self):
        """Workers neither write nor close; the parent continues."""
        printed = self.script("""
            from torch.utils.data import DataLoader
            class Data:
                def __len__(self): return 8
                def __getitem__(self, i):
                    model(torch.randn(3, 5)).sum().backward()
                    run.step(loss=1.0)
                    run.close()
                    return torch.randn(5)
            for batch in DataLoader(Data(), batch_size=4, num_workers=2):
                model(batch).sum().backward()
                run.step()
            print(len(run.recorder.steps), "steps")
            run.close()
        """)
        self.assertEqual(printed.split("\n")[:2], ["2 steps", "closed complete "])
        self.assertEqual(printed.count("closed"), 1)

    def test_arguments(self):
        for more in (dict(repeat="first"), dict(every=0), dict(on_error="stop"),
                     dict(ranks="all")):
            with self.assertRaises(ValueError):
                fake_watch(mlp(), **more)
        with self.assertRaises(TypeError):
            fake_watch(lambda x: x)


if __name__ == "__main__":
    unittest.main()
