"""Losses, a metric, learning rate and gradient norm."""
from __future__ import annotations

import numpy

from .. import bins, commands
from ..draw import Chart, Curve, of_binned
from ..texts import number, plain, with_unit
from ._panel import BIN_COLUMNS, Panel, of_bins

_COLUMNS = ("loss", "lr", "grad_norm")
_TITLES = {"loss": "Training and validation loss", "lr": "Learning rate",
           "grad_norm": "Gradient norm"}


class Losses(Panel):
    name, title = "losses", "Losses and metrics"
    uses = frozenset({"run", "x", "from", "to", "smooth", "log", "metric"})

    def controls(self):
        self._metric = self.select("metric", "metric")
        return [self._metric]

    def draw(self):
        run, page = self.run, self.page
        metrics = run.metrics
        metric = page.choice("metric", metrics)
        self.sync(self._metric, metrics, metric)
        self._window = page.window(run)
        self._binned = {name: run.curve(name, self._window, page.bins) for name in _COLUMNS}
        there = [name for name in _COLUMNS if numpy.isfinite(self._binned[name].median).any()]
        fresh = not self.made((there, metric, "valid_loss" in metrics, page.state["x"]))
        if fresh:
            self._make(there, metric)
        for name in there:
            self._charts[name].show(self._curves(name))
            self._charts[name].burn_in(page.burn_in(run))
        if metric:
            x, values = run.metric(metric, page.state["x"])
            self._charts["metric"].show([Curve(metric, x, values, values, values, points=True)])
        if fresh:
            self.attach([chart.figure for chart in self._charts.values()], columns=2)

    def _make(self, there, metric):
        page, run = self.page, self.run
        self._charts = {name: Chart(page.look, page.x_range, title=_TITLES[name], y=name,
                                    log=self.log, definition=run.definition(f"steps/{name}"),
                                    x=page.state["x"], name=f"losses-{name}") for name in there}
        if metric:
            about = run.file.metrics[metric]
            self._charts["metric"] = Chart(
                page.look, page.x_range, title=with_unit(metric, about.unit), y=metric,
                log=self.log, definition=about.definition, x=page.state["x"], name="losses-metric",
                unit=about.unit)
        for chart in self._charts.values():
            page.watch_zoom(chart.figure)

    def _curves(self, name):
        binned, page = self._binned[name], self.page
        curves = [of_binned(f"training {name}" if name == "loss" else name, binned,
                            median=bins.smooth(binned.median, page.state["smooth"]))]
        if name == "loss" and "valid_loss" in self.run.metrics:
            x, values = self.run.metric("valid_loss", page.state["x"])
            curves.append(Curve("validation loss", x, values, values, values, 1, points=True))
        return curves

    def sentence(self):
        steps, loss = self.run.steps, self._binned["loss"].median[:, 0]
        loss = loss[numpy.isfinite(loss)]
        if not len(loss):
            return f"{len(steps)} steps, no finite loss on screen."
        told = (f"On screen the training loss goes from {number(loss[0])} to {number(loss[-1])}, "
                f"its smallest median is {number(loss.min())}")
        metric = self.page.choice("metric", self.run.metrics)
        if metric:
            values = self.run.metric(metric, self.page.state["x"])[1]
            told += f"; the last {plain(metric)} is {number(values[-1])}"
        return told + "."

    def data(self):
        rows = []
        for name in _COLUMNS:
            rows += [[name, *row] for row in of_bins(self.run, self._binned[name], self._window,
                                                     self.run.steps)]
        return ["column", *BIN_COLUMNS], rows

    def figure_command(self):
        return commands.statplot("curves", [self.run], self.steps(), log=self.log,
                                 smooth=self.page.state["smooth"])

    def data_command(self):
        return commands.table("stat-curve", [self.run], self.steps(), stat=list(_COLUMNS))
