"""Scalars of each step that the recording program declared: attention, activations, its own."""
from __future__ import annotations

import numpy

from .. import bins, commands
from ..draw import Chart, of_binned
from ..texts import number, plain, with_unit
from ._panel import BIN_COLUMNS, Panel, of_bins


class Own(Panel):
    name, title = "own", "Scalars of the recording program"
    uses = frozenset({"run", "x", "from", "to", "smooth", "log", "own"})
    folded = True

    def names(self):
        """The scalars that are declared for each step."""
        return [name for name, about in self.run.file.declared.items() if about.scope == "step"]

    def fits(self):
        return bool(self.names())

    def controls(self):
        self._scalar = self.select("own", "scalar")
        return [self._scalar]

    def draw(self):
        run, page, names = self.run, self.page, self.names()
        self._name = page.choice("own", names)
        self.sync(self._scalar, names, self._name)
        self._window = page.window(run)
        self._binned = run.curve(self._name, self._window, page.bins)
        fresh = not self.made((self._name, page.state["x"]))
        if fresh:
            about = run.file.declared[self._name]
            self._chart = Chart(page.look, page.x_range, title=with_unit(self._name, about.unit),
                                y=self._name, log=self.log, definition=about.definition,
                                x=page.state["x"], name="own", unit=about.unit)
            page.watch_zoom(self._chart.figure)
        self._chart.show([of_binned(self._name, self._binned, median=bins.smooth(
            self._binned.median, page.state["smooth"]))])
        self._chart.burn_in(page.burn_in(run))
        if fresh:
            self.attach([self._chart.figure])

    def sentence(self):
        values = self._binned.median[numpy.isfinite(self._binned.median)]
        if not len(values):
            return f"{plain(self._name)} has no value on screen."
        return (f"{plain(self._name)}: {plain(self.run.definition(self._name), 200)}; on screen "
                f"median {number(numpy.median(values))}, last {number(values[-1])}.")

    def data(self):
        return BIN_COLUMNS, of_bins(self.run, self._binned, self._window, self.run.steps)

    def figure_command(self):
        return commands.statplot("curves", [self.run], self.steps(), stat=self._name, log=self.log,
                                 smooth=self.page.state["smooth"])

    def data_command(self):
        return commands.table("stat-curve", [self.run], self.steps(), stat=self._name)
