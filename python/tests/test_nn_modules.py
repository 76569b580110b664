"""The modules of statrec.nn: derivatives, layouts and masks, errors, copies, types of lower
precision."""

import copy
import inspect
import io
import math
import os
import pickle
import re
import shutil
import unittest

import statrec
from nn_cases import EPSILONS, EXACT, batches, gained, make, sn, step, torch


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
        """Also if the loss is linear; the first one may have a graph."""
        for name in ("pn", "pn-released", "mabn", "un"):
            for power, affine in ((3, True), (1, True), (1, False)):
                x = next(batches(1))[0].requires_grad_()
                norm = make(name, affine=affine).double()
                loss = norm(x).pow(power).sum()
                (plain,) = torch.autograd.grad(loss, x, retain_graph=True)
                norm = make(name, affine=affine).double()
                (dx,) = torch.autograd.grad(norm(x).pow(power).sum(), x, create_graph=True)
                self.assertTrue(torch.equal(plain, dx))
                with self.assertRaisesRegex(
                    RuntimeError, f"^{type(norm).__name__}: a second derivative is wanted"
                ):
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
            before, none = copy.deepcopy(norm.state_dict()), torch.zeros(4, dtype=torch.bool)
            norm.zero_grad()
            for given in (x, x * math.nan):
                y, dx = step(norm, given, x, none)
                gradients = [one.grad for one in norm.parameters()]
                for zero in (y, dx, norm.eval()(given, none), *gradients):
                    self.assertFalse(zero.any(), name)
                norm.train()
            step(norm, x[:0], x[:0])
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
            (TypeError, "PowerNorm: the input is of type list", ([1.0],)),
            (TypeError, "PowerNorm: the mask is of type list", (torch.zeros(4, 6), [True])),
        ):
            with self.assertRaisesRegex(error, text):
                norm(*arguments)
        torch.testing.assert_close(norm.state_dict(), before)
        for text, make_it in (
            ("momentum is 1.5", lambda: sn.BatchNorm(3, momentum=1.5)),
            ("7 features cannot", lambda: sn.PowerNorm(7, layer_scale=2)),
            ("r_max", lambda: sn.BatchRenorm(3, r_max=0.5)),
            ("'diff2'|diff2", lambda: sn.RegularizedBatchNormReleased(3, penalty="no")),
            ("no synchronized|no option", lambda: sn.make("brn", 3, sync=True)),
            ("no normalization is called 'pm'", lambda: sn.make("pm", 3)),
            ("ln has no layer scale", lambda: sn.make("ln+ls", 3)),
        ):
            with self.assertRaisesRegex((ValueError, TypeError), text):
                make_it()

    def test_options(self):
        """Signatures name every option; a constructor rejects options of other methods."""
        shown = {cls: inspect.signature(cls).parameters for cls, _ in sn.METHODS.values()}
        every = {name for parameters in shown.values() for name in parameters}
        self.assertLessEqual({"alpha_bwd", "placement", "sync", "device", "unbiased"}, every)
        for cls, parameters in shown.items():
            given = {name: one.default for name, one in parameters.items()}
            del given["num_features"]
            self.assertEqual(repr(cls(6, **given)), repr(cls(6)))
            for name in every - set(parameters):
                with self.assertRaises((TypeError, ValueError), msg=f"{cls.__name__} {name}"):
                    cls(6, **{name: True})

    def test_defaults_of_the_program(self):
        """alpha and eps as in `statrec list norms`, except that alpha of bn is torch's."""
        if shutil.which("statrec", path=os.environ.get("STATREC_BIN")) is None:
            self.skipTest("no programs")
        for name, _, text in statrec.table("statrec", "list", "norms")["rows"]:
            given = re.findall(r"(alpha|alpha_bwd|eps)=([\d.e-]+)", text)
            for option, value in given if name in sn.METHODS else ():
                with self.subTest(name=name, option=option):
                    wanted = 0.9 if (name, option) == ("bn", "alpha") else float(value)
                    self.assertAlmostEqual(getattr(sn.make(name, 6), option), wanted, 12)

    def test_options_that_are_wrong(self):
        """One line with the class, the option and its value, for every option of every class."""
        sound = {"num_features": 6}
        for cls in {cls for cls, _ in sn.METHODS.values()}:
            for name, option in inspect.signature(cls).parameters.items():
                values = ["x", "6", None, [1], math.nan, -1, 2.5, math.inf, 10**400, object()]
                if name in ("device", "process_group"):
                    continue
                if name in ("alpha", "dtype"):  # None: not given
                    values.remove(None)
                if name == "dtype":
                    values += [torch.int32, torch.complex64]
                accepted = []
                for value in values:
                    with self.subTest(cls=cls.__name__, option=name, value=repr(value)[:20]):
                        try:
                            cls(**{**sound, name: value})
                            accepted.append(type(value))
                        except (TypeError, ValueError) as error:
                            if "cannot be cut" in str(error):
                                continue
                            text = f"^{cls.__name__}: {name} is [^\n]{{1,160}}$"
                            self.assertRegex(str(error), text)
                self.assertLessEqual(set(accepted), {int, float}, f"{cls.__name__} {name}")
        for text, options in (
            ("num_features is '8', a whole number of at least 1 is", {"num_features": "8"}),
            ("num_features is 8.0, a whole number of at least 1 is", {"num_features": 8.0}),
            ("momentum is 1.5, a number from 0 to 1 is", {"momentum": 1.5}),
            ("sync is 'no', True or False is", {"sync": "no"}),
            ("dtype is torch.int32, a torch.dtype of floating point is", {"dtype": torch.int32}),
        ):
            with self.assertRaisesRegex((TypeError, ValueError), f"^BatchNorm: {text} wanted$"):
                sn.BatchNorm(**{**sound, **options})
        with self.assertRaisesRegex(
            ValueError, "^UnitNorm: s_init is 0, a number above 0 is wanted"
        ):
            sn.UnitNorm(8, s_init=0)

    def test_representation(self):
        """Options that all have, and those that differ from the usual."""
        for norm, text in (
            (sn.BatchNorm(6), "eps=1e-05, momentum=0.1, affine=True, track_running_stats=True"),
            (
                sn.PowerNorm(6, alpha=0.99, layer_scale=2, sync=True, channels_last=True),
                "eps=1e-05, momentum=0.01, affine=True, layer_scale=2, sync=True, alpha_bwd=0.9, "
                "channels_last=True",
            ),
            (
                sn.AdaNorm(6, unbiased=True, placement="outside"),
                "eps=1e-05, unbiased=True, placement='outside', C=1, k=0.1",
            ),
            (
                sn.RegularizedBatchNorm(6),
                "eps=1e-05, momentum=0.05, affine=True, lambda_mean=0.1, lambda_std=0.01, "
                "running=after",
            ),
            (sn.UnitNorm(6), "eps=1e-12, s_init=1, s_scale=0.408248"),
        ):
            self.assertEqual(repr(norm), f"{type(norm).__name__}(6, {text})")

    def test_reset(self):
        for name, (cls, _) in sn.METHODS.items():
            if issubclass(cls, sn.RunningNorm):
                norm = make(name)
                first = copy.deepcopy(norm.state_dict())
                for x, g in batches(3, dtype=torch.float32):
                    step(norm, x, g)
                self.assertEqual(int(norm.num_batches_tracked), 3)
                norm.reset_running_stats()
                torch.testing.assert_close(norm.state_dict(), first, rtol=0, atol=0)

    def test_copies(self):
        for name in sn.METHODS:
            norm = gained(make(name))
            for x, g in batches(5):
                step(norm, x, g)
            norm(x)  # with an uncollected penalty
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
        """float32 keeps the deviations from a mean of 1e4: output, dx, running values."""
        generator = torch.Generator().manual_seed(2)
        x, g = (torch.randn(256, 6, generator=generator) for _ in range(2))
        x, some = x + 1e4, torch.arange(256) % 3 > 0
        for name, options in (
            *((name, {}) for name in ("bn", "rbn", "rbn-released", "brn", "ln", "ln-simple")),
            *((f"detach-{which}", {}) for which in ("mean", "std", "both")),
            ("detach-both", {"unbiased": True, "placement": "outside"}),
            ("adanorm", {}),
            ("repbn", {"eta0": 0, "t0": 0}),
            ("repbn", {"eta0": 0, "t0": 4}),
            ("bn-powernorm", {"layer_scale": 0}),
        ):
            norm = make(name, **options)
            wide = copy.deepcopy(norm).double()
            for mask in (None, some):
                with self.subTest(name=name, mask=mask is not None, **options):
                    got, want = step(norm, x, g, mask), step(wide, x.double(), g.double(), mask)
                    got, want = ((*two, *one.buffers()) for one, two in ((norm, got), (wide, want)))
                    for a, b in zip(got, want):
                        error, largest = float((a - b).abs().max()), float(b.abs().max())
                        self.assertLessEqual(error, 1e-6 * largest)

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
