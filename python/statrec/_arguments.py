"""Values that a Recorder is given, as the library takes them; statrec.Error for those that do not fit."""
from __future__ import annotations

import ctypes
import operator
import os
import sys

from . import _abi
from ._library import Error, encoded
from ._nearest import nearest

_REASON_BYTES = 240  # of SR_REASON_SIZE
_KINDS = dict(_abi.Options._fields_)
# Smallest values; vectors_every is below.
_LOWEST = {"planned_steps": 0, "planned_spectra": 0, "size_limit": 0, "flush_steps": 1, "flush_seconds": 0,
           "threads": 0, "overhead": 0, "pairs": 0}


def integer(value, what, bits=64, signed=True):
    """An int that fits this number of bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise Error(f"{what}: an integer is wanted, got {value!r:.80}") from None
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise Error(f"{what}: {number} is not in {low} to {high}")
    return number


def real(value, what):
    """A float."""
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise Error(f"{what}: a number is wanted, got {value!r:.80}") from None


def choice(value, known, what):
    """The value, if it is known."""
    if value in known:
        return value
    raise Error(f"{what}: {value!r:.80} is none of {', '.join(map(repr, known))}")


def _in_range(name, number):
    """The number of an option; Error for one that is too small."""
    if name == "vectors_every" and number < -1:
        raise Error("vectors_every: a number of steps is wanted, 0 for no vectors, or -1 for as often as "
                    f"size_limit and overhead allow; got {number}")
    if name in _LOWEST and not number >= _LOWEST[name]:
        raise Error(f"{name}: a number from {_LOWEST[name]} is wanted, got {number}")
    return number


def _option(name, value):
    kind = _KINDS[name]
    if kind is ctypes.c_bool:
        return bool(value)
    if kind is ctypes.c_char_p:
        return None if value is None else encoded(value, name)
    if kind is ctypes.c_double:
        return _in_range(name, real(value, name))
    return _in_range(name, integer(value, name, 8 * ctypes.sizeof(kind), kind is not ctypes.c_uint64))


def check_options(given, caller, more=()):
    """TypeError for a name that is none of Recorder's options. more: further names of the caller."""
    for name in given:
        if name not in _KINDS or name == "size":
            near = nearest(name, [*_KINDS, *more])
            raise TypeError(f"{caller}: unknown option '{name}'" + (f"; {near}" if near else ""))


def options_of(given):
    """sr_options: SR_OPTIONS_DEFAULT, then the given options."""
    check_options(given, "Recorder")
    given = {**_abi.OPTIONS_DEFAULT, "program": os.path.basename(sys.argv[0] or "python"), **given}
    return _abi.Options(**{name: _option(name, value) for name, value in given.items()})


def shortened(text):
    """One line that fits the end of a run file."""
    line = " ".join(str(text).replace("\0", " ").split())
    return line.encode("utf-8", "replace")[:_REASON_BYTES].decode("utf-8", "ignore")
