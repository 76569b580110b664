"""Dynamic Tanh (Zhu et al., CVPR 2025; docs/norms.md 19)."""

from typing import ClassVar

from torch import Tensor, nn

from ._base import Norm, Options, Rows, Texts, Unpack, for_each_row, kept_between, tanh


class DynamicTanh(Norm):
    """DyT: no statistic, y = weight tanh(alpha x) + bias, with one learned alpha, first alpha0.

    No eps, no state. Shapes: as LayerNorm. Source: docs/norms.md 19.
    """

    method = "dyt"
    shown: ClassVar[Texts] = {"affine": str}
    alpha: nn.Parameter

    def __init__(
        self,
        num_features: int,
        alpha0: float = 0.5,
        affine: bool = True,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(num_features, 0, affine, **options)
        self._parameter("alpha", self._number("alpha0", alpha0))

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        return kept_between(self._curve, lambda z: self._affine(z, rows), x)

    def _curve(self, x: Tensor) -> Tensor:
        return tanh(for_each_row(self.alpha, x) * x)
