"""The base of the methods that subtract the mean of each row and divide by its deviation."""

from typing import ClassVar, Tuple

from torch import Tensor

from ._moments import root, row_centered
from ._norm import Norm, Texts
from ._options import Options, Unpack
from ._rows import Rows


class RowNorm(Norm):
    """unbiased=True: the variance over d - 1; placement="outside": s = sqrt(v) + eps. Both are what
    AdaNorm's release has, and RBN's LN has the first."""

    detach_mean: bool = False
    detach_std: bool = False
    shown: ClassVar[Texts] = {"eps": str, "unbiased": str, "placement": repr}

    def __init__(
        self,
        num_features: int,
        eps: float,
        affine: bool,
        *,
        unbiased: bool = False,
        placement: str = "inside",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(num_features, eps, affine, **options)
        self.unbiased = self._flag("unbiased", unbiased)
        self.placement = self._choice("placement", placement, "inside", "outside")

    def _deviations(self, x: Tensor, rows: Rows) -> Tuple[Tensor, Tensor]:
        """x minus the mean of its row, and the divisor s."""
        f = rows.feature
        apart = row_centered(x, f)
        square = (apart * apart).sum(f, keepdim=True)
        square = square / (self.num_features - (1 if self.unbiased else 0))
        if self.placement == "inside":
            return apart, (square + self.eps).sqrt()
        return apart, root(square) + self.eps

    def _standardized(self, x: Tensor, rows: Rows) -> Tensor:
        apart, s = self._deviations(x, rows)
        if self.detach_mean:
            apart = apart.detach() + (x - x.detach())  # x - x is 0, with the gradient of x
        return apart / (s.detach() if self.detach_std else s)

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        return self._affine(self._standardized(x, rows), rows)
