"""Calls of statrec.nn that do not run once, line by line: regions of torch.utils.checkpoint run
twice, torch.compile runs a graph."""

import copy
import math
import unittest

from nn_cases import batches, gained, make, sn, step, torch  # first: skipped without torch

from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd
from torch.utils.checkpoint import checkpoint

# Methods whose second run needs the running values of the first.
REMEMBERING = ("brn", "pn", "pn-released", "mabn", "un", "repbn")
COMPILED = "bn rbn brn pnv pn pn-released mabn un repbn ln dyt derf".split()


def regions(norm, x, g, factors, reentrant=None):
    """Inputs, and the loss of the region of each of them; reentrant=None: no region."""
    inputs = [(x * factor).requires_grad_() for factor in factors]
    if reentrant is None:
        return inputs, [(norm(one) * g).sum() for one in inputs]
    return inputs, [
        (checkpoint(norm, one, use_reentrant=reentrant) * g).sum() for one in inputs
    ]


class Checkpointed(unittest.TestCase):
    """Output, gradient and running values are those without checkpointing."""

    def same(self, got, want, tolerance=1e-12):
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)

    def each(self, names, check):
        """Calls check(module, its copy, kind of checkpointing) for every method and kind."""
        for name in names:
            for reentrant in (False, True):
                with self.subTest(norm=name, reentrant=reentrant):
                    norm = gained(make(name))
                    check(norm, copy.deepcopy(norm), reentrant)

    def test_two_regions_of_a_step(self):
        names = [name for name in sn.METHODS if not name.startswith("rbn")]

        def check(plain, other, reentrant):
            for x, g in batches(3):
                want, losses = regions(plain, x, g, (1, 1.5))
                sum(losses).backward()
                got, losses = regions(other, x, g, (1, 1.5), reentrant)
                sum(losses).backward()
                self.same([one.grad for one in got], [one.grad for one in want])
            self.same(other.state_dict(), plain.state_dict())

        self.each(names, check)

    def test_many_calls_alive(self):
        """One module in twenty regions, some with the same input, in steps with the same inputs. The first region's
        backward pass comes first, and again with all others."""
        factors = [1] * 6 + [1 + i / 8 for i in range(14)]
        x, g = next(batches(1))

        def check(plain, other, reentrant):
            for _ in range(2):
                grads = []
                for norm, kind in ((plain, None), (other, reentrant)):
                    inputs, losses = regions(norm, x, g, factors, kind)
                    losses[0].backward(retain_graph=True)
                    sum(losses).backward()
                    grads.append([one.grad for one in inputs])
                self.same(grads[1], grads[0])
            self.same(other.state_dict(), plain.state_dict())

        self.each(REMEMBERING, check)

    def test_inputs_that_look_alike(self):
        """Two calls in one region whose inputs have the same sum."""
        x, g = next(batches(1))

        def check(plain, other, reentrant):
            grads = []
            for norm, kind in ((plain, None), (other, reentrant)):
                both = lambda one: norm(one) * 2 + norm(one.flip(0))
                inputs, losses = regions(both, x.round(decimals=2), g, (1, 1), kind)
                sum(losses).backward()
                grads.append([one.grad for one in inputs])
            self.same(grads[1], grads[0])

        self.each(REMEMBERING, check)

    def test_bits_that_do_not_repeat(self):
        """The second run has another input by rounding, as from kernels that add in any order."""
        x, g = next(batches(1))

        def check(plain, other, reentrant):
            grads, runs = [], []
            for norm, kind in ((plain, None), (other, reentrant)):

                def uneven(one):
                    runs.append(0)
                    return norm(one * (1 + 1e-13 * len(runs)))

                inputs, losses = regions(uneven, x, g, (1, 3, 0.5, 2), kind)
                sum(losses).backward()
                grads.append([one.grad for one in inputs])
            self.same(grads[1], grads[0], 1e-9)

        self.each(REMEMBERING, check)

    def test_more_calls_than_are_kept(self):
        """An error, not the running values of another call."""
        x, g = next(batches(1))

        def check(_, norm, reentrant):
            for factors, fails in (([1 + i / 99 for i in range(64)], False), ([1] * 65, True)):
                _, losses = regions(norm, x, g, factors, reentrant)
                if fails:
                    with self.assertRaisesRegex(RuntimeError, "not among the last 64 calls"):
                        sum(losses).backward()
                else:
                    sum(losses).backward()

        self.each(("pn",), check)

    def test_penalty(self):
        """Penalty of a region that is not reentrant."""
        plain = gained(make("rbn"))
        other = copy.deepcopy(plain)
        for x, g in batches(3):
            want, (loss,) = regions(plain, x, g, (1,))
            (loss + sn.penalty(plain)).backward()
            got, (loss,) = regions(other, x, g, (1,), False)
            (loss + sn.penalty(other)).backward()
            self.same(got[0].grad, want[0].grad)
        self.same(other.state_dict(), plain.state_dict())


