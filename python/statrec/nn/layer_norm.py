"""Layer normalization (Ba, Kiros and Hinton, 2016; docs/norms.md 3)."""

from typing import Any, ClassVar, Dict, Tuple

import torch
from torch import Tensor

from ._norm import Norm
from ._rows import Rows


class RowNorm(Norm):
    """Base of the methods that subtract the mean of each row and divide by its deviation.

    unbiased=True: the variance over d - 1; placement="outside": s = sqrt(v) + eps. Both are what
    AdaNorm's release has, and RBN's LN has the first.
    """

    detach_mean: ClassVar[bool] = False
    detach_std: ClassVar[bool] = False

    def __init__(
        self,
        num_features: int,
        eps: float,
        affine: bool,
        unbiased: bool,
        placement: str,
        channels_last: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__(num_features, eps, affine, channels_last, device, dtype)
        if placement not in ("inside", "outside"):
            raise ValueError(
                f"{self._name()}: placement is 'inside' or 'outside', got " f"{placement!r:.80}"
            )
        self.unbiased, self.placement = unbiased, placement

    def _deviations(self, x: Tensor, rows: Rows) -> Tuple[Tensor, Tensor]:
        """x minus the mean of its row, and the divisor s."""
        f = rows.feature
        apart = x - x.detach().narrow(f, 0, 1)  # float32 keeps the deviations of a large mean
        apart = apart - apart.mean(f, keepdim=True)
        square = (apart * apart).sum(f, keepdim=True)
        square = square / (self.num_features - (1 if self.unbiased else 0))
        if self.placement == "inside":
            return apart, (square + self.eps).sqrt()
        zero = square == 0  # the root has no derivative there: 0
        return apart, torch.where(zero, 0, torch.where(zero, 1, square).sqrt()) + self.eps

    def _standardized(self, x: Tensor, rows: Rows) -> Tensor:
        apart, s = self._deviations(x, rows)
        if self.detach_mean:
            apart = x + (apart - x).detach()
        return apart / (s.detach() if self.detach_std else s)

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        return self._affine(self._standardized(x, rows), rows)

    def _options(self) -> Dict[str, Any]:
        options: Dict[str, Any] = {"eps": self.eps}
        if self.unbiased:
            options["unbiased"] = True
        if self.placement != "inside":
            options["placement"] = repr(self.placement)
        return options


class LayerNorm(RowNorm):
    """Layer normalization with a mask.

        y = weight (x - mean)/sqrt(v + eps) + bias    mean, v: of each row over its features

    unbiased=True: v over d - 1, as the LN of RBN's release (option layer_1). No state. Input [N,
    C], [N, C, ...], or [..., C] with channels_last=True. Source: docs/norms.md 3.
    """

    method = "ln"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        unbiased: bool = False,
        channels_last: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_features, eps, affine, unbiased, "inside", channels_last, device, dtype
        )
