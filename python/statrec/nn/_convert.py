"""Replaces the normalizations of a model."""

import fnmatch
from typing import Any, Dict, Tuple

import torch
from torch import nn

from ._base import Norm, RunningNorm, check_module
from ._base._options import check_options
from ._table import method_of

_BATCH = nn.modules.batchnorm._BatchNorm
_CLASSES = "BatchNorm1d, 2d, 3d, SyncBatchNorm, LayerNorm, RMSNorm and modules of statrec.nn"
_LAST = (nn.LayerNorm,) + ((nn.RMSNorm,) if hasattr(nn, "RMSNorm") else ())


def convert(model: nn.Module, method: str, where: str = "*", **options: Any) -> nn.Module:
    """Replaces normalizations of a model by another method; returns the model.

        statrec.nn.convert(model, "pn+ls", where="encoder.*norm*", alpha=0.95)

    method: a name of METHODS, with +ls for a layer scale before it. where: a glob over the modules'
    names. options: of the method's class. Replaced are torch's BatchNorm1d, 2d, 3d, SyncBatchNorm,
    LayerNorm and RMSNorm over one dimension, and modules of statrec.nn. Gains and biases stay, also
    device, type and training mode; running_mean, running_var and num_batches_tracked where both
    have them. A model that is one norm is returned as the new module. Raises ValueError where
    `where` fits none or a norm cannot be replaced, TypeError for an unknown option; the model is
    unchanged then.
    """
    check_module("convert", model)
    if not isinstance(where, str):
        raise TypeError(
            f"convert: where is {where!r:.80}; a glob over names is wanted, such as '*norm*'"
        )
    cls, own = method_of(method)
    check_options(cls, method, options, "convert")
    replaced: Dict[int, Norm] = {}
    for name, module in model.named_modules():
        if fnmatch.fnmatchcase(name, where) and _is_norm(module) and id(module) not in replaced:
            replaced[id(module)] = _other(name, module, cls, {**own, **options})
    if not replaced:
        raise ValueError(_nothing(model, where))
    if id(model) in replaced:
        return replaced[id(model)]
    for parent in list(model.modules()):
        if any(id(child) in replaced for child in parent.modules()):
            _call_norms(parent)
        for name, child in parent._modules.items():
            if id(child) in replaced:
                parent._modules[name] = replaced[id(child)]
    return model


def _call_norms(encoder: nn.Module) -> None:
    """Makes torch's encoders call their norms in evaluation, whose weights alone they take otherwise:
    layers before torch 2.5 (statrec's modules have a hook for the later ones), and where a padding
    mask becomes a nested tensor."""
    if isinstance(encoder, nn.TransformerEncoderLayer):
        encoder.activation_relu_or_gelu = 0  # read for this choice alone
    elif isinstance(encoder, nn.TransformerEncoder):
        encoder.use_nested_tensor = False


def _is_norm(module: nn.Module) -> bool:
    return isinstance(module, (Norm, _BATCH, *_LAST))


def _nothing(model: nn.Module, where: str) -> str:
    """Why nothing is replaced: no name fits, or those that fit are of other classes."""
    there = [name for name, module in model.named_modules() if _is_norm(module)]
    names = ", ".join(repr(n) if n else "'' (the model itself)" for n in there[:8]) or "none"
    others = [
        f"{name!r:.80} ({type(module).__name__})"
        for name, module in model.named_modules()
        if fnmatch.fnmatchcase(name, where) and "norm" in type(module).__name__.lower()
    ]
    if others:
        return (
            f"convert: not converted: {', '.join(others[:8])}; converted are {_CLASSES}; "
            f"there are: {names}"
        )
    return f"convert: no normalization's name fits {where!r:.80}; there are: {names}"


def _shape(name: str, module: Any) -> Tuple[int, bool]:
    """Number of features, and whether they are the last dimension."""
    if isinstance(module, _LAST):
        if len(module.normalized_shape) != 1:
            raise ValueError(
                f"convert: {name} normalizes {tuple(module.normalized_shape)}; one "
                "dimension of features is wanted, where=... leaves it out"
            )
        return module.normalized_shape[0], True
    if isinstance(module, nn.modules.lazy.LazyModuleMixin) or not module.num_features:
        raise ValueError(f"convert: {name} has no number of features yet: run the model once first")
    return module.num_features, getattr(module, "channels_last", False)


def _other(name: str, module: Any, cls: Any, options: Dict[str, Any]) -> Norm:
    features, last = _shape(name, module)
    values = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
    floats = [value for value in values if value.is_floating_point()]
    place = {"device": values[0].device} if values else {}
    if floats:
        place["dtype"] = floats[0].dtype
    new: Norm = cls(features, **{"channels_last": last, **place, **options})
    _copy(module, new)
    return new.train(module.training)


@torch.no_grad()
def _copy(old: Any, new: Norm) -> None:
    for kind in ("weight", "bias"):
        mine, theirs = getattr(new, kind), getattr(old, kind, None)
        if mine is not None and theirs is not None and new.method != "unit":
            mine.copy_(theirs)
            mine.requires_grad_(theirs.requires_grad)
    if not isinstance(new, RunningNorm):
        return
    names = ("running_mean", "running_var", "num_batches_tracked")
    if all(getattr(old, n, None) is not None and getattr(new, n, None) is not None for n in names):
        for n in names:
            getattr(new, n).copy_(getattr(old, n))
