"""Replaces the normalizations of a model."""

import fnmatch
import warnings
from typing import Any, Dict, List, Tuple

import torch
from torch import Tensor, nn

from ._base import Norm, RunningNorm, check_module
from ._base._norm import is_called
from ._base._options import check_options
from ._table import method_of

_BATCH = nn.modules.batchnorm._BatchNorm
_CLASSES = "BatchNorm1d, 2d, 3d, SyncBatchNorm, LayerNorm, RMSNorm and modules of statrec.nn"
_LAST = (nn.LayerNorm,) + ((nn.RMSNorm,) if hasattr(nn, "RMSNorm") else ())
_FORWARDS = {cls.forward for cls in (_BATCH, nn.SyncBatchNorm, *_LAST, Norm)}
# Options that mean the same in all methods. A layer scale is part of the method.
_COMMON = ("eps", "momentum", "affine", "track_running_stats", "sync", "process_group", "check")
_NEVER = ("num_features", "layer_scale", "channels_last", "alpha", "device", "dtype")
_RUNNING = (("running_mean", "running_var", "num_batches_tracked"), ("running_psi2",))


def convert(model: nn.Module, method: str, where: str = "*", **options: Any) -> nn.Module:
    """Replaces normalizations of a model by another method; returns the model.

        statrec.nn.convert(model, "pn+ls", where="encoder.*norm*", alpha=0.95)

    method: a name of METHODS, with +ls for a layer scale before it. where: a glob over the modules'
    names. options: of the method's class. Replaced are torch's BatchNorm1d, 2d, 3d, SyncBatchNorm,
    LayerNorm and RMSNorm over one dimension, and modules of statrec.nn.

    What the old module had stays where the method has it, unless an option says otherwise: gain and
    bias (the same parameters: ties stay, a norm without them stays without), eps, momentum,
    track_running_stats, synchronization, check, device, type and training mode; between modules of
    one class all options but layer_scale, and all parameters and running values; between others
    running mean and variance, or running psi2, where both have them behind the same layer scale.
    eps does not stay between placements, nor to or from unit. Warns where the method lacks
    track_running_stats=False or synchronization, and about hooks, which are lost.

    A model that is one norm is returned as the new module. Raises ValueError where `where` fits
    none or a norm cannot be replaced, TypeError for an unknown option; the model is unchanged then.
    """
    check_module("convert", model)
    if not isinstance(where, str):
        raise TypeError(
            f"convert: where is {where!r:.80}; a glob over names is wanted, such as '*norm*'"
        )
    cls, own = method_of(method)
    check_options(cls, method, options, "convert")
    replaced: Dict[int, Norm] = {}
    moved: Dict[int, nn.Parameter] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if fnmatch.fnmatchcase(name, where) and _is_norm(module) and id(module) not in replaced:
            replaced[id(module)] = _other(_shown(name), module, cls, own, options, moved)
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
    """Makes torch's encoders call their norms in evaluation; otherwise they compute LayerNorm from
    their weights: layers before torch 2.5 (for later ones statrec's modules have a hook), and
    encoders that make a nested tensor of a padding mask."""
    if isinstance(encoder, nn.TransformerEncoderLayer):
        encoder.activation_relu_or_gelu = 0  # read for this choice alone
    elif isinstance(encoder, nn.TransformerEncoder):
        encoder.use_nested_tensor = False


def _is_norm(module: nn.Module) -> bool:
    return isinstance(module, (Norm, _BATCH, *_LAST))


def _shown(name: str) -> str:
    return f"{name!r:.80}" if name else "'' (the model itself)"


def _nothing(model: nn.Module, where: str) -> str:
    """Why nothing is replaced: no name fits, or the fitting modules have other classes."""
    there = [name for name, module in model.named_modules() if _is_norm(module)]
    names = ", ".join(_shown(name) for name in there[:8]) or "none"
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
                f"convert: {name}: normalizes {tuple(module.normalized_shape)}; one "
                "dimension of features is wanted, where=... leaves it out"
            )
        return module.normalized_shape[0], True
    if isinstance(module, nn.modules.lazy.LazyModuleMixin) or not module.num_features:
        raise ValueError(f"convert: {name}: no number of features yet; run the model once first")
    return module.num_features, getattr(module, "channels_last", False)


def _other(
    name: str,
    old: Any,
    cls: Any,
    own: Dict[str, Any],
    given: Dict[str, Any],
    moved: Dict[int, nn.Parameter],
) -> Norm:
    """The new module. own: options of the method's name; moved: parameters of another type or
    device that replace the old modules'."""
    _check(name, old)
    features, last = _shape(name, old)
    values = [*old.parameters(recurse=False), *old.buffers(recurse=False)]
    floats = [value for value in values if value.is_floating_point()]
    place = {"device": values[0].device} if values else {}
    if floats:
        place["dtype"] = floats[0].dtype
    kept = _kept_options(name, old, cls, {**own, **given})
    try:
        new: Norm = cls(features, **{"channels_last": last, **place, **kept, **own, **given})
    except (TypeError, ValueError) as error:
        raise type(error)(f"convert: {name}: {error}") from None
    _move_parameters(old, new, given, moved)
    _copy_running(old, new)
    return new.train(old.training)


