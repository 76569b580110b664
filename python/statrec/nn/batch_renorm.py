"""Batch renormalization (Ioffe, NeurIPS 2017; docs/norms.md 15)."""

import math
from typing import ClassVar, Mapping

import torch
from torch import Tensor

from ._base import Default, Rows, RunningNorm, ScaledOptions, Texts, Unpack, centered


class BatchRenorm(RunningNorm):
    """Batch normalization corrected towards its running statistics.

        sigma_B = sqrt(sigma2_B + eps)    r = clip(sigma_B/sigma, 1/r_max, r_max)
        D = clip((mu_B - mu)/sigma, -d_max, d_max)    y = weight (r (x - mu_B)/sigma_B + D) + bias

    r and D are constants in the backward pass; mu and sigma are running values from before the
    call. running_std averages the standard deviation sigma_B, eps included. For `warmup` calls
    r_max = 1 and d_max = 0, which is BatchNorm; then they grow linearly to r_max at call r_calls
    and d_max at call d_calls. The defaults suit long trainings: shorten them for short ones.
    Evaluation: weight (x - running_mean)/running_std + bias. Shapes: as BatchNorm. Source:
    docs/norms.md 15.
    """

    method = "brn"
    synchronizes = False
    shown: ClassVar[Texts] = {
        **RunningNorm.shown,
        "r_max": str,
        "d_max": str,
        "warmup": str,
        "r_calls": str,
        "d_calls": str,
    }
    running_mean: Tensor
    running_std: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-3,
        momentum: float = Default(0.01),
        affine: bool = True,
        *,
        r_max: float = 3,
        d_max: float = 5,
        warmup: int = 5000,
        r_calls: int = 40000,
        d_calls: int = 25000,
        **options: Unpack[ScaledOptions],
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, **options)
        self.r_max = self._number("r_max", r_max, 1, math.inf)
        self.d_max = self._number("d_max", d_max, 0, math.inf)
        self.warmup = self._number("warmup", warmup, 0, math.inf)
        self.r_calls = self._number("r_calls", r_calls, 0, math.inf)
        self.d_calls = self._number("d_calls", d_calls, 0, math.inf)
        self._running("running_mean", 0)
        self._running("running_std", 1)

    def _limit(self, calls: Tensor, first: float, last: float, at: int) -> Tensor:
        """From `first` at the end of the warm-up to `last` at call `at`."""
        part = (calls - self.warmup) / max(at - self.warmup, 1)
        value = torch.where(calls >= at, last, first + (last - first) * part)
        return torch.where(calls <= self.warmup, first, value)

    def _evaluated(self, x: Tensor, rows: Rows) -> Tensor:
        apart = x - rows.wide(self.running_mean.to(x.dtype))
        return self._affine(apart / rows.wide(self.running_std.to(x.dtype)), rows)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        mean, apart, variance = centered(x, rows)
        deviation = (variance + self.eps).sqrt()
        mu, sigma = before["running_mean"].to(x.dtype), before["running_std"].to(x.dtype)
        calls = (before["num_batches_tracked"] + 1).to(torch.float64)
        r_max = self._limit(calls, 1, self.r_max, self.r_calls).to(x.dtype)
        d_max = self._limit(calls, 0, self.d_max, self.d_calls).to(x.dtype)
        r = torch.minimum(torch.maximum(deviation.detach() / sigma, 1 / r_max), r_max)
        shift = torch.minimum(torch.maximum((mean.detach() - mu) / sigma, -d_max), d_max)
        y = self._affine(apart * rows.wide(r / deviation) + rows.wide(shift), rows)
        self._move(
            rows,
            before,
            running_mean=self._averaged(mu, mean),
            running_std=self._averaged(sigma, deviation),
        )
        return y
