"""mu_moved and mu_apart of statrec.watch: how running means moved, against float64 hooks."""
import copy
import math
import os
import tempfile
import unittest
import warnings

from watch_help import fake_watch, rows_of, watch
from watch_models import convnet, mlp, same_weights, train

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from statrec._watching import _momentum, _sites

NAMES = tuple(_momentum.SCALARS)


def of(step, site):
    """(mu_moved, mu_apart) of a step, or None. Declared ones have their names."""
    found = tuple(step["scalars"].get((site, name)) for name in NAMES)
    return None if None in found else found


class Reference:
    """Both sums of a module by separate hooks, in float64. kept: which passes of a step count, "last" or "merge"."""

    def __init__(self, module, kept="last", valid=None):
        self.module, self.kept, self.valid, self.inputs = module, kept, valid, []
        module.register_forward_pre_hook(self.hear)
        self.sums, self.before = [], None

    def hear(self, module, args):
        if module.training:
            if not self.inputs:
                self.before = module.running_mean.double().clone()
            self.inputs.append(rows_of(args[0].clone(), True, 1, self.valid))

    def step(self):
        inputs, self.inputs = self.inputs, []
        rows = torch.cat(inputs) if self.kept == "merge" else inputs[-1]
        apart = rows.mean(0) - self.before
        moved = self.module.running_mean.double() - self.before
        self.sums.append(((moved * apart).sum().item(), (apart * apart).sum().item()))


