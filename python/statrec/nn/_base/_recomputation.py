"""Calls in regions of torch.utils.checkpoint, which run a second time within the backward pass."""

from collections import deque
from typing import Any, Deque, Dict, List, Mapping, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

KEPT = 64  # calls of a module that may await their second forward pass


class _Call(NamedTuple):
    """A call that may come again: the next node of the graph at that time, whether it had gradients
    (none: a region of reentrant checkpointing, or no region), what was put in (its kind and a few
    numbers of it), and the running values before it."""

    node: int
    grad: bool
    kind: Tuple[Any, ...]
    mark: Tensor
    state: Dict[str, Tensor]


class Calls:
    """The last KEPT calls of a module that may come again."""

    def __init__(self) -> None:
        self._calls: Deque[_Call] = deque(maxlen=KEPT)
        self._dropped = -1  # newest node of the calls that are not kept any more

    def clear(self) -> None:
        """Forgets all calls."""
        self._calls.clear()
        self._dropped = -1

    def note(self, x: Tensor, state: Mapping[str, Tensor]) -> None:
        """Keeps a copy of the running values, if this call may come again: in a region of reentrant
        checkpointing there is no gradient, in one of the other kind saved tensors have hooks."""
        grad = torch.is_grad_enabled()
        if grad and not _saves_elsewhere():
            return
        if len(self._calls) == KEPT:
            self._dropped = max(self._dropped, self._calls[0].node)
        copy = {name: value.clone() for name, value in state.items()}
        self._calls.append(_Call(_next_node(), grad, _kind(x), _mark(x), copy))

    def first_time(self, x: Tensor, name: str) -> Mapping[str, Tensor]:
        """Running values from before the call that comes again now: of those that had this input
        the one in the region whose backward pass asks; without such an input, where kernels do not
        repeat their bits, the call of that region. Raises RuntimeError if it is not kept.
        """
        asking = _asking_node()
        calls = [call for call in self._calls if call.kind == _kind(x)]
        found = _of_region(_same(x, calls), asking)
        if found is None and asking is not None:
            found = _of_region(calls, asking)
        if found is None or self._may_be_another(found, asking):
            raise RuntimeError(
                f"{name}: a forward pass within a backward pass, whose first time is not among the "
                f"last {KEPT} calls"
            )
        return found.state

    def _may_be_another(self, found: _Call, asking: Optional[int]) -> bool:
        """Whether the call in the region may be one that is not kept any more."""
        if asking is None or found.node <= asking:
            return False
        return self._dropped > asking or (
            found.grad and 0 <= self._dropped and self._calls[0].node > asking
        )


def _of_region(calls: List[_Call], asking: Optional[int]) -> Optional[_Call]:
    """The call in the region of the node that asks. Reentrant checkpointing makes its only node
    before the calls; otherwise the calls make theirs, and the last of a region asks first."""
    if asking is None:
        return calls[-1] if calls else None
    reentrant = [call for call in calls if not call.grad and call.node > asking][:1]
    other = [call for call in calls if call.grad and call.node <= asking][-1:]
    later = [call for call in calls if call.grad and call.node > asking][:1]
    found = reentrant + (other or later)
    distances = [abs(call.node - asking) for call in found]
    return found[distances.index(min(distances))] if found else None


def _kind(x: Tensor) -> Tuple[Any, ...]:
    return tuple(x.shape), x.dtype, x.device


def _mark(x: Tensor) -> Tensor:
    """Sum and about 64 values: inputs of different calls differ in them."""
    flat = x.detach().reshape(-1)
    return torch.cat([flat.sum().unsqueeze(0), flat[:: max(flat.numel() // 64, 1)]])


def _same(x: Tensor, calls: List[_Call]) -> List[_Call]:
    """Those with this input; one comparison, since each waits for the device."""
    if not calls:
        return []
    equal = torch.stack([call.mark for call in calls]).eq(_mark(x)).all(1).tolist()
    return [call for call, found in zip(calls, equal) if found]


# -- torch's private functions; without them nothing is checkpointed -----


def within_backward() -> bool:
    """Whether this forward pass runs within a backward pass."""
    task = getattr(torch._C, "_current_graph_task_id", None)
    return task is not None and task() != -1


def _saves_elsewhere() -> bool:
    top = getattr(getattr(torch._C, "_autograd", None), "_top_saved_tensors_default_hooks", None)
    return top is not None and top(True) is not None


def _next_node() -> int:
    """Number of the next node of the graph."""
    number = getattr(torch._C._autograd, "_get_sequence_nr", None)
    return 0 if number is None else number()


def _asking_node() -> Optional[int]:
    """Number of the node whose backward pass runs."""
    node: Any = getattr(torch._C, "_current_autograd_node", lambda: None)()
    return None if node is None else node._sequence_nr()
