"""Derf (Chen et al., 2025; docs/norms.md 20)."""

from typing import Any, Dict

import torch
from torch import Tensor, nn

from ._norm import Norm
from ._rows import Rows


class Derf(Norm):
    """Derf: no statistic, y = weight erf(alpha x + s) + bias, with learned numbers alpha and s.

    First alpha0 and s0. No eps, no state. Shapes: as LayerNorm. Source: docs/norms.md 20.
    """

    method = "derf"

    def __init__(
        self,
        num_features: int,
        alpha0: float = 0.5,
        s0: float = 0,
        affine: bool = True,
        *,
        channels_last: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, 0, affine, channels_last, device, dtype)
        self.alpha = nn.Parameter(torch.full((), float(alpha0), device=device, dtype=dtype))
        self.s = nn.Parameter(torch.full((), float(s0), device=device, dtype=dtype))

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        return self._affine(torch.erf(self.alpha.to(x.dtype) * x + self.s.to(x.dtype)), rows)

    def _options(self) -> Dict[str, Any]:
        return {"affine": self.affine}
