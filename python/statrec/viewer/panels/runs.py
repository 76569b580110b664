"""Runs side by side: their table, and one quantity of the chosen ones."""
from __future__ import annotations

from html import escape
from typing import Any, Sequence

import numpy
import pandas
import panel
from panel.widgets import Tabulator

from ..._library import Error
from .. import bins, commands, forms, runs
from ..draw import Chart, Curve, of_binned
from ..state import MODES
from ..texts import number, plain
from ._panel import Panel

_COLUMNS = ("loss", "lr", "grad_norm")
MOST = 24  # runs that are drawn: as many as statplot has looks


class RunsPanel(Panel):
    name, title = "runs", "Runs side by side"
    uses = frozenset({"run", "with", "x", "from", "to", "smooth", "log", "site", "compare", "mode"})

    def fits(self):
        return len(self.page.runs) > 1

    def controls(self):
        self._table_of_runs = None
        self._quantity = self.select("compare", "quantity")
        self._mode = self.select("mode", "drawn", 130)
        return [self._quantity, self._mode]

    def draw(self):
        page = self.page
        if self._table_of_runs is None:
            self._make_table()
        self._chosen = page.chosen()
        quantities = [*_COLUMNS, *self.run.metrics, *self._scalars()]
        self._name = page.choice("compare", quantities)
        self.sync(self._quantity, quantities, self._name)
        self.sync(self._mode, MODES, page.state["mode"])
        self._curves = {run.name: self._curve(run, i) for i, run in enumerate(self._chosen)}
        there = tuple(name for name, curve in self._curves.items() if curve is not None)
        fresh = not self.made((self._name, page.state["mode"], page.state["x"], there))
        if fresh:
            self._make()
        self._show()
        if fresh:
            self._attach()

    def _scalars(self):
        """Forms that may be compared first."""
        names = self.run.scalars
        first = [name for name in forms.COMPARABLE if name in names]
        return first + [name for name in names if name not in first]

    # -- the table of runs --------------------------------------------------------------------

    def _make_table(self):
        names, rows = runs.columns(self.page.runs.summaries())
        self._names = [row[0] for row in rows]
        frame = pandas.DataFrame(rows, columns=[plain(name, 40) for name in names])
        titles = {name: escape(name) for name in frame.columns}
        filters = {name: {"type": "input", "func": "like", "placeholder": "filter"}
                   for name in frame.columns[:4]}
        self._table_of_runs = Tabulator(
            frame, disabled=True, show_index=False, titles=titles, header_filters=filters,
            selectable="checkbox", pagination="local", page_size=12, layout="fit_data",
            sizing_mode="stretch_width", selection=self._selection(), text_align="left",
            configuration={"accessibility": True})
        self._table_of_runs.param.watch(self._selected, "selection")
        self._said_table = panel.pane.HTML(
            f"<p>{len(rows)} runs; the ticked ones are drawn beside {escape(plain(self.run.name))}."
            " Columns after the metrics are the options that differ.</p>")
        self._figures = panel.Column(sizing_mode="stretch_width", margin=0)
        self.view.objects = [self._said_table, self._table_of_runs, self._figures]

    def _selection(self):
        return [self._names.index(name) for name in self.page.state["with"] if name in self._names]

    def _selected(self, event):
        self.page.set_if_new("with", tuple(self._names[i] for i in sorted(event.new)))

    # -- the figure ---------------------------------------------------------------------------

    def _curve(self, run, n):
        """The Curve of the quantity, or None where the run lacks it."""
        page = self.page
        axis, (low, high) = page.state["x"], page.ends(run)
        try:
            window = run.window(axis, low, high)
            if self._name in run.metrics:
                x, values = run.metric(self._name, axis)
                return Curve(run.name, x, values, values, values, n)
            if self._name in _COLUMNS:
                binned, label = run.curve(self._name, window, page.bins), run.name
            elif self._name in run.scalars:
                site = run.site(page.site.name if self._common() else "")
                binned = run.scalar(self._name, run.sites.index(site), window, page.bins)
                label = f"{run.name}: {site.name}"
            else:
                return None
            return of_binned(label, binned, n,
                             median=bins.smooth(binned.median, page.state["smooth"]))
        except LookupError:
            pass
        except (Error, OSError) as why:
            page.unreadable(run, why)
        return None

    def _common(self):
        """Whether every run has the chosen site; else each shows its first one."""
        name = self.page.site.name
        return all(name in [site.name for site in run.sites] for run in self._chosen)

    def _site_words(self):
        return commands.site(self.page.site.name) if self._common() else "first"

    def _make(self):
        page, mode = self.page, self.page.state["mode"]
        drawn = [name for name, curve in self._curves.items() if curve is not None]
        titles = [plain(name) for name in drawn] if mode == MODES[1] else [
            self._name if mode == MODES[0] else f"{self._name} minus {plain(self.run.name)}"]
        self._charts = [Chart(page.look, page.x_range, title=title, y=self._name, x=page.state["x"],
                              log=self.log and mode != MODES[2],
                              definition=self.run.definition(self._name), name=f"runs-{i}",
                              unit=self._unit() if mode != MODES[2] else "")
                        for i, title in enumerate(titles)]
        for chart in self._charts[1:]:
            chart.figure.y_range = self._charts[0].figure.y_range
        for chart in self._charts:
            page.watch_zoom(chart.figure)

    def _unit(self):
        """Unit of a metric or a custom scalar; "" for others."""
        file = self.run.file
        about = file.metrics.get(self._name) or file.declared.get(self._name)
        return about.unit if about else ""

    def _attach(self):
        self.figures = [chart.figure for chart in self._charts]
        self.columns = 2 if len(self._charts) > 1 else 1
        self._figures.objects = [panel.GridBox(
            *(panel.pane.Bokeh(chart.figure, sizing_mode="stretch_width", min_width=340)
              for chart in self._charts), ncols=self.columns,
            sizing_mode="stretch_width")]

    def _show(self):
        curves = [curve for curve in self._curves.values() if curve is not None]
        ends = [self.page.burn_in(run) for run in self._chosen
                if self._curves.get(run.name) is not None]
        mode = self.page.state["mode"]
        if mode == MODES[1]:
            for chart, curve, end in zip(self._charts, curves, ends):
                chart.show([curve])
                chart.burn_in(end)
            return
        if mode == MODES[2]:
            curves = self._differences()
        self._charts[0].show(curves)
        self._charts[0].burn_in(*ends)

    def _differences(self):
        """Medians minus the medians of the page's run, which is linear between its bins."""
        reference = self._curves.get(self.run.name)
        found = []
        for curve in self._curves.values():
            if curve is None or reference is None or curve is reference or not len(reference.x):
                continue
            there = numpy.isfinite(reference.median)
            apart = curve.median - numpy.interp(curve.x, reference.x[there],
                                                reference.median[there], numpy.nan, numpy.nan)
            found.append(curve._replace(least=apart, median=apart, largest=apart))
        return found

    # -- texts --------------------------------------------------------------------------------

    def sentence(self):
        told = [f"{plain(name)} {number(_last(curve.median))}"
                for name, curve in self._curves.items() if curve is not None]
        lacking = [plain(name) for name, curve in self._curves.items() if curve is None]
        text = f"{plain(self._name)}, last median on screen: " + ", ".join(told) + "."
        if self._name not in forms.COMPARABLE and differ(self._chosen):
            text += (" These runs have different data or models, between which this number cannot "
                     f"be compared; {', '.join(self._scalars()[:3])} can.")
        if lacking:
            text += " Without it: " + ", ".join(lacking) + "."
        for line in self._warnings():
            text += f" Warning of statplot: {plain(line, 400)}"
        return text

    def _warnings(self):
        """Warnings of statplot about a comparison of these runs; empty before it has answered."""
        command = self.figure_command()
        if len(self._chosen) < 2 or command is None:
            return []
        return self.page.background(("warnings", tuple(command)), self,
                                    lambda: commands.drawn(command, "svg")[1]) or []

    def data(self):
        rows = []
        for name, curve in self._curves.items():
            if curve is not None:
                rows += [[name, *row] for row in zip(curve.x, curve.least, curve.median,
                                                     curve.largest)]
        return ["run", self.page.state["x"], "least", "median", "largest"], rows

    def rows(self):
        rows = [[name, _last(curve.median), numpy.nanmin(curve.least), numpy.nanmax(curve.largest)]
                for name, curve in self._curves.items()
                if curve is not None and numpy.isfinite(curve.median).any()]
        return ["run", "last", "least", "largest"], rows

    def figure_command(self):
        options = {"log": self.log, "smooth": self.page.state["smooth"]}
        steps = self.steps()
        if self._name in _COLUMNS:
            return commands.statplot("curves", self._chosen, steps, stat=self._name, **options)
        if self._name in self.run.metrics:
            return None
        return commands.statplot("compare", self._chosen, steps, stat=self._name,
                                 site=self._site_words(), **options)

    def data_command(self):
        steps = self.steps()
        if self._name in _COLUMNS:
            return commands.table("stat-curve", self._chosen, steps, stat=self._name)
        if self._name in self.run.metrics:
            return commands.table("stat-curve", self._chosen, evals=True, metric=self._name)
        return commands.table("stat-scalar", self._chosen, steps, stat=self._name, per_step=True,
                              site=self._site_words())


def differ(several: Sequence[Any]) -> bool:
    """Whether these runs have different data or models."""
    return len({(run.info["data"], run.info["model"]) for run in several}) > 1


def _last(values):
    values = values[numpy.isfinite(values)]
    return values[-1] if len(values) else numpy.nan
