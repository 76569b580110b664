"""Moving average batch normalization as released (Yan et al., ICLR 2020; docs/norms.md 16)."""

import math
from typing import Any, ClassVar, Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ._base import (
    Default,
    QuadraticNorm,
    Rows,
    ScaledOptions,
    Texts,
    Unpack,
    corrected,
    divide,
    keep,
    only_once,
)


class MovingAverageBatchNorm(QuadraticNorm):
    """MABN: statistics of both passes averaged over the last `buffer` calls.

    c counts training calls from 1; "early" is c <= buffer or c < warmup:

        v = mean[x^2] if early, else the mean of the last `buffer` of them    z = x/sqrt(v + eps)
        r = sqrt((v + eps)/(running_psi2 + eps)), a constant: 1 while c <= max(clip_calls, warmup),
            within [1/5, 5] later
        y = weight r z + bias    running_psi2 <- alpha running_psi2 + (1 - alpha) v
        dx = (q - z gz)/sqrt(v + eps)    gz = mean[q z] if early, else the mean of the last `buffer`

    with q = weight r dL/dy. dx is no derivative once averages are used. The method removes the mean
    from the weights before it: statrec.nn.center_weights(conv). window_x2 and window_gz [buffer,
    features] are the last values, call c in slot c mod buffer. Shapes and other options: as
    BatchNorm. Source: docs/norms.md 16.
    """

    method = "mabn"
    synchronizes = False
    shown: ClassVar[Texts] = {
        **QuadraticNorm.shown,
        "buffer": str,
        "warmup": str,
        "clip_calls": str,
    }
    window_x2: Tensor
    window_gz: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = Default(0.02),
        affine: bool = True,
        *,
        buffer: int = 16,
        warmup: int = 100,
        clip_calls: int = 1000,
        **options: Unpack[ScaledOptions],
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, **options)
        self.buffer = self._count("buffer", buffer, 1)
        self.warmup = self._number("warmup", warmup, 0, math.inf)
        self.clip_calls = self._number("clip_calls", clip_calls, 0, math.inf)
        self._running("window_x2", 0, buffer)
        self._running("window_gz", 0, buffer)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        calls = before["num_batches_tracked"] + 1
        early = (calls <= self.buffer) | (calls < self.warmup)
        square = rows.mean(x.detach() ** 2)
        window = put(before["window_x2"], calls, square)
        average = torch.where(early, square, window.to(x.dtype).mean(0))
        inverse = self._inverse(average)
        z = _Average.apply(x, inverse, self.window_gz, calls, early, *rows)
        running = before["running_psi2"].to(x.dtype)
        ratio = ((average + self.eps) / (running + self.eps)).sqrt()
        limit = torch.where(calls <= max(self.clip_calls, self.warmup), 1.0, 5.0).to(x.dtype)
        ratio = torch.minimum(torch.maximum(ratio, 1 / limit), limit)
        y = self._affine(rows.wide(ratio) * z, rows)
        self._move(rows, before, window_x2=window, running_psi2=self._averaged(running, average))
        return y


def put(window: Tensor, calls: Tensor, value: Tensor) -> Tensor:
    """The window [slots, features] with the value in slot calls mod slots."""
    slots = window.shape[0]
    here = torch.arange(slots, device=window.device).unsqueeze(1) == calls % slots
    return torch.where(here, value.detach().to(window.dtype), window)


class _Average(torch.autograd.Function):
    """z = x/s; dx = (q - z gz)/s, with gz of the batch or its average; moves the window of gz."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        inverse: Tensor,
        window: Tensor,
        calls: Tensor,
        early: Tensor,
        *rows: Any,
    ) -> Tensor:
        ctx.window = window
        return divide(ctx, x, inverse, rows, inverse, calls, early)

    @staticmethod
    @only_once("MovingAverageBatchNorm")
    def backward(ctx: Any, q: Tensor) -> Any:
        z, inverse, calls, early = ctx.saved_tensors
        gz = ctx.rows.mean(q * z)
        window = put(ctx.window, calls, gz)
        average = torch.where(early, gz, window.to(q.dtype).mean(0))
        keep(ctx.window, window, ctx.rows)
        return corrected(ctx, q, z, average, inverse)


class _Centered(nn.Module):
    """A weight minus the mean of each output unit."""

    def forward(self, weight: Tensor) -> Tensor:
        """weight: outputs first."""
        return weight - weight.mean(tuple(range(1, weight.dim())), keepdim=True)


def center_weights(module: nn.Module) -> nn.Module:
    """Makes a convolution or linear layer use its weights minus the mean of each output unit, as
    MABN requires for the layer before it; the gradient passes through the subtraction. Returns the
    module."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() < 2:
        raise ValueError(
            f"center_weights: {type(module).__name__} has no weight [outputs, inputs, ...]"
        )
    parametrize.register_parametrization(module, "weight", _Centered())
    return module
