"""statrec.watch: how many functions of Python a site costs, which no noise of a machine changes."""
import contextlib
import sys
import unittest

import statrec
from watch_help import WatchCase, fake_watch

import torch
from torch import nn

from statrec._watching import _passes, _ranks
from statrec._watching._sites import Site

SITES = 12
PACKAGE = statrec.__path__[0]


def many(norm, width):
    """SITES small sites."""
    torch.manual_seed(4)
    return nn.Sequential(*[module for _ in range(SITES) for module in (norm(width), nn.Hardtanh())])


class Calls:
    """Counts Python functions that the package enters, and C functions that it calls, within `counted`."""

    def __init__(self):
        self.entered = self.called = 0

    def _see(self, frame, event, argument):
        if event in ("call", "c_call") and frame.f_code.co_filename.startswith(PACKAGE):
            if event == "call":
                self.entered += 1
            else:
                self.called += 1

    @contextlib.contextmanager
    def counted(self):
        before = sys.getprofile()
        sys.setprofile(self._see)
        try:
            yield self
        finally:
            sys.setprofile(before)


class Cost(WatchCase):
    CASES = {"batch norm": (nn.BatchNorm1d, (16, 6)), "layer norm": (nn.LayerNorm, (5, 4, 6)),
             "group norm": (lambda width: nn.GroupNorm(2, width), (4, 6, 3, 3))}

    def passes(self, case, steps, **options):
        """(Calls of the forward and backward pass, Calls of step()) of the last of some steps."""
        norm, shape = self.CASES[case]
        model, batch = many(norm, 6), torch.randn(shape)
        with fake_watch(model, **options) as run:
            for step in range(steps):
                passes, ended = Calls(), Calls()
                with passes.counted():
                    model(batch).square().mean().backward()
                with ended.counted():
                    run.step(loss=1.0)
        return passes, ended, run

    def test_a_step_that_is_not_recorded(self):
        """A hook is entered and compares once: nothing else of the package runs."""
        for case in self.CASES:
            passes, _, run = self.passes(case, 3, every=4)
            self.assertEqual((case, passes.entered, passes.called), (case, SITES, 0))
            self.assertEqual(run.recorder.steps[-1]["passes"], [])

    def test_after_close(self):
        for case in self.CASES:
            norm, shape = self.CASES[case]
            model = many(norm, 6)
            fake_watch(model).close()
            with Calls().counted() as calls:
                model(torch.randn(shape)).sum().backward()
            self.assertEqual((calls.entered, calls.called), (0, 0))

    def test_a_step_that_is_recorded(self):
        """Limits the package's functions for each site, in both passes and in step()."""
        for case, in_passes, in_step in (("batch norm", 16, 20), ("layer norm", 35, 17),
                                         ("group norm", 43, 17)):
            with self.subTest(case):
                passes, ended, run = self.passes(case, 4)
                self.assertEqual(len(run.recorder.steps[-1]["passes"]), SITES)
                self.assertLessEqual(passes.entered / SITES, in_passes)
                self.assertLessEqual(ended.entered / SITES, in_step)


class Far(WatchCase):
    """ranks="merge": the tensors that run.step() would wait for on a GPU."""

    class Two(_ranks.Merging):
        """Two ranks; the other one has the same passes."""

        def __init__(self):
            self.group, self.rank, self.world, self.told, self.writes = None, 0, 2, "all of 2", True

        def _device(self):
            return torch.device("cpu")

    def watched(self, model, **options):
        self.patch(_ranks, "choose", lambda *_: self.Two())
        self.patch(_ranks.dist, "all_gather",
                   lambda to, mine, group: [one.copy_(mine) for one in to])
        return fake_watch(model, **options)

    def test_one_copy_for_all_numbers(self):
        """Before the one copy no tensor value is read; after it, only copied ones."""
        fetched, asked, whole = [], [], _passes.fetch

        class Asked(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                if not fetched and "_local_scalar_dense" in str(function):
                    asked.append(str(function))
                return function(*args, **(kwargs or {}))

        def fetch(tensors):
            fetched.append(len(tensors))
            return whole(tensors)
        self.patch(_passes, "fetch", fetch)
        for norm in (nn.LayerNorm, nn.BatchNorm1d):
            model = many(norm, 6)
            with self.watched(model) as run:
                run.scalar("entropy", "nats", "of the step")
                run.scalar("each", "1", "of the site", scope="site")
                for _ in range(3):
                    loss = model(torch.randn(16, 6)).square().mean()
                    (4 * loss).backward()
                    del fetched[:], asked[:]
                    one = torch.ones(())
                    with Asked():
                        run.step(loss=loss, lr=one / 8, grad_norm=one * 2, tokens=one * 32, grad_scale=one * 4,
                                 entropy=one * 3, each={run.sites[0]: one * 5})
                    self.assertEqual((len(fetched), asked), (1, []))
            step = run.recorder.steps[-1]
            self.assertAlmostEqual(step["loss"], loss.item(), 6)
            self.assertEqual((step["lr"], step["grad_norm"], step["tokens"]), (1 / 8, 2.0, 32))
            self.assertEqual(list(step["numbers"].values()), [3.0])
            self.assertEqual([value for (site, which), value in step["scalars"].items()
                              if isinstance(which, int)], [5.0])
            self.assertEqual([one["rows"] for one in run.recorder.passes("0")], [16, 16])

    def test_gathered_sums_come_at_once(self):
        """A rank that writes copies all ranks' sums at once; another one copies only the heads."""
        site, asked = Site("one", nn.LayerNorm(6)), []
        self.patch(_ranks.dist, "all_gather", lambda to, mine, group: [one.copy_(mine) for one in to])
        for name in ("cpu", "tolist"):
            whole = getattr(torch.Tensor, name)
            self.patch(torch.Tensor, name, lambda tensor, name=name, whole=whole: (
                asked.append((name, *tensor.shape)), whole(tensor))[1])
        numbers = 3 + 6 + 7 * 6
        for writes, first in ((True, ("cpu", 2, numbers)), (False, ("tolist", 2, 3))):
            ranks = self.Two()
            ranks.writes = writes
            del asked[:]
            _, _, sound, loss = ranks.gather([(site, 6)], [], {}, True, 2.0)
            self.assertEqual((sound, loss), (True, 2.0))
            self.assertEqual(asked[0], first)
            self.assertEqual(len([one for one in asked if one[0] == "cpu"]), int(writes))
            self.assertTrue(writes or len(asked) == 1)

    def test_scale_of_the_loss(self):
        """A tensor, as on a GPU; the sums equal the plain loss's."""
        model, sums = many(nn.LayerNorm, 6), []
        batch = torch.randn(16, 6)
        for scale in (1.0, torch.tensor(8.0)):
            with self.watched(model) as run:
                (scale * model(batch).square().mean()).backward()
                run.step(grad_scale=scale)
            sums.append(run.recorder.passes("0")[0])
        for name in ("sum_g", "sum_gc", "sum_gg"):
            for a, b in zip(sums[0][name], sums[1][name]):
                self.assertAlmostEqual(a, b, 12)


if __name__ == "__main__":
    unittest.main()
