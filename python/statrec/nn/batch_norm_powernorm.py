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

    def _evaluated(self, x: Tensor, rows: Rows) -> Tensor:
        if rows.mask is not None:
            mean = centered(rows.valid(x), rows).mean
            x = torch.where(rows.mask, x, rows.wide(mean))
        return super()._evaluated(x, rows)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        if rows.mask is None:
            return super()._trained(x, rows, before)
        mean, apart, _ = centered(rows.valid(x), rows)
        # Minus the mean, rows of padding are 0: float32 keeps the deviations of a large mean.
        batch = centered(rows.valid(apart), rows.all(x))._replace(mean=mean)
        return self._by_batch(x, batch, rows.all(x), before)
