"""Parts of all panels: controls, a figure, a sentence, the command, files, and a table in text."""
from __future__ import annotations

import csv
import io
from html import escape
from typing import Any, Optional, Sequence

import numpy
import panel

from ..._library import Error
from .. import commands, texts

TABLE_ROWS = 20  # of the table below a figure; the CSV has all


class Panel:
    """One panel. A subclass sets name, title, uses (fields of the state that it shows), and defines

    controls() -> widgets; draw(): figures of the current state into self.view; sentence() -> text;
    data() -> (column names, rows) for the CSV; and, if it has commands, figure_command() and
    data_command(), and rows() for a shorter table of text.
    """

    name = title = ""
    uses: frozenset[str] = frozenset()
    log_usual = False
    has_axis = True  # it can be drawn on a logarithmic axis
    folded = False

    def __init__(self, page: Any) -> None:
        self.page = page
        self.view = panel.Column(sizing_mode="stretch_width", margin=0)
        self._sentence = panel.pane.HTML("", sizing_mode="stretch_width", margin=(2, 8))
        self._command = panel.pane.HTML("", sizing_mode="stretch_width", margin=(2, 8))
        self._table = panel.pane.HTML("", sizing_mode="stretch_width", margin=(2, 8))
        self._said = panel.pane.HTML("", sizing_mode="stretch_width", margin=(2, 8))
        self._log = panel.widgets.Checkbox(name="logarithmic", margin=(22, 8, 0, 8), width=100)
        self._log.param.watch(lambda event: self._set_log(event.new), "value")
        self._telling = False
        self.figures: list[Any] = []  # the figures on the page, in this number of columns
        self.columns = 1
        self.card: Any = None

    # -- for subclasses -----------------------------------------------------------------------

    @property
    def run(self) -> Any:
        """The run that the page shows."""
        return self.page.run

    @property
    def log(self) -> bool:
        """Whether the axis, or the colours, are logarithmic."""
        return self.log_usual != (self.name in self.page.state["log"])

    def select(self, field: str, label: str, width: int = 190) -> Any:
        """A select widget of a field of the state; sync() gives it its options."""
        widget = panel.widgets.Select(name=label, options=[], width=width)
        self.listen(widget, field)
        return widget

    def listen(self, widget: Any, field: str) -> None:
        """Lets the user's choices, and not tell()'s, change a field of the state."""
        widget.param.watch(lambda event: None if self._telling else
                           self.page.set_if_new(field, event.new), "value")

    def tell(self, widget: Any, **values: Any) -> None:
        """Sets a widget to the value of the state."""
        self._telling = True
        try:
            widget.param.update(**values)
        finally:
            self._telling = False

    def sync(self, widget: Any, options: Sequence[Any], value: Any) -> None:
        """Gives a select its options and value."""
        options = list(options)
        if list(widget.options) != options or widget.value != value:
            self.tell(widget, options=options, value=value)

    def made(self, key: Any) -> bool:
        """Whether the figures of this key exist; else they must be made."""
        key = (key, self.page.look, self.log)
        if getattr(self, "_key", None) == key:
            return True
        self._key = key
        return False

    def attach(self, figures: Sequence[Any], columns: int = 1) -> None:
        """Puts figures on the page. They are drawn before: new figures are sent as a whole."""
        self.figures, self.columns = list(figures), columns
        panes = [panel.pane.Bokeh(figure, sizing_mode="stretch_width", min_width=340)
                 for figure in figures]
        self.view.objects = panes if columns == 1 else [
            panel.GridBox(*panes, ncols=columns, sizing_mode="stretch_width")]

    def steps(self) -> Optional[tuple[int, int]]:
        """Steps on screen, None where all are."""
        return self.page.steps_of(self.run)

    def fits(self) -> bool:
        """Whether the run has what the panel shows."""
        return True

    def controls(self) -> list[Any]:
        """Widgets above the figure."""
        return []

    def draw(self) -> None:
        """Draws the current state."""

    def sentence(self) -> str:
        """One sentence on what the figure shows."""
        return ""

    def data(self) -> tuple[list[str], list[Sequence[Any]]]:
        """The drawn data: names of columns, rows."""
        return [], []

    def rows(self) -> tuple[list[str], list[Sequence[Any]]]:
        """The table of the page's text."""
        names, rows = self.data()
        if len(rows) <= TABLE_ROWS:
            return names, rows
        return names, [rows[i] for i in numpy.linspace(0, len(rows) - 1, TABLE_ROWS).astype(int)]

    def figure_command(self) -> Optional[list[str]]:
        """The command that draws this picture; None without one."""
        return None

    def data_command(self) -> Optional[list[str]]:
        """The command that prints these numbers; None without one."""
        return None

    def other_commands(self) -> list[list[str]]:
        """Commands of pictures that show more of it."""
        return []

    # -- the frame ----------------------------------------------------------------------------

    def build(self) -> Any:
        """The card of the panel."""
        self._format = panel.widgets.Select(name="figure as", options=list(commands.FIGURE_FORMATS),
                                            width=80)
        save, figure = _file_button("Save figure", self._figure_file, f"{self.name}.pdf")
        self._format.param.watch(
            lambda event: setattr(figure, "filename", f"{self.name}.{event.new}"), "value")
        self._save = panel.Row(self._format, save, figure, margin=0)
        controls = [*self.controls(), *([self._log] if self.has_axis else []), self._save,
                    *_file_button("Save data (CSV)", self._data_file, f"{self.name}.csv")]
        self.card = panel.Card(
            panel.FlexBox(*controls, align_items="flex-start"), self._said, self.view,
            self._sentence, self._command, self._table, title=self.title, collapsed=self.folded,
            sizing_mode="stretch_width", margin=(4, 4), css_classes=[f"panel-{self.name}"])
        self.card.param.watch(lambda event: self.refresh(), "collapsed")
        return self.card

    def refresh(self) -> None:
        """Draws the panel again, if it is unfolded and the run has its data."""
        try:
            fits = self.fits()
            self.card.visible = fits
            if not fits or self.card.collapsed:
                return
            self._log.value = self.log
            self.draw()
            self.page.later(self._tell)
        except (Error, OSError, LookupError, ValueError) as why:
            self._lacks(why)

    def _tell(self):
        """The texts below the figure."""
        try:
            self._set(self._sentence, f"<p>{escape(self.sentence())}</p>")
            figure, data = self.figure_command(), self.data_command()
            self._save.visible = figure is not None
            lines = [f"<code tabindex='0' title='a click selects it'>"
                     f"{escape(commands.shown(command))}</code>"
                     for command in (figure, data, *self.other_commands()) if command]
            self._set(self._command, "<div class='commands'>Commands of this picture (a click "
                      "selects one): " + " ".join(lines) + "</div>" if lines else "")
            names, rows = self.rows()
            self._set(self._table, "<details><summary>Data as text</summary>"
                      + texts.table(names, rows) + "</details>" if names else "")
            self.say("")
        except (Error, OSError, LookupError, ValueError) as why:
            self._lacks(why)

    def _lacks(self, why):
        """Shows why there is no picture."""
        if not isinstance(why, (LookupError, ValueError)):
            self.page.unreadable(self.run, why)
        self.say(f"This panel cannot be drawn: {why}")

    def words(self) -> tuple[str, str]:
        """HTML: the sentence, and the texts below the figure."""
        below = (self._sentence, self._command, self._table)
        return self._said.object, "".join(pane.object for pane in below)

    def say(self, text: str) -> None:
        """A line above the figure; "" for none."""
        self._set(self._said, f"<p role='status'><b>{texts.escaped(text, 600)}</b></p>"
                  if text else "")

    @staticmethod
    def _set(pane, text):
        if pane.object != text:
            pane.object = text

    def _set_log(self, value):
        if value != self.log:
            chosen = set(self.page.state["log"]) ^ {self.name}
            self.page.set(log=tuple(sorted(chosen)))

    # -- files --------------------------------------------------------------------------------

    def _figure_file(self):
        try:
            image, warned = commands.drawn(self.figure_command(), self._format.value)
        except (Error, OSError) as why:
            self.say(f"statplot: {why}")
            return io.BytesIO(str(why).encode())
        self.say("; ".join(warned))
        return io.BytesIO(image)

    def _data_file(self):
        names, rows = self.data()
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(names)
        writer.writerows([cell if isinstance(cell, str) else f"{cell:.9g}" for cell in row]
                         for row in rows)
        return io.BytesIO(text.getvalue().encode())


def _file_button(label, callback, name):
    """(button, file): a button that saves what callback() returns.

    The button of FileDownload itself has its click at a link without address, which the keyboard
    does not reach.
    """
    file = panel.widgets.FileDownload(callback=callback, filename=name, label="", visible=False)
    button = panel.widgets.Button(name=label, width=140, margin=(22, 4, 0, 4))
    button.on_click(lambda event: file.param.update(_clicks=file._clicks + 1))
    return button, file


def of_bins(run: Any, binned: Any, window: Any, steps: Any, column: int = 0) -> list[list[Any]]:
    """Rows first step, last step, least, median, largest of a column of bins.Binned."""
    first = steps[window.first + binned.first]
    last = steps[window.first + binned.last]
    return [list(row) for row in zip(first.tolist(), last.tolist(), binned.least[:, column],
                                     binned.median[:, column], binned.largest[:, column])]


BIN_COLUMNS = ["first_step", "last_step", "least", "median", "largest"]
