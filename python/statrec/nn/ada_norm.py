"""AdaNorm (Xu et al., NeurIPS 2019; docs/norms.md 6)."""

from typing import ClassVar

from torch import Tensor

from ._base import RowNorm, RowOptions, Rows, Texts, Unpack


class AdaNorm(RowNorm):
    """AdaNorm: z = C (1 - k y) y with y of LayerNormSimple; C (1 - k y) is a constant backwards.

    The paper has k = 0.1 and a C of each task: 1 for En-Vi, 2 for WMT En-De, 0.3 for the sentiment
    sets. The release: unbiased=True, placement="outside", C=2. No parameters, no state. Shapes: as
    LayerNorm. Source: docs/norms.md 6.
    """

    method = "adanorm"
    shown: ClassVar[Texts] = {**RowNorm.shown, "C": str, "k": str}

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        *,
        C: float = 1,
        k: float = 0.1,
        **options: Unpack[RowOptions],
    ) -> None:
        super().__init__(num_features, eps, False, **options)
        self.C, self.k = self._number("C", C), self._number("k", k)

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        y = self._standardized(x, rows)
        return self.C * (1 - self.k * y.detach()) * y
