"""watch(forward=True): passes without a backward pass, against float64; labels of steps."""
import copy
import math
import os
import tempfile
import unittest
import warnings

from watch_help import WatchCase, fake_watch, rows_of, watch
from watch_models import convnet, mlp, same_weights, train

import torch
from torch import nn

from statrec._watching import _labels

try:
    import statrec
    statrec._library.library()
    LOADED = True
except statrec.Error:
    LOADED = False


def moments(x):
    """Expected values of a pass, in float64; x [rows, features]."""
    mean = x.mean(0)
    return dict(rows=x.shape[0], mean=mean, variance=((x - mean) ** 2).mean(0),
                mean_square=(x ** 2).mean(0))


def sizes(x):
    """The scalars of all entries, by sorting."""
    size, entries = x.abs().flatten().sort().values, x.flatten()
    centred, count = entries - entries.mean(), entries.numel()
    return {"x_min": entries.min(), "x_max": entries.max(), "x_top1": size[-1], "x_top3": size[-3],
            "x_median": size[(count - 1) // 2], "x_q999": size[(count - 1) * 999 // 1000],
            "x_kurtosis": (centred ** 4).mean() / (centred ** 2).mean() ** 2,
            "x_row_rms": (x ** 2).mean(1).sqrt().mean(), "x_nonfinite": 0.0}


def discrepancy(x, mu, sigma2):
    """tid_mean and tid_var of rows x against running statistics."""
    mu, sigma = mu.double(), sigma2.double().sqrt()
    one = moments(x)
    return [((part).norm() / sigma.norm()).item()
            for part in (one["mean"] - mu, one["variance"].sqrt() - sigma)]


class Forward(WatchCase):
    def setUp(self):
        torch.manual_seed(11)

    def trained(self, make=lambda: mlp(nn.BatchNorm1d), shape=(32, 5)):
        model = make()
        train(model, list(1 + 2 * torch.randn(20, *shape)))
        return model

    def seen(self, model, at):
        """Inputs of the module as rows in float64, one of each pass."""
        found = []
        first = not isinstance(model[at], nn.LayerNorm)
        handle = model[at].register_forward_pre_hook(
            lambda module, args: found.append(rows_of(args[0].clone(), first, 1)))
        self.addCleanup(handle.remove)
        return found

    def near(self, step, site, x):
        one, = [one for one in step["passes"] if one["site"] == site]
        want = moments(x)
        self.assertEqual(one["rows"], want["rows"])
        self.assertNotIn("sum_g", one)
        for name in ("mean", "variance", "mean_square"):
            gap = torch.tensor(one[name], dtype=torch.float64) - want[name]
            self.assertLessEqual(gap.abs().max().item(), 2e-6 * want[name].abs().max().item(), name)
        for name, value in sizes(x).items():
            within = {"x_median": 1 / 32, "x_q999": 1 / 32}.get(name, 2e-6)
            self.assertLessEqual(abs(step["scalars"][site, name] - float(value)),
                                 within * abs(float(value)), name)

    def test_all_modes(self):
        """Evaluation or training, without gradients, in inference mode, or with gradients."""
        for make, shape in ((lambda: mlp(nn.BatchNorm1d), (32, 5)), (mlp, (32, 5)),
                            (convnet, (9, 3, 8, 8))):
            start = self.trained(make, shape)
            for training in (False, True):
                for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
                    with self.subTest(shape=shape, training=training, mode=mode.__name__):
                        model = copy.deepcopy(start).train(training)
                        seen = self.seen(model, 4)
                        with fake_watch(model, forward=True) as run:
                            for _ in range(2):
                                with mode():
                                    model(3 * torch.randn(*shape) - 1)
                                run.step()
                        self.assertEqual(len(seen), 2)
                        for step, x in zip(run.recorder.steps, seen):
                            self.near(step, "4", x)

    def test_step_in_inference_mode(self):
        """Everything within, and the next step outside of it."""
        model = self.trained().eval()
        seen = self.seen(model, 4)
        with fake_watch(model, forward=True, on_error="raise") as run:
            with torch.inference_mode():
                for _ in range(2):
                    model(torch.randn(8, 5))
                    run.step()
            model(torch.randn(8, 5))
            run.step()
        for step, x in zip(run.recorder.steps, seen):
            self.near(step, "4", x)

    def test_buffers_are_the_running_values(self):
        model = self.trained().eval()
        with fake_watch(model, forward=True) as run:
            with torch.no_grad():
                model(torch.randn(8, 5))
            run.step()
        vectors = run.recorder.steps[0]["vectors"]
        self.assertEqual(vectors["4", "mu"], model[4].running_mean.double().tolist())
        self.assertEqual(vectors["4", "sigma2"], model[4].running_var.double().tolist())
        self.assertNotIn("mu_moved", run.recorder.declared)
        self.assertEqual([site["alpha"] for site in run.recorder.sites], [1.0, 1.0])

    def test_copy_with_stale_buffers(self):
        """An EMA of the weights keeps the buffers of the beginning (timm 245), not its inputs."""
        model = mlp(nn.BatchNorm1d)
        ema = copy.deepcopy(model)
        for _ in range(60):
            train(model, [1 + torch.randn(32, 5)])
            with torch.no_grad():
                for mine, new in zip(ema.parameters(), model.parameters()):
                    mine.lerp_(new, 0.1)
        ema.eval()
        seen, fresh = self.seen(ema, 1), self.seen(model, 1)
        batch = 1 + torch.randn(256, 5)
        for one, stale in ((ema, True), (model.eval(), False)):
            with fake_watch(one, forward=True) as run, torch.no_grad():
                one(batch)
                run.step()
            scalars = run.recorder.steps[0]["scalars"]
            x = (seen if stale else fresh)[-1]
            want = discrepancy(x, one[1].running_mean, one[1].running_var)
            got = [scalars["1", "source_tid_mean"], scalars["1", "source_tid_var"]]
            for a, b in zip(got, want):
                self.assertAlmostEqual(a, b, 6)
            self.assertEqual(want[0] > 0.3, stale, want)

    def test_adaptation_to_test_batches(self):
        """Tent 7: shifted batches under no_grad in train(). Buffers move; the source stays."""
        model = self.trained().train()
        source = [model[1].running_mean.clone(), model[1].running_var.clone()]
        seen = self.seen(model, 1)
        with fake_watch(model, forward=True) as run, torch.no_grad():
            for _ in range(30):
                model(6 + 2 * torch.randn(64, 5))
                run.step()
        first, last = run.recorder.steps[0], run.recorder.steps[-1]
        want = discrepancy(seen[-1], *source)
        self.assertGreater(want[0], 1)
        for name, value in zip(("source_tid_mean", "source_tid_var"), want):
            self.assertAlmostEqual(last["scalars"]["1", name], value, 5)
        self.assertEqual(first["vectors"]["1", "mu"], source[0].double().tolist())
        moved = torch.tensor(last["vectors"]["1", "mu"]) - source[0]
        self.assertGreater(moved.norm() / source[1].sqrt().norm(), 0.8 * want[0])
        self.assertEqual(run.recorder.sites[0]["alpha"], 0.9)

    def test_buffers_that_are_removed(self):
        """Tent removes them after watch(): the running values stay as in the source."""
        model = self.trained().train()
        source = model[1].running_mean.double().tolist()
        with fake_watch(model, forward=True) as run, torch.no_grad():
            for module in model:
                if isinstance(module, nn.BatchNorm1d):
                    module.track_running_stats = False
                    module.running_mean = module.running_var = None
            for _ in range(2):
                model(torch.randn(16, 5))
                run.step()
        self.assertEqual(run.recorder.steps[-1]["vectors"]["1", "mu"], source)

    def test_merged_passes(self):
        model = self.trained().eval()
        seen = self.seen(model, 4)
        with fake_watch(model, forward=True, repeat="merge") as run, torch.no_grad():
            for rows in (16, 40, 9):
                model(torch.randn(rows, 5))
            run.step()
        self.near(run.recorder.steps[0], "4", torch.cat(seen))
        self.assertEqual(run.recorder.steps[0]["scalars"]["4", "passes"], 3)

    def test_last_pass_and_a_warning(self):
        model = self.trained().eval()
        seen = self.seen(model, 4)
        with fake_watch(model, forward=True) as run, torch.no_grad():
            for _ in range(2):
                model(torch.randn(8, 5))
            with self.assertWarnsRegex(RuntimeWarning, "several forward passes"):
                run.step()
        self.near(run.recorder.steps[0], "4", seen[1])

    def test_masked_rows(self):
        model = self.trained(mlp).eval()
        seen = self.seen(model, 4)
        with fake_watch(model, forward=True) as run, torch.no_grad():
            run.mask(torch.arange(40) < 25)
            model(torch.randn(40, 5))
            run.step()
        self.near(run.recorder.steps[0], "4", seen[0][:25])

    def test_entries_that_are_not_finite(self):
        model = nn.Sequential(nn.Identity(), nn.LayerNorm(4))
        x = torch.randn(50, 4)
        x[3, 1], x[7, 2], x[8, 0] = math.inf, -math.inf, math.nan
        good = x[torch.isfinite(x)].double()
        with fake_watch(model, forward=True) as run:
            model(x)
            run.step()
        scalars = run.recorder.steps[0]["scalars"]
        self.assertAlmostEqual(scalars["1", "x_nonfinite"], 3 / 200)
        self.assertEqual([scalars["1", "x_min"], scalars["1", "x_max"]],
                         [good.min().item(), good.max().item()])
        want = sizes(good[:, None])
        self.assertAlmostEqual(scalars["1", "x_kurtosis"], want["x_kurtosis"].item(), 5)
        self.assertNotIn(("1", "x_row_rms"), scalars)

    def test_nothing_finite(self):
        model = nn.Sequential(nn.LayerNorm(4))
        with fake_watch(model, forward=True) as run:
            model(torch.full((3, 4), math.nan))
            run.step()
        scalars = run.recorder.steps[0]["scalars"]
        self.assertEqual(scalars["0", "x_nonfinite"], 1)
        self.assertNotIn(("0", "x_min"), scalars)

    def test_functional_norm_and_tap(self):
        class Fused(nn.BatchNorm1d):
            def forward(self, x):
                return nn.functional.batch_norm(
                    x, self.running_mean, self.running_var, self.weight, self.bias, self.training,
                    self.momentum, self.eps).relu_()
        model = nn.Sequential(nn.Linear(5, 8), Fused(8)).eval()
        with fake_watch(model, forward=True) as run, torch.no_grad():
            batch = torch.randn(20, 5)
            statrec.tap(model(batch), "out")
            run.step()
        step = run.recorder.steps[0]
        self.near(step, "1", model[0](batch).detach().double())
        self.assertEqual([one["site"] for one in step["passes"]], ["1", "out"])

    def test_every(self):
        model = self.trained().eval()
        with fake_watch(model, forward=True, every=2) as run, torch.no_grad():
            for _ in range(4):
                model(torch.randn(8, 5))
                run.step()
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [0, 2, 0, 2])

    def test_nothing_of_training_changes(self):
        plain, watched = self.trained(), self.trained()
        batches = torch.randn(5, 12, 5)
        train(plain, batches)
        with fake_watch(watched, forward=True) as run:
            train(watched, batches, run)
        self.assertTrue(same_weights(plain, watched))
        self.assertEqual(len(run.recorder.passes("1", 0)), 1)

    def test_compiled_is_told(self):
        torch._dynamo.reset()
        model = self.trained().eval()
        with fake_watch(model, forward=True) as run, torch.no_grad():
            torch.compile(model, backend="eager")(torch.randn(8, 5))
            with self.assertWarnsRegex(RuntimeWarning, "torch.compile"):
                run.step()

    def test_no_pass(self):
        with fake_watch(self.trained(), forward=True) as run, \
                self.assertWarnsRegex(RuntimeWarning, "no forward pass"):
            run.step()

    def test_wrong_options(self):
        with self.assertRaisesRegex(ValueError, "activations_every: forward=True"):
            fake_watch(mlp(), forward=True, activations_every=1)


