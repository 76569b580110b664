"""A site's features against time, one feature through time, and all features at a step."""
from __future__ import annotations

import numpy
import panel

from .. import bins, commands, draw, forms
from ..state import ORDERS
from ..texts import number, plain
from ._panel import BIN_COLUMNS, Panel, of_bins
from .depth import on_grid

MOST = 512  # features of a map; more than the screen has lines


class Features(Panel):
    name, title = "features", "Site: features against time"
    uses = frozenset({"run", "x", "from", "to", "log", "site", "vector", "order", "feature"})
    usual = ("mu_B", "psi2_B", "sigma2_B", "gamma")

    def fits(self):
        return bool(self.run.vectors) and bool(self.run.sites)

    def controls(self):
        self._vector = self.select("vector", "vector")
        self._order = self.select("order", "order of features", 130)
        self._feature = panel.widgets.IntInput(name="feature", start=0, width=100)
        self.listen(self._feature, "feature")
        return [self._vector, self._order, self._feature]

    def draw(self):
        run, page = self.run, self.page
        self._name = page.choice("vector", run.vectors, self.usual)
        self._at = page.site
        self._number = min(page.state["feature"], self._at.width - 1)
        self.sync(self._vector, run.vectors, self._name)
        self.sync(self._order, ORDERS, page.state["order"])
        self.tell(self._feature, end=self._at.width - 1, value=self._number)
        low, high = page.ends(run)
        self._window = run.vector_window(page.state["x"], low, high)
        self._binned = run.vector(self._name, self._at.name, self._window, page.bins // 2)
        self._shown = run.feature_order(self._name, self._at.name, self._window,
                                        page.state["order"])[:MOST]
        self._ends, self._grid = on_grid(self._binned, self._binned.median[:, self._shown],
                                         self._window)
        signed = bool((self._grid[numpy.isfinite(self._grid)] < 0).any())
        fresh = not self.made(signed)
        if fresh:
            self._make(signed)
        self._draw_map()
        self._draw_feature()
        if fresh:
            self.attach([self._map.figure, self._chart.figure])

    def _make(self, signed):
        page = self.page
        self._map = draw.HeatMap(page.look, page.x_range, title="", x="", y="feature",
                                 log=self.log and not signed, signed=signed, height=360,
                                 name="features")
        self._chart = draw.Chart(page.look, page.x_range, title="", y="", log=self.log,
                                 name="feature")
        page.watch_click(self._map.figure, self._tapped)
        for made in (self._map.figure, self._chart.figure):
            page.watch_zoom(made)

    def _draw_map(self):
        self._map.describe(f"{self._name} at {self._at.name}", "feature", self.page.state["x"],
                           self.run.definition(self._name))
        self._map.burn_in(self.page.burn_in(self.run))
        self._map.show(self._ends, [str(feature) for feature in self._shown], self._grid)
        place = numpy.flatnonzero(self._shown == self._number)
        self._map.mark(int(place[0]) if len(place) else None, len(self._shown))

    def _draw_feature(self):
        self._chart.describe(f"feature {self._number} of {self._name} at {self._at.name}",
                             self._name, self.page.state["x"], self.run.definition(self._name))
        self._chart.show([draw.of_binned("", self._binned, column=self._number)])
        self._chart.burn_in(self.page.burn_in(self.run))

    def _tapped(self, event):
        row = self._map.row_at(event.y)
        if row is None or not len(self._window):
            return
        near = int(numpy.abs(self._window.x - event.x).argmin())
        step = int(self.run.vector_steps()[self._window.first + near])
        self.page.set(feature=int(self._shown[row]), at=step)

    def sentence(self):
        values = self._binned.median[:, self._number]
        values = values[numpy.isfinite(values)]
        cut = (f"; the first {MOST} in this order are drawn" if self._at.width > MOST else "")
        told = (f"{plain(self._name)} of {self._at.width} features at {plain(self._at.name)}, "
                f"recorded at {len(self._window)} step{'s' if len(self._window) != 1 else ''} on "
                f"screen{cut}")
        if not len(values):
            return f"{told}; feature {self._number} has no value there."
        return (f"{told}; feature {self._number} goes from {number(values[0])} to "
                f"{number(values[-1])}. A click chooses feature and step.")

    def rows(self):
        names, rows = ["feature", "least", "median", "largest"], []
        for feature in self._shown[:20]:
            column = self._binned.median[:, feature]
            column = column[numpy.isfinite(column)]
            rows.append([str(feature), *(
                [self._binned.least[:, feature].min(), float(numpy.median(column)),
                 self._binned.largest[:, feature].max()] if len(column) else [numpy.nan] * 3)])
        return names, rows

    def data(self):
        rows, steps = [], self.run.vector_steps()
        for feature in self._shown:
            rows += [[str(feature), *row] for row in of_bins(self.run, self._binned, self._window,
                                                             steps, int(feature))]
        return ["feature", *BIN_COLUMNS], rows

    def figure_command(self):
        return commands.statplot("heatmap", [self.run], self.steps(), stat=self._name,
                                 site=commands.site(self._at.name),
                                 order=self.page.state["order"], log=self.log)

    def data_command(self):
        return commands.table("stat-features", [self.run], self.steps(), stat=self._name,
                              site=commands.site(self._at.name), per_feature=True,
                              order=self.page.state["order"])


class Step(Panel):
    name, title = "step", "Site: all features at a step"
    uses = frozenset({"run", "x", "from", "to", "site", "vector", "at"})
    has_axis = False

    def fits(self):
        return bool(self.run.vectors) and bool(self.run.sites)

    def controls(self):
        self._step = panel.widgets.IntInput(name="step (the next recorded one)", start=0, width=180)
        self.listen(self._step, "at")
        return [self._step]

    def draw(self):
        run, page = self.run, self.page
        self._name, self._at = page.choice("vector", run.vectors, Features.usual), page.site
        steps = run.vector_steps()
        if not len(steps):
            raise ValueError("no vectors are recorded yet")
        row = len(steps) - 1 if page.state["at"] < 0 else min(
            int(numpy.searchsorted(steps, page.state["at"])), len(steps) - 1)
        self._number = int(steps[row])
        self.tell(self._step, value=self._number)
        self._values = run.vector_row(self._name, self._at.name, row)
        self._pair = forms.pair_of(self._name)
        paired = self._pair and {self._pair, f"{self._pair}_B"} <= set(run.vectors)
        self._both = [run.vector_row(name, self._at.name, row)
                      for name in (self._pair, f"{self._pair}_B")] if paired else None
        fresh = not self.made(bool(paired))
        if fresh:
            self._bars = draw.Bars(page.look, title="", x="", name="histogram")
            self._points = draw.Scatter(page.look, title="", x="", y="", name="quantiles")
        self._bars.show(f"{self._name} at {self._at.name}, step {self._number}", self._name,
                        *self._histogram())
        if paired:
            self._points.show(
                f"quantiles of {self._pair}_B against {self._pair}, step {self._number}",
                (f"running {self._pair}", f"batch {self._pair}_B"),
                *map(numpy.sort, self._finite_pair()))
        if fresh:
            self.attach([self._bars.figure, *([self._points.figure] if paired else [])], columns=2)

    def _finite_pair(self):
        there = numpy.isfinite(self._both[0]) & numpy.isfinite(self._both[1])
        return [part[there] for part in self._both]

    def _histogram(self):
        """(edges [K + 1], counts [K]) of the finite values, K about the root of their number."""
        values = self._values[numpy.isfinite(self._values)].astype(numpy.float64)
        if not len(values):
            return numpy.zeros(1), numpy.zeros(0)
        counts, edges = numpy.histogram(values, bins=max(8, min(64, int(len(values) ** 0.5) * 2)))
        return edges, counts

    def sentence(self):
        values = self._values[numpy.isfinite(self._values)]
        if not len(values):
            return f"{plain(self._name)} has no finite value at step {self._number}."
        return (f"{plain(self._name)} of {len(values)} features at {plain(self._at.name)} in step "
                f"{self._number}: median {number(numpy.median(values))}, from "
                f"{number(values.min())} to {number(values.max())}.")

    def data(self):
        rows = [[str(feature), value] for feature, value in enumerate(self._values)]
        return ["feature", self._name], rows

    def figure_command(self):
        return commands.statplot("histogram", [self.run], stat=self._name,
                                 site=commands.site(self._at.name), step=self._number)

    def data_command(self):
        return commands.table("stat-features", [self.run], stat=self._name, per_feature=True,
                              site=commands.site(self._at.name), step=self._number)

    def other_commands(self):
        """Batch against running values, feature by feature over the steps on screen."""
        return [] if self._both is None else [
            commands.statplot("quantiles", [self.run], self.steps(),
                              site=commands.site(self._at.name))]
