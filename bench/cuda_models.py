"""Norms and models of cuda_watch.py. Models of timm, torchvision and transformers are reproduced only in structure."""
import collections

import torch
import torch.nn.functional as F
from torch import nn

import statrec

# -- norms ------------------------------------------------------------------------------------


class LayerNorm2d(nn.LayerNorm):
    """timm's: over the channels of [N, C, H, W]."""

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps).permute(0, 3, 1, 2)


class BatchNormAct2d(nn.BatchNorm2d):
    """timm's: the norm and an activation. inner, act: functions that the reference calls."""

    def inner(self, x):
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, True,
                            self.momentum, self.eps)

    def act(self, x):
        return F.silu(x)

    def forward(self, x):
        return self.act(self.inner(x))


class LlamaRMSNorm(nn.Module):
    """transformers'."""

    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        kind = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * x.to(kind)


class GemmaRMSNorm(nn.Module):
    """transformers': the gain is 1 + weight."""

    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * (1.0 + self.weight.float())).type_as(x)


class T5LayerNorm(LlamaRMSNorm):
    """transformers': casts back to half-precision weights alone."""

    def forward(self, x):
        y = x * torch.rsqrt(x.to(torch.float32).pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * (y.to(self.weight.dtype) if self.weight.dtype != torch.float32 else y)


class FrozenBatchNorm2d(nn.Module):
    """torchvision's: four buffers."""

    def __init__(self, size, eps=1e-5):
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.1), ("running_var", 1.2)):
            self.register_buffer(name, torch.full((size,), value))

    def forward(self, x):
        w, b, m, v = (t.reshape(1, -1, 1, 1) for t in (self.weight, self.bias, self.running_mean,
                                                      self.running_var))
        scale = w * (v + self.eps).rsqrt()
        return x * scale + (b - m * scale)


class FilterResponseNorm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = (nn.Parameter(torch.ones(size)) for _ in range(2))

    def forward(self, x):
        x = x * torch.rsqrt(x.square().mean((2, 3), keepdim=True) + self.eps)
        return x * self.weight.view(1, -1, 1, 1) + self.bias.view(1, -1, 1, 1)


class StrangeNorm(nn.Module):
    """A user's norm; statrec.register describes it."""

    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.zeros(size))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * (1 + self.weight.float())).to(x.dtype)


statrec.register(StrangeNorm, "rmsnorm", gain=lambda module: 1 + module.weight.float())

# first: features are dimension 1. last: has a channels-last layout. norms: dx_norm is compared. mixed:
# also under autocast. cuda: needs a GPU.
Case = collections.namedtuple("Case", "name adapter make shape small first last norms mixed cuda observed",
                              defaults=(False, False, False, True, False, False))
_MAPS, _SMALL = (32, 64, 28, 28), (4, 8, 6, 5)
_ROWS, _FEW = (16, 512, 768), (5, 9, 16)
CASES = [
    Case("BatchNorm1d", "batch", nn.BatchNorm1d, (8192, 256), (64, 8), True),
    Case("BatchNorm1d NCL", "batch", nn.BatchNorm1d, (32, 64, 785), (5, 8, 11), True),
    Case("BatchNorm2d", "batch", nn.BatchNorm2d, _MAPS, _SMALL, True, True),
    Case("BatchNorm3d", "batch", nn.BatchNorm3d, (8, 32, 6, 14, 14), (3, 8, 2, 3, 4), True, True),
    Case("BatchNorm2d plain", "batch", lambda d: nn.BatchNorm2d(d, affine=False), _MAPS, _SMALL, True, True),
    Case("SyncBatchNorm", "batch", nn.SyncBatchNorm, _MAPS, _SMALL, True, True, cuda=True),
    Case("GroupNorm", "sample", lambda d: nn.GroupNorm(4, d), _MAPS, _SMALL, True, True, True),
    Case("GroupNorm rows", "sample", lambda d: nn.GroupNorm(4, d), (8192, 256), (64, 8), True, norms=True),
    Case("InstanceNorm2d", "sample", lambda d: nn.InstanceNorm2d(d, affine=True), _MAPS, _SMALL, True, True,
         True),
    Case("LayerNorm", "row", nn.LayerNorm, _ROWS, _FEW, False, norms=True),
    Case("LayerNorm odd", "row", nn.LayerNorm, (8, 197, 769), (5, 9, 17), False, norms=True),
    Case("LayerNorm wide", "row", nn.LayerNorm, (2, 160, 12288), (2, 9, 300), False, norms=True),
    Case("RMSNorm", "row", nn.RMSNorm, _ROWS, _FEW, False, norms=True),
    Case("FilterResponseNorm", "named", FilterResponseNorm, _MAPS, _SMALL, True, True),
    Case("LayerNorm2d", "probed", LayerNorm2d, _MAPS, _SMALL, True, True),
    Case("BatchNormAct2d", "probed", BatchNormAct2d, _MAPS, _SMALL, True, True),
    Case("LlamaRMSNorm", "probed", LlamaRMSNorm, _ROWS, _FEW, False, norms=True),
    Case("GemmaRMSNorm", "probed", GemmaRMSNorm, _ROWS, _FEW, False, norms=True),
    Case("T5LayerNorm", "probed", T5LayerNorm, _ROWS, _FEW, False, norms=True),
    Case("FrozenBatchNorm2d", "probed", FrozenBatchNorm2d, _MAPS, _SMALL, True, True),
    Case("StrangeNorm", "custom", StrangeNorm, _ROWS, _FEW, False, norms=True),
    Case("Identity", "observe", lambda d: nn.Identity(), _ROWS, _FEW, False, observed=True),
]
# name, dtype, whole, channels last
COMPILED = [("BatchNorm2d", "bf16", False, True), ("LayerNorm", "bf16", False, False),
            ("BatchNorm2d", "fp32", True, False), ("RMSNorm", "fp32", True, False),
            ("GroupNorm", "fp32", True, False), ("LlamaRMSNorm", "bf16", True, False)]


