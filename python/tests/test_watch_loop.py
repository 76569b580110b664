"""statrec.watch in training loops: accumulation, checkpointing, what it leaves behind, failures."""
import copy
import gc
import math
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings
import weakref

import watch_help as help_
from fake_recorder import FakeRecorder, Refused
from watch_help import WatchCase, fake_watch, joined, merged, reference, rows_of

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def mlp(norm=nn.LayerNorm, inplace=True):
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(5, 8), norm(8), nn.ReLU(inplace=inplace), nn.Linear(8, 8),
                         norm(8), nn.ReLU(inplace=inplace), nn.Linear(8, 2))


def convnet():
    torch.manual_seed(4)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                         nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                         nn.Flatten(), nn.Linear(128, 2))


def parts(model, at, batch):
    """x and g of the module `at` of an mlp: [rows, 8] in float64."""
    state = help_.weights(model)
    x = model[:at](batch).detach()
    y = model[at](x).detach().requires_grad_()
    tail = copy.deepcopy(model[at + 1:])
    for module in tail:
        if isinstance(module, nn.ReLU):
            module.inplace = False
    g, = torch.autograd.grad(tail(y).square().mean(), y)
    model.load_state_dict(state)
    return rows_of(x, True, 1), rows_of(g, True, 1)


def train(model, batches, run=None, forward=None):
    """Plain SGD; the losses."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []
    for batch in batches:
        optimizer.zero_grad()
        loss = (forward or model)(batch).square().mean()
        loss.backward()
        if run is not None:
            run.step(loss=loss, lr=0.1, tokens=len(batch))
        optimizer.step()
        losses.append(loss.item())
    return losses


class Passes(WatchCase):
    def setUp(self):
        torch.manual_seed(5)

    def test_accumulation_is_merged(self):
        model = mlp(nn.BatchNorm1d)
        batches = [torch.randn(n, 5) for n in (16, 9, 31)]
        want = joined([parts(model, 4, batch) for batch in batches])
        with fake_watch(model, repeat="merge") as run:
            for batch in batches:
                model(batch).square().mean().backward()
            run.step()
        self.assertEqual(run.recorder.sites[0]["repeat"], "merge")
        passes = run.recorder.passes("4")
        self.assertEqual([one["rows"] for one in passes], [16, 9, 31])
        self.close_to(merged(passes), want)

    def test_last_pass_counts(self):
        model, batches = mlp(), [torch.randn(n, 5) for n in (16, 9)]
        want = reference(*parts(model, 1, batches[1]))
        with fake_watch(model) as run:
            for batch in batches:
                model(batch).square().mean().backward()
            run.step()
            model(batches[0])  # no backward pass: not recorded
            with self.assertWarnsRegex(RuntimeWarning, "no backward pass"):
                run.step()
        one, = run.recorder.passes("1", 0)
        self.close_to(one, want)
        self.assertEqual(run.recorder.passes("1", 1), [])

    def test_last_is_of_forward_passes(self):
        """Both forward passes, then both backward passes in the same order."""
        model, batches = mlp(), [torch.randn(n, 5) for n in (16, 9)]
        with fake_watch(model) as run:
            losses = [model(batch).square().mean() for batch in batches]
            losses[1].backward()
            losses[0].backward()
            run.step()
        one, = run.recorder.passes("1")
        self.close_to(one, reference(*parts(model, 1, batches[1])))

    def test_shared_module(self):
        norm, first, last = nn.LayerNorm(6), nn.Linear(6, 6), nn.Linear(6, 1)

        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.also, self.first, self.last = norm, norm, first, last

            def forward(self, x):
                return self.last(self.also(self.first(self.norm(x)).relu_()).relu_())
        model, batch = Twice(), torch.randn(20, 6)
        one = norm(batch).detach().requires_grad_()
        x2 = first(one).relu()
        two = norm(x2)
        g = torch.autograd.grad(last(two.relu()).square().mean(), [one, two])
        double = [t.detach().double() for t in (batch, g[0], x2, g[1])]
        with fake_watch(model, repeat="merge") as run:
            model(batch).square().mean().backward()
            run.step()
        self.assertEqual([site["name"] for site in run.recorder.sites], ["norm"])
        self.close_to(merged(run.recorder.passes("norm")), joined([double[:2], double[2:]]))
        with fake_watch(model) as run:
            model(batch).square().mean().backward()
            run.step()
        last_use, = run.recorder.passes("norm")
        self.close_to(last_use, reference(x2, g[1]))

    def test_checkpointing(self):
        for make in (lambda: mlp(nn.LayerNorm), lambda: mlp(nn.BatchNorm1d), convnet):
            for reentrant in (False, True):
                with self.subTest(model=make, reentrant=reentrant):
                    self.checkpointed(make(), reentrant)

    def checkpointed(self, model, reentrant):
        batch = torch.randn(6, 3, 8, 8) if isinstance(model[0], nn.Conv2d) else torch.randn(30, 5)
        plain = copy.deepcopy(model)
        with fake_watch(plain, repeat="merge") as want:
            plain(batch).square().mean().backward()
            want.step()
        half = len(model) // 2
        with fake_watch(model, repeat="merge") as run:
            x = batch.clone().requires_grad_()
            x = checkpoint(model[:half], x, use_reentrant=reentrant)
            checkpoint(model[half:], x, use_reentrant=reentrant).square().mean().backward()
            run.step()
        for site in want.recorder.sites:
            got, = run.recorder.passes(site["name"])
            one, = want.recorder.passes(site["name"])
            tensors = {name: torch.tensor(one[name], dtype=torch.float64) for name in one
                       if isinstance(one[name], list)}
            self.close_to(got, {**one, **tensors})
            self.assertEqual(got["gamma"], one["gamma"])
        for a, b in zip(model.parameters(), plain.parameters()):
            self.assertTrue(torch.equal(a.grad, b.grad))

    def test_observed_module_in_checkpoint(self):
        model = nn.Sequential(nn.Linear(5, 8), nn.Identity(), nn.Sigmoid(), nn.Linear(8, 1))
        batch = torch.randn(12, 5)
        x = model[0](batch).detach().requires_grad_()
        g, = torch.autograd.grad(model[2:](x).square().mean(), x)
        for reentrant in (False, True):
            with fake_watch(model, sites=[], observe="1", repeat="merge") as run:
                out = checkpoint(model, batch.clone().requires_grad_(), use_reentrant=reentrant)
                out.square().mean().backward()
                run.step()
            one, = run.recorder.passes("1")
            self.close_to(one, reference(x, g))

    def test_offloaded_activations(self):
        model, batch = mlp(), torch.randn(10, 5)
        with fake_watch(model) as run:
            with torch.autograd.graph.save_on_cpu():
                loss = model(batch).square().mean()
            loss.backward()
            run.step()
        self.close_to(run.recorder.passes("4")[0], reference(*parts(model, 4, batch)))

    def test_offloaded_input_that_was_made_in_place(self):
        """The version of the tensor that comes back is another one than that of x."""
        model = nn.Sequential(*mlp()[:1], nn.ReLU(inplace=True), *mlp()[4:])
        batch = torch.randn(9, 5)
        want = reference(*parts(model, 2, batch))
        with fake_watch(model) as run:
            with torch.autograd.graph.saved_tensors_hooks(torch.clone, torch.clone):
                loss = model(batch).square().mean()
            loss.backward()
            run.step()
        self.close_to(run.recorder.passes("2")[0], want)

    def test_evaluation_is_not_recorded(self):
        model = mlp(nn.BatchNorm1d)
        with fake_watch(model, repeat="merge") as run:
            with torch.no_grad():
                model(torch.randn(8, 5))
            model.eval()
            model(torch.randn(8, 5)).sum().backward()
            model.train()
            model(torch.randn(9, 5)).sum().backward()
            run.step()
        self.assertEqual([one["rows"] for one in run.recorder.passes("1")], [9])

    def test_every(self):
        model = mlp()
        with fake_watch(model, every=3) as run:
            train(model, torch.randn(7, 6, 5), run)
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps],
                         [0, 0, 2, 0, 0, 2, 0])
        self.assertEqual(len(run.recorder.sites), 2)

    def test_masks_by_site_and_until_the_step(self):
        model = mlp()
        with fake_watch(model) as run:
            run.mask([1, 1, 0, 1], sites="1")
            model(torch.randn(4, 5)).sum().backward()
            run.step()
            model(torch.randn(4, 5)).sum().backward()
            run.step()
        rows = [[one["rows"] for one in step["passes"]] for step in run.recorder.steps]
        self.assertEqual(rows, [[3, 4], [4, 4]])

    def test_empty_mask(self):
        model = mlp()
        with fake_watch(model) as run:
            run.mask(torch.zeros(4, dtype=torch.bool))
            model(torch.randn(4, 5)).sum().backward()
            with self.assertWarns(RuntimeWarning):
                run.step()
        self.assertEqual(run.recorder.steps[0]["passes"], [])

    def test_mask_that_does_not_fit(self):
        model = mlp()
        with fake_watch(model) as run:
            run.mask(torch.ones(3, dtype=torch.bool))
            model(torch.randn(4, 5)).sum().backward()
            with self.assertWarnsRegex(RuntimeWarning, "mask"):
                run.step()
            self.assertEqual(run.recorder.steps[0]["passes"], [])

    def test_not_finite(self):
        model = mlp()
        with fake_watch(model) as run:
            model(torch.full((4, 5), math.nan)).sum().backward()
            run.step(loss=math.nan)
        self.assertTrue(all(map(math.isnan, run.recorder.passes("1")[0]["mean"])))
        self.assertEqual(run.recorder.status, "diverged")

    def test_width_that_changes(self):
        class Any(nn.Module):
            def forward(self, x):
                return x * 1
        module = Any()
        with fake_watch(module, sites=[], observe=Any) as run:
            for width in (4, 5, 4):
                module(torch.randn(3, width, requires_grad=True)).sum().backward()
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    run.step()
                self.assertEqual(bool(told), width == 5)
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [1, 0, 1])

    def test_frozen_and_twice_backward(self):
        model = mlp()
        for parameter in model[:4].parameters():
            parameter.requires_grad_(False)
        with fake_watch(model, repeat="merge") as run:
            loss = model(torch.randn(6, 5)).square().mean()
            loss.backward(retain_graph=True)
            loss.backward()
            run.step()
        self.assertEqual(run.recorder.passes("1"), [])
        self.assertEqual(len(run.recorder.passes("4")), 1)

    def test_create_graph(self):
        model, batch = mlp(), torch.randn(6, 5, requires_grad=True)
        with fake_watch(model) as run:
            g, = torch.autograd.grad(model(batch).square().mean(), batch, create_graph=True)
            g.square().sum().backward()
            run.step()
        self.assertEqual(len(run.recorder.passes("1")), 1)


class Names(WatchCase):
    def test_wrappers(self):
        class Wrapper(nn.Module):
            def __init__(self, module):
                super().__init__()
                self.module = module
        with fake_watch(Wrapper(nn.ModuleDict({"norm": nn.LayerNorm(3)}))) as run:
            self.assertEqual(run.sites, ["norm"])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            run = fake_watch(torch.compile(nn.Sequential(nn.LayerNorm(3))))
            run.close()
        self.assertEqual(run.sites, ["0"])
        self.assertIn("compiled already", str(told[0].message))

    def test_choice(self):
        model = nn.ModuleDict({"norms": nn.ModuleList([nn.LayerNorm(3), nn.BatchNorm1d(3)]),
                               "end": nn.RMSNorm(3), "linear": nn.Linear(3, 3)})
        for wish, want in [("*norm*", ["norms.0", "norms.1"]), (nn.RMSNorm, ["end"]),
                           (["end", nn.BatchNorm1d], ["norms.1", "end"]),
                           (model["end"], ["end"]), (None, ["norms.0", "norms.1", "end"])]:
            with fake_watch(model, **{"sites": wish}) as run:
                self.assertEqual(run.sites, want)
        with self.assertRaisesRegex(ValueError, "no module matches 'lin.*'"):
            fake_watch(model, "lin*")
        with self.assertRaisesRegex(ValueError, "no normalization"):
            fake_watch(nn.Linear(3, 3))
        self.assertFalse(any(module._forward_hooks for module in model.modules()))

    def test_synchronised(self):
        """It runs on devices alone; here is what it would be described as."""
        from statrec._sites import find_sites
        site, = find_sites(nn.Sequential(nn.SyncBatchNorm(3, momentum=0.2)))
        told = site.declaration(0, "last")
        self.assertEqual((told["norm"], told["family"], told["observed"], told["alpha"]),
                         ("bn", "sigma", False, 0.8))

    def test_long_names(self):
        inner = nn.ModuleDict({"x" * 80: nn.LayerNorm(3), "y" + "x" * 79: nn.LayerNorm(3)})
        with fake_watch(inner) as run:
            self.assertEqual(len(set(run.sites)), 2)
            self.assertTrue(all(len(name) <= 63 for name in run.sites))

    def test_order_and_kind(self):
        class Backwards(nn.Module):
            def __init__(self):
                super().__init__()
                self.decoder, self.encoder = nn.LayerNorm(3), nn.LayerNorm(3)

            def forward(self, x):
                return self.decoder(self.encoder(x))
        model = Backwards()
        with fake_watch(model) as run:
            model(torch.randn(2, 3)).sum().backward()
            run.step()
        self.assertEqual([(s["name"], s["depth"], s["kind"]) for s in run.recorder.sites],
                         [("encoder", 0, "encoder"), ("decoder", 1, "decoder")])


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
        """The norm's input is gone after the forward pass, although its gradient sums need it."""
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

    def test_copies_do_not_record(self):
        model = mlp()
        with fake_watch(model, repeat="merge") as run:
            for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
                twin(torch.randn(3, 5)).sum().backward()
            model(torch.randn(4, 5)).sum().backward()
            run.step()
        self.assertEqual([one["rows"] for one in run.recorder.passes("1")], [4])

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


