"""PowerNorm as its authors' code computes it (sIncerass/powernorm; docs/norms.md 12)."""

import math
from typing import Any, ClassVar, Mapping

import torch
from torch import Tensor

from ._base import (
    Default,
    QuadraticNorm,
    Rows,
    RunningOptions,
    Texts,
    Unpack,
    corrected,
    divide,
    keep,
    only_once,
)


class PowerNormReleased(QuadraticNorm):
    """PowerNorm as released: layer scale, warm-up, rows of padding counted backwards.

    u: the layer scale of x in `layer_scale` groups (the release: one a head); v = mean[u^2] over
    the valid rows; c counts training calls from 1; W is `warmup`:

        z = u / sqrt((v if c <= W else running_psi2) + eps)    y = weight z + bias, in all rows
        if c < W: running_psi2 <- running_psi2 (c-1)/c + v/c
        then always: running_psi2 <- alpha running_psi2 + (1 - alpha) v
        p = q - nu z    du = p / sqrt(v + eps)
        nu <- nu + (1 - alpha_bwd) mean over all rows of p z

    nu is 1 - alpha_bwd times the buffer `ema_gz` of the release; running_psi2 is its `running_phi`.
    Rows of padding get an output and a gradient, as there. Not synchronized. Other differences from
    the paper: docs/norms.md 12, the source.
    """

    method = "pn-released"
    padded = True
    synchronizes = False
    shown: ClassVar[Texts] = {**QuadraticNorm.shown, "alpha_bwd": str, "warmup": str}
    nu: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = Default(0.1),
        affine: bool = True,
        *,
        alpha_bwd: float = 0.9,
        warmup: int = 10000,
        layer_scale: int = 1,
        **options: Unpack[RunningOptions],
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, layer_scale=layer_scale, **options)
        self.alpha_bwd = self._number("alpha_bwd", alpha_bwd, 0, 1)
        self.warmup = self._number("warmup", warmup, 0, math.inf)
        self._running("nu", 0)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        v = rows.mean(rows.valid(x.detach()) ** 2)
        calls = before["num_batches_tracked"] + 1
        psi2 = before["running_psi2"].to(x.dtype)
        some = torch.as_tensor(rows.some, device=x.device)
        inverse = self._inverse(torch.where((calls <= self.warmup) & some, v, psi2))
        nu = before["nu"].to(x.dtype, copy=True)
        z = _Correction.apply(
            x, inverse, self._inverse(v), nu, self.nu, 1 - self.alpha_bwd, *rows.all(x)
        )
        y = self._affine(z, rows)
        c = calls.to(x.dtype)
        first = torch.where(calls < self.warmup, psi2 * ((c - 1) / c) + v / c, psi2)
        self._move(rows, before, running_psi2=self._averaged(first, v))
        return y


class _Correction(torch.autograd.Function):
    """z = u/s; du = (q - nu z)/sqrt(v + eps); moves the running nu by the sums of all rows."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        inverse: Tensor,
        back: Tensor,
        nu: Tensor,
        running: Tensor,
        m: float,
        *rows: Any,
    ) -> Tensor:
        ctx.running, ctx.m = running, m
        return divide(ctx, x, inverse, rows, back, nu)

    @staticmethod
    @only_once("PowerNormReleased")
    def backward(ctx: Any, q: Tensor) -> Any:
        z, back, nu = ctx.saved_tensors
        old = ctx.running.to(q.dtype)
        p = q - ctx.rows.wide(old) * z
        keep(ctx.running, old + ctx.m * ctx.rows.mean(p * z), ctx.rows)
        return corrected(ctx, q, z, nu, back)
