"""The BN that the PowerNorm release compares with, its option "batch" (docs/norms.md 2)."""

from typing import Any, Mapping, Optional

import torch
from torch import Tensor

from ._norm import centered
from ._rows import Rows
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
        momentum: float = 0.05,
        affine: bool = True,
        *,
        alpha: Optional[float] = None,
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
            alpha=alpha,
            unbiased=True,
            layer_scale=layer_scale,
            channels_last=channels_last,
            check=check,
            device=device,
            dtype=dtype,
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
        number = max(x.numel() // self.num_features, 1)
        return super()._trained(
            self._filled(x, rows), rows._replace(mask=None, number=number), before
        )
