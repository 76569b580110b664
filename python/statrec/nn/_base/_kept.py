"""Backward passes that torch.compile makes shorter on a CPU."""

from typing import Callable

from torch import Tensor, compiler
from torch.utils.checkpoint import checkpoint


def kept_between(
    first: Callable[[Tensor], Tensor], second: Callable[[Tensor], Tensor], x: Tensor
) -> Tensor:
    """second(first(x)). Compiled on a CPU, the result of `first` is kept for the backward pass.

    Otherwise the compiler computes it again from x, to save memory. For a tanh that takes longer
    than reading it. Tensors between two checkpointed regions are kept.
    """
    if not (compiler.is_compiling() and x.is_cpu) or _is_exporting():
        return second(first(x))
    for function in (first, second):
        x = checkpoint(function, x, use_reentrant=False, preserve_rng_state=False)
    return x


def _is_exporting() -> bool:
    """torch.export has no backward pass, and cannot run checkpointed code."""
    asked = getattr(compiler, "is_exporting", None)
    return asked is not None and asked()


def for_each_row(number: Tensor, x: Tensor) -> Tensor:
    """A learned number in x's type; compiled on a CPU, once for each x[i].

    Its gradient is then summed in each row, in the loop that writes the gradient of x, not in a
    separate pass over all of x. This was not measured on a GPU.
    """
    number = number.to(x.dtype)
    if not (compiler.is_compiling() and x.is_cpu):
        return number
    return number.expand(x.shape[0], *[1] * (x.dim() - 1))
