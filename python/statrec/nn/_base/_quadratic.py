"""Methods that divide by a root mean square and have a special backward pass: z = x/s and
dx = (q - c z)/s', with a coefficient c of each feature. dx is no derivative."""

import functools
from typing import Any, Callable, Optional, Tuple

import torch
from torch import Tensor

from ._options import SyncOptions, Unpack
from ._rows import Rows
from ._running_norm import RunningNorm


class QuadraticNorm(RunningNorm):
    """Base of PowerNorm, PowerNormV, MovingAverageBatchNorm and UnifiedNorm: running_psi2."""

    running_psi2: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: Optional[float],
        affine: bool,
        **options: Unpack[SyncOptions],
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, **options)
        self._running("running_psi2", 1)

    def _inverse(self, square: Tensor) -> Tensor:
        return (square + self.eps).rsqrt()

    def _evaluated(self, x: Tensor, rows: Rows) -> Tensor:
        return self._affine(x * rows.wide(self._inverse(self.running_psi2.to(x.dtype))), rows)


# -- parts of their autograd functions; the arguments end with the fields of a Rows


def divide(ctx: Any, x: Tensor, inverse: Tensor, rows: Tuple[Any, ...], *kept: Tensor) -> Tensor:
    """z = x inverse; keeps the rows, z and `kept` for the backward pass."""
    ctx.rows = Rows(*rows)
    z = x * ctx.rows.wide(inverse)
    ctx.save_for_backward(z, *kept)
    return z


def corrected(ctx: Any, q: Tensor, z: Tensor, coefficient: Tensor, inverse: Tensor) -> Any:
    """The gradients of all arguments: dx = (q - coefficient z) inverse, None of the others."""
    dx = (q - ctx.rows.wide(coefficient) * z) * ctx.rows.wide(inverse)
    return (dx, *[None] * (len(ctx.needs_input_grad) - 1))


class _Last(torch.autograd.Function):
    """A gradient that has no derivative."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, name: str) -> Tensor:
        ctx.name = name
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise RuntimeError(
            f"{ctx.name}: a second derivative is wanted; its backward pass is no derivative and "
            "has none"
        )


def only_once(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For the backward pass of a module of this name: RuntimeError where its own derivative is
    asked for."""

    def decorate(backward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(backward)
        def first(ctx: Any, q: Tensor) -> Any:
            with torch.no_grad():
                dx, *others = backward(ctx, q)
            if torch.is_grad_enabled() and not torch.compiler.is_compiling():
                end = dx.detach().requires_grad_()
                dx = _Last.apply(end, name)  # type: ignore[no-untyped-call]
            return (dx, *others)

        return first

    return decorate


def keep(buffer: Tensor, new: Tensor, rows: Rows) -> None:
    """Moves a running value of the backward pass, if there was a valid row."""
    buffer.copy_(rows.kept(new, buffer))
