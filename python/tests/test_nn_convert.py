"""statrec.nn.convert: values that it keeps from the old modules, and its messages about the rest."""

import contextlib
import unittest
import warnings

from nn_cases import gained, make, sn, torch  # first: skipped without torch
from torch import nn
from torch.nn.utils import parametrize, prune


class Planes(nn.LayerNorm):
    """A LayerNorm of [N, C, H, W], as in torchvision's ConvNeXt."""

    def forward(self, x):
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class Named(nn.LayerNorm):
    """Another name alone."""


def lists(*modules):
    return nn.ModuleList(modules)


@contextlib.contextmanager
def silent():
    """No warning is allowed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


class Options(unittest.TestCase):
    def test_kept(self):
        """eps, momentum, tracking, synchronization; an option wins."""
        group = object()
        sync = nn.SyncBatchNorm(6)
        sync.process_group = group
        own = sn.BatchNorm(6, 1e-3, 0.01, unbiased=True, check=True, sync=True)
        for old, method, given, want in (
            (nn.LayerNorm(6, eps=1e-12), "bn", {}, {"eps": 1e-12, "momentum": 0.1}),
            (nn.LayerNorm(6, eps=1e-12), "bn", {"eps": 1e-4}, {"eps": 1e-4}),
            (nn.RMSNorm(6), "rmsnorm", {}, {"eps": torch.finfo(torch.float32).eps}),
            (nn.RMSNorm(6).half(), "rmsnorm", {}, {"eps": torch.finfo(torch.float32).eps}),
            (nn.RMSNorm(6).double(), "bn", {}, {"eps": torch.finfo(torch.float64).eps}),
            (nn.RMSNorm(6, elementwise_affine=False), "ln", {}, {"weight": None, "bias": None}),
            (nn.RMSNorm(6, eps=1e-6), "ls", {}, {"eps": 1e-6}),
            (nn.BatchNorm1d(6, track_running_stats=False), "bn", {}, {"running_mean": None}),
            (nn.BatchNorm1d(6, 1e-3, 0.02), "mabn", {}, {"eps": 1e-3, "momentum": 0.02}),
            (nn.BatchNorm1d(6, 1e-3, 0.02), "pn", {"alpha": 0.75}, {"momentum": 0.25}),
            (nn.BatchNorm1d(6, momentum=None), "pn", {"momentum": 0.25}, {"momentum": 0.25}),
            (nn.BatchNorm1d(6, affine=False), "pn", {}, {"affine": False, "weight": None}),
            (nn.BatchNorm1d(6, affine=False), "pn", {"affine": True}, {"affine": True}),
            (sync, "bn", {}, {"sync": True, "process_group": group}),
            (sync, "bn", {"sync": False, "process_group": None}, {"sync": False}),
            (own, "bn", {}, {"eps": 1e-3, "momentum": 0.01, "unbiased": True, "check": True}),
            (own, "bn", {"eps": 0.1}, {"eps": 0.1, "momentum": 0.01, "sync": True}),
            (own, "pn", {}, {"eps": 1e-3, "momentum": 0.01, "sync": True, "check": True}),
            (own, "ln", {}, {"eps": 1e-3, "unbiased": False}),
            (sn.PowerNorm(6, layer_scale=2, alpha_bwd=0.5), "pn", {}, {"alpha_bwd": 0.5}),
            (sn.PowerNorm(6, layer_scale=2), "pn", {}, {"layer_scale": 0}),
            (sn.PowerNorm(6, layer_scale=2), "bn+ls", {}, {"layer_scale": 1}),
            (sn.AdaNorm(6, 0.5, placement="outside"), "ln", {}, {"eps": 1e-5}),
            (sn.AdaNorm(6, 0.5, placement="outside"), "adanorm", {"k": 1}, {"eps": 0.5, "k": 1}),
            (sn.RMSNorm(6, 0.5), "rmsnorm", {"placement": "outside"}, {"eps": 1e-5}),
            (
                sn.DetachNorm(6, 0.5, detach="std"),
                "detach-mean",
                {},
                {"eps": 0.5, "detach": "mean"},
            ),
            (sn.UnitNorm(6, 0.5), "rmsnorm", {}, {"eps": 1e-5}),
            (sn.UnitNorm(6, 0.5, s_init=3), "unit", {}, {"eps": 0.5, "s_init": 3}),
            (nn.LayerNorm(6), "unit", {}, {"eps": 1e-12}),
            (sn.Derf(6), "ln", {}, {"eps": 1e-5}),
        ):
            with self.subTest(old=repr(old), method=method, given=given), silent():
                new = sn.convert(old, method, **given)
                self.assertEqual({name: getattr(new, name) for name in want}, want)

    def test_what_a_method_lacks(self):
        sync, still = nn.SyncBatchNorm(6), nn.BatchNorm1d(6, track_running_stats=False)
        for old, method, text in (
            (still, "pn", "convert: '0': track_running_stats=False is lost; pn has no such option"),
            (sync, "brn", "convert: '0': sync=True is lost; brn has no such option"),
        ):
            with self.assertWarnsRegex(UserWarning, text) as told:
                sn.convert(lists(old), method)
            self.assertEqual(told.filename, __file__)
            with silent():
                sn.convert(lists(old), "ln")
        with self.assertRaisesRegex(
            ValueError, "convert: '0': momentum is None, .*: give momentum"
        ):
            sn.convert(lists(nn.BatchNorm1d(6, momentum=None)), "bn")
        hooked = lists(nn.LayerNorm(6))
        hooked[0].register_forward_hook(lambda *_: None)
        with self.assertWarnsRegex(UserWarning, "convert: '0': its hooks are lost"):
            sn.convert(hooked, "bn")
        with silent():
            sn.convert(hooked, "pn")

    def test_refused(self):
        patched = nn.BatchNorm2d(6)
        patched.forward = lambda x: torch.relu(nn.BatchNorm2d.forward(patched, x))
        self.assertIsInstance(sn.convert(Named(6), "bn"), sn.BatchNorm)
        bent, cut = nn.LayerNorm(6), nn.LayerNorm(6)
        parametrize.register_parametrization(bent, "bias", nn.Identity())
        prune.random_unstructured(cut, "weight", 1)
        for model, given, text in (
            (lists(nn.LayerNorm((4, 5))), {}, r"convert: '0': normalizes \(4, 5\)"),
            (nn.LayerNorm((4, 5)), {}, r"convert: '' \(the model itself\): normalizes \(4, 5\)"),
            (lists(nn.LazyBatchNorm1d()), {}, "convert: '0': no number of features yet"),
            (lists(Planes(6)), {}, "convert: '0': Planes has a forward of its own"),
            (lists(patched), {}, "convert: '0': BatchNorm2d has a forward of its own"),
            (lists(bent), {}, "convert: '0': its bias is no parameter but computed"),
            (lists(cut), {}, "convert: '0': its weight is no parameter but computed"),
            (lists(nn.LayerNorm(6)), {"where": 3}, "convert: where is 3; a glob"),
            (lists(nn.LayerNorm(6)), {"where": ["0"]}, r"convert: where is \['0'\]; a glob"),
            (lists(nn.LayerNorm(6)), {"method": None}, "no normalization is called None"),
            (
                lists(nn.LayerNorm(6)),
                {"layer_scale": 4},
                "convert: '0': BatchNorm: 6 features cannot",
            ),
            (lists(nn.LayerNorm(6)), {"eps": "a"}, "convert: '0': BatchNorm: eps is 'a', a number"),
            ([nn.LayerNorm(6)], {}, "convert: the model is of type list"),
        ):
            before = repr(model)
            with self.subTest(model=before, given=given):
                with self.assertRaisesRegex((TypeError, ValueError), f"^{text}"):
                    sn.convert(model, **{"method": "bn", **given})
                self.assertEqual(repr(model), before)


class State(unittest.TestCase):
    def test_ties(self):
        """Parameters stay the same ones; shared modules are converted once, by either name."""
        model = nn.ModuleDict({"a": nn.LayerNorm(6), "b": nn.LayerNorm(6), "w": nn.Linear(6, 6)})
        model["b"].weight = model["a"].weight
        model["w"].bias = model["a"].bias
        model["a"].bias.requires_grad_(False)
        names = set(dict(model.named_parameters()))
        optimizer = torch.optim.SGD(model.parameters(), 0.5)
        sn.convert(model, "pn")
        self.assertIs(model["a"].weight, model["b"].weight)
        self.assertIs(model["a"].bias, model["w"].bias)
        self.assertFalse(model["a"].bias.requires_grad)
        self.assertEqual(set(dict(model.named_parameters())), names)
        before = model["b"].weight.detach().clone()
        model["b"](torch.randn(4, 6)).pow(3).sum().backward()
        optimizer.step()
        self.assertFalse(torch.equal(model["b"].weight, before))
        sn.convert(model, "pn", dtype=torch.float64)
        self.assertIs(model["a"].weight, model["b"].weight)
        self.assertEqual(model["a"].weight.dtype, torch.float64)
        self.assertFalse(model["a"].bias.requires_grad)
        for where in ("*", "0.*", "1.*"):
            norm = nn.BatchNorm1d(3)
            two = sn.convert(lists(nn.Sequential(norm), nn.Sequential(norm)), "bn", where=where)
            self.assertIsInstance(two[0][0], sn.BatchNorm)
            self.assertIs(two[0][0], two[1][0])

    def test_gain_without_bias(self):
        """A norm that has a gain alone keeps it alone, unless affine=True is given."""
        x = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
        for old in (nn.RMSNorm(6), nn.LayerNorm(6, bias=False)):
            nn.init.uniform_(old.weight)
            method = "ln" if isinstance(old, nn.LayerNorm) else "rmsnorm"
            new = sn.convert(old, method)
            torch.testing.assert_close(new(x), old(x))
            self.assertEqual(list(new.state_dict()), list(old.state_dict()))
            self.assertIn(", bias=False)", repr(new))
            full = sn.convert(old, method, affine=True)
            self.assertEqual(list(full.state_dict()), ["weight", "bias"])
            for again in sn.METHODS:
                y = sn.convert(new, again)(x)
                self.assertTrue(y.isfinite().all())

    def test_same_class(self):
        """Every parameter and running value of a method that is converted to itself."""
        x = torch.randn(16, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        for method in sn.METHODS:
            old = gained(make(method))
            for factor in (1, 2, 3, 4):
                old((factor * x).requires_grad_()).sum().backward()
                sn.penalty(old)
            new = sn.convert(old, method)
            torch.testing.assert_close(new.state_dict(), old.state_dict(), rtol=0, atol=0)
            torch.testing.assert_close(new.eval()(x), old.eval()(x), rtol=0, atol=0)
            self.assertEqual(repr(new), repr(old))

    def test_running_values(self):
        x = torch.randn(16, 6, generator=torch.Generator().manual_seed(1)) + 2
        old = nn.BatchNorm1d(6)
        for _ in range(3):
            old(x)
        mean, first = old.running_mean, torch.zeros(6)
        for method, want, calls in (
            ("bn", mean, 3),
            ("rbn", mean, 3),
            ("bn+ls", first, 0),  # its statistics belong to scaled rows
            ("bn-powernorm", first, 0),
        ):
            new = sn.convert(old, method)
            torch.testing.assert_close(new.running_mean, want)
            self.assertEqual(int(new.num_batches_tracked), calls)
        mixed = sn.convert(old, "repbn", t0=5)
        torch.testing.assert_close(mixed.running_mean, mean)
        self.assertEqual((int(mixed.num_batches_tracked), float(mixed.lam)), (0, 1))
        quadratic = sn.PowerNormV(6)
        quadratic(x)
        for method in ("pn", "un", "mabn"):
            new = sn.convert(quadratic, method)
            torch.testing.assert_close(new.running_psi2, quadratic.running_psi2)
            self.assertEqual(int(new.num_batches_tracked), 0)
        window = sn.make("mabn", 6, buffer=3)
        window(x)
        self.assertEqual(int(sn.convert(window, "mabn", buffer=4).num_batches_tracked), 0)
