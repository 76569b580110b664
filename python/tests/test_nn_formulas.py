"""statrec.nn compared with plain formulas, column by column."""

import math
import unittest

from nn_cases import batches, gained, make, step, torch


def scalars(x):
    return [float(value) for value in x]


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
        """r and D of BRN, phi of AdaNorm and the detached values of DetachNorm, as numbers."""
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