def gradients(norm):
    """Gradients of the learned numbers, by name."""
    return {name: number.grad for name, number in norm.named_parameters()}


class Compiled(unittest.TestCase):
    def test_numbers_and_running_values(self):
        """One graph, compiled once; the same numbers, gradients and running values as without."""
        mask = torch.arange(16) % 3 > 0
        for name in COMPILED:
            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
            plain = gained(make(name))
            other = copy.deepcopy(plain)
            compiled = torch.compile(other, backend="aot_eager", fullgraph=True, dynamic=False)
            with self.subTest(norm=name):
                for x, g in batches(6):
                    want = step(plain, x, g, mask)
                    got = step(compiled, x, g, mask)
                    sn.penalty(other)
                    torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)
                for of in (torch.nn.Module.state_dict, gradients):
                    torch.testing.assert_close(of(other), of(plain), rtol=1e-10, atol=1e-10)
                self.assertEqual(torch._dynamo.utils.counters["stats"]["unique_graphs"], 1)

    def test_curves_are_kept(self):
        """The backward graph reads the results of tanh and erf, and does not compute them again."""
        graphs = []

        def note(graph, _inputs):
            graphs.append([str(node.target) for node in graph.graph.nodes])
            return make_boxed_func(graph)

        backend = aot_autograd(fw_compiler=note, partition_fn=min_cut_rematerialization_partition)
        for name, curve, dtype in (
            ("dyt", "aten.tanh.default", torch.float64),
            ("dyt", "aten.exp.default", torch.float32),
            ("derf", "aten.erf.default", torch.float64),
        ):
            for mask in (None, torch.arange(16) % 3 > 0):
                torch._dynamo.reset()
                graphs.clear()
                with self.subTest(norm=name, dtype=dtype, mask=mask is not None):
                    norm = torch.compile(gained(make(name)).to(dtype), backend=backend)
                    step(norm, *next(batches(1, dtype=dtype)), mask)
                    self.assertEqual([graph.count(curve) for graph in graphs], [1, 0])

    def test_tanh_in_float32(self):
        """The compiled tanh: within two units of the last place of every number, and its gradient."""
        exponents = torch.linspace(-30, 1.3, 20001, dtype=torch.float64)
        x = torch.cat([10**exponents, torch.linspace(0, 10, 40001, dtype=torch.float64)]).float()
        x = torch.cat([x, -x])[:, None]
        norm = sn.make("dyt", 1, alpha0=1)
        y, dx = step(torch.compile(norm, backend="aot_eager"), x, torch.ones_like(x))
        right = torch.tanh(x.double())
        last = torch.nextafter(right.float().abs(), torch.tensor(2.0)) - right.float().abs()
        units = (y - right).abs() / last
        self.assertLessEqual(units.max().item(), 2)
        self.assertLessEqual((dx - (1 - right**2)).abs().max().item(), 4 * 2**-24)

    def test_tanh_of_what_is_no_number(self):
        x = torch.tensor([-math.inf, math.inf, math.nan])[:, None]
        y, _ = step(torch.compile(sn.make("dyt", 1), backend="aot_eager"), x, torch.ones_like(x))
        self.assertEqual(y[:2, 0].tolist(), [-1, 1])
        self.assertTrue(y[2].isnan().all())

    def test_a_region_within(self):
        """A compiled function that contains a checkpointed region, as docs/use-a-norm-in-pytorch.md recommends."""
        for name in ("bn", "pn", "repbn", "dyt"):
            torch._dynamo.reset()
            plain = gained(make(name))
            other = copy.deepcopy(plain)

            def region(x, mask, norm=other):
                return checkpoint(norm, x, mask, use_reentrant=False)

            compiled = torch.compile(region, backend="aot_eager", dynamic=False)
            with self.subTest(norm=name):
                for x, g in batches(4):
                    want, got = step(plain, x, g), step(compiled, x, g)
                    torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)
                torch.testing.assert_close(
                    other.state_dict(), plain.state_dict(), rtol=1e-10, atol=1e-10
                )
