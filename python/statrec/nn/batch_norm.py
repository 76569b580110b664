"""Batch normalization (Ioffe and Szegedy, ICML 2015; docs/norms.md 2)."""

from typing import ClassVar, Dict, Mapping, Optional

import torch
from torch import Tensor

from ._base import Default, Moments, Rows, RunningNorm, SyncOptions, Texts, Unpack, centered


class BatchNorm(RunningNorm):
    """Batch normalization with masks, alpha or momentum, and a running variance that is biased.

        xhat = (x - mu_B) / sqrt(sigma2_B + eps)    y = weight xhat + bias
        running_mean <- alpha running_mean + (1 - alpha) mu_B    running_var: the same of sigma2_B

    mu_B and sigma2_B (biased) are over the valid rows, per feature. Evaluation takes the running
    values for them. Input [N, C], [N, C, L], [N, C, H, W], or [..., C] with channels_last=True;
    output of its shape and type. unbiased=True averages sigma2_B n/(n-1), as torch's BatchNorm and
    the PowerNorm release do; papers and RBN's release average the biased one. track_running_stats=
    False: no running values, evaluation by the batch. Other options: as in every module with
    running values (docs/use-a-norm-in-pytorch.md). Source: docs/norms.md 2.
    """

    method = "bn"
    shown: ClassVar[Texts] = {**RunningNorm.shown, "track_running_stats": str, "unbiased": str}
    running_mean: Optional[Tensor]
    running_var: Optional[Tensor]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = Default(0.1),
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        unbiased: bool = False,
        **options: Unpack[SyncOptions],
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, **options)
        self.unbiased = self._flag("unbiased", unbiased)
        self.track_running_stats = self._flag("track_running_stats", track_running_stats)
        if self.track_running_stats:
            self._running("running_mean", 0)
            self._running("running_var", 1)
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)

    def _evaluated(self, x: Tensor, rows: Rows) -> Tensor:
        if self.running_mean is None or self.running_var is None:
            _, apart, variance = centered(x, rows)
        else:
            apart = x - rows.wide(self.running_mean.to(x.dtype))
            variance = self.running_var.to(x.dtype)
        return self._affine(apart * rows.wide((variance + self.eps).rsqrt()), rows)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        return self._by_batch(x, centered(x, rows), rows, before)

    def _by_batch(
        self, x: Tensor, batch: Moments, rows: Rows, before: Mapping[str, Tensor]
    ) -> Tensor:
        """y by the moments of the batch; moves the running values."""
        y = self._output(x, batch, rows, before)
        after = self._after(batch, rows, before) if self.track_running_stats else {}
        self._regularize(batch, rows, before, after)
        self._move(rows, before, **after)
        return y

    def _output(
        self, x: Tensor, batch: Moments, rows: Rows, before: Mapping[str, Tensor]
    ) -> Tensor:
        """y by the moments of the batch."""
        return self._affine(batch.apart * rows.wide((batch.variance + self.eps).rsqrt()), rows)

    def _after(self, batch: Moments, rows: Rows, before: Mapping[str, Tensor]) -> Dict[str, Tensor]:
        """Running values after the call."""
        variance = self._population(batch.variance, rows)
        return {
            "running_mean": self._averaged(before["running_mean"], batch.mean),
            "running_var": self._averaged(before["running_var"], variance),
        }

    def _regularize(
        self,
        batch: Moments,
        rows: Rows,
        before: Mapping[str, Tensor],
        after: Mapping[str, Tensor],
    ) -> None:
        """For methods that add a penalty; before, after: running values of this call."""

    def _population(self, variance: Tensor, rows: Rows) -> Tensor:
        if not self.unbiased:
            return variance
        n = torch.as_tensor(rows.number, device=variance.device, dtype=variance.dtype)
        return variance * (n / (n - 1).clamp(min=1)) if n.dim() == 0 else variance
