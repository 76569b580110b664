"""A site: one of its scalars through time, with its range."""
from __future__ import annotations

import numpy

from .. import bins, commands
from ..draw import Chart, of_binned
from ..texts import number, plain
from ._panel import BIN_COLUMNS, Panel, of_bins


class Site(Panel):
    name, title = "site", "Site: scalars"
    uses = frozenset({"run", "x", "from", "to", "smooth", "log", "site", "scalar"})
    usual = ("tid_mean", "tid_var")

    def fits(self):
        return bool(self.run.scalars) and bool(self.run.sites)

    def controls(self):
        self._site = self.select("site", "site", 240)
        self._scalar = self.select("scalar", "scalar")
        return [self._site, self._scalar]

    def draw(self):
        run, page = self.run, self.page
        self._at = page.site
        self._name = page.choice("scalar", run.scalars, self.usual)
        self.sync(self._site, [site.name for site in run.sites], self._at.name)
        self.sync(self._scalar, run.scalars, self._name)
        self._window = page.window(run)
        self._binned = run.scalar(self._name, run.sites.index(self._at), self._window, page.bins)
        fresh = not self.made("site")
        if fresh:
            self._chart = Chart(page.look, page.x_range, title="", y="", log=self.log, height=260,
                                name="site")
            page.watch_zoom(self._chart.figure)
        self._chart.describe(f"{self._name} at {self._at.name}", self._name, page.state["x"],
                             run.definition(self._name))
        self._chart.show([of_binned("", self._binned, median=bins.smooth(
            self._binned.median, page.state["smooth"]))])
        self._chart.burn_in(page.burn_in(run))
        if fresh:
            self.attach([self._chart.figure])

    def sentence(self):
        site, values = self._at, self._binned.median[:, 0]
        values = values[numpy.isfinite(values)]
        told = ", ".join([plain(text) for text in (site.called, site.kind) if text] +
                         [f"{site.width} features", f"alpha {number(site.alpha)}"])
        told = f"Site {plain(site.name)}: {told}"
        if not len(values):
            return f"{told}; {plain(self._name)} has no value there on screen."
        return (f"{told}; {plain(self._name)} on screen: median {number(numpy.median(values))}, "
                f"smallest {number(numpy.nanmin(self._binned.least))}, largest "
                f"{number(numpy.nanmax(self._binned.largest))}; last {number(values[-1])}.")

    def data(self):
        rows = of_bins(self.run, self._binned, self._window, self.run.steps)
        return ["site", *BIN_COLUMNS], [[self._at.name, *row] for row in rows]

    def figure_command(self):
        return commands.statplot("compare", [self.run], self.steps(), stat=self._name,
                                 site=commands.site(self._at.name), log=self.log,
                                 smooth=self.page.state["smooth"])

    def data_command(self):
        return commands.table("stat-scalar", [self.run], self.steps(), stat=self._name,
                              site=commands.site(self._at.name), per_step=True)
