"""statrec.nn: plain formulas beside the modules, derivatives, layouts and masks, checkpointing,
torch.compile, copies, convert, penalty, recompute, errors, and types of lower precision."""

import contextlib
import copy
import io
import math
import os
import pickle
import re
import unittest

from support import TOP, InDirectory, module, python, wants

torch = module("torch")
if torch is not None:
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    import statrec.nn as sn

OPTIONS = {
    "un": {"warmup": 0, "window": 3},
    "mabn": {"warmup": 3, "buffer": 3, "clip_calls": 3},
    "brn": {"warmup": 1, "r_calls": 4, "d_calls": 4},
    "repbn": {"t0": 4},
    "pn-released": {"warmup": 2},
}
# Methods whose backward pass is the derivative of the forward pass in every call.
EXACT = (
    "bn",
    "bn-powernorm",
    "ln",
    "ln-simple",
    "rmsnorm",
    "pnv",
    "ls",
    "rbn",
    "rbn-released",
    "dyt",
    "derf",
    "repbn",
    "unit",
)
# Largest difference from float64 in units of the type's epsilon: outputs and gradients of a normal
# batch, each divided by its largest number.
EPSILONS = 24


def make(name, features=6, **options):
    return sn.make(name, features, **{**OPTIONS.get(name, {}), **options})


def step(norm, x, g, mask=None):
    """y and dx of a training call, without the penalty."""
    x = x.detach().clone().requires_grad_()
    y = norm(x, mask)
    if isinstance(norm, sn.Norm):
        sn.penalty(norm)
    y.backward(g)
    return y.detach(), x.grad


