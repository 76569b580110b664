"""Several passes in a step: named by a warning, or kept apart by Watch.phase()."""
import unittest
import warnings

from watch_help import WatchCase, fake_watch, reference
from watch_models import mlp, same_weights

import torch
from torch import nn


def passes_of(model, at, batches, scale):
    """x and g of the module `at`, of one backward pass each."""
    found = []
    for batch in batches:
        kept = {}
        handles = [model[at].register_forward_hook(lambda m, a, y: kept.update(x=a[0].detach(), y=y)),
                   model[at].register_forward_hook(lambda m, a, y: y.retain_grad())]
        (scale * model(batch).square().mean()).backward()
        found.append((kept["x"], kept["y"].grad))
        for handle in handles:
            handle.remove()
    model.zero_grad()
    return found


class Phases(WatchCase):
    def model(self):
        return mlp(nn.LayerNorm, inplace=False)

    def test_real_and_fake(self):
        """A discriminator sees two batches in a step; their statistics are two."""
        model, batches = self.model(), torch.randn(2, 6, 5)
        want = passes_of(model, 1, batches, 1.0)
        with fake_watch(model, phases=("real", "fake")) as run:
            outputs = []
            for phase, batch in zip(run.phases, batches):
                with run.phase(phase):
                    outputs.append(model(batch).square().mean())
            sum(outputs).backward()  # outside: the pass belongs to the phase of its forward
            run.step()
        self.assertEqual([site["name"] for site in run.recorder.sites],
                         ["real:1", "real:4", "fake:1", "fake:4"])
        for phase, (x, g) in zip(run.phases, want):
            self.close_to(run.recorder.passes(f"{phase}:1")[0], reference(x, g))

    def test_a_phase_within_a_phase(self):
        model = self.model()
        with fake_watch(model, phases=("outer", "inner")) as run:
            with run.phase("outer"):
                with run.phase("inner"):
                    loss = model(torch.randn(6, 5)).square().mean()
                loss = loss + model(torch.randn(4, 5)).square().mean()
            loss.backward()
            run.step()
        self.assertEqual([run.recorder.passes(f"{phase}:1")[0]["rows"] for phase in run.phases], [4, 6])

    def test_phases_train_as_unwatched(self):
        plain, watched = mlp(nn.BatchNorm1d), mlp(nn.BatchNorm1d)
        with fake_watch(watched, phases=("one", "two")) as run:
            for model, phase in ((plain, None), (watched, run.phase)):
                torch.manual_seed(3)
                for name in ("one", "two"):
                    if phase:
                        with phase(name):
                            loss = model(torch.randn(6, 5)).square().mean()
                    else:
                        loss = model(torch.randn(6, 5)).square().mean()
                    loss.backward()
            run.step()
        self.assertTrue(same_weights(plain, watched))
        self.assertEqual(len(run.recorder.steps[0]["passes"]), 4)

    def test_wrong_names_and_passes_outside(self):
        model = self.model()
        with warnings.catch_warnings(record=True) as caught, \
                fake_watch(model, phases=["real"]) as run:
            warnings.simplefilter("always")
            with self.assertRaisesRegex(ValueError, "'unreal' is none"):
                with run.phase("unreal"):
                    pass
            for _ in range(2):
                model(torch.randn(6, 5)).square().mean().backward()
                with run.phase("real"):
                    model(torch.randn(6, 5)).square().mean().backward()
                run.step()
        self.assertEqual([str(one.message) for one in caught], [
            "statrec: a pass of 'real:4' outside of run.phase() is not recorded"])
        for wrong in ("real", [""], [3]):
            with self.assertRaises(ValueError):
                fake_watch(model, phases=wrong)


class Again(WatchCase):
    def warned(self, **options):
        model = mlp(nn.LayerNorm)
        with warnings.catch_warnings(record=True) as caught, fake_watch(model, **options) as run:
            warnings.simplefilter("always")
            for _ in range(2):
                for _ in range(2):
                    model(torch.randn(6, 5)).square().mean().backward()
                run.step()
        return [str(one.message) for one in caught], run

    def test_named_once(self):
        said, run = self.warned()
        self.assertEqual(len(said), 1)
        self.assertIn("'4' had several backward passes in a step", said[0])
        for choice in ("last", "merge", "phases="):
            self.assertIn(choice, said[0])
        self.assertEqual(run.recorder.sites[0]["repeat"], "last")

    def test_not_where_somebody_chose(self):
        for repeat in ("last", "merge"):
            self.assertEqual(self.warned(repeat=repeat)[0], [])


if __name__ == "__main__":
    unittest.main()
