"""Regularized BN, and masked BN with zero weights, as RBN's release has them (docs/norms.md 14)."""

from typing import Any, Dict, Mapping, Optional

import torch
from torch import Tensor

from ._norm import centered
from ._penalized import Penalized, root
from ._rows import Rows
from .batch_norm import BatchNorm

_PENALTIES = ("diff", "diff2", "reldiff", "mag")


class RegularizedBatchNormReleased(Penalized, BatchNorm):
    """Regularized batch normalization as released: a clamped variance, padding counted backwards.

        s = sqrt(max(sigma2_B, eps))    y = weight (x - mu_B)/s + bias; x = 0 in rows of padding
        diff     lambda_mean sum (mu - mu_B)^2 + lambda_std sum |sigma2 - sigma2_B|
        diff2    lambda_mean sum (mu - mu_B)^2 + lambda_std sum (sigma - sigma_B)^2
        reldiff  diff2's terms divided by sigma2
        mag      lambda_mean sum mu_B^2 + lambda_std sum sigma2_B

    mu, sigma2: running values after this call's update, constants. Add statrec.nn.penalty(model) to
    the loss summed over tokens, as the release does. Zero weights: the BN of that release. Not
    synchronized. Shapes: as BatchNorm. Source: docs/norms.md 14.
    """

    method = "rbn-released"
    padded = True
    synchronizes = False

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.05,
        affine: bool = True,
        *,
        lambda_mean: float = 0.1,
        lambda_std: float = 0.01,
        penalty: str = "diff",
        alpha: Optional[float] = None,
        layer_scale: int = 0,
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
            alpha=alpha,
            layer_scale=layer_scale,
            channels_last=channels_last,
            check=check,
            device=device,
            dtype=dtype,
        )
        self._weights(lambda_mean, lambda_std)
        if penalty not in _PENALTIES:
            raise ValueError(
                f"{self._name()}: penalty is one of {', '.join(_PENALTIES)}, got "
                f"{penalty!r:.80}"
            )
        self.penalty = penalty

    def _evaluated(self, x: Tensor, rows: Rows) -> Tensor:
        assert self.running_mean is not None and self.running_var is not None
        apart = rows.valid(x) - rows.wide(self.running_mean.to(x.dtype))
        inverse = self.running_var.to(x.dtype).clamp(min=self.eps).rsqrt()
        return self._affine(apart * rows.wide(inverse), rows)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        mean, apart, variance = centered(rows.valid(x), rows)
        inverse = torch.where(variance >= self.eps, variance, self.eps).rsqrt()
        if rows.mask is not None:
            apart = torch.where(rows.mask, apart, -rows.wide(mean))
        y = self._affine(apart * rows.wide(inverse), rows)
        values = {
            "running_mean": self._averaged(before["running_mean"], mean),
            "running_var": self._averaged(before["running_var"], variance),
        }
        if self._asks():
            self._add(
                self._penalty_of(mean, variance, values["running_mean"], values["running_var"]),
                rows,
            )
        self._move(rows, before, **values)
        return y

    def _penalty_of(self, mean: Tensor, variance: Tensor, mu: Tensor, sigma2: Tensor) -> Tensor:
        if self.penalty == "mag":
            return self.lambda_mean * (mean * mean).sum() + self.lambda_std * variance.sum()
        if self.penalty == "diff":
            return (
                self.lambda_mean * ((mean - mu) ** 2).sum()
                + self.lambda_std * (variance - sigma2).abs().sum()
            )
        scale = 1 / sigma2 if self.penalty == "reldiff" else torch.ones_like(sigma2)
        return (
            self.lambda_mean * (scale * (mean - mu) ** 2).sum()
            + self.lambda_std * (scale * (root(variance) - sigma2.sqrt()) ** 2).sum()
        )

    def _options(self) -> Dict[str, Any]:
        options = {
            **super()._options(),
            "lambda_mean": self.lambda_mean,
            "lambda_std": self.lambda_std,
            "penalty": self.penalty,
        }
        del options["track_running_stats"]
        return options
