"""Finds the formula of a module of unknown code: runs a copy of it once on random numbers.

The copy's parameters and buffers are random, in double. Two questions:

1. Is its output y = G n + B with n = (x - mean) / sqrt(variance + eps), or x / sqrt(mean(x^2) + eps),
   over some dimensions, and G one of its vectors p, 1 + p or 1 (_FORMS)? Then it is that norm, and
   its input and output are recorded.
2. Otherwise, does it call one of torch's functions for norms (_calls.py), as a norm does that
   applies an activation to its result? Then those calls are recorded.

The random states of the host are untouched: torch's, Python's and NumPy's.
"""
import collections
import contextlib
import copy
import math
import random
import sys
import types
from typing import Any

import torch

from . import _calls

# norm, family, axis, uses: as in /sites. first: features are dimension 1. gain: function of the
# module, or None. calls: record the functional calls within it. frozen: y uses the buffers. alpha: weight of the
# old running mean, NaN if it has none or a varying one. share: as Site.share.
Finding = collections.namedtuple("Finding", "norm family axis uses first trailing width eps gain "
                                            "calls frozen alpha share", defaults=(math.nan, 1.0))

_TOLERANCE, _GAIN = 3e-5, 1e-4  # of y, of its gain
_EPS = (1e-5, 1e-6, 1e-8, 1e-12, 1e-3, float(torch.finfo(torch.float32).eps), 0.0)
_by_kind: dict[Any, Any] = {}
_PLAIN = (bool, int, float, complex, str, bytes, torch.Size, torch.dtype, torch.device, type, types.BuiltinFunctionType)
_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))


class _Object:
    """An object whose state is its attributes."""


def find(module):
    """The Finding for a module, or None. Modules of a class with the same parts, shapes and settings
    are probed once; those with settings that cannot be compared, each time."""
    _must_have_shapes(module)
    try:
        kind = _kind(module)
    except (TypeError, RecursionError):
        return _probe(module)
    if kind not in _by_kind:
        _by_kind[kind] = _probe(module)
    return _by_kind[kind]


def _must_have_shapes(module):
    if any(map(torch.nn.parameter.is_lazy, [*module.parameters(), *module.buffers()])):
        raise ValueError(f"watch: a {class_of(module).__name__} has no shapes yet: run one batch through the model "
                         "before watch()")


def _kind(module):
    return tuple((name, class_of(part), _settings(part),
                  tuple((key, tuple(value.shape)) for key, value in _tensors(part).items()))
                 for name, part in module.named_modules())


def _settings(module):
    return tuple((name, _comparable(value)) for name, value in sorted(vars(module).items()) if _copied(name))


def _copied(name):
    """Whether an attribute of a module is a setting, which its copy has too."""
    return name not in _OF_EVERY_MODULE and name != "forward" and not name.startswith("__composable_api")  # of FSDP


def _comparable(value):
    """A key that is equal for two values only if both mean the same; TypeError for objects with a state that cannot be
    read."""
    if value is None or type(value) in _PLAIN:
        return type(value), value
    if type(value) in (list, tuple, dict):
        return type(value), tuple(map(_comparable, value.items() if isinstance(value, dict) else value))
    if type(value) is types.FunctionType and value.__closure__ is None:
        return type(value), value
    if type(value).__basicsize__ == _Object.__basicsize__ and not type(value).__itemsize__:  # no slots
        return type(value), _comparable(vars(value))
    raise TypeError


def _tensors(module):
    own = {**module._parameters, **module._buffers}
    return {name: value for name, value in own.items() if value is not None}


def class_of(module):
    """Its class as its author wrote it: FSDP2 puts its own class before it."""
    kinds = type(module).__mro__
    at = next((i for i, kind in enumerate(kinds) if kind.__name__ == "FSDPModule"), -1)
    return kinds[at + 1]


def _random_copy(module):
    """A copy in double with random parameters and buffers, in training mode, without hooks and
    without a replaced forward: these would run the host's module. Only shapes of tensors are read,
    so that they may be sharded or on the meta device."""
    twin = class_of(module).__new__(class_of(module))
    torch.nn.Module.__init__(twin)
    twin.__dict__.update({name: copy.deepcopy(value) for name, value in vars(module).items() if _copied(name)})
    for name, value in module._parameters.items():
        twin._parameters[name] = value if value is None else torch.nn.Parameter(_random(value))
    for name, value in module._buffers.items():
        twin._buffers[name] = value if value is None else _random(value)
    for name, part in module._modules.items():
        twin._modules[name] = part if part is None else _random_copy(part)
    return twin


