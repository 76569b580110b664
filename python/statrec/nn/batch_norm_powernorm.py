"""The BN that the PowerNorm release compares with, its option "batch" (docs/norms.md 2)."""

from typing import Mapping

import torch
from torch import Tensor

from ._base import Default, Rows, RunningOptions, Unpack, centered
from .batch_norm import BatchNorm


class BatchNormPowerNorm(BatchNorm):
    """The batch normalization of the PowerNorm release, with its treatment of padding.

    A layer scale in one group comes first. Rows of padding are overwritten by the mean of the n
    valid rows, and batch normalization over all N rows follows: the variance is n/N of the true
    one, the running variance has N/(N-1), rows of padding come out as the bias, and gradient there
    reaches the valid rows. Not synchronized. Shapes: as BatchNorm. Source: docs/norms.md 2.
    """

    method = "bn-powernorm"
    padded = True
    synchronizes = False

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = Default(0.05),
        affine: bool = True,
        *,
        layer_scale: int = 1,
        **options: Unpack[RunningOptions],
    ) -> None:
        super().__init__(
            num_features,
            eps,
            momentum,
            affine,
            True,
            unbiased=True,
            layer_scale=layer_scale,
            **options,
        )

    def _filled(self, x: Tensor, rows: Rows) -> Tensor:
        """Rows of padding with the mean of the valid rows."""
        if rows.mask is None:
            return x
        mean, apart, _ = centered(rows.valid(x), rows)
        return torch.where(rows.mask, apart, 0) + rows.wide(mean)

    def _evaluated(self, x: Tensor, rows: Rows) -> Tensor:
        return super()._evaluated(self._filled(x, rows), rows)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        return super()._trained(self._filled(x, rows), rows.all(x), before)