class Labels(unittest.TestCase):
    def test_numbers(self):
        model = mlp(nn.BatchNorm1d).eval()
        with fake_watch(model, forward=True, labels=["source", "target"]) as run:
            for label in ("target", "source", None):
                model(torch.randn(4, 5))
                run.step(label=label)
            with self.assertRaisesRegex(ValueError, "label 'other' is none of .*source"):
                run.step(label="other")
        numbers = [list(step["numbers"].values()) for step in run.recorder.steps]
        self.assertEqual(numbers, [[1], [0], []])
        self.assertEqual(_labels.names(run.recorder.declared["label"][1]), ["source", "target"])

    def test_a_scalar_of_the_host(self):
        """Without labels= the name is free, as it was."""
        model = mlp()
        with fake_watch(model) as run:
            run.scalar("label", "1", "share of positive labels")
            model(torch.randn(4, 5)).sum().backward()
            run.step(label=0.25)
        self.assertEqual(list(run.recorder.steps[0]["numbers"].values()), [0.25])
        with fake_watch(model) as run, self.assertRaisesRegex(TypeError, "no scalar 'label'"):
            run.step(label="source")

    def test_wrong_names(self):
        for wrong, told in (("source", "a list"), (["a,b"], "without commas"),
                            ([""], "without commas"), (["a", "a"], "twice"),
                            (["c" * 30 + str(n) for n in range(20)], "bytes"),
                            ([1], "without commas")):
            with self.assertRaisesRegex(ValueError, f"labels: .*{told}"):
                fake_watch(mlp(), labels=wrong)
        _labels.checked([str(client) for client in range(100)])


