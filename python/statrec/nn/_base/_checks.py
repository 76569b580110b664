"""Checks of options. A message has the module, the option, its value and the accepted values."""

import operator
import sys
from typing import Any

import torch
from torch import nn

FINITE, POSITIVE = sys.float_info.max, sys.float_info.min


def number(name: str, option: str, value: Any, least: float = -FINITE, most: float = FINITE) -> Any:
    """The value, if it is a number of the range; most=math.inf allows infinity."""
    given = value
    if type(value) not in (int, float):
        try:
            given = None if isinstance(value, (str, bool)) else float(value)
        except (TypeError, ValueError, RuntimeError):
            given = None
    if given is None:
        raise TypeError(_message(name, option, value, "a number", least, most))
    if not least <= given <= most:
        raise ValueError(_message(name, option, value, "a number", least, most))
    return given


def count(name: str, option: str, value: Any, least: int) -> int:
    """The value, if it is a whole number of at least `least`."""
    try:
        given = operator.index(value)
    except TypeError:
        raise TypeError(_message(name, option, value, "a whole number", least, FINITE)) from None
    if not least <= given <= sys.maxsize:
        raise ValueError(_message(name, option, value, "a whole number", least, FINITE))
    return given


def flag(name: str, option: str, value: Any) -> bool:
    """The value, if it is True or False."""
    if type(value).__name__ in ("bool", "bool_") or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise TypeError(f"{name}: {option} is {value!r:.80}, True or False is wanted")


def float_type(name: str, value: Any) -> Any:
    """The value, if it is None or a type of floating-point numbers."""
    if value is None or (isinstance(value, torch.dtype) and value.is_floating_point):
        return value
    raise TypeError(f"{name}: dtype is {value!r:.80}, a torch.dtype of floating point is wanted")


def check_module(caller: str, model: Any) -> None:
    """TypeError for a model that is none."""
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"{caller}: the model is of type {type(model).__name__}, not a torch.nn.Module"
        )


def _message(name: str, option: str, value: Any, kind: str, least: float, most: float) -> str:
    limits = f" of at least {least}" if least > -FINITE else ""
    if least == POSITIVE:
        limits = " above 0"
    elif most < FINITE:
        limits = f" from {least} to {most}"
    return f"{name}: {option} is {value!r:.80}, {kind}{limits} is wanted"
