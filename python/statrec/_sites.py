"""What a module is to the recorder: which modules of a model are sites, and what they normalise."""
import fnmatch
import math

import torch
from torch import nn

_NAME_BYTES = 63  # SR_NAME_SIZE with its end
_BATCH = (nn.modules.batchnorm._BatchNorm,)  # 1d, 2d, 3d, SyncBatchNorm
_SAMPLE = (nn.GroupNorm, nn.modules.instancenorm._InstanceNorm)
_ROW = (nn.LayerNorm,) + ((nn.RMSNorm,) if hasattr(nn, "RMSNorm") else ())
NORMALIZATIONS = _BATCH + _SAMPLE + _ROW


class Site:
    """A module, and what its site in the file says of it.

    width: features, or None until the first forward pass tells. first: features are dimension 1,
    otherwise the last `trailing` dimensions. own_running: running_mean and running_var are the
    module's. at_output: the tensor is what the module returns, not what it is given.
    """

    def __init__(self, name, module):
        self.name, self.module = name, module
        self.norm, self.family, self.kind = "none", "none", ""
        self.axis = self.uses = None  # what follows from the family
        self.width, self.eps, self.alpha = None, 1e-5, math.nan
        self.first, self.trailing = False, 1
        self.observed, self.own_running, self.at_output = True, False, False

    def declaration(self, depth, repeat):
        """Arguments of Recorder.add_site."""
        return dict(name=self.name, norm=self.norm, kind=self.kind, family=self.family,
                    width=self.width, depth=depth, eps=self.eps, alpha=self.alpha,
                    repeat=repeat, observed=self.observed, axis=self.axis, uses=self.uses)


# -- names ------------------------------------------------------------------------------------

def plain_name(name):
    """A name of named_modules() without what DistributedDataParallel and torch.compile add."""
    parts = [part for part in name.split(".") if part != "_orig_mod"]
    while parts and parts[0] == "module":
        parts.pop(0)
    return ".".join(parts)


def _fitting(name, taken):
    """The end of a name that is too long for the file, another one for each site."""
    for number in range(len(taken) + 1):
        mark = "~" if number == 0 else f"~{number}~"
        kept = name.encode()[-(_NAME_BYTES - len(mark)):].decode("utf-8", "ignore")
        short = name if len(name.encode()) <= _NAME_BYTES and number == 0 else mark + kept
        if short not in taken:
            return short
    raise ValueError(f"no name for {name}")


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


def _chosen(named, wishes, what):
    """(name, module) that a wish (glob, type or module) is for; each wish must be for one."""
    for wish in wishes:
        if not isinstance(wish, (str, type, nn.Module)):
            raise TypeError(f"{what}: a glob, a type or a module is wanted, got {wish!r:.80}")
        if not any(_matches(name, module, wish) for name, module in named):
            names = ", ".join(name or "'' (the model itself)" for name, _ in named[:8]) + (", ..." if len(named) > 8 else "")
            raise ValueError(f"{what}: no module matches {wish!r:.80}; "
                             f"there are: {names or 'none'}")
    return [(name, module) for name, module in named
            if any(_matches(name, module, wish) for wish in wishes)]


def find_sites(model, sites=None, observe=None, observe_output=None, alpha=0.9, eps=1e-5,
               kind=None):
    """The sites of a model, in the order of named_modules().

    sites: globs, types or modules among the normalizations; None: all of them. observe,
    observe_output: the same among all modules. alpha, eps: of sites that have none. kind: a word
    for all sites, or a function of the name.
    """
    named = [(plain_name(name), module) for name, module in model.named_modules()]
    norms = [pair for pair in named if isinstance(pair[1], NORMALIZATIONS)]
    wished = norms if sites is None else _chosen(norms, _as_list(sites), "sites")
    inside = _chosen(named, _as_list(observe), "observe")
    behind = _chosen(named, _as_list(observe_output), "observe_output")
    found, taken = [], set()
    for name, module in named:
        at = [any(module is other for _, other in group) for group in (wished, inside, behind)]
        if not any(at):
            continue
        site = _described(module, at[0] or at[1] and isinstance(module, NORMALIZATIONS),
                          at[2], alpha, eps)
        site.name = _fitting(name or type(module).__name__, taken)
        taken.add(site.name)
        site.kind = _kind(site.name, module, kind)
        found.append(site)
    if not found:
        raise ValueError("the model has no normalization; sites= or observe= say what to record")
    return found


def _kind(name, module, kind):
    if kind is not None:
        return kind(name) if callable(kind) else kind
    for word in ("decoder", "encoder"):
        if word in name.lower():
            return word
    planes = (nn.BatchNorm2d, nn.BatchNorm3d, *_SAMPLE)
    return "conv" if isinstance(module, planes) else ""


# -- description ------------------------------------------------------------------------------

def _described(module, normalization, at_output, alpha, eps):
    site = Site("", module)
    site.alpha, site.eps, site.at_output = alpha, eps, at_output and not normalization
    if normalization:
        describe = (_batch if isinstance(module, _BATCH)
                    else _sample if isinstance(module, _SAMPLE) else _row)
        describe(site, module)
        site.width = site.width or None
    elif not at_output and getattr(module, "inplace", False):
        raise ValueError(f"observe: {module} overwrites its input; observe_output= is for it")
    return site


def _batch(site, module):
    site.norm, site.family, site.observed = "bn", "sigma", False
    site.width, site.eps, site.first = module.num_features, module.eps, True
    site.own_running = bool(module.track_running_stats)
    if site.own_running:
        site.alpha = math.nan if module.momentum is None else 1 - module.momentum


def _sample(site, module):
    grouped = isinstance(module, nn.GroupNorm)
    site.norm, site.family = "groupnorm" if grouped else "instancenorm", "row"
    site.axis, site.uses = "sample", "mu,sigma2"
    site.width = module.num_channels if grouped else module.num_features
    site.eps, site.first = module.eps, True


def _row(site, module):
    site.family, site.trailing = "row", len(module.normalized_shape)
    site.width = math.prod(module.normalized_shape)
    site.eps = torch.finfo(torch.float32).eps if module.eps is None else module.eps
    if isinstance(module, nn.LayerNorm):
        site.norm, site.uses = "ln" if module.elementwise_affine else "ln-simple", "mu,sigma2"
    else:
        site.norm, site.uses = "rmsnorm", "psi2"
