"""Batch normalization (Ioffe and Szegedy, ICML 2015; docs/norms.md 2)."""

from typing import Any, Dict, Mapping, Optional

import torch
from torch import Tensor

from ._norm import RunningNorm, centered
from ._rows import Rows


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
    running_mean: Optional[Tensor]
    running_var: Optional[Tensor]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        alpha: Optional[float] = None,
        unbiased: bool = False,
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
        self.unbiased, self.track_running_stats = unbiased, track_running_stats
        if track_running_stats:
            self._running("running_mean", 0)
            self._running("running_var", 1)
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)

    def _initial(self) -> Dict[str, float]:
        own = {"running_mean": 0, "running_var": 1} if self.track_running_stats else {}
        return {**super()._initial(), **own}

    def _evaluated(self, x: Tensor, rows: Rows) -> Tensor:
        if self.running_mean is None or self.running_var is None:
            _, apart, variance = centered(x, rows)
        else:
            apart = x - rows.wide(self.running_mean.to(x.dtype))
            variance = self.running_var.to(x.dtype)
        return self._affine(apart * rows.wide((variance + self.eps).rsqrt()), rows)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        mean, apart, variance = centered(x, rows)
        y = self._from_batch(x, apart, variance, rows, before)
        if self.track_running_stats:
            values = {
                "running_mean": self._averaged(before["running_mean"], mean),
                "running_var": self._averaged(
                    before["running_var"], self._population(variance, rows)
                ),
            }
            self._moved(mean, variance, values, rows, before)
        else:
            self._move(rows, before)
        return y

    def _from_batch(
        self, x: Tensor, apart: Tensor, variance: Tensor, rows: Rows, before: Mapping[str, Tensor]
    ) -> Tensor:
        return self._affine(apart * rows.wide((variance + self.eps).rsqrt()), rows)

    def _moved(
        self,
        mean: Tensor,
        variance: Tensor,
        values: Dict[str, Tensor],
        rows: Rows,
        before: Mapping[str, Tensor],
    ) -> None:
        self._move(rows, before, **values)

    def _population(self, variance: Tensor, rows: Rows) -> Tensor:
        if not self.unbiased:
            return variance
        n = torch.as_tensor(rows.number, device=variance.device, dtype=variance.dtype)
        return variance * (n / (n - 1).clamp(min=1)) if n.dim() == 0 else variance

    def _options(self) -> Dict[str, Any]:
        options = {**super()._options(), "track_running_stats": self.track_running_stats}
        return {**options, **({"unbiased": True} if self.unbiased else {})}
