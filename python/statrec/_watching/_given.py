"""Arguments of step(), evaluate() and the declarations. A wrong argument raises an error with its name before anything
reaches the recorder, which would end with it; recording continues."""
from __future__ import annotations

import math
import sys

import torch
from torch import nn

from .._nearest import nearest

_LARGEST = 2 ** 63  # beyond an integer of the file


def _refused(kind, what, wanted, got):
    raise kind(f"{what}: {wanted} is wanted, got {got}")


def number(value, what, low=-math.inf, whole=False):
    """None, or a number of at least `low`; whole: one that becomes an integer. The value of a tensor is not read: a
    GPU would have to be waited for."""
    if value is None or type(value) is float and low == -math.inf:
        return
    shape = getattr(value, "shape", ())
    if math.prod(shape) != 1:
        _refused(TypeError, what, "a number or a tensor with one element", f"shape {tuple(shape)}")
    if torch.is_tensor(value):
        if value.is_complex():
            _refused(TypeError, what, "a real number", repr(value.dtype))
        return
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        _refused(TypeError, what, "a number or a tensor with one element", f"{value!r:.80}")
    if found < low or whole and not (found < _LARGEST and found == int(found)):
        _refused(ValueError, what, f"{'an integer' if whole else 'a number'} from {low}", f"{found:.12g}")


def text(value, what, size):
    """A text of the file, of at most `size` bytes."""
    if not isinstance(value, str):
        _refused(TypeError, what, "a text", f"{value!r:.80}")
    if len(value.encode("utf-8", "replace")) > size or any(one < " " or one == "\x7f" for one in value):
        _refused(ValueError, what, f"a text of at most {size} bytes without control characters", f"{value!r:.80}")
    return value


def factor(scaler, scale):
    """The two arguments of step() for the scale of the loss."""
    if scaler is not None and not hasattr(scaler, "get_scale"):
        _refused(TypeError, "step: scaler", "a GradScaler", type(scaler).__name__)
    number(1.0 if scale is None else scale, "step: grad_scale")
    if scale is None or not torch.is_tensor(scale) and not 0 < float(scale) < math.inf:
        _refused(ValueError, "step: grad_scale", "the positive factor of the loss", f"{scale!r:.80}")


def step_number(value, last):
    """The argument step=; last: number of the last row, or -1."""
    number(value, "step: step", whole=True)
    if value is not None and int(value) <= last:
        _refused(ValueError, "step: step", f"a number after {last}" if last >= 0 else "a number from 0", int(value))


def unknown(what, by, name, declared, more=()):
    """The text for a name that is none of those declared. by: the method of a run that declares one; more: further names that
    what() takes."""
    near = nearest(name, [*declared, *more])
    return (f"{what} was declared; declared: {', '.join(map(repr, declared)) or f'none; run.{by}() declares one'}"
            + (f"; {near}" if near else ""))


def metrics(values, declared):
    """The arguments of evaluate()."""
    for name, value in values.items():
        if name not in declared:
            raise TypeError(unknown(f"evaluate: no metric {name!r:.80}", "metric", name, declared, ("epoch",)))
        number(value, f"evaluate: {name}")


def declaration(what, name, unit, definition, declared, late):
    """The arguments of a metric's or scalar's declaration. late: whether a step has been recorded."""
    text(unit, f"{what}: unit", 63)
    text(definition, f"{what}: definition", 511)
    if not isinstance(name, str):
        _refused(TypeError, what, "a name", f"{name!r:.80}")
    if not 0 < len(name.encode("utf-8", "replace")) < 64 or "/" in name or name[0] == "." or not name.isprintable():
        raise ValueError(f"{what}: a name has 1 to 63 bytes, no '/' and no control characters, and does not begin "
                         f"with '.'; got {name!r:.80}")
    if name in ("step", "epoch"):
        raise ValueError(f"{what}: {name} is a column of every row already")
    if name in declared:
        raise ValueError(f"{what}: {name} is declared already")
    if late:
        raise ValueError(f"{what}: {name} is declared after the first step; declare it before")


def _count(value, what, wanted, low):
    if not hasattr(value, "__index__") or not low <= value < _LARGEST:
        _refused(ValueError, what, wanted, f"{value!r:.80}")


def fraction(value, what, wanted, high=1):
    """A number from 0 to high."""
    number(value, what)
    if value is None or not 0 <= float(value) <= high:
        _refused(ValueError, what, wanted, f"{value!r:.80}")


def watch(model, repeat, phases, every, activations_every, on_error, forward, start, alpha, eps, findings_every):
    """Arguments of watch() whose ranges no other function checks."""
    if not isinstance(model, nn.Module):
        _refused(TypeError, "watch", "a torch.nn.Module", type(model).__name__)
    if isinstance(phases, str) or not all(isinstance(name, str) and name.isprintable() and name for name in phases):
        _refused(ValueError, "phases", "a list of names without control characters", f"{phases!r:.80}")
    if repeat not in (None, "last", "merge"):
        _refused(ValueError, "repeat", '"last" or "merge"', f"{repeat!r:.80}")
    if on_error not in ("warn", "raise"):
        _refused(ValueError, "on_error", '"warn" or "raise"', f"{on_error!r:.80}")
    _count(every, "every", "a number of steps from 1", 1)
    _count(activations_every, "activations_every", "a number of recorded steps, 0 for none,", 0)
    _count(0 if start is None else start, "start", "a number of steps", 0)
    _count(findings_every, "findings_every", "a number of steps from 1", 1)
    fraction(alpha, "alpha", "the weight of the old running value, from 0 to 1,")
    fraction(eps, "eps", "a finite number from 0", sys.float_info.max)
    if forward and activations_every:
        raise ValueError("activations_every: forward=True records the size of inputs in every recorded step")


def step(loss, lr, tokens, epoch, grad_norm, update):
    """Arguments of Watch.step()."""
    for name, value in (("loss", loss), ("epoch", epoch)):
        number(value, f"step: {name}")
    number(lr, "step: lr", 0)
    number(grad_norm, "step: grad_norm", 0)
    number(tokens, "step: tokens", 0, whole=True)
    number(update, "step: update", 0, whole=True)
