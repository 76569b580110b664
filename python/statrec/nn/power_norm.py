"""PowerNorm as the paper defines it (Shen et al., ICML 2020, Definition 3; docs/norms.md 11)."""

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


class PowerNorm(QuadraticNorm):
    """PowerNorm: the running quadratic mean forwards, a running correction backwards.

        psi = sqrt(running_psi2 + eps)    xhat = x/psi    y = weight xhat + bias
        running_psi2 <- alpha running_psi2 + (1 - alpha) mean[x^2]
        dx = (q - nu xhat)/psi            q = weight dL/dy
        nu <- nu (1 - (1 - alpha_bwd) mean[xhat^2]) + (1 - alpha_bwd) mean[q xhat]

    Both passes use running values from before the call. dx is no derivative: a gradient check does
    not apply, and a second derivative raises an error. nu averages gradients of many batches, so
    all batches need one scale of the loss. nu grows if a feature's mean square is more than 2/(1 - alpha_bwd) times
    its running one, and reports of failure are many. layer_scale=1, or the number of heads, is the paper's remedy. It
    limits the mean square, not the ratio. PowerNormReleased is the published code. Shapes and other options: as
    BatchNorm. Source: docs/norms.md 11.
    """

    method = "pn"
    shown: ClassVar[Texts] = {**QuadraticNorm.shown, "alpha_bwd": str}
    nu: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = Default(0.1),
        affine: bool = True,
        *,
        alpha_bwd: float = 0.9,
        **options: Unpack[SyncOptions],
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, **options)
        self.alpha_bwd = self._number("alpha_bwd", alpha_bwd, 0, 1)
        self._running("nu", 0)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        inverse = self._inverse(before["running_psi2"].to(x.dtype))
        square = rows.mean(x.detach() ** 2)
        nu = before["nu"].to(x.dtype, copy=True)
        z = _Correction.apply(
            x, inverse, square * inverse * inverse, nu, self.nu, 1 - self.alpha_bwd, *rows
        )
        y = self._affine(z, rows)
        self._move(rows, before, running_psi2=self._averaged(before["running_psi2"], square))
        return y


class _Correction(torch.autograd.Function):
    """xhat = x/psi; dx = (q - nu xhat)/psi; moves the running nu."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        inverse: Tensor,
        big_gamma: Tensor,
        nu: Tensor,
        running: Tensor,
        m: float,
        *rows: Any,
    ) -> Tensor:
        ctx.running, ctx.m = running, m
        return divide(ctx, x, inverse, rows, inverse, big_gamma, nu)

    @staticmethod
    @only_once("PowerNorm")
    def backward(ctx: Any, q: Tensor) -> Any:
        z, inverse, big_gamma, nu = ctx.saved_tensors
        old = ctx.running.to(q.dtype)
        new = old * (1 - ctx.m * big_gamma) + ctx.m * ctx.rows.mean(q * z)
        keep(ctx.running, new, ctx.rows)
        return corrected(ctx, q, z, nu, inverse)
