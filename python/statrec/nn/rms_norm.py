"""RMSNorm (Zhang and Sennrich, NeurIPS 2019; docs/norms.md 7)."""

from typing import ClassVar

from torch import Tensor

from ._base import Norm, Options, Rows, Texts, Unpack, root


class RMSNorm(Norm):
    """RMSNorm with a bias and a mask: y = weight x/s + bias, s = sqrt(mean[x^2] + eps) of each row.

    placement="outside": s = sqrt(mean[x^2]) + eps, the authors' reference code, with eps 1e-8
    there. No state. Shapes: as LayerNorm. Source: docs/norms.md 7.
    """

    method = "rmsnorm"
    shown: ClassVar[Texts] = {**Norm.shown, "placement": repr}

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        placement: str = "inside",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(num_features, eps, affine, **options)
        self.placement = self._choice("placement", placement, "inside", "outside")

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        square = (x * x).mean(rows.feature, keepdim=True)
        if self.placement == "inside":
            return self._affine(x * (square + self.eps).rsqrt(), rows)
        return self._affine(x / (root(square) + self.eps), rows)
