"""Norms with their own forward: recorded by their computed values, or named as left out."""
import contextlib
import functools
import io
import math
import unittest
import warnings
from unittest import mock

from watch_help import WatchCase, fake_watch, reference
from watch_models import same_weights, train

import torch
import torch.nn.functional as F
import statrec
from statrec._watching import _adapters, _sites
from torch import nn
from torch.utils.checkpoint import checkpoint


class Spied:
    """Keeps its input, and the result, whose gradient is g."""
    spy = None

    def seen(self, x, y):
        if self.spy is not None:
            y.retain_grad()
            self.spy.append((x.detach(), y))
            return y.clone()  # later code may write into it
        return y


class BatchNormAct(Spied, nn.BatchNorm2d):
    """As in image models: the activation is part of the class."""

    def forward(self, x):
        y = F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
                         self.training, self.momentum, self.eps)
        return F.relu_(self.seen(x, y))


class FuncNorm(nn.Module):
    """A user's own, without the attributes of torch's."""
    weight_of_new = (0.1,)  # arguments of F.batch_norm

    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, x):
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, self.training,
                            *self.weight_of_new)


class FuncNormAct(FuncNorm):
    weight_of_new = (0.25,)

    def forward(self, x):
        return super().forward(x).relu()


class FuncNormOld(FuncNorm):
    """Its momentum is the weight of the old value, as some frameworks have it."""

    def __init__(self, width, momentum=0.7):
        super().__init__(width)
        self.momentum = momentum

    def forward(self, x):
        variance, mean = torch.var_mean(x, 0, correction=0)
        with torch.no_grad():
            self.running_mean.lerp_(mean, 1 - self.momentum)
            self.running_var.lerp_(variance, 1 - self.momentum)
        return (x - mean) * (variance + 1e-5).rsqrt() * self.weight + self.bias


class FuncNormMean(FuncNormOld):
    """Averages over all steps."""

    def __init__(self, width):
        super().__init__(width)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.steps.add_(1)
        self.momentum = 1 - 1 / self.steps.item()
        return super().forward(x)


class Functional(nn.Module):
    """Its norm is a function, of a tensor that is recorded."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return F.layer_norm(statrec.tap(self.linear(x), "norm"), x.shape[-1:])


class Standardize(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.gain)


def helper(x):
    return torch.layer_norm(x, (8,))


class MyRMS(nn.Module):
    """Its eps is no attribute."""

    def __init__(self, width):
        super().__init__()
        self.gain = None if width is None else nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return y if self.gain is None else y * self.gain


class LazyNorm(nn.modules.lazy.LazyModuleMixin, nn.Module):
    """A user's own whose gain has no shape before its first forward pass."""
    cls_to_become = None

    def __init__(self):
        super().__init__()
        self.weight = nn.parameter.UninitializedParameter()


class LazyFRN(LazyNorm):
    """Known by its name."""


LazyFRN.__name__ = "LazyFilterResponseNorm"


class BatchNorm1d(FuncNorm):
    """Only its name is torch's."""


class GroupNormAct(Spied, nn.GroupNorm):
    def forward(self, x):
        y = F.group_norm(x, self.num_groups, self.weight, self.bias, eps=self.eps)
        return F.silu(self.seen(x, y))


class LayerNorm2d(Spied, nn.LayerNorm):
    """Over dimension 1, by torch's function."""

    def forward(self, x):
        y = F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias,
                         self.eps)
        return self.seen(x, y.permute(0, 3, 1, 2))


class ChannelNorm(Spied, nn.Module):
    """The same by another formula, with other names."""

    def __init__(self, width, epsilon=1e-6):
        super().__init__()
        self.g, self.b = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.epsilon = epsilon

    def forward(self, x):
        variance, mean = torch.var_mean(x, 1, correction=0, keepdim=True)
        n = (x - mean) / torch.sqrt(variance + self.epsilon)
        return self.seen(x, n * self.g[:, None, None] + self.b[:, None, None])


