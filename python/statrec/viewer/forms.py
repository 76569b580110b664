"""Statistics that follow from recorded ones, by the formulas of docs/definitions.md.

A row: name, the scalars that it needs, formula of their values and the site's width and alpha,
definition. The names are those of `stat-scalar --stat`.
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy


class Form(NamedTuple):
    """formula(scalars by name [n, S], width [S], alpha [S]) -> [n, S]"""

    name: str
    needs: tuple[str, ...]
    formula: Callable[[dict[str, Any], Any, Any], Any]
    definition: str


def _fraction(part):
    def formula(of, width, alpha):
        return numpy.sqrt(of["rows"]) * width * of[part] / of["dx_norm"]
    return Form(f"{part}_share", ("rows", part, "dx_norm"), formula,
                f"sqrt(rows) d {part} / ||dx||_F: Frobenius norm of this part as a share of dx")


def _per_root(distance):
    return Form(f"{distance}_per_root", (distance,),
                lambda of, width, alpha: numpy.sqrt(width) * of[distance],
                f"sqrt(d) {distance}: the distance divided by sqrt(d) in place of d")


FORMS = (
    *(_fraction(part) for part in ("g_mu", "g_sigma2", "g_psi2")),
    *(_per_root(f"dist_{name}") for name in ("mu", "sigma", "sigma2", "psi", "psi2")),
    Form("tid_total", ("tid_mean", "tid_var"),
         lambda of, width, alpha: of["tid_mean"] + of["tid_var"], "tid_mean + tid_var"),
    Form("dist_mu_excess", ("tid_mean", "rows"),
         lambda of, width, alpha: of["tid_mean"] / numpy.sqrt(2 / ((1 + alpha) * of["rows"])),
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
