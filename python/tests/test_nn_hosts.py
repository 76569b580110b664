"""statrec.nn in the models and tools of torch."""

import copy
import unittest
import warnings

from nn_cases import sn, torch  # first: skipped without torch
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
        """Before 2.5 no hook was looked at: convert takes the choice away."""
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
            for layout in (torch.strided, torch.jagged):
                norm = sn.BatchNorm(6, channels_last=True)
                got = norm(torch.nested.as_nested_tensor(parts, layout=layout)).unbind()
                want = sn.BatchNorm(6)(torch.cat(parts)).split([3, 5])
                torch.testing.assert_close(list(got), list(want))
            for norm, mask in (
                (sn.BatchNorm(6), None),
                (sn.BatchNorm(6, channels_last=True), torch.ones(2, 5, dtype=torch.bool)),
            ):
                with self.assertRaisesRegex(ValueError, "BatchNorm: the input is a nested tensor"):
                    norm(nested, mask)
