"""Unit norm with a scale, from nGPT (Loshchilov et al., ICLR 2025; docs/norms.md 23)."""

import math
from typing import ClassVar

from torch import Tensor

from ._base import POSITIVE, Norm, Options, Rows, Texts, Unpack


class UnitNorm(Norm):
    """Rows of length 1, times a learned vector.

        y = weight (s_init/s_scale) x/sqrt(sum x^2 + eps)    sum over the features of the row

    weight is first s_scale (0: 1/sqrt(features)), so that the factor is s_init. No bias; y has
    length about s_init, not sqrt(features) as in the other methods. Neither paper nor release has
    an eps, and a row of zeros is NaN there. Shapes: as LayerNorm. Source: docs/norms.md 23.
    """

    method = "unit"
    shown: ClassVar[Texts] = {
        "eps": str,
        "s_init": str,
        "s_scale": lambda value: str(round(value, 6)),
    }

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-12,
        *,
        s_init: float = 1,
        s_scale: float = 0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(num_features, eps, False, **options)
        self.s_init = self._number("s_init", s_init, POSITIVE)
        self.s_scale = self._number("s_scale", s_scale, 0) or 1 / math.sqrt(num_features)
        self._parameter("weight", self.s_scale, num_features)

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        assert self.weight is not None
        z = x * ((x * x).sum(rows.feature, keepdim=True) + self.eps).rsqrt()
        return rows.wide(self.weight.to(x.dtype) * (self.s_init / self.s_scale)) * z
