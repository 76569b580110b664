"""statrec.nn in the models and tools of torch."""

import copy
import unittest
import warnings

from nn_cases import batches, make, sn, step, torch  # first: skipped without torch
from torch import nn

PADDING = torch.arange(5) >= torch.tensor([[5], [4], [5], [2]])


def encoder(method=None, nested=True):
    """A small encoder; method: its layers are built with these norms, by hand."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    if method is not None:
        layer.norm1, layer.norm2 = (sn.make(method, 8, channels_last=True) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested)


def trained(model, calls=5):
    for _ in range(calls):
        model(3 * torch.randn(16, 5, 8) + 1)
        sn.penalty(model)
    return model.eval()


class Encoders(unittest.TestCase):
    """torch's encoder layers compute LayerNorm from the weights of their norms, if they may."""

    def test_same_without_gradients(self):
        x = torch.randn(4, 5, 8, generator=torch.Generator().manual_seed(1))
        for method in sn.METHODS:
            for nested in (False, True):
                converted = sn.convert(encoder(nested=nested), method, where="*norm*")
                for how, model in (("convert", converted), ("by hand", encoder(method, nested))):
                    with (
                        self.subTest(norm=method, nested=nested, how=how),
                        warnings.catch_warnings(),
                    ):
                        warnings.simplefilter("ignore")  # nested tensors are a prototype
                        trained(model)
                        want = model(x), model(x, src_key_padding_mask=PADDING)[~PADDING]
                        with torch.no_grad():
                            got = model(x), model(x, src_key_padding_mask=PADDING)[~PADDING]
                        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)

    def test_frozen(self):
        """Parameters without gradients and no no_grad: a method without weights, and a mask."""
        for method in ("ln-simple", "unit"):
            model = trained(sn.convert(encoder(), method)).requires_grad_(False)
            y = model(torch.ones(4, 5, 8), src_key_padding_mask=PADDING)
            self.assertEqual(y.shape, (4, 5, 8))

    def test_older_torch(self):
        """Torch before 2.5 did not check hooks: convert removes the choice."""
        model = sn.convert(encoder(), "bn", where="layers.1.norm2")
        kept = [layer.activation_relu_or_gelu for layer in model.layers]
        self.assertEqual((kept, model.use_nested_tensor), ([1, 0], False))

    def test_recompute(self):
        x = torch.randn(4, 5, 8, generator=torch.Generator().manual_seed(1))
        for model in (sn.convert(encoder(), "bn", momentum=1.0), encoder("bn")):
            for norm in model.modules():
                if isinstance(norm, sn.BatchNorm):
                    norm.momentum = 1.0
            want = copy.deepcopy(model)
            want(x)
            sn.recompute(model, [x])
            for norm, other in zip(model.modules(), want.modules()):
                if isinstance(norm, sn.BatchNorm):
                    torch.testing.assert_close(norm.running_mean, other.running_mean)
                    torch.testing.assert_close(norm.running_var, other.running_var)

    def test_nested(self):
        """Rows of all parts, as of one batch; not with features in dimension 1, nor with a mask."""
        parts = [torch.randn(n, 6, generator=torch.Generator().manual_seed(n)) for n in (3, 5)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nested = torch.nested.as_nested_tensor(parts)
            want = sn.BatchNorm(6)(torch.cat(parts)).split([3, 5])
            for layout in (torch.strided, torch.jagged):
                x = torch.nested.as_nested_tensor(parts, layout=layout)
                y = sn.BatchNorm(6, channels_last=True)(x)
                torch.testing.assert_close(list(y.unbind()), list(want))
                added = list((x + y).unbind())
                torch.testing.assert_close(added, [a + b for a, b in zip(parts, want)])
            turned = torch.nested.as_nested_tensor(parts, layout=torch.jagged).transpose(1, 2)
            with self.assertRaisesRegex(ValueError, r"BatchNorm: .* nested .* \[N, \*, 6\]"):
                sn.BatchNorm(6, channels_last=True)(turned)
            for norm, mask in (
                (sn.BatchNorm(6), None),
                (sn.BatchNorm(6, channels_last=True), torch.ones(2, 5, dtype=torch.bool)),
            ):
                with self.assertRaisesRegex(ValueError, "BatchNorm: the input is a nested tensor"):
                    norm(nested, mask)


class Tools(unittest.TestCase):
    def test_export(self):
        x = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
        for method in ("bn", "pn", "dyt", "derf"):
            norm = sn.make(method, 6).eval()
            for strict in (False, True):
                program = torch.export.export(norm, (x,), strict=strict)
                torch.testing.assert_close(program.module()(x), norm(x))

    def test_one_row_alone(self):
        """[C] with channels_last=True is one row."""
        x = torch.randn(6, generator=torch.Generator().manual_seed(1))
        for method in sn.METHODS:
            for training in (True, False):
                for mask in (None, torch.tensor(True), torch.tensor(False)):
                    alone, batch = (
                        sn.make(method, 6, channels_last=True).train(training) for _ in range(2)
                    )
                    want = batch(x.unsqueeze(0), None if mask is None else mask.unsqueeze(0))
                    torch.testing.assert_close(alone(x, mask), want[0])
                    torch.testing.assert_close(alone.state_dict(), batch.state_dict())

    def test_first_values(self):
        """reset_parameters, which FSDP calls for modules that begin without memory."""
        for method in sn.METHODS:
            want, norm = make(method), make(method)
            for x, g in batches(3, dtype=torch.float32):
                step(norm, x, g)
            with torch.no_grad():
                for parameter in norm.parameters():
                    parameter.add_(1)
            norm.reset_parameters()
            torch.testing.assert_close(norm.state_dict(), want.state_dict(), rtol=0, atol=0)
            empty = make(method, device="meta").to_empty(device="cpu")
            empty.reset_parameters()
            torch.testing.assert_close(empty.state_dict(), want.state_dict(), rtol=0, atol=0)

    def test_evaluation_under_vmap(self):
        x = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(1))
        for method in sn.METHODS:
            norm = sn.make(method, 6).eval()
            got = torch.func.vmap(norm)(x)
            torch.testing.assert_close(got, torch.stack([norm(one) for one in x]))

    def test_traced_as_leaves(self):
        class Tracer(torch.fx.Tracer):
            def is_leaf_module(self, module, name):
                return isinstance(module, sn.Norm) or super().is_leaf_module(module, name)

        model = nn.Sequential(nn.Linear(6, 6), sn.LayerNorm(6))
        traced = torch.fx.GraphModule(model, Tracer().trace(model))
        x = torch.randn(4, 6)
        torch.testing.assert_close(traced(x), model(x))

    def test_fused_with_a_convolution(self):
        """The page names the cases when torch's function is right."""
        x = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))
        for method in ("bn", "rbn"):
            conv, norm = nn.Conv2d(3, 6, 3), sn.make(method, 6)
            norm(conv(x))
            fused = nn.utils.fusion.fuse_conv_bn_eval(conv.eval(), norm.eval())
            torch.testing.assert_close(fused(x), norm(conv(x)), rtol=1e-4, atol=1e-5)
