"""Methods that divide by a root mean square and whose backward pass is their own: z = x/s, and
dx = (q - c z)/s' with a coefficient c of each feature that is no derivative."""

from typing import Any, Dict, Mapping, Optional

import torch
from torch import Tensor

from ._norm import RunningNorm
from ._rows import Rows


class QuadraticNorm(RunningNorm):
    """Base of PowerNorm, PowerNormV, MovingAverageBatchNorm and UnifiedNorm: running_psi2."""

    running_psi2: Tensor

    def _start(self) -> None:
        self._running("running_psi2", 1)

    def _initial(self) -> Dict[str, float]:
        return {**super()._initial(), "running_psi2": 1}

    def _inverse(self, square: Tensor) -> Tensor:
        return (square + self.eps).rsqrt()

    def _evaluated(self, x: Tensor, rows: Rows) -> Tensor:
        return self._affine(x * rows.wide(self._inverse(self.running_psi2.to(x.dtype))), rows)


def lambda_of(q: Tensor, z: Tensor, dims: Any, count: Any, group: Any) -> Tensor:
    """mean[q z] over the valid rows of all processes."""
    from ._sync import _reduced

    total = (q * z).sum(dims)
    return (total if group is None else _reduced(total, group)) / count


def keep(buffer: Tensor, new: Tensor, some: Any) -> None:
    """Moves a running value of the backward pass, if there was a valid row."""
    new = new.to(buffer.dtype)
    if some is not True:
        new = torch.where(torch.as_tensor(some, device=buffer.device), new, buffer)
    buffer.copy_(new)
