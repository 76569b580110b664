"""Modules as sites of a recorder: which modules of a model are sites, and what they normalize."""
import collections
import copy
import fnmatch
import math
import re

import torch
from torch import nn

from . import _adapters, _given, _probe
from ._adapters.probed import looks_like_norm

_NAME_BYTES = 63  # SR_NAME_SIZE with its end


class Site:
    """A module, and the properties of its site in the file.

    width: features, or None before the first forward pass. first: features are dimension 1,
    otherwise the last `trailing` dimensions. own_running: running_mean and running_var are the
    module's. at_output: the tensor is the module's output, not its input. gain: function
    of the module, or None. groups: groups of each sample that a row norm normalizes together, 0 for separate rows,
    None if unknown. share: 1, or another one where a row is not divided by a mean of squares: s^2 = (mean of squares +
    share eps)/share. unknown: {scalar that does not follow from the sums: True, or False if it does without padding}.
    calls: the functional norms within the module are recorded, not its own input and output. named: {statistic of the
    file: buffer} of running
    values that are neither mean nor variance. stock: the module ends with its norm, whose result it does not need itself.
    signature: a Signature, if the module is recorded only when it is called this way.
    """

    def __init__(self, name, module):
        self.name, self.module = name, module
        self.norm, self.family, self.kind = "none", "none", ""
        self.axis = self.uses = None  # follows from the family
        self.width, self.eps, self.alpha, self.alpha_bwd = None, 1e-5, math.nan, math.nan
        self.first, self.trailing = False, 1
        self.observed, self.own_running, self.at_output = True, False, False
        self.gain, self.calls, self.stock, self.groups = weight, False, True, None
        self.share, self.unknown = 1.0, {}
        self.named, self.signature = {}, None
        self.sync = isinstance(module, nn.SyncBatchNorm)

    def declaration(self, depth, repeat):
        """Arguments of Recorder.add_site. A momentum that is no weight (1.5) leaves no alpha."""
        alpha = self.alpha if 0 <= self.alpha <= 1 else math.nan
        eps = self.eps if 0 <= self.eps < math.inf else math.nan
        return dict(name=self.name, norm=self.norm, kind=self.kind, family=self.family,
                    width=self.width, depth=depth, eps=eps, alpha=alpha, alpha_bwd=self.alpha_bwd,
                    repeat=repeat, observed=self.observed, axis=self.axis, uses=self.uses)


def weight(module):
    """The gain of torch's own norms."""
    return getattr(module, "weight", None)


# -- names ------------------------------------------------------------------------------------

def plain_name(name):
    """A name of named_modules() without what DistributedDataParallel and torch.compile add."""
    parts = [part for part in name.split(".") if part != "_orig_mod"]
    while parts and parts[0] == "module":
        parts.pop(0)
    return ".".join(parts)


def _fitting(name, taken):
    """A name that the file can have: without control characters and no replica (NAME@K), the end of a name that is too
    long, different for each site."""
    name = "".join(one if one.isprintable() else repr(one)[1:-1] for one in name)
    name = re.sub(r"(?<=.)@(?=[1-9][0-9]*$)", "@~", name)
    for number in range(len(taken) + 1):
        mark = "~" if number == 0 else f"~{number}~"
        kept = name.encode()[-(_NAME_BYTES - len(mark)):].decode("utf-8", "ignore")
        short = name if len(name.encode()) <= _NAME_BYTES and number == 0 else mark + kept
        if short not in taken:
            return short
    raise ValueError(f"no name for {name}")


def unwrapped(model):
    """The model within DistributedDataParallel, DataParallel and torch.compile."""
    wrappers = (nn.parallel.DistributedDataParallel, nn.DataParallel)
    while True:
        if isinstance(model, wrappers):
            model = model.module
        elif hasattr(model, "_orig_mod"):
            model = model._orig_mod
        else:
            return model


def is_compiled(model):
    """Whether torch.compile made the model or a part of it."""
    return any(hasattr(module, "_orig_mod")
               or getattr(module, "_compiled_call_impl", None) is not None
               for module in model.modules())


# -- choice -----------------------------------------------------------------------------------

def _as_list(wanted):
    if wanted is None:
        return []
    return [wanted] if isinstance(wanted, (str, type, nn.Module)) else list(wanted)


def _matches(name, module, wish):
    if isinstance(wish, str):
        return fnmatch.fnmatchcase(name, wish)
    return isinstance(module, wish) if isinstance(wish, type) else module is wish