def mixed():
    """A net of many kinds, whose weights are compared."""
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
                         nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(inplace=True),
                         BatchNormAct2d(16), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(256, 64),
                         nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 64), nn.RMSNorm(64), nn.Linear(64, 64),
                         nn.BatchNorm1d(64), nn.Linear(64, 10))


# -- models -----------------------------------------------------------------------------------

def _conv(inputs, outputs, size, stride=1):
    return [nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs)]


class Residual(nn.Module):
    def __init__(self, inputs, width, outputs, stride, deep):
        super().__init__()
        relu = nn.ReLU(inplace=True)
        if deep:
            parts = (_conv(inputs, width, 1) + [relu] + _conv(width, width, 3, stride) + [relu]
                     + _conv(width, outputs, 1))
        else:
            parts = _conv(inputs, width, 3, stride) + [relu] + _conv(width, outputs, 3)
        self.body, self.relu = nn.Sequential(*parts), relu
        same = inputs == outputs and stride == 1
        self.skip = nn.Identity() if same else nn.Sequential(*_conv(inputs, outputs, 1, stride))

    def forward(self, x):
        return self.relu(self.body(x) + self.skip(x))


def resnet(counts, deep, classes=1000):
    parts, inputs = [*_conv(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate(counts):
        width = 64 << stage
        outputs = 4 * width if deep else width
        for number in range(count):
            parts.append(Residual(inputs, width, outputs, 2 if stage and not number else 1, deep))
            inputs = outputs
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Layer(nn.Module):
    """Pre-norm, as in ViT and GPT-2."""

    def __init__(self, norm, d, heads, causal):
        super().__init__()
        self.norm1, self.norm2, self.heads, self.causal = norm(d), norm(d), heads, causal
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        n, length, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.proj(y.transpose(1, 2).reshape(n, length, d))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, d=768, depth=12, heads=12):
        super().__init__()
        self.patch = nn.Conv2d(3, d, 16, 16)
        self.token, self.place = nn.Parameter(torch.zeros(1, 1, d)), nn.Parameter(torch.zeros(1, 197, d))
        self.layers = nn.Sequential(*[Layer(nn.LayerNorm, d, heads, False) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 1000)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.place
        return self.head(self.norm(self.layers(x))[:, 0])


class GPT(nn.Module):
    def __init__(self, norm, d=768, depth=12, heads=12, words=50304, length=1024):
        super().__init__()
        self.words, self.places = nn.Embedding(words, d), nn.Embedding(length, d)
        self.layers = nn.Sequential(*[Layer(norm, d, heads, True) for _ in range(depth)])
        self.norm, self.head = norm(d), nn.Linear(d, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x):
        x = self.words(x) + self.places.weight[:x.shape[1]]
        return self.head(self.norm(self.layers(x)))


def _images(model, batch, size):
    return model, torch.randn(batch, 3, size, size), torch.randint(1000, (batch,))


def _texts(model):
    words = torch.randint(50257, (16, 1025))
    return model, words[:, :-1].contiguous(), words[:, 1:].contiguous()


TRAININGS = {"resnet50": lambda: _images(resnet((3, 4, 6, 3), True), 256, 224),
             "vit": lambda: _images(ViT(), 64, 224),
             "gpt_rms": lambda: _texts(GPT(nn.RMSNorm)),
             "gpt_ln": lambda: _texts(GPT(nn.LayerNorm)),
             "resnet18": lambda: _images(resnet((2, 2, 2, 2), False), 64, 32),
            "tiny": lambda: (mixed(), torch.randn(4, 3, 16, 16), torch.randint(10, (4,)))}
