"""Classes that the user has registered (statrec.register)."""
import sys
from typing import Any

import torch
from torch import nn

from .. import _given, _probe

# X of like=: family, axis, uses.
_LIKE = {"bn": ("sigma", None, None), "ln": ("row", "row", "mu,sigma2"),
         "rmsnorm": ("row", "row", "psi2"), "groupnorm": ("row", "sample", "mu,sigma2"),
         "none": ("none", None, None)}
_rows: dict[type, Any] = {}


def register(cls, like, *, norm, features, gain, eps):
    """See statrec.register."""
    if like not in _LIKE:
        raise ValueError(f"register: like is one of {', '.join(_LIKE)}, got {like!r:.80}")
    if features not in (-1, 1):
        raise ValueError(f"register: features is -1 or 1, got {features!r:.80}")
    if not isinstance(cls, type) or not issubclass(cls, nn.Module):
        raise TypeError(f"register: a subclass of torch.nn.Module is wanted, got {cls!r:.80}")
    if norm is not None:
        _given.text(norm, "register: norm", 63)
    if not isinstance(eps, str):
        _given.fraction(eps, "register: eps", "an attribute's name or a finite number from 0", sys.float_info.max)
    _rows[cls] = like, norm or (cls.__name__ if like == "none" else like), features, gain, eps


def fits(module):
    return _probe.class_of(module) in _rows


def describe(site, module):
    like, site.norm, features, gain, eps = _rows[_probe.class_of(module)]
    site.family, site.axis, site.uses = _LIKE[like]
    site.observed, site.first = like != "bn", features == 1
    eps = getattr(module, eps, site.eps) if isinstance(eps, str) else eps
    site.eps = torch.finfo(torch.float32).eps if eps is None else float(eps)
    if like == "none" or gain is None:
        site.gain = None
    else:
        site.gain = gain if callable(gain) else lambda owner: getattr(owner, gain)
    site.stock = False
    site.groups = 0 if like in ("ln", "rmsnorm") else None


ROW = (fits, describe, "classes given to `statrec.register`", "as registered",
       "dimension 1 or the last", "the recorder's, with `alpha`")
