"""Residual networks for small images (He et al., CVPR 2016; docs/models.md 1)."""

import math
from typing import Dict, List, NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from ..nn import MovingAverageBatchNorm, center_weights
from ._options import Options
from ._sites import Sites


class Plan(NamedTuple):
    """Stages of `blocks` blocks; project: shortcuts that change the shape are convolutions."""

    blocks: int
    filters: List[int]
    project: bool


_RESNET18: Dict[str, Plan] = {
    "resnet18": Plan(2, [64, 128, 256, 512], True),
    "mini": Plan(2, [16, 32, 64, 128], True),
}
_DEPTHS = (20, 32, 44, 56, 110)


def resnet20(options: Options) -> "ResidualNet":
    """ResNet20, and its forms of 6 n + 2 layers (option layers): 3 stages, option-A shortcuts."""
    layers = options.chosen("layers", 20)
    if layers not in _DEPTHS:
        raise ValueError(f"layers is {layers}; resnet20 has {', '.join(map(str, _DEPTHS))}")
    return ResidualNet(options, Plan((layers - 2) // 6, [16, 32, 64], False))


def resnet18(options: Options) -> "ResidualNet":
    """ResNet18 for 32 x 32 pixels: 4 stages, option-B shortcuts. Presets: resnet18, mini."""
    return ResidualNet(options, options.preset("resnet18", _RESNET18))


class Block(nn.Module):
    """h = relu(norm1(conv1(x)));  y = relu(norm2(conv2(h)) + shortcut(x))"""

    norm1: nn.Module
    norm2: nn.Module
    shortcut: nn.Module

    def __init__(self, sites: Sites, name: str, inputs: int, outputs: int, plan: Plan, norm: str):
        super().__init__()
        self.more = outputs - inputs
        self.stride = 1 if outputs == inputs else 2
        self.conv1 = nn.Conv2d(inputs, outputs, 3, self.stride, 1, bias=False)
        sites.add(self, "norm1", f"{name}.norm1", outputs, norm)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        sites.add(self, "norm2", f"{name}.norm2", outputs, norm)
        self.projects = plan.project and self.more > 0
        if self.projects:
            self.shortcut_conv = nn.Conv2d(inputs, outputs, 1, self.stride, bias=False)
            sites.add(self, "shortcut", f"{name}.shortcut", outputs, norm)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        return (y + self._around(x)).relu()

    def _around(self, x: Tensor) -> Tensor:
        if self.projects:
            return self.shortcut(self.shortcut_conv(x))
        if self.more == 0:
            return x
        half = self.more // 2  # option A: zeros before and after the old channels
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, half, self.more - half))


class ResidualNet(nn.Module):
    """Stem, stages of blocks, mean over positions, linear. Input [N, channels, H, W], output
    [N, classes]; H and W are multiples of 2^(stages - 1)."""

    stem: nn.Module

    def __init__(self, options: Options, plan: Plan) -> None:
        super().__init__()
        sites, filters, norm = Sites(options, channels_last=False), plan.filters, options["norm"]
        self.part = 2 ** (len(filters) - 1)
        self.stem_conv = nn.Conv2d(options["channels"], filters[0], 3, 1, 1, bias=False)
        sites.add(self, "stem", "stem", filters[0], norm)
        inputs = filters[0]
        for s, outputs in enumerate(filters, 1):
            blocks = []
            for i in range(plan.blocks):
                blocks.append(Block(sites, f"stage{s}.{i}", inputs, outputs, plan, norm))
                inputs = outputs
            self.add_module(f"stage{s}", nn.Sequential(*blocks))
        self.classify = nn.Linear(inputs, options["classes"])
        sites.fill()
        self._initialize(options["init"] == "pytorch")
        self._center()

    def forward(self, images: Tensor) -> Tensor:
        if images.dim() != 4 or images.shape[2] % self.part or images.shape[3] % self.part:
            raise ValueError(
                f"images of shape {tuple(images.shape)}; [N, channels, H, W] is wanted, sides that "
                f"are multiples of {self.part}"
            )
        x = self.stem(self.stem_conv(images)).relu()
        for s in range(self.part.bit_length()):
            x = getattr(self, f"stage{s + 1}")(x)
        return self.classify(x.mean((2, 3)))

    def _initialize(self, pytorch: bool) -> None:
        """N(sqrt(2/fan_in)), or PyTorch's U(1/sqrt(fan_in)); the linear layer always has that, with
        a bias of 0."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                fan_in = module.weight[0].numel()
                bound = 1 / math.sqrt(fan_in)
                if pytorch:
                    nn.init.uniform_(module.weight, -bound, bound)
                else:
                    nn.init.normal_(module.weight, std=math.sqrt(2 / fan_in))
        bound = 1 / math.sqrt(self.classify.in_features)
        nn.init.uniform_(self.classify.weight, -bound, bound)
        nn.init.uniform_(self.classify.bias, -bound if pytorch else 0, bound if pytorch else 0)

    def _center(self) -> None:
        """MABN removes the mean of the weights before it."""
        pairs = [(self.stem_conv, self.stem)]
        for block in self.modules():
            if isinstance(block, Block):
                pairs += [(block.conv1, block.norm1), (block.conv2, block.norm2)]
                pairs += [(block.shortcut_conv, block.shortcut)] if block.projects else []
        for conv, norm in pairs:
            if isinstance(norm, MovingAverageBatchNorm):
                center_weights(conv)
