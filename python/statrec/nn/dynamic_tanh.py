"""Dynamic Tanh (Zhu et al., CVPR 2025; docs/norms.md 19)."""

from typing import Any, Dict

import torch
from torch import Tensor, nn

from ._norm import Norm
from ._rows import Rows


class DynamicTanh(Norm):
    """DyT: no statistic, y = weight tanh(alpha x) + bias, with one learned alpha, first alpha0.

    No eps, no state. Shapes: as LayerNorm. Source: docs/norms.md 19.
    """

    method = "dyt"

    def __init__(
        self,
        num_features: int,
        alpha0: float = 0.5,
        affine: bool = True,
        *,
        channels_last: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, 0, affine, channels_last, device, dtype)
        self.alpha = nn.Parameter(torch.full((), float(alpha0), device=device, dtype=dtype))

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        return self._affine(torch.tanh(self.alpha.to(x.dtype) * x), rows)

    def _options(self) -> Dict[str, Any]:
        return {"affine": self.affine}
