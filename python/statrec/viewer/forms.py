"""Statistics that follow from recorded ones, by the formulas of docs/definitions.md.

A row: name, the scalars that it needs, formula of their values and the sites, definition, and scalars
of which it needs one. The names are those of `stat-scalar --stat`.
"""
from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Callable, NamedTuple

import numpy


class Form(NamedTuple):
    """formula(scalars by name [n, S], the S sites) -> [n, S]; a scalar of `either` that the file lacks is
    NaN."""

    name: str
    needs: tuple[str, ...]
    formula: Callable[[dict[str, Any], Sequence[Any]], Any]
    definition: str
    either: tuple[str, ...] = ()

    def follows(self, names: Collection[str]) -> bool:
        """Whether these scalars suffice."""
        return set(self.needs) <= set(names) and (not self.either or not set(self.either).isdisjoint(names))


def _each(sites, name):
    return numpy.array([getattr(site, name) for site in sites], dtype=numpy.float64)


def _only_observed(site, statistic):
    """Whether this statistic of a batch is the observer's and not the method's (sr_run_only_observed)."""
    return site.observed and not (site.axis == "batch" and statistic in site.uses.split(","))


def _fraction(part, *norms):
    """norms: ||dx||_F of the method, and of bn at sites where only an observer has the statistic."""
    def formula(of, sites):
        observed = [_only_observed(site, part[2:]) for site in sites]
        dx = numpy.where(observed, of[norms[1]] if norms[1:] else numpy.nan, of[norms[0]])
        return numpy.sqrt(of["rows"]) * _each(sites, "width") * of[part] / dx
    return Form(f"{part}_share", ("rows", part), formula,
                f"sqrt(rows) d {part} / ||dx||_F: Frobenius norm of this part as a share of dx", norms)


def _per_root(distance):
    return Form(f"{distance}_per_root", (distance,),
                lambda of, sites: numpy.sqrt(_each(sites, "width")) * of[distance],
                f"sqrt(d) {distance}: the distance divided by sqrt(d) in place of d")


FORMS = (
    *(_fraction(part, "dx_norm", "dx_norm_bn") for part in ("g_mu", "g_sigma2")),
    _fraction("g_psi2", "dx_norm"),
    *(_per_root(f"dist_{name}") for name in ("mu", "sigma", "sigma2", "psi", "psi2")),
    Form("tid_total", ("tid_mean", "tid_var"),
         lambda of, sites: of["tid_mean"] + of["tid_var"], "tid_mean + tid_var"),
    Form("dist_mu_excess", ("tid_mean", "rows"),
         lambda of, sites: of["tid_mean"] / numpy.sqrt(2 / ((1 + _each(sites, "alpha")) * of["rows"])),
         "mean TID / sqrt(2/((1 + alpha) rows)): against independent rows"),
)

COMPARABLE = ("tid_mean", "tid_var", "rel_sigma2", "rel_psi", "rel_psi2", "g_mu_share",
              "g_sigma2_share", "g_psi2_share")  # between widths and scales: docs/comparing-runs.md


class Difference(NamedTuple):
    """A vector that follows from recorded ones: formula(vectors [V, d] of needs, eps) -> [V, d]."""

    name: str
    needs: tuple[str, ...]
    formula: Callable[[list[Any], float], Any]
    definition: str


def _apart(name):
    return Difference(f"{name}_difference", (f"{name}_B", name), lambda of, eps: of[0] - of[1],
                      f"{name}_B - {name}")


def _ratio(name, square):
    return Difference(f"{name}_ratio", (f"{square}_B", square),
                      lambda of, eps: numpy.sqrt((of[0] + eps) / (of[1] + eps)),
                      f"sqrt(({square}_B + eps) / ({square} + eps)): 1 without a difference")


# As in `stat-features --per-feature` (src/analysis/feature_values.c).
DIFFERENCES = (
    *map(_apart, ("mu", "sigma2", "psi2")),
    Difference("mu_shift", ("mu_B", "mu", "sigma2"),
               lambda of, eps: (of[0] - of[1]) / numpy.sqrt(of[2] + eps),
               "(mu_B - mu) / sqrt(sigma2 + eps): 0 without a difference"),
    _ratio("sigma", "sigma2"), _ratio("psi", "psi2"))


def pair_of(vector: str) -> str:
    """"mu", "sigma2" or "psi2": the running value that a vector belongs to; "" for another one."""
    return {"sigma_ratio": "sigma2", "psi_ratio": "psi2", "mu_shift": "mu"}.get(
        vector, next((name for name in ("mu", "sigma2", "psi2")
                      if vector in (name, f"{name}_B", f"{name}_difference")), ""))
