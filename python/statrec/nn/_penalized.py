"""Modules that add a penalty to the loss."""

from typing import Any, Dict, Optional

import torch
from torch import Tensor, nn

from ._norm import RunningNorm, _within_backward
from ._rows import Rows


class Penalized(RunningNorm):
    """Keeps the penalty of the last call until statrec.nn.penalty(model) collects it."""

    lambda_mean: float
    lambda_std: float
    _penalty: Optional[Tensor] = None

    def _weights(self, lambda_mean: float, lambda_std: float) -> None:
        for name, value in (("lambda_mean", lambda_mean), ("lambda_std", lambda_std)):
            if not 0 <= value < float("inf"):
                raise ValueError(
                    f"{self._name()}: {name} is {value}, zero or a positive number is " "wanted"
                )
        self.lambda_mean, self.lambda_std = lambda_mean, lambda_std
        self._penalty = None

    def _asks(self) -> bool:
        """Whether this call has a penalty."""
        if not torch.is_grad_enabled() or (self.lambda_mean == 0 and self.lambda_std == 0):
            return False
        if not torch.compiler.is_compiling() and _within_backward():
            return False
        if self._penalty is not None:
            raise RuntimeError(
                f"{self._name()}: a second call before statrec.nn.penalty(model), which "
                "belongs to the loss of every step"
            )
        return True

    def _add(self, penalty: Tensor, rows: Rows) -> None:
        if rows.some is not True:
            penalty = torch.where(torch.as_tensor(rows.some, device=penalty.device), penalty, 0)
        self._penalty = penalty

    def __getstate__(self) -> Dict[str, Any]:
        return {**super().__getstate__(), "_penalty": None}


def root(variance: Tensor) -> Tensor:
    """sqrt with derivative 0 at 0."""
    zero = variance == 0
    return torch.where(zero, 0, torch.where(zero, 1, variance).sqrt())


def penalty(model: nn.Module) -> Tensor:
    """The penalties of the last call of each RegularizedBatchNorm of the model, added; 0 without.

        loss = criterion(model(x), target) + statrec.nn.penalty(model)

    Call it once a forward pass: it forgets what it returns. With DistributedDataParallel and
    sync=True every process has the whole penalty, which its average of gradients leaves as it is.
    """
    total: Optional[Tensor] = None
    for module in model.modules():
        if isinstance(module, Penalized) and module._penalty is not None:
            total = module._penalty if total is None else total + module._penalty
            module._penalty = None
    if total is not None:
        return total
    first = next(model.parameters(), None)
    return torch.zeros((), device=None if first is None else first.device)