def batches(count, rows=16, features=6, dtype=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        x, g = (
            torch.randn(rows, features, generator=generator, dtype=torch.float64) for _ in range(2)
        )
        yield (1.5 * x + 0.5).to(dtype or torch.float64), g.to(dtype or torch.float64)


def gained(norm):
    """The module in float64 with a gain and a bias that are not 1 and 0."""
    norm = norm.double()
    with torch.no_grad():
        for i, parameter in enumerate(norm.parameters()):
            parameter.add_(
                torch.linspace(-0.3, 0.4, parameter.numel(), dtype=torch.float64).view(
                    parameter.shape
                )
                * (1 + i)
            )
    return norm


def scalars(x):
    return [float(value) for value in x]


@wants("torch")
class Plain(unittest.TestCase):
    """Column by column, in the words of docs/norms.md; nothing is shared with statrec.nn."""

    def same(self, got, want, message=""):
        want = torch.tensor(want, dtype=torch.float64)
        bound = 1e-12 * max(1.0, float(want.abs().max()))
        self.assertLessEqual(float((got - want).abs().max()), bound, message)

    def compare(self, name, reference, calls=7, outlier=None, **options):
        norm, state = gained(make(name, 3, **options)), {}
        for call, (x, g) in enumerate(batches(calls, 5, 3), 1):
            x = x * (40 if call == outlier else 1)
            y, dx = step(norm, x, g)
            want_y, want_dx = reference(norm, state, call, x.T.tolist(), g.T.tolist())
            self.same(y.T, want_y, f"{name} y call {call}")
            self.same(dx.T, want_dx, f"{name} dx call {call}")
        return norm, state

    def test_powernorm(self):
        def reference(norm, state, call, columns, gradients):
            out_y, out_dx = [], []
            for k, (x, g) in enumerate(zip(columns, gradients)):
                psi2, nu = state.get(k, (1.0, 0.0))
                gamma, beta, n = float(norm.weight[k]), float(norm.bias[k]), len(x)
                psi = math.sqrt(psi2 + 1e-5)
                xhat = [v / psi for v in x]
                out_y.append([gamma * v + beta for v in xhat])
                out_dx.append([(gamma * a - nu * b) / psi for a, b in zip(g, xhat)])
                square, big = sum(v * v for v in x) / n, sum(v * v for v in xhat) / n
                slope = sum(gamma * a * b for a, b in zip(g, xhat)) / n
                state[k] = 0.8 * psi2 + 0.2 * square, nu * (1 - 0.3 * big) + 0.3 * slope
            return out_y, out_dx

        norm, state = self.compare("pn", reference, alpha=0.8, alpha_bwd=0.7)
        self.same(norm.running_psi2, [state[k][0] for k in range(3)])
        self.same(norm.nu, [state[k][1] for k in range(3)])

    def unified(self, norm, state, call, columns, gradients):
        slots, n = 3, len(columns[0])
        window = state.setdefault("x2", [[0.0] * 3 for _ in range(slots)])
        grads = state.setdefault("gz", [[0.0] * 3 for _ in range(slots)])
        psi2, mean_gz = state.setdefault("psi2", [1.0] * 3), state.setdefault("e", [0.0] * 3)
        roots = [math.sqrt(v) for slot in window for v in slot]
        limit = slots * sum((r - sum(roots) / 9) ** 2 for r in roots) / 9
        squares = [sum(v * v for v in x) / n for x in columns]
        window[call % slots] = list(squares)
        geometric = [math.prod(slot[k] for slot in window) ** (1 / slots) for k in range(3)]
        outlier = (
            call > slots
            and norm.filter
            and any(
                sum(slot[k] for slot in window) / slots - geometric[k] > limit for k in range(3)
            )
        )
        smooth = call > slots and not outlier
        if outlier:
            window[call % slots] = list(psi2)
            state["outliers"] = state.get("outliers", 0) + 1
        out_y, out_dx, gz = [], [], []
        for k, (x, g) in enumerate(zip(columns, gradients)):
            gamma, beta = float(norm.weight[k]), float(norm.bias[k])
            v = geometric[k] if smooth else squares[k]
            s = math.sqrt(v + 1e-5)
            gz.append(sum(gamma * a * b / s for a, b in zip(g, x)) / n)
            grads[call % slots][k] = mean_gz[k] if outlier else gz[k]
            now = sum(slot[k] for slot in grads) / slots if smooth else gz[k]
            mean_gz[k] = 0.9 * mean_gz[k] + 0.1 * now
            psi = mean_gz[k] if smooth else gz[k]
            out_y.append([gamma * b / s + beta for b in x])
            out_dx.append([(gamma * a - b / s * psi) / s for a, b in zip(g, x)])
            psi2[k] = 0.9 * psi2[k] + 0.1 * v
        return out_y, out_dx

    def test_unified_norm(self):
        norm, state = self.compare("un", self.unified, calls=9, outlier=6)
        self.assertIn(state["outliers"], range(1, 6))
        self.same(norm.running_psi2, state["psi2"])
        self.same(norm.mean_gz, state["e"])
        self.same(norm.window_gz, state["gz"])
        norm, state = self.compare("un", self.unified, calls=9, outlier=6, filter=False)
        self.assertNotIn("outliers", state)

    def test_moving_average(self):
        def reference(norm, state, call, columns, gradients):
            out_y, out_dx = [], []
            for k, (x, g) in enumerate(zip(columns, gradients)):
                run, squares, slopes = state.get(k, (1.0, [0.0] * 3, [0.0] * 3))
                n, gamma, beta = len(x), float(norm.weight[k]), float(norm.bias[k])
                squares[call % 3] = sum(v * v for v in x) / n
                v = squares[call % 3] if call <= 3 else sum(squares) / 3
                s, r = math.sqrt(v + 1e-5), 1.0
                if call > 3:
                    r = min(max(s / math.sqrt(run + 1e-5), 0.2), 5)
                slopes[call % 3] = sum(gamma * r * a * b / s for a, b in zip(g, x)) / n
                mean = slopes[call % 3] if call <= 3 else sum(slopes) / 3
                out_y.append([gamma * r * b / s + beta for b in x])
                out_dx.append([(gamma * r * a - b / s * mean) / s for a, b in zip(g, x)])
                state[k] = 0.98 * run + 0.02 * v, squares, slopes
            return out_y, out_dx

        norm, state = self.compare("mabn", reference)
        self.same(norm.running_psi2, [state[k][0] for k in range(3)])

    def test_repbn(self):
        """y alone: gradcheck has its derivative."""
        norm = gained(make("repbn", 3, alpha=0.9))
        mu, sigma2 = [0.0] * 3, [1.0] * 3
        for call, (x, _) in enumerate(batches(6, 5, 3), 1):
            lam = max(0.0, 1 - (call - 1) / 4)
            got = norm(x).detach()
            for k in range(3):
                column = scalars(x[:, k])
                m = sum(column) / 5
                v = sum((b - m) ** 2 for b in column) / 5
                mu[k], sigma2[k] = 0.9 * mu[k] + 0.1 * m, 0.9 * sigma2[k] + 0.1 * v
                for i in range(5):
                    row = scalars(x[i])
                    rm = sum(row) / 3
                    rs = math.sqrt(sum((b - rm) ** 2 for b in row) / 3 + 1e-5)
                    ln = float(norm.ln_weight[k]) * (row[k] - rm) / rs + float(norm.ln_bias[k])
                    bn = float(norm.weight[k]) * (row[k] - m) / math.sqrt(v + 1e-5)
                    rep = bn + float(norm.bias[k]) + float(norm.eta) * row[k]
                    self.assertAlmostEqual(
                        float(got[i, k]), lam * ln + (1 - lam) * rep, delta=1e-12
                    )
        self.same(norm.running_mean, mu)
        self.same(norm.running_var, sigma2)
        self.assertEqual(float(norm.lam), 0)

    def test_row_methods(self):
        x = next(batches(1, 5, 3))[0]
        root = [math.sqrt(sum(v * v for v in scalars(row)) + 1e-12) for row in x]
        for name, at in (
            ("unit", lambda n, i, k: float(n.weight[k]) * 3**0.5 * 2 * float(x[i, k]) / root[i]),
            (
                "dyt",
                lambda n, i, k: float(n.weight[k]) * math.tanh(float(n.alpha) * float(x[i, k]))
                + float(n.bias[k]),
            ),
            (
                "derf",
                lambda n, i, k: float(n.weight[k])
                * math.erf(float(n.alpha) * float(x[i, k]) + float(n.s))
                + float(n.bias[k]),
            ),
        ):
            norm = gained(make(name, 3, **({"s_init": 2} if name == "unit" else {})))
            self.same(
                norm(x).detach(), [[at(norm, i, k) for k in range(3)] for i in range(5)], name
            )

    def test_constants_of_the_backward_pass(self):
        """r and D of BRN, phi of AdaNorm and what DetachNorm detaches, as numbers."""
        x, g = next(batches(1, 5, 3))
        norm = gained(
            make("brn", 3, warmup=0, r_calls=0, d_calls=0, r_max=1.1, d_max=0.1, eps=1e-3)
        )
        _, dx = step(norm, x, g)
        sigma = (x.var(0, correction=0) + 1e-3).sqrt()
        r, xn = sigma.clamp(1 / 1.1, 1.1), (x - x.mean(0)) / sigma
        want = norm.weight * r / sigma * (g - g.mean(0) - xn * (g * xn).mean(0))
        self.same(dx, want.tolist())
        y = (x - x.mean(1, keepdim=True)) / (x.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        s = (x.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        q, mean = 2 * (1 - 0.1 * y) * g, lambda v: v.mean(1, keepdim=True)
        self.same(
            step(make("adanorm", 3, C=2).double(), x, g)[1],
            ((q - mean(q) - y * mean(q * y)) / s).tolist(),
        )
        for name, want in (
            ("mean", (g - y * mean(g * y)) / s),
            ("std", (g - mean(g)) / s),
            ("both", g / s),
        ):
            self.same(step(make("detach-" + name, 3).double(), x, g)[1], want.tolist(), name)


@wants("torch")
class Modules(unittest.TestCase):
    def test_derivatives(self):
        x = next(batches(1, 5, 3))[0].requires_grad_()
        mask = torch.tensor([True, False, True, True, True])
        for name in EXACT:
            norm = gained(make(name, 3))
            for m in (None, mask):

                def forward(value, *parameters):
                    sn.penalty(norm)
                    one = copy.deepcopy(norm)
                    return torch.func.functional_call(
                        one, dict(zip(dict(norm.named_parameters()), parameters)), (value, m)
                    )

                with self.subTest(norm=name, mask=m is not None):
                    self.assertTrue(torch.autograd.gradcheck(forward, (x, *norm.parameters())))
                    if m is None:
                        self.assertTrue(
                            torch.autograd.gradgradcheck(
                                forward, (x, *norm.parameters()), atol=1e-4
                            )
                        )

    def test_no_second_derivative(self):
        for name in ("pn", "pn-released", "mabn", "un"):
            x = next(batches(1))[0].requires_grad_()
            (dx,) = torch.autograd.grad(make(name).double()(x).pow(3).sum(), x, create_graph=True)
            with self.assertRaisesRegex(RuntimeError, "once_differentiable|twice"):
                dx.sum().backward()

    def test_layouts_and_masks(self):
        """The same rows in every layout; rows of padding have no influence."""
        x = torch.randn(2, 6, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        g, mask = x.flip(0) + 0.1, x[:, 0] > -0.5
        for name in sn.METHODS:
            first, last, rows, loud = (
                gained(make(name, channels_last=o)) for o in (False, True, False, False)
            )
            with self.subTest(norm=name):
                for _ in range(5):
                    y, dx = step(first, x, g, mask)
                    y2, dx2 = step(last, x.movedim(1, -1), g.movedim(1, -1), mask)
                    flat = lambda v: v.movedim(1, -1).flatten(0, -2)
                    y3, dx3 = step(rows, flat(x), flat(g), mask.flatten())
                    for a, b in (
                        (y, y2.movedim(-1, 1)),
                        (dx, dx2.movedim(-1, 1)),
                        (flat(y), y3),
                        (flat(dx), dx3),
                    ):
                        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
                    if first.padded:
                        continue
                    noise = torch.where(mask.unsqueeze(1), x, math.nan)
                    y4, dx4 = step(loud, noise, torch.where(mask.unsqueeze(1), g, 1e30), mask)
                    torch.testing.assert_close(y, y4), torch.testing.assert_close(dx, dx4)
                    self.assertFalse((y * ~mask.unsqueeze(1)).any())
                if not first.padded:
                    gathered, kept = gained(make(name)), mask.flatten()
                    for _ in range(5):
                        y5, dx5 = step(gathered, flat(x)[kept], flat(g)[kept])
                    torch.testing.assert_close(flat(y)[kept], y5, rtol=1e-12, atol=1e-12)
                    torch.testing.assert_close(flat(dx)[kept], dx5, rtol=1e-12, atol=1e-12)

    def test_no_valid_row(self):
        x = torch.randn(4, 6, dtype=torch.float64)
        for name, (cls, _) in sn.METHODS.items():
            norm = gained(make(name))
            for a, g in batches(4):
                step(norm, a, g)
            before = copy.deepcopy(norm.state_dict())
            for y, dx in (
                step(norm, x, x, torch.zeros(4, dtype=torch.bool)),
                step(norm, x[:0], x[:0]),
            ):
                self.assertTrue(y.isfinite().all() and dx.isfinite().all(), name)
            torch.testing.assert_close(norm.state_dict(), before, rtol=0, atol=0, msg=name)
            if issubclass(cls, sn.RunningNorm):
                norm.check = True
                with self.assertRaisesRegex(ValueError, "no valid row"):
                    norm(x[:0])

    def test_errors_come_first(self):
        norm = sn.PowerNorm(6)
        before = copy.deepcopy(norm.state_dict())
        for error, text, arguments in (
            (ValueError, "channels_last=True", (torch.zeros(4, 3, 6),)),
            (ValueError, r"\[N, C\]", (torch.zeros(6),)),
            (TypeError, "floating point", (torch.zeros(4, 6, dtype=torch.long),)),
            (
                ValueError,
                r"mask has shape \(3,\)",
                (torch.zeros(4, 6), torch.ones(3, dtype=torch.bool)),
            ),
            (ValueError, "torch.bool", (torch.zeros(4, 6), torch.ones(4))),
        ):
            with self.assertRaisesRegex(error, text):
                norm(*arguments)
        torch.testing.assert_close(norm.state_dict(), before)
        for text, make_it in (
            ("momentum is 1.5", lambda: sn.BatchNorm(3, momentum=1.5)),
            ("7 features cannot", lambda: sn.PowerNorm(7, layer_scale=2)),
            ("r_max", lambda: sn.BatchRenorm(3, r_max=0.5)),
            ("'diff2'|diff2", lambda: sn.RegularizedBatchNormReleased(3, penalty="no")),
            ("no synchronized|unexpected", lambda: sn.make("brn", 3, sync=True)),
            ("no normalization is called 'pm'", lambda: sn.make("pm", 3)),
        ):
            with self.assertRaisesRegex((ValueError, TypeError), text):
                make_it()

    def test_copies(self):
        for name in sn.METHODS:
            norm = gained(make(name))
            for x, g in batches(5):
                step(norm, x, g)
            norm(x)  # with a penalty that nobody has collected
            file = io.BytesIO()
            torch.save(norm.state_dict(), file)
            file.seek(0)
            loaded = make(name).double()
            loaded.load_state_dict(torch.load(file, weights_only=True))
            want = [
                step(n, x, g)
                for n in (copy.deepcopy(norm), pickle.loads(pickle.dumps(norm)), loaded)
            ]
            sn.penalty(norm)
            for got in want:
                torch.testing.assert_close(
                    got, step(copy.deepcopy(norm), x, g), rtol=0, atol=0, msg=name
                )
            self.assertIn("6", repr(norm))

    def test_checkpointing(self):
        """Two regions in one step: output, gradient and running values are those without."""
        for name in sn.METHODS:
            if name.startswith("rbn"):
                continue
            for reentrant in (False, True):
                plain, other = gained(make(name)), gained(make(name))
                with self.subTest(norm=name, reentrant=reentrant):
                    for x, g in batches(5):
                        one, two = (v.clone().requires_grad_() for v in (x, x))
                        (plain(one) * g + plain(one * 1.5) * g).sum().backward()
                        run = lambda v: checkpoint(other, v, use_reentrant=reentrant)
                        (run(two) * g + run(two * 1.5) * g).sum().backward()
                        torch.testing.assert_close(one.grad, two.grad, rtol=1e-12, atol=1e-12)
                    torch.testing.assert_close(
                        plain.state_dict(), other.state_dict(), rtol=1e-12, atol=1e-12
                    )

    def test_compiled(self):
        """One graph; the same numbers and running values as without."""
        for name in ("bn", "rbn", "brn", "pnv", "pn", "pn-released", "mabn", "un", "repbn", "ln"):
            torch._dynamo.reset()
            plain = gained(make(name))
            other = copy.deepcopy(plain)
            compiled = torch.compile(other, backend="aot_eager", fullgraph=True, dynamic=False)
            mask = torch.arange(16) % 3 > 0
            with self.subTest(norm=name):
                for x, g in batches(6):
                    want = step(plain, x, g, mask)
                    got = step(compiled, x, g, mask)
                    sn.penalty(other)
                    torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)
                torch.testing.assert_close(
                    other.state_dict(), plain.state_dict(), rtol=1e-10, atol=1e-10
                )

    def test_lower_precision(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for name in sn.METHODS:
                exact, norm = make(name).double(), make(name)
                for x, g in batches(5, 64, dtype=dtype):
                    want, got = step(exact, x.double(), g.double()), step(norm, x, g)
                    for a, b in zip(got, want):
                        self.assertEqual(a.dtype, dtype)
                        bound = EPSILONS * torch.finfo(dtype).eps * float(b.abs().max())
                        self.assertLessEqual(
                            float((a.double() - b).abs().max()), bound, f"{name} {dtype}"
                        )

    def test_large_mean(self):
        """float32 keeps the deviations from a mean of 1e4."""
        x = torch.randn(256, 6, generator=torch.Generator().manual_seed(2)) + 1e4
        for name in ("bn", "rbn", "ln", "repbn"):
            norm = make(name, **({"eta0": 0, "t0": 0} if name == "repbn" else {}))
            want = copy.deepcopy(norm).double()(x.double())
            self.assertLess(float((norm(x).double() - want).abs().max()), 1e-5, name)

    def test_autocast(self):
        with torch.autocast("cpu", torch.bfloat16):
            for name in sn.METHODS:
                self.assertEqual(
                    make(name)(torch.randn(4, 6, dtype=torch.bfloat16)).dtype, torch.bfloat16
                )

    def test_global_state(self):
        before = torch.get_rng_state(), torch.get_default_dtype()
        for name in sn.METHODS:
            make(name)(torch.ones(4, 6))
        self.assertTrue(torch.equal(before[0], torch.get_rng_state()))
        self.assertEqual(before[1], torch.get_default_dtype())


@wants("torch")
class Models(unittest.TestCase):
    def test_penalty(self):
        model = nn.Sequential(
            sn.RegularizedBatchNorm(6, lambda_mean=2, lambda_std=3, running="before"),
            nn.Linear(6, 6),
            sn.make("rbn", 6, lambda_mean=0, lambda_std=0),
        ).double()
        x = next(batches(1))[0]
        model(x)
        want = 2 * x.mean(0).pow(2).sum() + 3 * (x.std(0, correction=0) - 1).pow(2).sum()
        torch.testing.assert_close(sn.penalty(model), want)
        self.assertEqual(float(sn.penalty(model)), 0)
        model(x)
        with self.assertRaisesRegex(RuntimeError, r"statrec.nn.penalty\(model\)"):
            model(x)
        sn.penalty(model)
        with torch.no_grad():
            model(x), model(x)
        model.eval()
        model(x), model(x)

    def test_convert(self):
        model = nn.Sequential(
            nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.Flatten(1), nn.Linear(96, 5), nn.LayerNorm(5)
        ).double()
        for part in (model[1], model[4]):
            nn.init.uniform_(part.weight), nn.init.uniform_(part.bias)
        x = torch.randn(4, 3, 6, 6, dtype=torch.float64)
        model(x)
        first, weight = copy.deepcopy(model), model[4].weight.clone()
        for text, arguments in (
            ("no normalization's name fits 'no\\*'; there are: 1, 4", ("pn", "no*")),
            ("is called 'xx'", ("xx", "*")),
        ):
            with self.assertRaisesRegex(ValueError, text):
                sn.convert(model, *arguments)
        with self.assertRaisesRegex(TypeError, "windw"):
            sn.convert(model, "un", windw=3)
        self.assertIsInstance(model[1], nn.BatchNorm2d)
        self.assertIs(sn.convert(model, "bn", where="1", unbiased=True), model)
        sn.convert(model, "ln", where="4", eps=1e-5)
        for _ in range(3):
            torch.testing.assert_close(model(x), first(x))
        torch.testing.assert_close(model[1].running_var, first[1].running_var)
        self.assertEqual(int(model[1].num_batches_tracked), 4)
        sn.convert(model, "pn+ls", alpha=0.8)
        self.assertEqual(
            (model[1].layer_scale, model[4].channels_last, model[4].alpha), (1, True, 0.8)
        )
        torch.testing.assert_close(model[4].weight.data, weight)
        model(x).sum().backward()
        shared = nn.BatchNorm1d(3)
        two = sn.convert(nn.ModuleList([shared, shared]).eval(), "pnv")
        self.assertIs(two[0], two[1])
        self.assertFalse(two[0].training)
        self.assertIsInstance(sn.convert(nn.LayerNorm(3), "rmsnorm"), sn.RMSNorm)

    def test_recompute(self):
        model = nn.Sequential(
            sn.BatchNorm(6), nn.Dropout(0.5), sn.PowerNormV(6), sn.BatchRenorm(6)
        ).double()
        data = [(x, g) for x, g in batches(4)]
        model.eval()
        model[2].train()
        sn.recompute(model, data, 3)
        rows = torch.cat([x for x, _ in data[:3]])
        torch.testing.assert_close(model[0].running_mean, rows.mean(0))
        torch.testing.assert_close(model[0].running_var, rows.var(0, correction=0))
        middle = torch.cat(
            [(x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt() for x, _ in data[:3]]
        )
        torch.testing.assert_close(model[2].running_psi2, middle.pow(2).mean(0))
        self.assertEqual([m.training for m in model], [False, False, True, False])
        self.assertEqual(int(model[0].num_batches_tracked), 0)
        for text, arguments in (("no batch", (model, [])), ("no module", (nn.Linear(3, 3), data))):
            with self.assertRaisesRegex(ValueError, text):
                sn.recompute(*arguments)

    def test_centered_weights(self):
        conv = sn.center_weights(nn.Conv2d(3, 4, 3))
        torch.testing.assert_close(conv.weight.sum((1, 2, 3)), torch.zeros(4), atol=1e-6, rtol=0)
        conv(torch.randn(1, 3, 5, 5)).sum().backward()
        original = conv.parametrizations.weight.original
        torch.testing.assert_close(original.grad.sum((1, 2, 3)), torch.zeros(4), atol=1e-4, rtol=0)
        with self.assertRaisesRegex(ValueError, "no weight"):
            sn.center_weights(nn.BatchNorm1d(3))


@wants("torch")
class Elsewhere(InDirectory):
    def test_without_the_library(self):
        done = python(
            "import statrec.nn, sys, torch\n"
            "statrec.nn.PowerNorm(3)(torch.ones(2, 3))\n"
            "print([n for n in sys.modules if n in ('h5py', 'statrec._native')])",
            env={"STATREC_LIBRARY": os.path.join(self.directory, "no.so")},
        )
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "[]"), done.stderr)

    def test_processes(self):
        """DistributedDataParallel over gloo: synchronized statistics are those of all rows."""
        script = """
            import os, torch, torch.distributed as dist
            import statrec.nn as sn
            def same(a, b):
                torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
            def run(rank):
                meet = "file://" + os.path.abspath("meet")
                dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=2)
                x = torch.randn(8, 4, generator=torch.Generator().manual_seed(1)).double()
                for name in ("bn", "pnv", "pn", "rbn", "un", "repbn"):
                    whole, norm = (sn.make(name, 4, **o).double() for o in ({}, {"sync": True}))
                    model = torch.nn.parallel.DistributedDataParallel(norm)
                    mine = x[:5] if rank == 0 else x[5:]
                    for _ in range(2):
                        a, b = x.clone().requires_grad_(), mine.clone().requires_grad_()
                        (whole(a).pow(3).sum() + sn.penalty(whole)).backward()
                        # each process has the whole penalty: its half of the sum of both
                        (model(b).pow(3).sum() + sn.penalty(norm) / 2).backward()
                        part = a.grad[:5] if rank == 0 else a.grad[5:]
                        same(b.grad, part)
                    same(norm.weight.grad * 2, whole.weight.grad)
                    for key, value in whole.named_buffers():
                        same(getattr(norm, key), value)
                dist.destroy_process_group()
            child = os.fork()
            run(1 if child == 0 else 0)
            if child == 0:
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            print("same")
        """
        done = python(script, timeout=120)
        self.assertEqual(done.stdout.strip(), "same", done.stderr[-1500:])


@wants("torch")
class Docs(InDirectory):
    def test_examples_run(self):
        """The examples of the page, one after the other; the table has every method."""
        with open(os.path.join(TOP, "docs", "use-a-norm-in-pytorch.md"), encoding="utf-8") as page:
            text = page.read()
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 4)
        names = {}
        with contextlib.redirect_stdout(io.StringIO()) as said:
            for block in blocks:
                exec(block, names)
        self.assertIn("PowerNorm(8, eps=1e-05, momentum=0.05", said.getvalue())
        self.assertTrue(os.path.exists("norms.h5"))
        for name, (cls, _) in sn.METHODS.items():
            short = f"`-{name[7:]}`" if name in ("detach-std", "detach-both") else f"| `{name}`"
            self.assertIn(short, text)
            self.assertIn(f"`{cls.__name__}`", text)