def _check(name: str, old: Any) -> None:
    """ValueError for a forward pass of the user, and for a gain or bias that is computed; a warning
    about hooks."""
    if getattr(old.forward, "__func__", None) not in _FORWARDS:
        raise ValueError(
            f"convert: {name}: {type(old).__name__} has a forward of its own, which would be lost; "
            "where=... leaves it out"
        )
    for kind in ("weight", "bias"):
        if getattr(old, kind, None) is not None and old._parameters.get(kind) is None:
            raise ValueError(
                f"convert: {name}: its {kind} is no parameter but computed (parametrization, "
                "pruning); remove that first"
            )
    hooks = [*old._forward_hooks.values(), *old._forward_pre_hooks.values()]
    if any(hook is not is_called for hook in [*hooks, *old._backward_hooks.values()]):
        warnings.warn(f"convert: {name}: its hooks are lost", stacklevel=4)


def _options_of(old: Any) -> Dict[str, Any]:
    """Options of the old module by the names of statrec.nn."""
    if isinstance(old, Norm):
        names = [name for name in type(old).__signature__.parameters if name not in _NEVER]
        return {name: getattr(old, name) for name in names if hasattr(old, name)}
    had = {name: getattr(old, name) for name in _COMMON if hasattr(old, name)}
    had["affine"] = old.weight is not None
    if isinstance(old, nn.SyncBatchNorm):
        had["sync"] = True
    if had["eps"] is None:  # RMSNorm: eps of the type it computes in
        dtype = torch.float32 if old.weight is None else old.weight.dtype
        had["eps"] = torch.finfo(torch.promote_types(dtype, torch.float32)).eps
    return had


def _kept_options(name: str, old: Any, cls: Any, wanted: Dict[str, Any]) -> Dict[str, Any]:
    """Options of the old module that the class has under the same meaning."""
    had, same = _options_of(old), type(old) is cls
    known = cls.__signature__.parameters
    kept = {n: v for n, v in had.items() if n in known and (same or n in _COMMON)}
    placement = wanted.get("placement", kept.get("placement", "inside"))
    if _is_unit(old) != _is_unit(cls) or placement != getattr(old, "placement", "inside"):
        kept.pop("eps", None)
    if "momentum" in wanted or "alpha" in wanted:
        kept.pop("momentum", None)
    elif kept.get("momentum", 0) is None:
        raise ValueError(
            f"convert: {name}: momentum is None, the average of all batches; no method has that: "
            "give momentum or alpha"
        )
    _warn_of_lost(name, had, cls)
    return kept


def _warn_of_lost(name: str, had: Dict[str, Any], cls: Any) -> None:
    known = cls.__signature__.parameters
    lost = {"track_running_stats": had.get("track_running_stats") is False, "sync": had.get("sync")}
    for option, was in lost.items():
        if was and issubclass(cls, RunningNorm) and option not in known:
            warnings.warn(
                f"convert: {name}: {option}={had[option]} is lost; {cls.method} has no such option",
                stacklevel=5,
            )


def _is_unit(norm: Any) -> bool:
    """Whether its gain and eps belong to a sum of squares, not to a mean."""
    return getattr(norm, "method", "") == "unit"


def _move_parameters(
    old: Any, new: Norm, given: Dict[str, Any], moved: Dict[int, nn.Parameter]
) -> None:
    """Gives the new module the parameters of the old one."""
    if _is_unit(old) != _is_unit(new):
        return
    names = list(new._parameters) if type(old) is type(new) else ["weight", "bias"]
    for name in names:
        mine, theirs = new._parameters.get(name), old._parameters.get(name)
        if mine is not None and theirs is not None:
            if "dtype" in given or "device" in given:
                cast = theirs.detach().to(mine.device, mine.dtype, copy=True)
                theirs = moved.setdefault(id(theirs), nn.Parameter(cast, theirs.requires_grad))
            setattr(new, name, theirs)
    if old.weight is not None and getattr(old, "bias", None) is None and "affine" not in given:
        new.bias = None


@torch.no_grad()
def _copy_running(old: Any, new: Norm) -> None:
    """Copies the running values that mean the same in both."""
    if getattr(old, "layer_scale", 0) != getattr(new, "layer_scale", 0):
        return
    mine, theirs = _state(new), _state(old)
    groups: List[Tuple[str, ...]] = list(_RUNNING)
    if type(old) is type(new):
        shapes = [{name: value.shape for name, value in state.items()} for state in (mine, theirs)]
        groups = [tuple(mine)] if shapes[0] == shapes[1] else []
    for group in groups:
        if all(name in mine and name in theirs for name in group):
            for name in group:
                mine[name].copy_(theirs[name])
    if getattr(new, "t0", 0) and type(old) is not type(new):
        mine["num_batches_tracked"].zero_()  # RepBN's way from LN begins


def _state(norm: Any) -> Dict[str, Tensor]:
    return {name: value for name, value in norm._buffers.items() if value is not None}
