"""The modules of statrec.nn: each under its method's name, with its own running values."""

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
    site.groups = 0 if site.family == "row" and getattr(module, "groups", 1) == 1 else None
    site.share = 1 / module.num_features if site.norm == "unit" else 1.0
    site.gain = _gain if site.family in ("sigma", "psi", "pn", "row") else None
    if hasattr(module, "momentum"):
        site.alpha = module.alpha
    site.own_running = site.family == "sigma" and getattr(module, "running_var", None) is not None
    site.named = {"psi": {"psi2": "running_psi2"}, "pn": {"psi2": "running_psi2", "nu": "nu"}}.get(
        site.family, {}
    )


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
    "the module's mu, sigma2, psi2 and nu, alpha = 1 - momentum; otherwise the recorder's",
)