@unittest.skipUnless(LOADED, "no libstatrec")
class File(unittest.TestCase):
    def setUp(self):
        where = tempfile.TemporaryDirectory()
        self.addCleanup(where.cleanup)
        self.path = os.path.join(where.name, "run.h5")
        torch.manual_seed(2)

    def record(self, model, shifts, **options):
        with watch(model, self.path, forward=True, verbose=False, **options) as run, \
                torch.no_grad():
            for shift in shifts:
                model(shift + torch.randn(64, 5))
                run.step(label="target" if shift else "source")
        return statrec.open(self.path)

    def test_domains(self):
        """A shift shows in tid_mean, which is the float64 one; the labels separate the domains."""
        model, inputs = mlp(nn.BatchNorm1d), []
        train(model, list(torch.randn(60, 32, 5)))
        model.eval()[1].register_forward_pre_hook(
            lambda module, args: inputs.append(args[0].double()))
        with self.record(model, [0, 0, 3, 0, 3], labels=("source", "target")) as file:
            self.assertEqual(file.labels, ["source", "source", "target", "source", "target"])
            for name, place in (("tid_mean", 0), ("tid_var", 1)):
                for got, x in zip(file[name]["1"][:], inputs):
                    want = discrepancy(x, model[1].running_mean, model[1].running_var)[place]
                    self.assertAlmostEqual(float(got) / want, 1, 4)
            tid = [float(value) for value in file["tid_mean"]["1"][:]]
            self.assertGreater(min(tid[2], tid[4]), 3 * max(tid[0], tid[1], tid[3]))
            self.assertTrue(all(math.isnan(loss) for loss in file.steps["loss"]))
            for name in ("g_mu", "dx_norm", "mu_moved"):
                with self.assertRaises(KeyError):
                    file[name]

    def test_no_labels(self):
        model = mlp()
        with watch(model, self.path, forward=True, verbose=False) as run:
            run.scalar("label", "1", "something else")
            model(torch.randn(4, 5))
            run.step(label=0.5)
        with statrec.open(self.path) as file:
            self.assertEqual(file.labels, [])

    def test_diagnosis_without_losses(self):
        """Rows without a loss are no divergence; stale buffers are found."""
        try:
            statrec._plot.program_path("statrec")
        except statrec.Error as error:
            self.skipTest(str(error))
        model = mlp(nn.BatchNorm1d)
        train(model, list(torch.randn(60, 32, 5)))
        with self.record(model.eval(), [2.0] * 40, labels=("source", "target")) as file:
            rows = {row["question"]: row for row in file.diagnose()}
        self.assertNotEqual(rows["divergence"]["verdict"], "found")
        self.assertEqual(rows["inference"]["verdict"], "found")


if __name__ == "__main__":
    warnings.simplefilter("error")
    unittest.main()
