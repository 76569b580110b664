"""Modules that call torch's functions for norms (_calls.py) and are no site: heard in the forward passes before the
first step, and named then. Their classes do not show it, and their code may call anything.

Hooks of all modules whose code is not torch's listen while one of them runs, outside of compiled graphs. The module of
a call is the innermost one whose method is on the stack.
"""
from __future__ import annotations

import sys
import threading
import weakref

import torch

from . import _calls, _probe, _sites, _traced
from ._adapters.probed import looks_like_norm
from ._taps import Hook


class Unseen:
    """found: {name: (class name, function)} of the modules of a model. sites: what is recorded of it."""

    def __init__(self, model, sites):
        self.found, self._here = {}, threading.local()
        self._names = {id(module): _sites.plain_name(name) for name, module in model.named_modules()}
        self._sites = {id(site.module) for site in sites}
        self._norms = {id(site.module) for site in sites if site.norm != "none"}  # whatever runs within them
        self._norms.update(id(module) for module in model.modules() if looks_like_norm(module))
        self._tensors, self._handles = [], []
        for module in model.modules():
            if id(module) not in self._norms and _own_code(module):
                self._handles += (module.register_forward_pre_hook(_Hook(self._enter)),
                                  module.register_forward_hook(_Hook(self._leave), always_call=True))

    def tapped(self, x):
        """A norm of this tensor is recorded by statrec.tap."""
        if self._handles:
            self._tensors.append(weakref.ref(x))

    def end(self):
        """[(name, class name, function)] of what was found; listens no longer."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._tensors = [], []
        return [(name, *what) for name, what in self.found.items()]

    def _enter(self):
        depth = getattr(self._here, "depth", 0)
        self._here.depth = depth + 1
        if depth == 0:
            self._here.mode = _calls.Listening(self._hear)
            self._here.mode.__enter__()

    def _leave(self):
        depth = getattr(self._here, "depth", 0)
        self._here.depth = max(0, depth - 1)
        if depth == 1:
            self._here.mode.__exit__(None, None, None)

    def _hear(self, call):
        if any(here() is call.input for here in self._tensors):
            return
        running = [module for module in _running() if id(module) in self._names]
        if running and not any(id(module) in self._norms for module in running) and id(running[0]) not in self._sites:
            kind = _probe.class_of(running[0]).__name__
            self.found[self._names[id(running[0])] or kind] = kind, call.function


class _Hook(Hook):
    def __init__(self, work):
        self._work = work

    def __call__(self, *_):
        if not torch.compiler.is_compiling() and not _traced.elsewhere():
            self._work()


def _own_code(module):
    return not _probe.class_of(module).__module__.startswith("torch.") or "forward" in module.__dict__


def _running():
    """Modules whose methods are running, the innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if isinstance(first, torch.nn.Module):
            yield first
        frame = frame.f_back