def same_weights(a, b):
    return help_.same(help_.weights(a), help_.weights(b))


class Rows(WatchCase):
    def test_numbers_of_the_step(self):
        model = mlp()
        with fake_watch(model, start=10) as run:
            run.scalar("ratio", "1", "of updates")
            run.scalar("entropy", "nats", "of attention", scope="site")
            run.metric("accuracy", "percent", "of validation", "more")
            run.evaluate(accuracy=1.0)
            model(torch.randn(3, 5)).sum().backward()
            run.step(loss=torch.tensor(2.5), lr=0.1, tokens=7, epoch=0.5,
                     grad_norm=torch.tensor(3.0), ratio=0.25, entropy={"4": 1.5})
            run.evaluate(epoch=1, accuracy=torch.tensor(50.0))
            model(torch.randn(3, 5)).sum().backward()
            run.step(update=4)
        step, other = run.recorder.steps
        self.assertEqual((step["step"], step["update"], step["tokens"], step["epoch"], step["loss"],
                          step["lr"], step["grad_norm"]), (11, 11, 7, 0.5, 2.5, 0.1, 3.0))
        self.assertEqual(step["numbers"], {1001: 0.25})
        self.assertEqual(step["scalars"], {("4", 1002): 1.5})
        self.assertEqual((other["update"], math.isnan(other["loss"])), (4, True))
        self.assertEqual(run.recorder.evals[1], dict(step=11, epoch=1.0, accuracy=50.0))
        self.assertEqual(run.recorder.evals[0]["step"], 10)
        self.assertEqual(run.recorder.metrics, {"accuracy": ("percent", "of validation", "more")})
        self.assertGreater(run.recorder.seconds, 0)
        self.assertEqual((run.recorder.status, run.recorder.options["loss_reduction"]),
                         ("complete", "mean"))

    def test_unknown_scalar(self):
        with fake_watch(mlp()) as run:
            with self.assertRaisesRegex(TypeError, "'ratio'"):
                run.step(ratio=1)

    def test_options_reach_the_recorder(self):
        with fake_watch(mlp(), overhead=0.05, vectors_every=10, vectors=False, config="x") as run:
            got = run.recorder.options
        self.assertEqual([got[name] for name in ("overhead", "vectors_every", "vectors", "config")],
                         [0.05, 10, False, "x"])

    def test_resume(self):
        model = mlp()
        with fake_watch(model, resume=True, start=5) as run:
            train(model, torch.randn(1, 4, 5), run)
        self.assertEqual(run.recorder.copied, ("run.h5", 5))
        self.assertEqual(run.recorder.steps[0]["step"], 6)