class RootNorm(Spied, nn.Module):
    """As in language models; more is 1 if the gain is 1 + weight."""

    def __init__(self, width, more=0.0):
        super().__init__()
        self.weight, self.more = nn.Parameter(torch.full([width], 1 - more)), more
        self.variance_epsilon = 1e-6

    def forward(self, x):
        wide = x.float()
        n = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.seen(x, (n * (self.more + self.weight)).to(x.dtype))


class FrozenNorm(Spied, nn.Module):
    """A batch norm whose statistics and gain are constants."""

    def __init__(self, width):
        super().__init__()
        for name, value in (("weight", 2.0), ("bias", 0.1), ("running_mean", 0.3),
                            ("running_var", 0.5)):
            self.register_buffer(name, torch.full([width], value))

    def forward(self, x):
        scale = (self.weight * (self.running_var + 1e-5).rsqrt()).reshape(1, -1, 1, 1)
        shift = self.bias.reshape(1, -1, 1, 1) - self.running_mean.reshape(1, -1, 1, 1) * scale
        return self.seen(x, x * scale + shift)


class ResponseNormTlu(Spied, nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.tau = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.eps = 1e-6

    def forward(self, x):
        n = x * (x.square().mean((2, 3), keepdim=True) + self.eps).rsqrt()
        y = torch.maximum(n * self.weight.reshape(1, -1, 1, 1), self.tau.reshape(1, -1, 1, 1))
        return self.seen(x, y)


class FRN(ResponseNormTlu):
    pass


def around(norm, width=8):
    """A model with one norm over planes, or over the last dimension."""
    torch.manual_seed(4)
    if norm in (RootNorm, GemmaNorm):
        return nn.Sequential(nn.Linear(5, width), norm(width), nn.Linear(width, 3))
    made = norm(2, width) if norm is GroupNormAct else norm(width)
    return nn.Sequential(nn.Conv2d(3, width, 3), made, nn.Conv2d(width, 2, 3))


class GemmaNorm(RootNorm):
    def __init__(self, width):
        super().__init__(width, 1.0)


def data(model, steps=1):
    torch.manual_seed(5)
    planes = isinstance(model[0], nn.Conv2d)
    return (torch.randn(2, 4, 3, 9, 9) if planes else torch.randn(2, 4, 6, 5))[:steps]


def spied(norm):
    """x and g of its norm in one pass of a model that is not watched."""
    model = around(norm)
    model[1].spy = []
    model(data(model)[0]).square().mean().backward()
    (x, y), = model[1].spy
    return x, y.grad


PLANES = (BatchNormAct, GroupNormAct, LayerNorm2d, ChannelNorm, FrozenNorm, FRN)
ALL = (*PLANES, RootNorm, GemmaNorm)
EXPECTED = {BatchNormAct: ("bn", "sigma", 1e-5), GroupNormAct: ("groupnorm", "row", 1e-5),
            LayerNorm2d: ("ln", "row", 1e-5), ChannelNorm: ("ln", "row", 1e-6),
            FrozenNorm: ("frozenbn", "sigma", 1e-5), FRN: ("frn", "none", 1e-5),
            RootNorm: ("rmsnorm", "row", 1e-6), GemmaNorm: ("rmsnorm", "row", 1e-6)}


class OwnForward(WatchCase):
    def checked(self, norm, forward):
        want = reference(*spied(norm), first=norm in PLANES)
        model, plain = around(norm), around(norm)
        with fake_watch(model) as run:
            losses = train(model, data(model), run, lambda x: forward(model, x))
        got, = run.recorder.passes("1")
        self.close_to(got, want)
        self.assertEqual(train(plain, data(plain), None, lambda x: forward(plain, x)), losses)
        self.assertTrue(same_weights(plain, model))
        declared, = run.recorder.sites
        self.assertEqual((declared["norm"], declared["family"], declared["eps"]), EXPECTED[norm])
        return got

    def test_sums_and_weights(self):
        for norm in ALL:
            with self.subTest(norm.__name__):
                self.checked(norm, lambda model, x: model(x))

    def test_within_checkpointing(self):
        for reentrant in (False, True):
            for norm in ALL:
                with self.subTest(norm.__name__, reentrant=reentrant):
                    self.checked(norm, lambda model, x: checkpoint(
                        model, x.requires_grad_(), use_reentrant=reentrant))

    def test_compiled(self):
        """Modules that end with their norm are recorded. For a norm with an activation a warning reports that it is
        not recorded, and the training is the same."""
        for norm in (LayerNorm2d, ChannelNorm, RootNorm, GemmaNorm, FrozenNorm, BatchNormAct,
                     GroupNormAct):
            with self.subTest(norm.__name__):
                torch._dynamo.reset()
                plain, model = around(norm), around(norm)
                losses = train(plain, data(plain, 2), None, torch.compile(plain, backend="aot_eager"))
                torch._dynamo.reset()
                with warnings.catch_warnings(record=True) as caught, fake_watch(model) as run:
                    warnings.simplefilter("always")
                    graph = torch.compile(model, fullgraph=True, backend="aot_eager")
                    self.assertEqual(train(model, data(model, 2), run, graph), losses)
                self.assertTrue(same_weights(plain, model))
                said = [str(one.message) for one in caught]
                if norm in (BatchNormAct, GroupNormAct):
                    self.assertIn("torch.compile hides", "".join(said))
                else:
                    self.assertEqual(said, [])
                    self.close_to(run.recorder.passes("1", 0)[0],
                                  reference(*spied(norm), first=norm in PLANES))

    def test_gains(self):
        for norm, more in ((RootNorm, 0), (GemmaNorm, 1), (ChannelNorm, 0), (BatchNormAct, 0),
                           (FrozenNorm, 0)):
            with self.subTest(norm.__name__):
                model = around(norm)
                with torch.no_grad():
                    own = model[1].g if norm is ChannelNorm else model[1].weight
                    own.copy_(torch.linspace(0.5, 2, 8))
                with fake_watch(model) as run:
                    train(model, data(model), run)
                want = torch.linspace(0.5, 2, 8) + more
                got = torch.tensor(run.recorder.passes("1")[0]["gamma"])
                self.assertLessEqual((got - want).abs().max().item(), 1e-6)

    def test_frozen_statistics_are_what_it_uses(self):
        model = around(FrozenNorm)
        with fake_watch(model) as run:
            train(model, data(model), run)
        vectors = run.recorder.steps[0]["vectors"]
        self.assertEqual(vectors["1", "mu"], [0.30000001192092896] * 8)
        self.assertEqual(vectors["1", "sigma2"], [0.5] * 8)

    def test_weight_of_the_old_mean(self):
        """alpha comes from the running mean's movement, not from an attribute's name; the sums are right."""
        for norm, alpha in ((FuncNorm, 0.9), (FuncNormAct, 0.75), (FuncNormOld, 0.7), (FuncNormMean, None),
                            (BatchNorm1d, 0.9)):
            with self.subTest(norm.__name__):
                model = nn.Sequential(nn.Linear(5, 4), norm(4))
                x = model[0](torch.randn(9, 5)).detach().requires_grad_()
                with fake_watch(model[1]) as run:
                    model[1](x).square().sum().backward()
                    run.step()
                declared, = run.recorder.sites
                self.assertEqual((declared["norm"], declared["alpha"] if alpha else None), ("bn", alpha))
                self.assertTrue(alpha or math.isnan(declared["alpha"]))
                got, = run.recorder.passes(declared["name"])
                mean = torch.tensor(got["mean"], dtype=torch.float64)
                self.assertLess((mean - x.detach().double().mean(0)).abs().max(), 1e-6)

    def test_input_by_keyword(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(4)
                self.norm = nn.LayerNorm(5)

            def forward(self, x):
                return self.norm(input=x)

        model, x = Model(), torch.randn(4, 5, requires_grad=True)
        with fake_watch(model) as run:
            y = model(x)
            y.retain_grad()
            y.square().mean().backward()
            run.step()
        self.close_to(run.recorder.passes("norm")[0], reference(x, y.grad))

    def test_buffers_that_training_does_not_update(self):
        """Evaluation uses them: track_running_stats=False, set after construction."""
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        model[1].running_mean.fill_(2.0)
        model[1].track_running_stats = False
        with fake_watch(model) as run:
            train(model, torch.randn(2, 6, 3), run)
        self.assertEqual(run.recorder.steps[1]["vectors"]["1", "mu"], [2.0] * 4)
        self.assertEqual(run.recorder.sites[0]["alpha"], 1.0)

    def test_chunks_are_passes_of_their_own(self):
        """A ghost batch norm: statistics of 3 rows, not of 6."""
        class GhostNorm(nn.Module):
            def __init__(self):
                super().__init__()
                self.bn = nn.BatchNorm1d(4)

            def forward(self, x):
                return torch.cat([self.bn(part) for part in x.chunk(2)])

        model = nn.Sequential(nn.Linear(3, 4), GhostNorm())
        with fake_watch(model) as run:
            train(model, torch.randn(1, 6, 3), run)
        self.assertEqual([one["rows"] for one in run.recorder.passes("1.bn")], [3])

    def test_lazy(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.LazyBatchNorm1d())
        with fake_watch(model) as run:
            train(model, torch.randn(2, 6, 3), run)
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [1, 1])
        first, second = (step["vectors"] for step in run.recorder.steps)
        self.assertEqual([first["1", "mu"], first["1", "sigma2"]], [[0.0] * 4, [1.0] * 4])
        self.assertNotEqual(second["1", "mu"], [0.0] * 4)

    def test_lazy_modules_beside_it(self):
        """Sites are recorded beside lazy modules; a norm that has no shapes yet is an error with the way out."""
        for model in (nn.Sequential(nn.LazyConv2d(8, 3), nn.BatchNorm2d(8)), nn.Sequential(nn.LazyLinear(8), nn.LayerNorm(8))):
            with fake_watch(model) as run:
                model(torch.randn(4, 3, 5, 5)).square().sum().backward()
                run.step()
            self.assertEqual(len(run.recorder.passes("1")), 1)
        for norm in (LazyNorm(), LazyFRN()):
            model = nn.Sequential(nn.LazyLinear(8), norm, nn.LayerNorm(8))
            with self.assertRaisesRegex(ValueError, "watch: a Lazy.* has no shapes yet: run one batch"):
                fake_watch(model)
            self.assertEqual(fake_watch(model, "2").sites, ["2"])

    def test_failed_forward_leaves_no_trace(self):
        """An exception within the norm: later calls of torch's functions are not intercepted."""
        model = around(BatchNormAct)
        with fake_watch(model) as run:
            with self.assertRaises(RuntimeError):
                model[1](torch.randn(4, 7, 3, 3))
            self.assertEqual(torch.overrides._len_torch_function_stack(), 0)
            train(model, data(model), run)
        self.assertEqual(len(run.recorder.passes("1")), 1)


class Tensors(WatchCase):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(4)
            self.inside, self.norm, self.late = nn.Linear(5, 8), nn.LayerNorm(8), False

        def forward(self, x):
            h = statrec.tap(self.norm(self.inside(x)), "functional")
            if self.late:
                statrec.tap(h, "late")
            self.h = h
            return F.layer_norm(h, (8,))

    def test_functional_norm(self):
        model = self.Model()
        with fake_watch(model) as run:
            y = model(torch.randn(4, 6, 5))
            model.h.retain_grad()
            y.pow(3).mean().backward()
            run.step()
        self.assertEqual([site["name"] for site in run.recorder.sites], ["norm", "functional"])
        self.assertEqual(run.recorder.sites[1]["family"], "none")
        self.close_to(run.recorder.passes("functional")[0], reference(model.h, model.h.grad))

    def test_weights_are_the_same(self):
        plain, watched = self.Model(), self.Model()
        batches = torch.randn(3, 4, 6, 5)
        with fake_watch(watched) as run:
            self.assertEqual(train(watched, batches, run), train(plain, batches))
        self.assertTrue(same_weights(plain, watched))

    def test_after_the_first_step(self):
        model = self.Model()
        with warnings.catch_warnings(record=True) as caught, fake_watch(model) as run:
            warnings.simplefilter("always")
            train(model, torch.randn(1, 4, 6, 5), run)
            model.late = True
            train(model, torch.randn(2, 4, 6, 5), run)
        self.assertEqual([str(one.message) for one in caught],
                         ["statrec: tap 'late' came after the first step and is not recorded"])

    def test_within_a_compiler_it_is_the_tensor(self):
        model = self.Model()
        torch._dynamo.reset()
        graph = torch.compile(model, fullgraph=True, backend="aot_eager")
        graph(torch.randn(4, 6, 5))
        with self.assertRaisesRegex(ValueError, "features"):
            statrec.tap(torch.randn(3, 3), "x", 2)


class Probes(WatchCase):
    def test_parts_make_another_kind(self):
        """The same class with and without an activation as a part."""
        class Act(nn.BatchNorm2d):
            def __init__(self, width, act):
                super().__init__(width)
                self.act = act

            def forward(self, x):
                return self.act(F.batch_norm(x, self.running_mean, self.running_var, self.weight,
                                             self.bias, True))

        for acts in ((nn.Identity(), nn.ReLU()), (nn.ReLU(), nn.Identity())):
            (one, two), _ = _sites.find_sites(nn.Sequential(*(Act(8, act) for act in acts)))
            self.assertEqual([one.calls, two.calls],
                             [isinstance(act, nn.ReLU) for act in acts])

    def test_the_copy_runs_nothing_of_the_host(self):
        """Neither a forward that was put into the module nor its hooks."""
        class OwnNorm(RootNorm):
            pass

        model, ran = nn.Sequential(OwnNorm(8)), []
        own = model[0].forward
        model[0].forward = lambda x: ran.append(1) or own(x)
        model[0].register_forward_hook(lambda *given: ran.append(2))
        model[0].register_forward_pre_hook(lambda *given: ran.append(3))
        (site,), _ = _sites.find_sites(model)
        self.assertEqual((site.norm, ran), ("rmsnorm", []))

    def test_replaced_forward_is_not_listened_to(self):
        """A checkpointed forward runs again without the hooks of the module."""
        plain, model = around(BatchNormAct), around(BatchNormAct)
        for one in (plain, model):
            own = one[1].forward
            one[1].forward = lambda x, own=own: checkpoint(own, x, use_reentrant=False)
        with warnings.catch_warnings(record=True) as caught, fake_watch(model) as run:
            warnings.simplefilter("always")
            self.assertEqual(train(model, data(model), run), train(plain, data(plain)))
        self.assertTrue(same_weights(plain, model))
        self.assertIn("'1' is not recorded: its forward has been replaced", str(caught[0].message))


    def test_random_state_of_the_host(self):
        """Neither the CPU's nor a GPU's moves: torch.manual_seed would seed both."""
        class SeededNorm(RootNorm):
            pass

        before = torch.get_rng_state()
        with mock.patch("torch.cuda.manual_seed_all") as seeded:
            (site,), _ = _sites.find_sites(nn.Sequential(SeededNorm(8)))
        self.assertEqual(site.norm, "rmsnorm")
        self.assertTrue(torch.equal(before, torch.get_rng_state()))
        seeded.assert_not_called()

    def test_parameters_without_values(self):
        """On the meta device a module has shapes alone."""
        for kind, norm in ((RootNorm, "rmsnorm"), (ChannelNorm, "ln"), (BatchNormAct, "bn")):
            (site,), left_out = _sites.find_sites(nn.Sequential(kind(8)).to("meta"))
            self.assertEqual((site.norm, left_out), (norm, []))

    def test_sharded_norms(self):
        """FSDP2 gives a module a class of torch's and shards its parameters."""
        import torch.distributed as dist
        if not hasattr(dist, "fsdp") or not hasattr(dist.fsdp, "fully_shard"):
            self.skipTest("torch without FSDP2")
        plain, model = around(RootNorm), around(RootNorm)
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            dist.fsdp.fully_shard(model[1])
            dist.fsdp.fully_shard(model)
            with torch.no_grad():
                for one in (plain, model):
                    one[1].weight.mul_(1.5)
            with fake_watch(model) as run:
                got = train(model, data(model), run)
        finally:
            dist.destroy_process_group()
        with fake_watch(plain) as other:
            self.assertEqual(got, train(plain, data(plain), other))
        (one,), (two,) = run.recorder.sites, other.recorder.sites
        self.assertEqual(one, two)
        for step in range(len(other.recorder.steps)):
            self.assertEqual(run.recorder.passes(one["name"], step),
                             other.recorder.passes(one["name"], step))


class LargeMeans(WatchCase):
    def test_means_of_a_hundred_deviations(self):
        """sum g (x - mean) uses the mean in double: sum g would multiply its rounding."""
        for norm, shape, first in ((nn.BatchNorm2d(8), (16, 8, 12, 12), True),
                                   (nn.BatchNorm1d(8), (512, 8), True),
                                   (nn.LayerNorm(8), (64, 10, 8), False),
                                   (nn.GroupNorm(2, 8), (16, 8, 12, 12), True)):
            for mean in (0, 3, 10, 100):
                for compiled in (False, True):
                    with self.subTest(type(norm).__name__, mean=mean, compiled=compiled):
                        self.checked(norm, torch.randn(shape) + mean, first, compiled)

    def checked(self, norm, x, first, compiled):
        model, g = nn.Sequential(norm), torch.randn(x.shape) + 0.5
        torch._dynamo.reset()
        with fake_watch(model) as run:
            graph = torch.compile(model, backend="aot_eager") if compiled else model
            for _ in range(2):  # the second uses a site whose numbers are trusted, or not
                (graph(x.clone().requires_grad_()) * g).sum().backward()
                run.step()
        self.close_to(run.recorder.passes("0")[0], reference(x, g, first), 3e-6)


class Unknown(nn.Module):
    """Looks like a norm but is not a known one."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.tanh(x) * self.weight


class StrangeNorm(Unknown):
    pass


class LeftOut(WatchCase):
    def tearDown(self):
        _adapters.custom._rows.clear()

    def test_named(self):
        model = nn.Sequential(nn.Linear(5, 8), StrangeNorm(8), nn.LayerNorm(8), StrangeNorm(8))
        said = io.StringIO()
        with contextlib.redirect_stderr(said), fake_watch(model, verbose=True) as run:
            self.assertEqual(run.sites_left_out, [("1", "StrangeNorm"), ("3", "StrangeNorm")])
        self.assertEqual(said.getvalue(), "statrec: run.h5: sites 1 of 3; not recorded: "
                                          "StrangeNorm x2 (statrec.register)\n")

    def test_nothing_recognised(self):
        with self.assertRaisesRegex(ValueError, "StrangeNorm x1 look"):
            fake_watch(nn.Sequential(StrangeNorm(8)))
        with self.assertRaisesRegex(ValueError, "no normalization module"):
            _sites.find_sites(nn.Linear(3, 3))
        graph = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 3)))
        with self.assertRaisesRegex(ValueError, "exported graph"):
            fake_watch(graph)

    def test_model_of_tensors_alone(self):
        """Sites of statrec.tap may be the only ones; without any the first step raises, and no file is left."""
        model = Functional(8)
        with fake_watch(model) as run:
            for _ in range(2):
                model(torch.randn(4, 8)).square().sum().backward()
                run.step()
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [1, 1])
        self.assertEqual((run.sites, run.sites_left_out), (["norm"], []))
        for sites in (None, []):
            model = nn.Linear(3, 3)
            run = fake_watch(model, **({} if sites is None else {"sites": sites}))
            model(torch.randn(4, 3)).sum().backward()
            with self.assertRaisesRegex(ValueError, "watch: the model has no normalization module; .*statrec.tap"):
                run.step()
            self.assertEqual((run.recorder.status, run.recorder.steps), ("abandoned", []))
            run.step()  # it is over
            run.close()

    def test_found_by_what_it_does(self):
        """A class without "norm" in its name, built as a norm, is recorded."""
        for norm, name in ((Standardize(8), "ln"), (MyRMS(8), "rmsnorm"), (MyRMS(None), "rmsnorm")):
            model = nn.Sequential(nn.Linear(5, 8), norm)
            with fake_watch(model) as run:
                train(model, torch.randn(1, 4, 5), run)
            self.assertEqual([site["norm"] for site in run.recorder.sites], [name])

    def test_named_by_what_it_calls(self):
        """A module that is no site but whose code calls one of torch's norm functions is named at once, in the file
        too. It gets no hook."""
        class Block(nn.Module):
            def __init__(me):
                super().__init__()
                me.a, me.b, me.c = nn.LayerNorm(8), Standardize(8), nn.Linear(8, 8)

            def forward(me, x):
                return F.group_norm(me.c(me.b(me.a(x))), 2).relu()

        class Kept(Block):
            """Its function is an attribute; its method layer_norm is none."""

            def __init__(me):
                super().__init__()
                me.act = functools.partial(F.rms_norm, normalized_shape=(8,))

            def layer_norm(me, x):
                return x

            def forward(me, x):
                return me.act(me.layer_norm(x))

        class Helped(Block):
            def forward(me, x):
                return (lambda y: helper(y))(x)

        class Plain(Block):
            def __init__(me):
                super().__init__()
                me.act = me.layer_norm

        model, x = nn.Sequential(nn.Linear(8, 8), Block(), Functional(8), Kept(), Helped()), torch.randn(4, 8)
        said = io.StringIO()
        with contextlib.redirect_stderr(said), fake_watch(model, verbose=True) as run:
            self.assertEqual(run.sites_left_out, [("1", "Block"), ("3", "Kept"), ("4", "Helped")])
            hooked = sum(len(one._forward_hooks) + len(one._forward_pre_hooks) for one in model.modules())
            self.assertEqual(hooked, len(run.sites))
            model(x).sum().backward()
            run.step()
        text = ("not recorded: Block x1, Kept x1, Helped x1 (modules that call F.group_norm, F.rms_norm, "
                "torch.layer_norm)")
        self.assertIn(f"{text}; statrec.register", said.getvalue())
        self.assertIn(text, run.recorder.reason)
        with fake_watch(model, "1.a") as run:  # the choice is the host's
            pass
        self.assertEqual(run.sites_left_out, [])

    def test_blocks_are_no_norms(self):
        class ConvNormBlock(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 3, 1)
        model = nn.Sequential(ConvNormBlock(), nn.BatchNorm2d(3))
        self.assertEqual(_sites.find_sites(model)[1], [])

    def test_probing_does_not_touch_the_random_state(self):
        torch.manual_seed(7)
        want = torch.rand(3)
        torch.manual_seed(7)
        _sites.find_sites(around_unprobed())
        self.assertTrue(torch.equal(torch.rand(3), want))

    def test_registered(self):
        from statrec import register
        register(StrangeNorm, "rmsnorm", gain=lambda module: 3 * module.weight)
        model = nn.Sequential(nn.Linear(5, 8), StrangeNorm(8), nn.Linear(8, 1))
        with fake_watch(model) as run:
            train(model, torch.randn(1, 4, 5), run)
        self.assertEqual(run.recorder.sites[0]["norm"], "rmsnorm")
        self.assertEqual(run.recorder.passes("1")[0]["gamma"], [3.0] * 8)
        for wrong in (dict(like="bm"), dict(features=2)):
            with self.assertRaises(ValueError):
                register(StrangeNorm, **wrong)
        with self.assertRaises(TypeError):
            register("StrangeNorm")
        for other in (int, torch.Tensor):
            with self.assertRaisesRegex(TypeError, "a subclass of torch.nn.Module is wanted, got <class"):
                register(other, "rmsnorm")


def around_unprobed():
    class FreshNorm(RootNorm):
        pass
    return nn.Sequential(FreshNorm(8))


if __name__ == "__main__":
    unittest.main()
