"""Derf (Chen et al., 2025; docs/norms.md 20)."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from ._base import Norm, Options, Rows, Texts, Unpack, for_each_row, kept_between


class Derf(Norm):
    """Derf: no statistic, y = weight erf(alpha x + s) + bias, with learned numbers alpha and s.

    First alpha0 and s0. No eps, no state. Shapes: as LayerNorm. Source: docs/norms.md 20.
    """

    method = "derf"
    shown: ClassVar[Texts] = {"affine": str}
    alpha: nn.Parameter
    s: nn.Parameter

    def __init__(
        self,
        num_features: int,
        alpha0: float = 0.5,
        s0: float = 0,
        affine: bool = True,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(num_features, 0, affine, **options)
        self._parameter("alpha", self._number("alpha0", alpha0))
        self._parameter("s", self._number("s0", s0))

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        return kept_between(self._curve, lambda z: self._affine(z, rows), x)

    def _curve(self, x: Tensor) -> Tensor:
        return torch.erf(for_each_row(self.alpha, x) * x + for_each_row(self.s, x))
