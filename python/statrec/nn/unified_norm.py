"""Unified Normalization (Yang et al., ACM MM 2022; docs/norms.md 21)."""

import math
from typing import Any, ClassVar, Mapping

import torch
from torch import Tensor

from ._base import (
    Default,
    QuadraticNorm,
    Rows,
    SyncOptions,
    Texts,
    Unpack,
    corrected,
    divide,
    keep,
    only_once,
)
from .moving_average_batch_norm import put


class UnifiedNorm(QuadraticNorm):
    """UN: the geometric mean of the last quadratic means, outliers apart.

    c counts training calls from 1; the batch's own values are used while c <= window or c < warmup:

        v = mean[x^2], or the geometric mean of the last `window` of them
        y = weight x/sqrt(v + eps) + bias    running_psi2 <- alpha running_psi2 + (1 - alpha) v
        gz = mean[q z]    mean_gz <- alpha mean_gz + (1 - alpha)(gz, or the mean of `window`)
        dx = (q - z (gz, or mean_gz))/sqrt(v + eps)

    filter=True: if in a feature arithmetic minus geometric mean of the window exceed `window` times
    the variance of the roots of the previous window, the batch is an outlier. It is normalized by
    its own values, and the windows take running_psi2 and mean_gz in their place. dx is no
    derivative once averages are used. Differences from the release: docs/norms.md 21, the source.
    Shapes and other options: as BatchNorm.
    """

    method = "un"
    shown: ClassVar[Texts] = {**QuadraticNorm.shown, "window": str, "warmup": str, "filter": str}
    window_x2: Tensor
    window_gz: Tensor
    mean_gz: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = Default(0.1),
        affine: bool = True,
        *,
        window: int = 4,
        warmup: int = 4000,
        filter: bool = True,
        **options: Unpack[SyncOptions],
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, **options)
        self.window = self._count("window", window, 2)
        self.warmup = self._number("warmup", warmup, 0, math.inf)
        self.filter = self._flag("filter", filter)
        self._running("window_x2", 0, window)
        self._running("window_gz", 0, window)
        self._running("mean_gz", 0)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        calls = before["num_batches_tracked"] + 1
        late = ~((calls <= self.window) | (calls < self.warmup))
        square = rows.mean(x.detach() ** 2)
        old = before["window_x2"].to(x.dtype)
        window = put(old, calls, square)
        geometric = window.log().mean(0).exp()
        outlier = torch.zeros_like(late)
        if self.filter:
            limit = self.window * old.sqrt().var(correction=0)
            outlier = late & (window.mean(0) - geometric > limit).any()
        smooth = late & ~outlier
        v = torch.where(smooth, geometric, square)
        running = before["running_psi2"].to(x.dtype)
        window = torch.where(outlier, put(old, calls, running), window)
        z = _Average.apply(
            x,
            self._inverse(v),
            self.window_gz,
            self.mean_gz,
            calls,
            smooth,
            outlier,
            self.alpha,
            *rows,
        )
        y = self._affine(z, rows)
        self._move(rows, before, window_x2=window, running_psi2=self._averaged(running, v))
        return y


class _Average(torch.autograd.Function):
    """z = x/s; dx = (q - z psi)/s; moves the window of gz and its running average."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        inverse: Tensor,
        window: Tensor,
        mean_gz: Tensor,
        calls: Tensor,
        smooth: Tensor,
        outlier: Tensor,
        alpha: float,
        *rows: Any,
    ) -> Tensor:
        ctx.window, ctx.mean_gz, ctx.alpha = window, mean_gz, alpha
        return divide(ctx, x, inverse, rows, inverse, calls, smooth, outlier)

    @staticmethod
    @only_once("UnifiedNorm")
    def backward(ctx: Any, q: Tensor) -> Any:
        z, inverse, calls, smooth, outlier = ctx.saved_tensors
        gz, old = ctx.rows.mean(q * z), ctx.mean_gz.to(q.dtype)
        window = put(ctx.window, calls, torch.where(outlier, old, gz))
        now = torch.where(smooth, window.to(q.dtype).mean(0), gz)
        average = ctx.alpha * old + (1 - ctx.alpha) * now
        keep(ctx.window, window, ctx.rows)
        keep(ctx.mean_gz, average, ctx.rows)
        psi = torch.where(smooth, average, gz)
        return corrected(ctx, q, z, psi, inverse)
