"""The state of the page, and its form as the query of the address.

A row of FIELDS is a part of the state: its name in the address, its default, and a function that
turns a text into a value or raises ValueError. The address has the fields that are not default.
"""
from __future__ import annotations

import math
from typing import Any, Callable, Mapping, NamedTuple
from urllib.parse import parse_qsl, quote

from .texts import plain

_LONGEST = 8000  # characters of a query


class Field(NamedTuple):
    """name, default, and parse(text) -> value; ValueError where the text is no value of it."""

    name: str
    default: Any
    parse: Callable[[str], Any]
    write: Callable[[Any], str] = str


def _word(*words):
    def parse(text):
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text
    return parse


def _text(text):
    return text


def _texts(text):
    return tuple(part for part in text.split("\t") if part)


def _real(text):
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a finite number")
    return value


def _whole(low, high):
    def parse(text):
        value = int(text)
        if not low <= value <= high:
            raise ValueError(f"{low} to {high}")
        return value
    return parse


def _odd(text):
    value = _whole(0, 999)(text)
    if value and (value < 3 or value % 2 == 0):
        raise ValueError("0, or an odd number from 3 to 999")
    return value


def _joined(values):
    return "\t".join(values)


MODES = ("overlaid", "side by side", "difference")
ORDERS = ("feature", "largest", "outlier")  # of stat-features --order
SHOWS = ("median", "largest", "smallest")

FIELDS = (
    Field("run", "", _text),                     # the run that most panels show
    Field("with", (), _texts, _joined),          # runs beside it
    Field("x", "step", _word("step", "epoch", "percent")),
    Field("from", None, _real, repr),            # ends of the x axes in the unit of x
    Field("to", None, _real, repr),
    Field("smooth", 0, _odd),
    Field("log", (), _texts, _joined),           # panels with the other kind of axis than usual
    Field("metric", "", _text),
    Field("stat", "", _text),                    # of depth against time
    Field("show", "median", _word(*SHOWS)),
    Field("site", "", _text),
    Field("scalar", "", _text),                  # of the site
    Field("vector", "", _text),
    Field("order", "feature", _word(*ORDERS)),
    Field("feature", 0, _whole(0, 1 << 31)),
    Field("at", -1, _whole(-1, 1 << 62)),        # step of the histogram; -1: the last
    Field("compare", "loss", _text),             # of the runs side by side
    Field("mode", "overlaid", _word(*MODES)),
    Field("own", "", _text),
)
_BY_NAME = {field.name: field for field in FIELDS}


class State(dict):
    """Values by the names of FIELDS."""

    def __init__(self, values: Mapping[str, Any] = {}) -> None:
        super().__init__({field.name: field.default for field in FIELDS})
        self.update(values)

    def query(self) -> str:
        """"?run=a.h5&x=epoch", or "" where everything is as at the start."""
        parts = [f"{field.name}={quote(field.write(self[field.name]), safe='/:@')}"
                 for field in FIELDS if self[field.name] != field.default]
        return "?" + "&".join(parts) if parts else ""


def parse(query: str) -> tuple[State, list[str]]:
    """The State of a query, and a line for each part that it could not use."""
    state, wrong = State(), []
    if len(query) > _LONGEST:
        return state, [f"the address is longer than {_LONGEST} characters and is not used"]
    for name, text in parse_qsl(query.lstrip("?"), keep_blank_values=True):
        field = _BY_NAME.get(name)
        if field is None:
            wrong.append(f"the address has an unknown part {plain(name, 40)}")
            continue
        try:
            state[name] = field.parse(text)
        except ValueError as why:
            wrong.append(f"the address has {name}={plain(text, 40)}, which is not used: "
                         f"{plain(why, 80)}")
    low, high = state["from"], state["to"]
    if low is not None and high is not None and not low < high:
        state.update({"from": None, "to": None})
        wrong.append("the address has from and to in the wrong order")
    return state, wrong
