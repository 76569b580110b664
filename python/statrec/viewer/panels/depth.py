"""Depth against time: a statistic at every site as a heat map; a click on a site chooses it."""
from __future__ import annotations

import numpy

from .. import commands, draw
from ..state import SHOWS
from ..texts import number, plain
from ._panel import BIN_COLUMNS, Panel, of_bins


class Depth(Panel):
    name, title = "depth", "Depth against time"
    uses = frozenset({"run", "x", "from", "to", "log", "stat", "show", "site"})
    log_usual = True
    usual = ("tid_var", "tid_mean", "rel_psi2", "row_grad_var")

    def fits(self):
        return bool(self.run.scalars) and bool(self.run.sites)

    def controls(self):
        self._stat = self.select("stat", "statistic")
        self._show = self.select("show", "of each bin", 110)
        return [self._stat, self._show]

    def draw(self):
        run, page = self.run, self.page
        self._name = stat = page.choice("stat", run.scalars, self.usual)
        self.sync(self._stat, run.scalars, stat)
        self.sync(self._show, SHOWS, page.state["show"])
        self._window = page.window(run)
        self._binned = run.scalar(stat, None, self._window, page.bins)
        names = [site.name for site in run.sites]
        values = getattr(self._binned, {"smallest": "least"}.get(page.state["show"],
                                                                page.state["show"]))
        ends, grid = on_grid(self._binned, values, self._window)
        signed = bool((grid[numpy.isfinite(grid)] < 0).any())
        fresh = not self.made((signed, len(names)))
        if fresh:
            self._map = draw.HeatMap(page.look, page.x_range, title=stat, x=page.state["x"],
                                     y="site", definition=run.definition(stat),
                                     log=self.log and not signed, signed=signed,
                                     height=min(120 + 14 * len(names), 640), name="depth")
            page.watch_click(self._map.figure, self._tapped)
            page.watch_zoom(self._map.figure)
        self._map.describe(stat, "site", page.state["x"], run.definition(stat))
        self._map.show(ends, names, grid)
        self._map.burn_in(page.burn_in(run))
        self._map.mark(names.index(page.site.name), len(names))
        if fresh:
            self.attach([self._map.figure])

    def _tapped(self, event):
        row = self._map.row_at(event.y)
        if row is not None:
            self.page.set(site=self.run.sites[row].name)

    def sentence(self):
        medians = _median(self._binned.median)
        if not numpy.isfinite(medians).any():
            return f"{plain(self._name)} has no value on screen."
        at = int(numpy.nanargmax(medians))
        return (f"{plain(self._name)} at {len(medians)} sites, from the first (top) to the last: "
                f"its median over the steps on screen is largest at "
                f"{plain(self.run.sites[at].name)}, {number(medians[at])}, and smallest at "
                f"{plain(self.run.sites[int(numpy.nanargmin(medians))].name)}, "
                f"{number(numpy.nanmin(medians))}.")

    def rows(self):
        median, largest = _median(self._binned.median), _largest(self._binned.largest)
        return (["site", "median on screen", "largest on screen"],
                [[site.name, median[i], largest[i]] for i, site in enumerate(self.run.sites)])

    def data(self):
        rows = []
        for i, site in enumerate(self.run.sites):
            rows += [[site.name, *row] for row in of_bins(self.run, self._binned, self._window,
                                                          self.run.steps, i)]
        return ["site", *BIN_COLUMNS], rows

    def figure_command(self):
        return commands.statplot("layers", [self.run], self.steps(), stat=self._name,
                                 linear=not self.log)

    def data_command(self):
        return commands.table("stat-scalar", [self.run], self.steps(), stat=self._name,
                              per_step=True)


def _median(values):
    with numpy.errstate(all="ignore"):
        return numpy.array([numpy.median(column[numpy.isfinite(column)])
                            if numpy.isfinite(column).any() else numpy.nan for column in values.T])


def _largest(values):
    return numpy.array([column[numpy.isfinite(column)].max() if numpy.isfinite(column).any()
                        else numpy.nan for column in values.T])


def on_grid(binned, values, window):
    """((left, right), [C, G]): values [B, C] of bins on as many columns of equal width."""
    x = binned.x
    if len(x) < 2:
        at = float(x[0]) if len(x) else 0.0
        return (at - 0.5, at + 0.5), values.T
    gaps = numpy.diff(x)
    if gaps.max() - gaps.min() <= 0.02 * gaps.mean():
        half = 0.5 * gaps.mean()
        return (float(x[0]) - half, float(x[-1]) + half), values.T
    count = min(2 * len(x), 1200)
    left, right = float(x[0]), float(x[-1])
    centres = left + (numpy.arange(count) + 0.5) * (right - left) / count
    return (left, right), values[numpy.searchsorted(0.5 * (x[1:] + x[:-1]), centres)].T
