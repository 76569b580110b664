"""Metrics of evaluations, as callbacks get them."""
from collections.abc import Iterable, Mapping
from typing import Union

# names alone, or {name: (unit, definition, better)}
Metrics = Union[Iterable[str], Mapping[str, tuple[str, str, Union[str, int]]]]


def declare(run, metrics):
    """metrics: {name: (unit, definition, better)} or names alone."""
    known = metrics if isinstance(metrics, dict) else {name: ("", "", 0) for name in metrics}
    for name, (unit, definition, better) in known.items():
        run.metric(name, unit, definition, better)
    return frozenset(known)


def chosen(declared, values):
    """The declared ones among values, as floats."""
    return {name: float(values[name]) for name in values if name in declared}