class Momentum(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def near(self, got, want, tolerance=1e-5):
        self.assertIsNotNone(got)
        for a, b in zip(got, want):
            self.assertLessEqual(abs(a - b), tolerance * abs(b) + 1e-12)

    def run_of(self, model, at, batches, forward=None, kept="last", valid=None, **options):
        """The recorder of a training, after each step has been compared with the reference."""
        reference = Reference(model[at], kept, valid)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with fake_watch(model, repeat=kept, **options) as run:
            for batch in batches:
                optimizer.zero_grad()
                if valid is not None:
                    run.mask(valid)
                for part in batch if isinstance(batch, list) else [batch]:
                    (forward or model)(part).square().mean().backward()
                run.step()
                reference.step()
                optimizer.step()
        steps = run.recorder.steps
        self.assertEqual(len(steps), len(reference.sums))
        for step, want in zip(steps, reference.sums):
            self.near(of(step, str(at)), want)
        return run.recorder

    def speed(self, recorder, at, last=None):
        """The effective momentum over steps."""
        found = [of(step, str(at)) for step in recorder.steps[-(last or 10 ** 9):]]
        return sum(one[0] for one in found) / sum(one[1] for one in found)

    def batches(self, count, rows=24):
        return list(0.5 + torch.randn(count, rows, 5))

    # -- ways of recording --------------------------------------------------------------------

    def test_one_update(self):
        recorder = self.run_of(mlp(nn.BatchNorm1d), 4, self.batches(30))
        self.assertAlmostEqual(self.speed(recorder, 4), 0.1, 5)
        self.assertEqual({name: recorder.declared[name][::2] for name in NAMES},
                         {name: ("1", "site") for name in NAMES})

    def test_planes(self):
        recorder = self.run_of(convnet(), 4, list(torch.randn(5, 6, 3, 8, 8)))
        self.assertAlmostEqual(self.speed(recorder, 4), 0.1, 5)

    def test_read_tensors(self):
        """Frozen weights: not by the node."""
        model = mlp(nn.BatchNorm1d)
        model[4].weight.requires_grad_(False)
        self.assertAlmostEqual(self.speed(self.run_of(model, 4, self.batches(4)), 4), 0.1, 5)

    def test_saved_elsewhere(self):
        def forward(batch):
            with torch.autograd.graph.save_on_cpu():
                return model(batch)
        model = mlp(nn.BatchNorm1d)
        self.run_of(model, 4, self.batches(4), forward)

    def test_compiled(self):
        torch._dynamo.reset()
        model, want = mlp(nn.BatchNorm1d), []
        with fake_watch(model) as run:
            traced = torch.compile(model, fullgraph=True, backend="aot_eager")
            for batch in self.batches(4):
                before = model[4].running_mean.double().clone()
                apart = rows_of(copy.deepcopy(model[:4])(batch), True, 1).mean(0) - before
                traced(batch).square().mean().backward()
                run.step()
                moved = model[4].running_mean.double() - before
                want.append(((moved * apart).sum().item(), (apart * apart).sum().item()))
        for step, sums in zip(run.recorder.steps, want):
            self.near(of(step, "4"), sums)

    def test_masked_rows(self):
        """By definition mu_B is the mean of the valid rows, the module's mean of all rows."""
        valid = torch.arange(24) < 15
        self.run_of(mlp(nn.BatchNorm1d), 4, self.batches(4), valid=valid)

    def test_lazy(self):
        model = nn.Sequential(nn.Linear(5, 8), nn.LazyBatchNorm1d(), nn.Linear(8, 2))
        with fake_watch(model) as run:
            for batch in self.batches(3):
                model(batch).square().mean().backward()
                run.step()
        for step in run.recorder.steps:
            moved, apart = of(step, "1")
            self.assertAlmostEqual(moved / apart, 0.1, 5)

    def test_cumulative(self):
        """momentum=None: 1/k in step k."""
        model = mlp(lambda width: nn.BatchNorm1d(width, momentum=None))
        recorder = self.run_of(model, 4, self.batches(6))
        for number, step in enumerate(recorder.steps, 1):
            moved, apart = of(step, "4")
            self.assertAlmostEqual(moved / apart, 1 / number, 4)

    def test_every(self):
        model = mlp(nn.BatchNorm1d)
        with fake_watch(model, every=3) as run:
            train(model, self.batches(9), run)
        found = [of(step, "4") for step in run.recorder.steps]
        self.assertEqual([one is not None for one in found], [False, False, True] * 3)
        for moved, apart in filter(None, found):
            self.assertAlmostEqual(moved / apart, 0.1, 5)

    def test_nothing_to_move(self):
        """No buffers, frozen statistics, other norms: not declared."""
        for norm in (nn.LayerNorm, lambda width: nn.BatchNorm1d(width, track_running_stats=False)):
            model = mlp(norm)
            with fake_watch(model) as run:
                train(model, self.batches(2), run)
            self.assertNotIn(NAMES[0], run.recorder.declared)

    def test_weights_are_the_same_bits(self):
        for make, shape in ((lambda: mlp(nn.BatchNorm1d), (12, 5)), (convnet, (4, 3, 8, 8))):
            plain, watched = make(), make()
            batches = list(torch.randn(5, *shape))
            train(plain, batches)
            with fake_watch(watched) as run:
                train(watched, batches, run)
            self.assertIsNotNone(of(run.recorder.steps[-1], "4"))
            self.assertTrue(same_weights(plain, watched))

    # -- cases of the forums ------------------------------------------------------------------

    def test_checkpointing_moves_twice(self):
        """PyTorch 96136: 1 - 0.9^2 of the same batch."""
        for reentrant in (True, False):
            model = mlp(nn.BatchNorm1d, inplace=False)
            recorder = self.run_of(
                model, 4, [batch.requires_grad_() for batch in self.batches(30)],
                lambda batch: checkpoint(model, batch, use_reentrant=reentrant))
            self.assertAlmostEqual(self.speed(recorder, 4), 0.19, 5)

    def test_two_passes(self):
        """SAM: both passes of a step use one batch."""
        recorder = self.run_of(mlp(nn.BatchNorm1d), 4,
                               [[batch, batch] for batch in self.batches(30)])
        self.assertAlmostEqual(self.speed(recorder, 4), 0.19, 2)

    def test_accumulation(self):
        """Four micro-batches move it by 1 - 0.9^4 = 0.344."""
        batches = [list(batch.chunk(4)) for batch in self.batches(200, 64)]
        still = nn.Sequential(nn.Identity(), nn.BatchNorm1d(5))
        recorder = self.run_of(still, 1, [[part.requires_grad_() for part in parts]
                                          for parts in batches], kept="merge")
        self.assertAlmostEqual(self.speed(recorder, 1), 1 - 0.9 ** 4, 2)

    def test_momentum_that_is_no_weight(self):
        """Torch trains with it; the site has no alpha, since a run file rejects one outside of 0 and 1."""
        for momentum, alpha in ((1.5, None), (-0.1, None), (0.1, 0.9), (1.0, 0.0)):
            model = nn.Sequential(nn.BatchNorm1d(4, momentum=momentum))
            declared = _sites.find_sites(model)[0][0].declaration(0, "last")["alpha"]
            self.assertEqual(None if math.isnan(declared) else declared, alpha)

    def test_momentum_zero(self):
        model = mlp(lambda width: nn.BatchNorm1d(width, momentum=0.0))
        recorder = self.run_of(model, 4, self.batches(5))
        for step in recorder.steps:
            moved, apart = of(step, "4")
            self.assertEqual(moved, 0)
            self.assertGreater(apart, 0)

    def test_frozen_until_step_60(self):
        """A norm that is no longer frozen: its rows start there, with one update of the usual momentum."""
        model = mlp(nn.BatchNorm1d)
        with fake_watch(model) as run:
            for number, batch in enumerate(self.batches(64), 1):
                model.train()
                model[4].train(number >= 60)
                model(batch).square().mean().backward()
                run.step()
        found = [of(step, "4") for step in run.recorder.steps]
        moving = [number for number, one in enumerate(found, 1) if one]
        self.assertEqual(moving, list(range(60, 65)))
        self.assertAlmostEqual(found[59][0] / found[59][1], 0.1, 5)

    def test_not_finite(self):
        """An overflow leaves NaN in the buffers: in the sums too, from then on, at this site alone.
        """
        model, batches = mlp(nn.BatchNorm1d), self.batches(4)
        batches[1][0] = math.inf
        state = copy.deepcopy(model.state_dict())
        with fake_watch(model) as run:
            for batch in batches:
                with torch.no_grad():
                    for name, parameter in model.named_parameters():
                        parameter.copy_(state[name])
                model(batch).square().mean().backward()
                run.step()
        moved = [of(step, "4")[0] for step in run.recorder.steps]
        self.assertEqual([math.isnan(value) for value in moved], [False, True, True, True])

    def test_in_the_file(self):
        with tempfile.TemporaryDirectory() as where:
            try:
                import statrec
                statrec._library.library()
            except statrec.Error as error:
                self.skipTest(f"no libstatrec: {error}")
            path, model = os.path.join(where, "run.h5"), mlp(nn.BatchNorm1d)
            with watch(model, path, verbose=False) as run:
                train(model, self.batches(20), run)
            with statrec.open(path) as file:
                moved, apart = (file[name]["4"][:] for name in NAMES)
                self.assertAlmostEqual(float(sum(moved) / sum(apart)), 0.1, 4)
                self.assertEqual(file.definition("mu_apart"), _momentum.SCALARS["mu_apart"])


if __name__ == "__main__":
    warnings.simplefilter("error")
    unittest.main()
