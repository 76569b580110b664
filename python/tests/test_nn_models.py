"""Functions of statrec.nn for whole models: penalty, convert, recompute, centered weights; the
examples of the page."""

import contextlib
import copy
import io
import os
import re
import unittest

from nn_cases import batches, sn, torch
from support import TOP, InDirectory
from torch import nn


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
        with self.assertRaisesRegex(TypeError, "penalty: the model is of type list"):
            sn.penalty([model])

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
            ("no normalization's name fits 'no\\*'; there are: '1', '4'", ("pn", "no*")),
            ("is called 'xx'", ("xx", "*")),
        ):
            with self.assertRaisesRegex(ValueError, text):
                sn.convert(model, *arguments)
        with self.assertRaisesRegex(
            TypeError,
            "convert: un has no option 'windw'; it has eps, momentum, .*window.* mean 'window'",
        ):
            sn.convert(model, "un", windw=3)
        with self.assertRaisesRegex(
            TypeError, "make: pn has no option 'alfa'; .*did you mean 'alpha'"
        ):
            sn.make("pn", 8, alfa=0.9)
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

    def test_classes_that_are_not_converted(self):
        model = nn.ModuleDict(
            {"gn": nn.GroupNorm(2, 4), "bn": nn.BatchNorm1d(4), "fc": nn.Linear(4, 4)}
        )
        with self.assertRaisesRegex(
            ValueError,
            r"not converted: 'gn' \(GroupNorm\); converted are BatchNorm1d.* statrec.nn; there are: 'bn'",
        ):
            sn.convert(model, "pn", where="gn")
        with self.assertRaisesRegex(
            ValueError, "no normalization's name fits 'fc'; there are: 'bn'"
        ):
            sn.convert(model, "pn", where="fc")
        with self.assertRaisesRegex(ValueError, r"'' \(GroupNorm\).*there are: none"):
            sn.convert(nn.GroupNorm(2, 4), "pn")

    def test_two_weights(self):
        """alpha and momentum together; every class that has both."""
        both = [
            row for row in sn.METHODS.values() if "momentum" in row.cls.__signature__.parameters
        ]
        self.assertGreater(len(both), 8)
        for cls, own in both:
            usual = float(cls.__signature__.parameters["momentum"].default)
            for given, named in (
                ((), {"momentum": 0.5}),
                ((1e-5, 0.5), {}),
                ((), {"momentum": usual}),
            ):
                with self.assertRaisesRegex(
                    ValueError, f"{cls.__name__}: alpha and momentum are both given"
                ):
                    cls(8, *given, alpha=0.25, **named, **own)
            self.assertEqual(cls(8, momentum=usual, alpha=1 - usual, **own).momentum, usual)
            self.assertIs(type(copy.deepcopy(cls(8, **own)).momentum), float)
            self.assertEqual(cls(8, alpha=0.75, **own).momentum, 0.25)
        with self.assertRaisesRegex(ValueError, "both given"):
            sn.convert(nn.Sequential(nn.BatchNorm1d(8)), "pn", momentum=0.2, alpha=0.9)

    def test_own_class(self):
        """A class of the user, whose constructor takes other arguments."""

        class Own(sn.PowerNorm):
            def __init__(self, more, **options):
                super().__init__(8, **options)
                self.more = more

        self.assertEqual(
            (Own(1).momentum, Own(1, alpha=0.75).momentum, Own(1).more), (0.1, 0.25, 1)
        )
        self.assertAlmostEqual(Own(1, momentum=0.2, alpha=0.8).momentum, 0.2)
        with self.assertRaisesRegex(ValueError, "Own: alpha and momentum are both given"):
            Own(1, momentum=0.5, alpha=0.75)

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
        for text, arguments in (
            ("no batch", (model, [])),
            ("no module", (nn.Linear(3, 3), data)),
            ("recompute: batches is -1, a whole number of at least 1", (model, data, -1)),
            ("recompute: batches is 2.5, a whole number of at least 1", (model, data, 2.5)),
            ("recompute: the model is of type int", (3, data)),
            ("recompute: the loader is of type int", (model, 3)),
        ):
            with self.assertRaisesRegex((TypeError, ValueError), text):
                sn.recompute(*arguments)

    def test_centered_weights(self):
        conv = sn.center_weights(nn.Conv2d(3, 4, 3))
        torch.testing.assert_close(conv.weight.sum((1, 2, 3)), torch.zeros(4), atol=1e-6, rtol=0)
        conv(torch.randn(1, 3, 5, 5)).sum().backward()
        original = conv.parametrizations.weight.original
        torch.testing.assert_close(original.grad.sum((1, 2, 3)), torch.zeros(4), atol=1e-4, rtol=0)
        with self.assertRaisesRegex(ValueError, "no weight"):
            sn.center_weights(nn.BatchNorm1d(3))


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
