"""PowerNorm as the paper defines it (Shen et al., ICML 2020, Definition 3; docs/norms.md 11)."""

from typing import Any, Dict, Mapping, Optional

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._quadratic import QuadraticNorm, keep, lambda_of
from ._rows import Rows


class PowerNorm(QuadraticNorm):
    """PowerNorm: the running quadratic mean forwards, a running correction backwards.

        psi = sqrt(running_psi2 + eps)    xhat = x/psi    y = weight xhat + bias
        running_psi2 <- alpha running_psi2 + (1 - alpha) mean[x^2]
        dx = (q - nu xhat)/psi            q = weight dL/dy
        nu <- nu (1 - (1 - alpha_bwd) mean[xhat^2]) + (1 - alpha_bwd) mean[q xhat]

    Both passes use running values from before the call. dx is no derivative: a gradient check does
    not apply, and a second derivative raises an error. nu averages gradients of many batches, so
    all batches need one scale of the loss. Without a layer scale nu grows where a feature's mean
    square jumps by more than 2/(1 - alpha_bwd), and reports of failure are many: layer_scale=1, or
    the number of heads, is the paper's remedy. PowerNormReleased is the published code. Shapes and
    other options: as BatchNorm. Source: docs/norms.md 11.
    """

    method = "pn"
    nu: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        *,
        alpha: Optional[float] = None,
        alpha_bwd: float = 0.9,
        layer_scale: int = 0,
        sync: bool = False,
        process_group: Any = None,
        channels_last: bool = False,
        check: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_features,
            eps,
            momentum,
            affine,
            alpha,
            layer_scale,
            sync,
            process_group,
            channels_last,
            check,
            device,
            dtype,
        )
        if not 0 <= alpha_bwd <= 1:
            raise ValueError(f"{self._name()}: alpha_bwd is {alpha_bwd}, not from 0 to 1")
        self.alpha_bwd = alpha_bwd
        self._start()
        self._running("nu", 0)

    def _initial(self) -> Dict[str, float]:
        return {**super()._initial(), "nu": 0}

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        inverse = self._inverse(before["running_psi2"].to(x.dtype))
        square = rows.mean(x.detach() ** 2)
        z = _Correction.apply(
            x,
            inverse,
            square * inverse * inverse,
            before["nu"].to(x.dtype, copy=True),
            self.nu,
            1 - self.alpha_bwd,
            rows.dims,
            rows.view,
            rows.number,
            rows.some,
            rows.group,
        )
        y = self._affine(z, rows)
        self._move(rows, before, running_psi2=self._averaged(before["running_psi2"], square))
        return y

    def _options(self) -> Dict[str, Any]:
        return {**super()._options(), "alpha_bwd": self.alpha_bwd}


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
        dims: Any,
        view: Any,
        count: Any,
        some: Any,
        group: Any,
    ) -> Tensor:
        z = x * inverse.view(view)
        ctx.save_for_backward(z, inverse, big_gamma, nu)
        ctx.running, ctx.m, ctx.dims, ctx.view = running, m, dims, view
        ctx.count, ctx.some, ctx.group = count, some, group
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, q: Tensor) -> Any:
        z, inverse, big_gamma, nu = ctx.saved_tensors
        mean = lambda_of(q, z, ctx.dims, ctx.count, ctx.group)
        old = ctx.running.to(q.dtype)
        keep(ctx.running, old * (1 - ctx.m * big_gamma) + ctx.m * mean, ctx.some)
        dx = (q - nu.view(ctx.view) * z) * inverse.view(ctx.view)
        return dx, None, None, None, None, None, None, None, None, None, None
