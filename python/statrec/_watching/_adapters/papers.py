"""The modules of statrec.nn: each under its method's name, with its own running values."""

import math
import sys

# method: family, uses; of others the statistics of their input are recorded, as a BN in their place
# would have them.
_FAMILIES = {
    "bn": ("sigma", None),
    "rbn": ("sigma", None),
    "rbn-released": ("sigma", None),
    "pnv": ("psi", None),
    "pn": ("pn", None),
    "ln": ("row", "mu,sigma2"),
    "ln-simple": ("row", "mu,sigma2"),
    "rmsnorm": ("row", "psi2"),
    "unit": ("row", "psi2"),
    "ls": ("row", "psi2"),
}

# Site.unknown: the gradient of a penalty is not in g; a clamped divisor, and rows of padding that enter
# the sums of the backward pass.
_PENALIZED = {"dx_norm": True}
_RELEASED = {"dx_norm": True, "direct_norm": True, "g_mu": False, "g_sigma2": False}


def fits(module):
    ours = sys.modules.get("statrec.nn")
    return ours is not None and isinstance(module, ours.Norm)


def _name(module):
    """The method's name as `statrec train --norm` has it."""
    return f"detach-{module.detach}" if module.method == "detach" else module.method


def describe(site, module):
    scaled = bool(getattr(module, "layer_scale", 0))  # the method's own input is not the module's
    site.norm = _name(module) + (
        "+ls" if scaled and module.method not in ("pn-released", "bn-powernorm") else ""
    )
    site.family, site.uses = (
        ("none", None) if scaled else _FAMILIES.get(module.method, ("none", None))
    )
    site.axis = "row" if site.family == "row" else None
    site.observed, site.stock = site.family not in ("sigma", "psi", "pn"), False
    site.width, site.eps, site.first = module.num_features, module.eps, not module.channels_last
    site.groups = 0 if site.family == "row" and _divides_by_a_root(module) else None
    site.share = _share(module) if site.family == "row" else 1.0
    site.unknown = _unknown(module) if site.family == "sigma" else {}
    site.sync = getattr(module, "sync", False)
    site.gain = _gain if site.family in ("sigma", "psi", "pn", "row") else None
    if hasattr(module, "momentum"):
        site.alpha, site.alpha_bwd = module.alpha, getattr(module, "alpha_bwd", math.nan)
    site.own_running = site.family == "sigma" and getattr(module, "running_var", None) is not None
    site.named = {"psi": {"psi2": "running_psi2"}, "pn": {"psi2": "running_psi2", "nu": "nu"}}.get(
        site.family, {}
    )


def _divides_by_a_root(module):
    """Whether each row has one s, and s^2 is a mean or a sum of squares plus eps."""
    return getattr(module, "groups", 1) == 1 and getattr(module, "placement", "inside") == "inside"


def _share(module):
    """Site.share: s^2 is a sum over the features (unit) or a variance over one less (unbiased)."""
    d = module.num_features
    if module.method == "unit":
        return 1 / d
    return (d - 1) / d if getattr(module, "unbiased", False) else 1.0


def _unknown(module):
    """Site.unknown of a batch norm."""
    if module.method == "rbn-released":
        return _RELEASED
    weights = getattr(module, "lambda_mean", 0), getattr(module, "lambda_std", 0)
    return _PENALIZED if any(weights) else {}


def _gain(module):
    if module.method == "unit":
        return module.weight * (module.s_init / module.s_scale)
    return module.weight


ROW = (
    fits,
    describe,
    "modules of `statrec.nn`",
    "the method's name; sigma, psi, pn, row, or none "
    "where the method is not these formulas or has a layer scale before it",
    "dimension 1, or the last with `channels_last=True`",
    "the module's mu, sigma2, psi2 and nu, alpha = 1 - momentum, alpha_bwd; otherwise the recorder's",
)
