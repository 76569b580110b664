"""Modules whose code calls torch's functions for norms and that are no site, found by reading the code.

Their classes do not show it, and listening to their calls would change what torch.compile sees. It reads the methods
of classes outside of torch, attributes of the module itself, and functions that these name, _DEPTH calls deep. A
module that also calls statrec.tap is the host's affair.
"""
from __future__ import annotations

import dis
import functools
import types

import torch

from . import _calls, _probe, _sites
from ._adapters.probed import looks_like_norm

_DEPTH = 2
_BUILT_IN = [getattr(torch, function.__name__, None) for function in _calls.FUNCTIONS]
_PASSED = ("PUSH_NULL", "PRECALL", "CACHE", "EXTENDED_ARG")  # between the names of F.layer_norm


def find(model, sites):
    """[(name, class name, function)]. sites: the recorded parts of the model."""
    recorded = {id(site.module) for site in sites}
    for site in sites:
        if site.norm != "none":  # whatever its parts call
            recorded.update(map(id, site.module.modules()))
    found = []
    for name, module in model.named_modules():
        if id(module) not in recorded and not looks_like_norm(module):
            called = _of_module(module)
            if called and "tap" not in called:
                kind = _probe.class_of(module).__name__
                found.append((_sites.plain_name(name) or kind, kind, min(called)))
    return found


def _of_module(module):
    """Names of the functions for norms that a module's code calls, with "tap" for statrec.tap."""
    found = set(_of_class(_probe.class_of(module)))
    for value in vars(module).values():
        found.update(_of(value, _DEPTH))
    return found


@functools.lru_cache(maxsize=None)
def _of_class(cls):
    found, hidden = set(), set()
    for kind in cls.__mro__:
        if not kind.__module__.startswith("torch.") and kind is not object:
            for name, value in vars(kind).items():
                if name not in hidden:
                    found.update(_of(value, _DEPTH))
                if "super" not in getattr(getattr(value, "__code__", None), "co_names", ()):
                    hidden.add(name)
    return frozenset(found)


def _of(value, depth):
    """The same for a function, or a partial or method of one; depth: calls that are followed."""
    value = value.func if isinstance(value, functools.partial) else getattr(value, "__func__", value)
    if not isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
        return
    if value in _calls.FUNCTIONS:
        yield f"F.{value.__name__}"
    elif value in _BUILT_IN:
        yield f"torch.{value.__name__}"
    elif (value.__module__, value.__name__) == ("statrec", "tap"):
        yield "tap"
    elif depth > 0 and isinstance(value, types.FunctionType) and not (value.__module__ or "").startswith("torch."):
        cells = zip(value.__code__.co_freevars, value.__closure__ or ())
        closed = {name: cell.cell_contents for name, cell in cells if cell != types.CellType()}
        for named in _named(value.__code__, {**closed}, value.__globals__):
            yield from _of(named, depth - 1)


def _named(code, closed, space):
    """Objects that code names: globals, closures, and attributes of modules."""
    here = None
    for one in dis.get_instructions(code):
        if one.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            here = space.get(one.argval)
        elif one.opname in ("LOAD_DEREF", "LOAD_CLOSURE"):
            here = closed.get(one.argval)
        elif one.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(here, types.ModuleType):
            here = vars(here).get(one.argval)
        elif one.opname not in _PASSED:
            here = None
        if here is not None:
            yield here
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _named(inner, closed, space)
