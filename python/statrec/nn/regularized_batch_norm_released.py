"""Regularized BN, and masked BN with zero weights, as RBN's release has them (docs/norms.md 14)."""

from typing import ClassVar, Mapping

import torch
from torch import Tensor

from ._base import Default, Moments, Penalized, Rows, ScaledOptions, Texts, Unpack, root
from .batch_norm import BatchNorm


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
    shown: ClassVar[Texts] = {**Penalized.shown, "penalty": str}

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = Default(0.05),
        affine: bool = True,
        *,
        lambda_mean: float = 0.1,
        lambda_std: float = 0.01,
        penalty: str = "diff",
        **options: Unpack[ScaledOptions],
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, True, unbiased=False, **options)
        self._weights(lambda_mean, lambda_std)
        self.penalty = self._choice("penalty", penalty, "diff", "diff2", "reldiff", "mag")

    def _evaluated(self, x: Tensor, rows: Rows) -> Tensor:
        assert self.running_mean is not None and self.running_var is not None
        apart = rows.valid(x) - rows.wide(self.running_mean.to(x.dtype))
        inverse = self.running_var.to(x.dtype).clamp(min=self.eps).rsqrt()
        return self._affine(apart * rows.wide(inverse), rows)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        return super()._trained(rows.valid(x), rows, before)

    def _output(
        self, x: Tensor, batch: Moments, rows: Rows, before: Mapping[str, Tensor]
    ) -> Tensor:
        inverse = torch.where(batch.variance >= self.eps, batch.variance, self.eps).rsqrt()
        apart = batch.apart
        if rows.mask is not None:
            apart = torch.where(rows.mask, apart, -rows.wide(batch.mean))
        return self._affine(apart * rows.wide(inverse), rows)

    def _penalty_of(
        self, batch: Moments, before: Mapping[str, Tensor], after: Mapping[str, Tensor]
    ) -> Tensor:
        mean, _, variance = batch
        mu, sigma2 = after["running_mean"], after["running_var"]
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