def _random(value):
    """A tensor of its shape on the CPU, in double if it has floating point, otherwise zeros."""
    if value.is_floating_point():
        return torch.empty(value.shape, dtype=torch.float64).uniform_(0.5, 1.5)
    return torch.zeros(value.shape, dtype=value.dtype)


def _inputs(module):
    """Whether features are dimension 1, and random inputs, of the shapes that norms are given."""
    widths = [value.numel() for value in _tensors(module).values()
              if value.numel() == max(value.shape, default=0)]
    width = max(widths, default=0) or getattr(module, "num_features", None) or 8
    odd = [size for size in (3, 7, 5, 11) if size != width]
    for first, shape in ((False, (odd[0], odd[1], width)), (False, (odd[1], width)),
                         (True, (odd[0], width, odd[1], odd[2])), (True, (odd[1], width, odd[2]))):
        x = torch.randn(shape, dtype=torch.float64)
        scale = torch.rand(shape[0], *[1] * (len(shape) - 1), dtype=torch.float64) + 0.5
        yield first, 0.05 * scale * x + 0.02


def _answers(twin):
    """(features first, x, y, functional calls) of the inputs that it accepts."""
    for first, x in _inputs(twin):
        heard = []
        try:
            with _calls.Listening(heard.append):
                y = twin(x.clone())
        except Exception:  # not a shape of its
            continue
        if torch.is_tensor(y):
            yield first, x, y, heard


@contextlib.contextmanager
def _apart():
    """For code of the host's that is run for us: on the CPU, without gradients, random states as before."""
    numpy = sys.modules.get("numpy")
    of_python, of_numpy = random.getstate(), numpy and numpy.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.no_grad():
            yield
    finally:
        random.setstate(of_python)
        if numpy:
            numpy.random.set_state(of_numpy)


def features_first(module):
    """Whether the features of its input are dimension 1, found by the random input that it accepts;
    None: it accepts none."""
    _must_have_shapes(module)
    try:
        with _apart():
            return next((first for first, x, y, _ in _answers(_random_copy(module))
                         if y.shape == x.shape), None)
    except Exception:  # a module that cannot be copied, or is on the meta device
        return None


def _probe(module):
    try:
        with _apart():
            torch.default_generator.manual_seed(1)  # torch.manual_seed seeds GPUs, too
            return _ask(_random_copy(module))
    except Exception:  # a module that cannot be copied, or is on the meta device
        return None


def _ask(twin):
    before = {name: value.clone() for name, value in _tensors(twin).items()}
    for first, x, y, heard in _answers(twin):
        found = None if y.shape != x.shape else _matching(twin, before, x, y.double())
        if found is not None or heard:
            found = found or _of_calls(twin, heard)
            return found and found._replace(alpha=_alpha(twin, x, first))
    return None


def _alpha(twin, x, first):
    """Finding.alpha, by two forward passes of the twin."""
    alphas = []
    for _ in range(2):
        heard, old = [], _tensors(twin).get("running_mean")
        if old is None or old.shape != (x.shape[1 if first else -1],):
            return math.nan
        old = old.clone()
        with _calls.Listening(heard.append):
            twin(x.clone())
        inner = heard[0].input if heard and heard[0].first else x
        apart, moved = _rows(inner, heard[0].first if heard else first).mean(0) - old, twin.running_mean - old
        weight = (apart * moved).sum() / apart.square().sum()
        if not torch.allclose(moved, weight * apart, rtol=1e-6, atol=1e-9):
            return math.nan
        alphas.append(round(1 - float(weight), 9))
    return alphas[0] if alphas[0] == alphas[1] else math.nan


# -- formulas ---------------------------------------------------------------------------------

def _moments(x, dims, eps):
    variance, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    return (x - mean) * (variance + eps).rsqrt()


def _unbiased(x, dims, eps):
    variance, mean = torch.var_mean(x, dims, correction=1, keepdim=True)
    return (x - mean) * (variance + eps).rsqrt()


def _root(x, dims, eps):
    return x * (x.square().mean(dims, keepdim=True) + eps).rsqrt()


