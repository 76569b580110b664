"""Everything else that may be a norm: subclasses with their own forward, norms of other packages
and of the user. A copy is run once to find its formula (_probe.py)."""
import re

from torch import nn

from .. import _probe
from .._signature import Signature
from . import batch

_TORCH = (nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm, nn.GroupNorm,
          nn.LayerNorm) + ((nn.RMSNorm,) if hasattr(nn, "RMSNorm") else ())
_AVERAGES = {"mean", "var", "var_mean", "std", "std_mean", "sqrt", "rsqrt", "norm", "vector_norm", "batch_norm",
             "layer_norm", "group_norm", "instance_norm", "rms_norm"}
_NAMES = re.compile(r"norm|^(frn|grn|evo)", re.IGNORECASE)


def looks_like_norm(module):
    """Whether a user would call it a norm: by its class, or the name of it."""
    if isinstance(module, _TORCH):
        return True
    kind = _probe.class_of(module)
    if kind.__module__.startswith("torch."):
        return False
    return bool(_NAMES.search(kind.__name__)) and _has_vectors_only(module) and not any(
        isinstance(part, _TORCH) or _NAMES.search(_probe.class_of(part).__name__)
        for part in module.modules() if part is not module)


def _has_vectors_only(module):
    """A norm has gains and biases; a module with matrices is a block with a norm in its name."""
    return all(value.numel() == max(value.shape, default=1) for value in module.parameters()
               if not nn.parameter.is_lazy(value))


def _could_be(module):
    """Whether it is built as norms are: no parts, vectors of one size, and an eps or code that takes means or roots."""
    own = [value for value in module._parameters.values() if value is not None]
    if any(map(nn.parameter.is_lazy, own)):
        return False
    sizes, flat = {value.numel() for value in own}, all(value.dim() == 1 for value in own)
    eps = any("eps" in name.lower() for name in vars(module))
    return (not module._modules and flat and not _probe.class_of(module).__module__.startswith("torch.")
            and (eps and len(sizes) == 1 or len(sizes) <= 1 and _averages(module)))


def _averages(module):
    """Whether a function of its class uses one of these names, or calls one of torch's functions for norms."""
    kinds = [kind for kind in _probe.class_of(module).__mro__ if kind not in nn.Module.__mro__]
    used = {name for kind in kinds for value in vars(kind).values() if hasattr(value, "__code__")
            for name in value.__code__.co_names}
    return not used.isdisjoint(_AVERAGES)


def fits(module):
    return looks_like_norm(module) or _could_be(module)


def describe(site, module):
    found = _probe.find(module)
    if found is None:
        return False
    site.norm, site.family, site.axis, site.uses = found[:4]
    site.first, site.trailing, site.width = found.first, found.trailing, found.width
    site.eps, site.gain, site.calls = found.eps, found.gain, found.calls
    site.stock = not found.calls  # it ends with its norm as torch's own do
    site.signature = None if found.calls else Signature(_probe.class_of(module))
    site.observed = found.family != "sigma"
    site.groups, site.share = 0 if found.axis == "row" else None, found.share
    if found.frozen:
        site.own_running, site.alpha = True, 1.0
    elif found.norm == "bn":
        batch.running(site, module)
        if site.own_running and not isinstance(module, nn.modules.batchnorm._BatchNorm):
            site.alpha = found.alpha  # its momentum may be the weight of either value
    return True


ROW = (fits, describe, "subclasses with a forward of their own; norms of other packages, or of "
       "yours (below)", "what a copy of it computes on random numbers: bn, ln, rmsnorm, groupnorm, "
       "instancenorm, frozenbn", "dimension 1 or the last", "frozenbn: its buffers; otherwise as "
       "above")