class Failures(WatchCase):
    def test_recorder_fails(self):
        for make in (mlp, convnet):
            plain, model = make(), make()
            data = torch.randn(4, 6, 3, 8, 8) if make is convnet else torch.randn(4, 6, 5)
            train(plain, data)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                with fake_watch(model, recorder=lambda p, **o: FakeRecorder(p, 2, **o)) as run:
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
        from statrec import _sums
        model, kept = mlp(), _sums.moments
        try:
            _sums.moments = lambda x: 1 / 0
            with fake_watch(model) as run, self.assertWarnsRegex(RuntimeWarning, "division"):
                train(model, torch.randn(2, 4, 5), run)
        finally:
            _sums.moments = kept
        self.assertIn("ZeroDivisionError", run.failure)

    def test_a_failure_holds_nothing(self):
        """Neither the tensors of the hook that failed nor the run, before and after step()."""
        from statrec import _sums
        model, kept = mlp(), _sums.moments
        run, here = fake_watch(model), []
        gc.collect()
        gc.disable()
        try:
            def fail(x):
                here.append(weakref.ref(x))
                raise MemoryError("full")
            _sums.moments = fail
            model(torch.randn(3, 5)).sum().backward()
            self.assertEqual([ref() for ref in here], [None])
            with self.assertWarnsRegex(RuntimeWarning, "MemoryError: full"):
                run.step()
            here = [weakref.ref(run), weakref.ref(model), weakref.ref(run._shared)]
            del run, model
            self.assertEqual([ref() for ref in here], [None] * 3)
        finally:
            _sums.moments = kept
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
        """What a program prints whose recorder prints how it was closed."""
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
        """Workers neither write nor close; the parent goes on."""
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
