"""PowerNorm as its authors' code computes it (sIncerass/powernorm; docs/norms.md 12)."""

from typing import Any, Dict, Mapping, Optional

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._quadratic import QuadraticNorm, keep
from ._rows import Rows


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
        warmup: int = 10000,
        layer_scale: int = 1,
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
            False,
            None,
            channels_last,
            check,
            device,
            dtype,
        )
        self.alpha_bwd, self.warmup = alpha_bwd, warmup
        self._start()
        self._running("nu", 0)

    def _initial(self) -> Dict[str, float]:
        return {**super()._initial(), "nu": 0}

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        v = rows.mean(rows.valid(x.detach()) ** 2)
        calls = before["num_batches_tracked"] + 1
        psi2 = before["running_psi2"].to(x.dtype)
        some = torch.as_tensor(rows.some, device=x.device)
        inverse = self._inverse(torch.where((calls <= self.warmup) & some, v, psi2))
        z = _Correction.apply(
            x,
            inverse,
            self._inverse(v),
            before["nu"].to(x.dtype, copy=True),
            self.nu,
            1 - self.alpha_bwd,
            rows.dims,
            rows.view,
            rows.some,
        )
        y = self._affine(z, rows)
        c = calls.to(x.dtype)
        first = torch.where(calls < self.warmup, psi2 * ((c - 1) / c) + v / c, psi2)
        self._move(rows, before, running_psi2=self._averaged(first, v))
        return y

    def _options(self) -> Dict[str, Any]:
        return {**super()._options(), "alpha_bwd": self.alpha_bwd, "warmup": self.warmup}


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
        dims: Any,
        view: Any,
        some: Any,
    ) -> Tensor:
        z = x * inverse.view(view)
        ctx.save_for_backward(z, back, nu)
        ctx.running, ctx.m, ctx.dims, ctx.view, ctx.some = running, m, dims, view, some
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, q: Tensor) -> Any:
        z, back, nu = ctx.saved_tensors
        p = q - nu.view(ctx.view) * z
        old, rows = ctx.running.to(q.dtype), max(q.numel() // max(nu.numel(), 1), 1)
        old_p = q - old.view(ctx.view) * z
        keep(ctx.running, old + ctx.m * (old_p * z).sum(ctx.dims) / rows, ctx.some)
        return p * back.view(ctx.view), None, None, None, None, None, None, None, None