def _chosen(named, wishes, what, model):
    """(name, module) that a wish (glob, type or module) is for; each wish must be for one."""
    for wish in wishes:
        if not isinstance(wish, (str, type, nn.Module)):
            raise TypeError(f"{what}: a glob, a type or a module is wanted, got {wish!r:.80}")
        if not any(_matches(name, module, wish) for name, module in named):
            names = ", ".join(repr(name) if name else "'' (the model itself)" for name, _ in named[:8])
            names += ", ..." if len(named) > 8 else ""
            for name, module in model.named_modules(remove_duplicate=False):  # a shared module has several
                first = next((first for first, other in named if other is module), None)
                if first is not None and _matches(plain_name(name), module, wish):
                    raise ValueError(f"{what}: {plain_name(name)!r} is the module {first!r}: choose it by this name")
            raise ValueError(f"{what}: no module matches {wish!r:.80}; "
                             f"there are: {names or 'none'}")
    return [(name, module) for name, module in named
            if any(_matches(name, module, wish) for wish in wishes)]


def find_sites(model, sites=None, observe=None, observe_output=None, alpha=0.9, eps=1e-5,
               kind=None, tensors=False):
    """The sites of a model in the order of named_modules(), and the norms that are left out:
    [(name, class name)].

    sites: globs, types or modules among the normalizations; None: all of them. observe,
    observe_output: the same among all modules. alpha, eps: of sites that have none. kind: a word
    for all sites, or a function of the name. tensors: a model without norms may have sites of statrec.tap.
    """
    named = [(plain_name(name), module) for name, module in model.named_modules()]
    rows = {id(module): _adapters.of(module) for _, module in named}
    norms = [pair for pair in named if rows[id(pair[1])] is not None]
    wished = norms if sites is None else _chosen(norms, _as_list(sites), "sites", model)
    inside = _chosen(named, _as_list(observe), "observe", model)
    behind = _chosen(named, _as_list(observe_output), "observe_output", model)
    found, left_out, taken = [], [], set()
    for name, module in named:
        at = [any(module is other for _, other in group) for group in (wished, inside, behind)]
        if not any(at):
            continue
        row = rows[id(module)] if at[0] or at[1] else None
        site = _described(module, row, alpha, eps)
        if site is None and not (at[1] or at[2]):
            if sites is not None or looks_like_norm(module):
                left_out.append((name, _probe.class_of(module).__name__))
            continue
        if site is None or row is None:
            site = _observed(module, at[2], alpha, eps)
        site.name = _fitting(name or _probe.class_of(module).__name__, taken)
        taken.add(site.name)
        site.kind = _kind(site, module, kind)
        found.append(site)
    if not found and not (tensors and not left_out and not isinstance(model, torch.fx.GraphModule)):
        raise ValueError(nothing(model, left_out))
    return found, left_out


def of_phases(site, phases):
    """(phase, its own copy of the site); without phases ("", site)."""
    if not phases:
        return [("", site)]
    copies = []
    for phase in phases:
        one = copy.copy(site)
        one.name = _fitting(f"{phase}:{site.name}", {other.name for _, other in copies})
        copies.append((phase, one))
    return copies


def tensor_site(name, features, alpha, taken):
    """The site of a tensor that the host names itself (statrec.tap)."""
    site = Site(_fitting(name, taken), None)
    site.alpha, site.gain, site.first = alpha, None, features == 1
    site.kind = _kind(site, None, None)
    return site


def nothing(model, left_out):
    """The reason why there is no site."""
    if isinstance(model, torch.fx.GraphModule):
        return ("the model is an exported graph, whose norms are functions and not modules; call "
                "watch() on the model before it is exported")
    if left_out:
        return (f"no normalization is recognised; {counted(left_out)} look like some: "
                "statrec.register(Class), observe= or statrec.tap record them")
    return ("the model has no normalization module; observe= records others, statrec.tap(x, name), called before "
            "the first step, any tensor")


def counted(left_out):
    """"DetrFrozenBatchNorm2d x12, GroupNormX x2" """
    classes = collections.Counter(kind for _, kind in left_out)
    return ", ".join(f"{kind} x{count}" for kind, count in classes.items())


def _kind(site, module, kind):
    if kind is not None:
        return _given.text(kind(site.name) if callable(kind) else kind, "kind", 15)
    for word in ("decoder", "encoder"):
        if word in site.name.lower():
            return word
    planes = (nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.modules.instancenorm._InstanceNorm)
    return "conv" if isinstance(module, planes) else ""


def _described(module, row, alpha, eps):
    """The site of a normalization; None if its row does not determine its formula."""
    site = Site("", module)
    site.alpha, site.eps = alpha, eps
    return None if row is None or row.describe(site, module) is False else site


def _observed(module, at_output, alpha, eps):
    site = Site("", module)
    site.alpha, site.eps, site.at_output, site.gain = alpha, eps, at_output, None
    if not at_output and getattr(module, "inplace", False):
        raise ValueError(f"observe: {module} overwrites its input; observe_output= is for it")
    return site
