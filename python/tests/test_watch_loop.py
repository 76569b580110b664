"""statrec.watch in training loops: accumulation, checkpointing, names, rows of steps."""
import contextlib
import copy
import io
import math
import unittest
import warnings

from watch_help import WatchCase, fake_watch, joined, merged, reference
from watch_models import convnet, mlp, parts, train

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


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
        """The restored tensor has another version than x."""
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

    def test_every_with_numbers_of_the_host(self):
        """Steps are counted: their numbers may have gaps that `every` divides, or does not."""
        for every, numbers, want in ((2, range(2, 16, 2), (4, 8, 12)), (10, range(10, 310, 10), (100, 200, 300)),
                                     (3, range(7, 70, 7), (21, 42, 63)), (1, (5, 9, 10), (5, 9, 10)),
                                     (2, (1, 2, 3, 4), (2, 4))):
            model = mlp()
            with fake_watch(model, every=every) as run:
                for number in numbers:
                    model(torch.randn(3, 5)).sum().backward()
                    run.step(step=number)
            self.assertEqual([step["step"] for step in run.recorder.steps], list(numbers))
            self.assertEqual(tuple(step["step"] for step in run.recorder.steps if step["passes"]), want)
            self.assertEqual(run.recorder.reason, "")

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

    def test_mask_of_no_site(self):
        model = mlp()
        with fake_watch(model) as run:
            with self.assertWarnsRegex(RuntimeWarning, r"run.mask\(sites='enc\*'\) has no effect.* the 2 sites"):
                run.mask([1, 1, 0, 1], sites="enc*")
            model(torch.randn(4, 5)).sum().backward()
            run.step()
        self.assertEqual([one["rows"] for one in run.recorder.steps[0]["passes"]], [4, 4])

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

    def test_order(self):
        """First the order of the modules; after the first step the file's order, from the forward pass."""
        class Crossed(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two = nn.BatchNorm1d(3), nn.BatchNorm1d(3)

            def forward(self, x):
                return self.one(self.two(x))
        model = Crossed()
        with fake_watch(model) as run:
            self.assertEqual(run.sites, ["one", "two"])
            model(torch.randn(5, 3)).square().sum().backward()
            run.step(loss=1.0)
            self.assertEqual(run.sites, ["two", "one"])

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
            fake_watch(nn.Linear(3, 3)).step()
        self.assertFalse(any(module._forward_hooks for module in model.modules()))

    def test_synchronised(self):
        """It runs only on devices; checks its description."""
        from statrec._watching._sites import find_sites
        (site,), _ = find_sites(nn.Sequential(nn.SyncBatchNorm(3, momentum=0.2)))
        told = site.declaration(0, "last")
        self.assertEqual((told["norm"], told["family"], told["observed"], told["alpha"]),
                         ("bn", "sigma", False, 0.8))

    def test_long_names(self):
        inner = nn.ModuleDict({"x" * 80: nn.LayerNorm(3), "y" + "x" * 79: nn.LayerNorm(3)})
        with fake_watch(inner) as run:
            self.assertEqual(len(set(run.sites)), 2)
            self.assertLessEqual(max(map(len, run.sites)), 63)

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

    def test_frozen_norm(self):
        """It keeps its place, has no rows, and close() reports it."""
        for where in ("1", "4"):
            model, said = mlp(nn.BatchNorm1d), io.StringIO()
            with contextlib.redirect_stderr(said):
                run = fake_watch(model, verbose=True)
                model.eval()(torch.randn(5, 5)).sum().backward()  # both are evaluated
                model.train()[int(where)].eval()
                train(model, torch.randn(2, 6, 5), run)
                run.close()
            self.assertEqual([site["name"] for site in run.recorder.sites], ["1", "4"])
            self.assertEqual([len(run.recorder.passes(name)) for name in ("1", "4")],
                             [int(name != where) for name in ("1", "4")])
            text = f"'{where}': no rows (evaluation mode)"
            self.assertEqual(said.getvalue().splitlines()[1:], [f"statrec: run.h5: {text}"])
            self.assertEqual(run.recorder.reason, text)

    def test_evaluation_between_is_no_freeze(self):
        model, said = mlp(nn.BatchNorm1d), io.StringIO()
        with contextlib.redirect_stderr(said), fake_watch(model, verbose=True) as run:
            model.eval()(torch.randn(5, 5)).sum().backward()
            model.train()
            train(model, torch.randn(2, 6, 5), run)
        self.assertEqual((len(said.getvalue().splitlines()), run.recorder.reason), (1, ""))


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
        own = {key: value for key, value in step["scalars"].items() if key[1] == 1002}
        self.assertEqual(own, {("4", 1002): 1.5})
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


if __name__ == "__main__":
    unittest.main()
