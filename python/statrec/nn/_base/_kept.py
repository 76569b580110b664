"""Results that torch.compile keeps for the backward pass."""

from typing import Callable

from torch import Tensor, compiler
from torch.utils.checkpoint import checkpoint


def kept_between(
    first: Callable[[Tensor], Tensor], second: Callable[[Tensor], Tensor], x: Tensor
) -> Tensor:
    """second(first(x)). Compiled on a CPU, the result of `first` is kept for the backward pass.

    Otherwise the compiler computes it again from x, to save memory. For a tanh that takes longer
    than reading it. What goes from one checkpointed region to another is kept.
    """
    if not (compiler.is_compiling() and x.is_cpu):
        return second(first(x))
    for function in (first, second):
        x = checkpoint(function, x, use_reentrant=False, preserve_rng_state=False)
    return x
