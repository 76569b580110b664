"""The kind of run of torch's autograd engine: backward(), whose gradients are the loss's, or torch.autograd.grad().

A run that accumulates gradients in leaves is a backward(). torch.autograd.grad() accumulates none: a gradient
penalty, a second derivative, or the gradient of something else than the loss.
"""
import torch

_C, _FUNCTIONS = torch._C, ("_current_graph_task_id", "_current_autograd_node", "_will_engine_execute_node")
_keeps = getattr(_C._autograd, "_get_current_graph_task_keep_graph", None)
_known = _keeps is not None and all(hasattr(_C, name) for name in _FUNCTIONS)

PLAIN = (True, False)  # backward() that frees the graph
NO_TASK = -1  # outside of a run
# The number of the run; None: this torch does not have it.
task = _C._current_graph_task_id if _known else lambda: None


def kind():
    """(whether it is a backward(), whether the graph stays for another run), of the engine's present run."""
    graph = torch.is_grad_enabled()  # create_graph=True
    if not _known:
        return not graph, True
    return _accumulates(_C._current_autograd_node()), graph or _keeps()


def _accumulates(node):
    """Whether the run accumulates the gradient of a leaf below the node."""
    waiting, seen = [node], {node}
    while waiting:
        node = waiting.pop()
        try:
            executed = _C._will_engine_execute_node(node)
        except RuntimeError:  # a leaf whose gradient torch.autograd.grad() returns
            return False
        below = [one for one, _ in node.next_functions if one is not None and one not in seen]
        if executed and not below and hasattr(node, "variable"):
            return True
        if executed:
            seen.update(below)
            waiting.extend(below)
    return False


class Runs:
    """The engine's runs as the sites of a watch meet them."""

    def __init__(self):
        self.task = NO_TASK  # of a run that is known to be PLAIN: asked for first, at each site
        self._other, self._kind = NO_TASK, PLAIN
        self.retained = False  # a graph stayed in this step

    def run(self):
        """kind() of the present run; PLAIN outside of one."""
        here = task()
        if here == self.task or here == NO_TASK:
            return PLAIN
        if here is None or here != self._other:
            self._other, self._kind = here, kind()
            self.retained |= self._kind[1]
            if self._kind == PLAIN:
                self.task = here
        return self._kind
