"""Modules that add a penalty to the loss."""

from typing import Any, ClassVar, Dict, Mapping, Optional

import torch
from torch import Tensor, nn

from ._checks import check_module
from ._moments import Moments
from ._norm import Texts
from ._recomputation import within_backward
from ._rows import Rows
from ._running_norm import RunningNorm


class Penalized(RunningNorm):
    """Keeps the penalty of the last call until statrec.nn.penalty(model) collects it."""

    shown: ClassVar[Texts] = {**RunningNorm.shown, "lambda_mean": str, "lambda_std": str}
    lambda_mean: float
    lambda_std: float
    _penalty: Optional[Tensor] = None

    def _weights(self, lambda_mean: float, lambda_std: float) -> None:
        self.lambda_mean = self._number("lambda_mean", lambda_mean, 0)
        self.lambda_std = self._number("lambda_std", lambda_std, 0)
        self._penalty = None

    def _penalty_of(
        self, batch: Moments, before: Mapping[str, Tensor], after: Mapping[str, Tensor]
    ) -> Tensor:
        """By the moments of the batch and the running values before and after the call."""
        raise NotImplementedError

    def _regularize(
        self,
        batch: Moments,
        rows: Rows,
        before: Mapping[str, Tensor],
        after: Mapping[str, Tensor],
    ) -> None:
        if not torch.is_grad_enabled() or (self.lambda_mean == 0 and self.lambda_std == 0):
            return
        again = not torch.compiler.is_compiling() and within_backward()
        if self._penalty is not None and not again:
            raise RuntimeError(
                f"{self._name()}: a second call before statrec.nn.penalty(model), which "
                "belongs to the loss of every step"
            )
        penalty = self._penalty_of(batch, before, after)
        if rows.some is not True:
            penalty = torch.where(torch.as_tensor(rows.some, device=penalty.device), penalty, 0)
        if not again:  # the second run of a checkpointed region only repeats the arithmetic
            self._penalty = penalty

    def __getstate__(self) -> Dict[str, Any]:
        return {**super().__getstate__(), "_penalty": None}


def penalty(model: nn.Module) -> Tensor:
    """The penalties of the last call of each RegularizedBatchNorm of the model, added; 0 without.

        loss = criterion(model(x), target) + statrec.nn.penalty(model)

    Call it once a forward pass: it forgets its result. With DistributedDataParallel and sync=True
    every process has the whole penalty, which its average of gradients leaves as it is.
    """
    check_module("penalty", model)
    total: Optional[Tensor] = None
    for module in model.modules():
        if isinstance(module, Penalized) and module._penalty is not None:
            total = module._penalty if total is None else total + module._penalty
            module._penalty = None
    if total is not None:
        return total
    first = next(model.parameters(), None)
    return torch.zeros((), device=None if first is None else first.device)
