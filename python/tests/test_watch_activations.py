"""activations_every: the size of the sites' inputs in training, against float64 hooks."""
import copy
import math
import os
import re
import tempfile
import unittest

from support import TOP
from watch_help import fake_watch, rows_of
from watch_models import convnet, mlp, same_weights, train

import torch
from torch import nn
from torch.utils import checkpoint

from statrec._watching import _activations


def reference(x, y=None, module=None, median=None):
    """Expected values for rows [n, d]: all by sorting, in float64. median: the recorded one, which defines
    saturation."""
    size = x.abs().flatten().sort().values
    count, centred = size.numel(), x - x.mean()
    want = {"x_top1": size[-1], "x_top2": size[-2], "x_top3": size[-3],
            "x_median": size[(count - 1) // 2], "x_q999": size[(count - 1) * 999 // 1000],
            "x_kurtosis": (centred ** 4).mean() / (centred ** 2).mean() ** 2,
            "x_row_rms": (x ** 2).mean(1).sqrt().mean()}
    if y is not None:
        xhat = (y - module.bias.double()) / module.weight.double()
        small = x.abs() <= median
        slope = (x * xhat)[small].sum() / (x[small] ** 2).sum()
        want["saturated"] = ((xhat.abs() < 0.5 * (slope * x).abs()) & ~small).double().mean()
    return {name: float(value) for name, value in want.items()}


class Activations(unittest.TestCase):
    def seen(self, model, at):
        """x and y of the module in each forward pass."""
        found = []
        model[at].register_forward_hook(lambda m, a, y: found.append(
            tuple(rows_of(t.clone(), not isinstance(m, nn.LayerNorm), 1) for t in (a[0], y))))
        return found

    def near(self, step, site, want):
        for name, value in want.items():
            got = step["scalars"][site, name]
            within = {"x_median": 1 / 32, "x_q999": 1 / 32}.get(name, 2e-6)
            self.assertLessEqual(abs(got - value), within * max(abs(value), 1e-300), name)

    def test_row_norm(self):
        model = mlp()
        nn.init.normal_(model[4].weight)
        nn.init.normal_(model[4].bias)
        seen, module = self.seen(model, 4), []  # the module as it was in each step
        model[4].register_forward_hook(lambda m, a, y: module.append(copy.deepcopy(m)))
        with fake_watch(model, activations_every=2) as run:
            train(model, [1 + 3 * torch.randn(200, 5) ** 3 for _ in range(4)], run)
        self.assertNotIn(("4", "x_top1"), run.recorder.steps[0]["scalars"])
        for number in (1, 3):
            step = run.recorder.steps[number]
            self.near(step, "4", reference(*seen[number], module[number],
                                           step["scalars"]["4", "x_median"]))
            self.assertGreater(step["scalars"]["4", "saturated"], 0.01)

    def test_no_line_through_zeros(self):
        """If more than half of the inputs are 0, as after a ReLU, the smaller half has no line. The result is NaN,
        as in statrec train, also for merged passes."""
        x = torch.randn(60, 6)
        norm = nn.LayerNorm(6, elementwise_affine=False)

        def counts(x):
            return _activations.Counts(x, *_activations.normalized(norm, None, getattr(norm, "bias", None), norm(x)))
        zeros = torch.relu(x - 0.5)
        self.assertGreaterEqual(counts(x).numbers()["saturated"], 0)
        for first, *others in map(lambda several: map(counts, several), ([zeros], [zeros, x], [x, zeros])):
            for other in others:
                first.add(other)
            self.assertTrue(math.isnan(first.numbers()["saturated"]))
            self.assertTrue(math.isfinite(first.numbers()["x_kurtosis"]))

    def test_planes_say_nothing_of_saturation(self):
        model = convnet()
        seen = self.seen(model, 1)
        with fake_watch(model, activations_every=1) as run:
            train(model, [torch.randn(4, 3, 8, 8)], run)
        self.near(run.recorder.steps[0], "1", reference(seen[0][0]))
        self.assertNotIn(("1", "saturated"), run.recorder.steps[0]["scalars"])

    def test_merged_passes_are_one_batch(self):
        model = mlp(nn.BatchNorm1d)
        seen = self.seen(model, 4)
        with fake_watch(model, activations_every=1, repeat="merge") as run:
            for rows in (30, 50):
                model(torch.randn(rows, 5)).square().mean().backward()
            model(torch.randn(9, 5))  # no backward pass: not recorded
            run.step()
        self.near(run.recorder.steps[0], "4", reference(torch.cat([seen[0][0], seen[1][0]])))

    def test_kurtosis_far_from_zero(self):
        """A mean of 10,000 deviations, and passes whose means differ."""
        one, two = 1e4 + torch.randn(300, 5).double() ** 3, 1e4 + 3 + torch.randn(200, 5).double()
        three = 1e4 - 5 + torch.randn(90, 5).double() ** 2
        for parts in ([one], [one, two], [two, one], [one, two, three], [three, two, one]):
            counts = _activations.Counts(parts[0])
            for part in parts[1:]:
                counts.add(_activations.Counts(part))
            want = reference(torch.cat(parts))["x_kurtosis"]
            self.assertLess(abs(counts.numbers()["x_kurtosis"] - want), 1e-8 * want)

    def test_masked_rows(self):
        model = mlp()
        seen, valid = self.seen(model, 4), torch.arange(40) < 25
        with fake_watch(model, activations_every=1) as run:
            run.mask(valid)
            model(torch.randn(40, 5)).square().mean().backward()
            run.step()
        self.near(run.recorder.steps[0], "4", reference(seen[0][0][:25]))

    def test_recomputation_counts_once(self):
        for reentrant in (True, False):
            model = mlp(inplace=False)
            with fake_watch(model, activations_every=1, repeat="merge") as run:
                x = torch.randn(20, 5, requires_grad=True)
                checkpoint.checkpoint(model, x, use_reentrant=reentrant).square().mean().backward()
                run.step()
            scalars = run.recorder.steps[0]["scalars"]
            self.assertGreater(scalars["4", "x_top1"], scalars["4", "x_top2"], reentrant)

    def test_trains_as_unwatched(self):
        for make, shape in ((mlp, (6, 5)), (convnet, (4, 3, 8, 8))):
            plain, watched = make(), make()
            batches = [torch.randn(*shape) for _ in range(3)]
            train(plain, batches)
            with fake_watch(watched, activations_every=1) as run:
                train(watched, batches, run)
            self.assertTrue(same_weights(plain, watched))

    def test_not_a_number(self):
        self.assertEqual(_activations.Counts(torch.tensor([[1.0, float("nan")]])).numbers(), {})

    def test_wrong_spacing(self):
        for wrong in (-1, 1.5, "2"):
            with self.assertRaisesRegex(ValueError, "activations_every"):
                fake_watch(mlp(), activations_every=wrong)

    def test_names_of_statrec_train(self):
        """Has the same datasets with the same definitions as --activations-every of statrec train."""
        source = os.path.join(TOP, "src", "observe", "activations.c")
        if not os.path.exists(source):
            self.skipTest("no source of statrec train")
        with open(source, encoding="utf-8") as file:
            table = re.search(r"names\[ACTIVATION_NUMBERS\]\[2\] = \{(.*?)\n\};", file.read(), re.S)
        rows = re.findall(r'\{"(\w+)",\s*((?:"[^"]*"\s*)+)\}', table.group(1))
        self.assertEqual(len(rows), 5)
        for name, texts in rows:
            self.assertEqual(_activations.SCALARS[name], "".join(re.findall('"([^"]*)"', texts)))


class Reader(unittest.TestCase):
    def test_what_was_not_recorded(self):
        """A KeyError with the name, not an array of NaN."""
        import statrec
        try:
            statrec._library.library()
        except statrec.Error as error:
            self.skipTest(f"no libstatrec: {error}")
        with tempfile.TemporaryDirectory() as where:
            path = os.path.join(where, "run.h5")
            model = mlp()
            with statrec.watch(model, path, activations_every=1, gradient_norms=False,
                               verbose=False) as run:
                model(torch.randn(6, 5)).square().mean().backward()
                run.step()
            with statrec.open(path) as file:
                self.assertGreater(file["x_top1"]["1"][0], file["x_median"]["1"][0])
                for name in ("row_grad_mean", "nu", "Gamma_max", "dx_norm"):
                    with self.subTest(name), self.assertRaisesRegex(KeyError, f"{name} was not recorded"):
                        file[name]
                with self.assertRaisesRegex(KeyError, "no 'x_top9'.*x_top"):
                    file.scalar("x_top9")


if __name__ == "__main__":
    unittest.main()
