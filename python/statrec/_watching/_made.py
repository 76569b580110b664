"""Parameters that a parametrization makes (torch.nn.utils.parametrize), as the forward pass had them.

To read such a parameter runs its parametrization, which may draw random numbers or change buffers.
So it is not read: hooks of the parametrizations keep what the module's own forward pass got.
"""

from torch import nn
from torch.nn.utils import parametrize

from ._hooks import Handle, Hook

UNSEEN = "a parametrization made its gain, which no hook has seen"


class Unseen(Exception):
    """A parameter of a tap that cannot be read."""

    def __init__(self, tap):
        super().__init__(UNSEEN)
        self.tap = tap


class _Keep(Hook):
    """Forward hook of a ParametrizationList. tensor: its last result, or None."""

    tensor = None

    def __call__(self, made, args, output):
        self.tensor = output.detach()


def hooks(module):
    """{(id of a module within, name): _Keep} of its parametrizations, and handles of the hooks."""
    keeps, handles = {}, []
    for part in module.modules():
        for name, made in (
            part.parametrizations.items() if parametrize.is_parametrized(part) else ()
        ):
            keep = keeps[id(part), name] = _Keep()
            handles.append(Handle(made, keep))
    return keeps, handles


class View:
    """A module whose attributes can be read, without a parametrization that runs."""

    def __init__(self, tap, module):
        self._tap, self._module = tap, module

    def __getattr__(self, name):
        keep = self._tap.made.get((id(self._module), name))
        if keep is None and not parametrize.is_parametrized(self._module, name):
            value = getattr(self._module, name)
            return View(self._tap, value) if isinstance(value, nn.Module) else value
        if keep is None or keep.tensor is None:
            raise Unseen(self._tap)
        return keep.tensor