# norm, family, axis, uses, features in dimension 1, dimensions of x that are averaged, n
_FORMS = (
    ("rmsnorm", "row", "row", "psi2", False, lambda x: [-1], _root),
    ("ln", "row", "row", "mu,sigma2", False, lambda x: [-1], _moments),
    ("ln", "row", "row", "mu,sigma2", False, lambda x: [-1], _unbiased),
    ("rmsnorm", "row", "row", "psi2", True, lambda x: [1], _root),
    ("ln", "row", "row", "mu,sigma2", True, lambda x: [1], _moments),
    ("ln", "row", "row", "mu,sigma2", True, lambda x: [1], _unbiased),
    ("bn", "sigma", None, None, True, lambda x: [0, *range(2, x.dim())], _moments),
    ("instancenorm", "row", "sample", "mu,sigma2", True, lambda x: [*range(2, x.dim())], _moments),
)


def _matching(twin, before, x, y):
    own = [value for name, value in vars(twin).items()
           if "eps" in name.lower() and isinstance(value, float)]
    best = None
    for norm, family, axis, uses, first, dims, normalized in _FORMS:
        if first and x.dim() < 3 and norm != "bn" or not dims(x):
            continue
        for eps in [*own, *_EPS]:
            gain, error = _gain(twin, before, normalized(x, dims(x), eps), y, first)
            if error < _TOLERANCE and (best is None or error < best[0]):
                width = x.shape[1 if first else -1]
                share = 1 - 1 / width if normalized is _unbiased else 1.0
                best = error, Finding(norm, family, axis, uses, first, 1, None if gain is None else width, eps,
                                      gain, False, False, share=share)
    return best[1] if best else _frozen(twin, before, x, y, own)


def _rows(x, first):
    return (x.movedim(1, -1) if first else x).reshape(-1, x.shape[1 if first else -1])


def _line(n, y):
    """G, B and the largest error of y = G n + B over the rows, relative to the largest y."""
    centred = n - n.mean(0)
    slope = (centred * y).sum(0) / centred.square().sum(0)
    shift = y.mean(0) - slope * n.mean(0)
    return slope, shift, float((y - slope * n - shift).abs().max() / y.abs().max())


def _gain(twin, before, n, y, first):
    """The gain as a function of the module, and how far y is from it (inf: another gain)."""
    slope, _, error = _line(_rows(n, first), _rows(y, first))
    if not error < _TOLERANCE:
        return None, math.inf
    for name, value in before.items():
        if value.numel() == slope.numel():
            for gain, text in ((value, 0.0), (1 + value, 1.0)):
                if torch.allclose(slope, gain.reshape(-1), rtol=_GAIN):
                    return _Gain(name, text), error
    if torch.allclose(slope, torch.ones_like(slope), rtol=_GAIN):
        return None, error
    return None, math.inf


class _Gain:
    """The gain of a module: its vector of this name, or one more."""

    def __init__(self, name, more):
        self.name, self.more = name, more

    def __call__(self, module):
        value = getattr(module, self.name).detach().reshape(-1)
        if not self.more:
            return value
        return value.to(torch.promote_types(value.dtype, torch.float32)) + self.more  # 1 + p in bfloat16 rounds


def _frozen(twin, before, x, y, own):
    """y = (x - running_mean) / sqrt(running_var + eps) * weight + bias, whatever the batch."""
    mean, variance = (before.get(name) for name in ("running_mean", "running_var"))
    if mean is None or variance is None or x.dim() < 3 or mean.numel() != x.shape[1]:
        return None
    shape = [1, -1] + [1] * (x.dim() - 2)
    for eps in [*own, *_EPS]:
        n = (x - mean.reshape(shape)) * (variance.reshape(shape) + eps).rsqrt()
        gain, error = _gain(twin, before, n, y, True)
        if error < _TOLERANCE:
            return Finding("frozenbn", "sigma", None, None, True, 1, mean.numel(), eps, gain,
                           False, True)
    return None


# -- calls ------------------------------------------------------------------------------------

def _of_calls(twin, heard):
    """The norm that all functional calls within the module are, or None."""
    one = heard[0]
    if any((other.norm, other.width) != (one.norm, one.width) for other in heard):
        return None
    frozen = one.norm == "bn" and not one.trains
    names = [name for name, value in _tensors(twin).items() if value is one.weight]
    return Finding("frozenbn" if frozen else one.norm, *one.kind, one.first, one.trailing,
                   one.width, one.eps, _Gain(names[0], 0.0) if names else None, True, frozen)
