"""Hooks of a site whose functional norms are recorded: they listen to its calls (_calls.py)."""
import torch

from . import _calls, _traced
from ._hooks import Hook

_is_compiling = torch.compiler.is_compiling


class Enter(Hook):
    """Forward pre-hook of a site whose functional norms are recorded."""

    def __init__(self, tap, entered):
        self.tap, self.entered = tap, entered

    def __call__(self, module, args):
        if self.tap.shared.idle or _traced.elsewhere():
            return
        if _is_compiling():
            self.tap.misfit = ("torch.compile hides a norm that its module applies an activation "
                               "to; it is recorded outside of it")
            return
        shared, wanted = self.tap.shared, self.tap.wants(module)
        if not wanted and self.tap.order is None:
            self.tap.frozen(module)
        if wanted and "forward" in module.__dict__:  # a checkpointed one runs again without this hook
            self.tap.misfit, wanted = "its forward has been replaced", False
        if wanted and not shared.phase and self.tap.phase:
            shared.outside = self.tap.site.name
        wanted = wanted and shared.phase == self.tap.phase
        mode = _calls.Listening(lambda call: self.tap.called(module, call)) if wanted else None
        if mode is not None:
            mode.__enter__()
        self.entered.append(mode)


class Leave(Enter):
    """Its forward hook, also called where the forward pass has failed."""

    def __call__(self, module, args, output):
        if self.tap.shared.idle or _is_compiling() or _traced.elsewhere():
            return
        mode = self.entered.pop() if self.entered else None
        if mode is not None:
            mode.__exit__(None, None, None)
