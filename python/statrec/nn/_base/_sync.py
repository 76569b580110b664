"""Sums over processes, and their gradient."""

from typing import Any, Optional

import torch
from torch import Tensor
from torch import distributed


class _AllSum(torch.autograd.Function):
    """The sum over the processes of a group; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group = group
        return _reduced(x, group)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return all_sum(g, ctx.group), None


def _reduced(x: Tensor, group: Any) -> Tensor:
    total = x.clone().contiguous()
    distributed.all_reduce(total, group=group)
    return total


def all_sum(x: Tensor, group: Any) -> Tensor:
    """The sum of x over the processes of the group."""
    return _AllSum.apply(x, group)


def group_of(sync: bool, process_group: Any) -> Optional[Any]:
    """The group whose rows are one batch; None where this process is alone."""
    if not sync or not (distributed.is_available() and distributed.is_initialized()):
        return None
    group = distributed.group.WORLD if process_group is None else process_group
    return group if distributed.get_world_size(group) > 1 else None
