"""Singular values: of embeddings over training, and of the inputs of sites."""
from __future__ import annotations

import numpy
from bokeh.models import DataRange1d

from .. import commands
from ..draw import Chart, Curve
from ..texts import number, plain
from ._panel import Panel

_RECORDS = 6  # curves of a chart: the first, the last, and between


class Spectra(Panel):
    name, title = "spectra", "Spectra over training"
    uses = frozenset({"run", "log", "site"})
    log_usual = True
    folded = True

    def fits(self):
        return bool(self.run.file.embeddings) or bool(self.run.info["spectra"])

    def draw(self):
        found = {f"embedding {plain(name, 40)}": self.run.file.embedding(name)
                 for name in self.run.file.embeddings}
        if self.run.info["spectra"]:
            at = self.page.site
            found.update((f"{which} of {at.name}", self.run.file.spectrum(which, at.name))
                         for which in ("input", "gradient"))
        self._found = {name: one for name, one in found.items() if len(one.step)}
        curves = {name: _curves(one) for name, one in self._found.items()}
        labels = [[curve.label for curve in several] for several in curves.values()]
        fresh = not self.made((tuple(self._found), labels))
        if fresh:
            self._charts = {name: Chart(
                self.page.look, DataRange1d(range_padding=0.02), log=self.log,
                title=f"singular values: {name}", y="s_i / s_1", x="index i",
                definition="singular values of a recorded step, divided by the largest",
                name=f"spectra-{i}") for i, name in enumerate(self._found)}
        for name, several in curves.items():
            self._charts[name].show(several)
        if fresh:
            self.attach([chart.figure for chart in self._charts.values()], columns=2)

    def sentence(self):
        told = []
        for name, one in self._found.items():
            ends = sorted({0, len(one.step) - 1})
            told.append(f"{plain(name)}: {len(one.step)} record{'s' if len(ends) > 1 else ''}, "
                        "effective rank " + " and ".join(
                            f"{number(effective_rank(one.values[i]))} at step {int(one.step[i])}"
                            for i in ends))
        return "; ".join(told) + "."

    def data(self):
        rows = []
        for name, one in self._found.items():
            for step, values in zip(one.step, one.values):
                rows += [[name, int(step), i + 1, value] for i, value in enumerate(values)]
        return ["matrix", "step", "index", "singular_value"], rows

    def rows(self):
        return (["matrix", "step", "largest", "effective rank"],
                [[name, int(step), values[0], effective_rank(values)]
                 for name, one in self._found.items()
                 for step, values in list(zip(one.step, one.values))[-8:]])

    def figure_command(self):
        if not self.run.file.embeddings:
            return None
        return commands.statplot("fig6", [self.run], log=self.log)

    def data_command(self):
        if not self.run.file.embeddings:
            return None
        return commands.table("stat-svd", [self.run])


def _curves(one):
    curves = []
    picked = numpy.unique(numpy.linspace(0, len(one.step) - 1, _RECORDS).astype(int))
    for n, record in enumerate(picked):
        values = numpy.asarray(one.values[record], dtype=numpy.float64)
        with numpy.errstate(all="ignore"):
            values = numpy.where(values > 0, values / values[0], numpy.nan)
        curves.append(Curve(f"step {int(one.step[record])}", numpy.arange(1, len(values) + 1),
                            values, values, values, n))
    return curves


def effective_rank(values):
    """exp of the entropy of the singular values divided by their sum (Roy and Vetterli 2007)."""
    values = numpy.asarray(values, dtype=numpy.float64)
    values = values[values > 0]
    if not len(values):
        return numpy.nan
    part = values / values.sum()
    return float(numpy.exp(-(part * numpy.log(part)).sum()))
