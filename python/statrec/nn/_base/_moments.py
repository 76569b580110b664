"""Moments of rows and of columns."""

from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from ._rows import Rows
from ._sync import all_sum


class Moments(NamedTuple):
    """Mean [features], the input minus it (0 in rows of padding), biased variance [features]."""

    mean: Tensor
    apart: Tensor
    variance: Tensor


def centered(x: Tensor, rows: Rows) -> Moments:
    """The moments of the valid rows.

    A value of each column is subtracted first: float32 keeps the deviations where the mean is
    large.
    """
    if rows.group is None:
        return Moments(*_Centered.apply(x, *rows))
    return _moments(x, rows)


def _moments(x: Tensor, rows: Rows) -> Moments:
    shift = _near_the_mean(x.detach(), rows)
    apart = rows.valid(x - rows.wide(shift))
    if rows.group is None:
        delta = rows.mean(apart)
        mean = shift + delta
    else:  # each process has another shift
        total = apart.sum(rows.dims).double() + shift.double() * rows.own
        exact = all_sum(total, rows.group) / rows.number
        delta, mean = (exact - shift.double()).to(x.dtype), exact.to(x.dtype)
    apart = rows.valid(apart - rows.wide(delta))
    return Moments(mean, apart, rows.mean(apart * apart))


class _Centered(torch.autograd.Function):
    """_moments with a shorter backward pass: the deviations add up to 0, so that the gradient of
    the variance does not pass through the mean, and one reading of the rows gives both sums."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *rows: Any) -> Tuple[Tensor, Tensor, Tensor]:
        ctx.rows = Rows(*rows)
        ctx.set_materialize_grads(False)
        mean, apart, variance = _moments(x, ctx.rows)
        ctx.save_for_backward(apart)
        return mean, apart, variance

    @staticmethod
    def backward(
        ctx: Any, g_mean: Optional[Tensor], g_apart: Optional[Tensor], g_variance: Optional[Tensor]
    ) -> Any:
        rows, (apart,) = ctx.rows, ctx.saved_tensors
        parts = []
        if g_apart is not None:
            parts.append(g_apart - rows.wide(rows.mean(g_apart)))
        if g_mean is not None:
            parts.append(rows.wide(g_mean / rows.number))
        if g_variance is not None:
            parts.append(rows.wide(2 * g_variance / rows.number) * apart)
        dx = rows.valid(sum(parts[1:], parts[0]).expand_as(apart)) if parts else None
        return (dx, *[None] * len(rows))


def _near_the_mean(x: Tensor, rows: Rows) -> Tensor:
    """The first row; with a mask the mean, rounded as it is; 0 without rows [features]."""
    if rows.mask is not None:
        return x.sum(rows.dims) / torch.as_tensor(rows.own).clamp(min=1)
    if x.numel() == 0:
        return x.new_zeros(x.shape[rows.feature])
    for i in reversed(rows.dims):
        x = x.select(i, 0)
    return x


def row_centered(x: Tensor, feature: int) -> Tensor:
    """x minus the mean of its row. A value of the row is subtracted first, as in `centered`."""
    apart = x - x.detach().narrow(feature, 0, 1)
    return apart - apart.mean(feature, keepdim=True)


def layer_scaled(x: Tensor, feature: int, groups: int, eps: float) -> Tensor:
    """Each row, in `groups` groups of features, divided by its root mean square."""
    parts = x.unflatten(feature, (groups, -1))
    square = (parts * parts).mean(feature + 1, keepdim=True)
    return (parts * (square + eps).rsqrt()).flatten(feature, feature + 1)


def root(square: Tensor) -> Tensor:
    """sqrt with derivative 0 at 0."""
    zero = square == 0
    return torch.where(zero, 0, torch.where(zero, 1, square).sqrt())
