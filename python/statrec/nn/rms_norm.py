"""RMSNorm (Zhang and Sennrich, NeurIPS 2019; docs/norms.md 7)."""

from typing import Any, Dict

import torch
from torch import Tensor

from ._norm import Norm
from ._rows import Rows


class RMSNorm(Norm):
    """RMSNorm with a bias and a mask: y = weight x/s + bias, s = sqrt(mean[x^2] + eps) of each row.

    placement="outside": s = sqrt(mean[x^2]) + eps, the authors' reference code, with eps 1e-8
    there. No state. Shapes: as LayerNorm. Source: docs/norms.md 7.
    """

    method = "rmsnorm"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        placement: str = "inside",
        channels_last: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, affine, channels_last, device, dtype)
        if placement not in ("inside", "outside"):
            raise ValueError(
                f"{self._name()}: placement is 'inside' or 'outside', got " f"{placement!r:.80}"
            )
        self.placement = placement

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        square = (x * x).mean(rows.feature, keepdim=True)
        if self.placement == "inside":
            return self._affine(x * (square + self.eps).rsqrt(), rows)
        zero = square == 0
        root = torch.where(zero, 0, torch.where(zero, 1, square).sqrt())
        return self._affine(x / (root + self.eps), rows)

    def _options(self) -> Dict[str, Any]:
        outside = {"placement": repr(self.placement)} if self.placement != "inside" else {}
        return {**super()._options(), **outside}
