"""Charts of the page: lines with bands, heat maps and bars by Bokeh, in the colours of statplot."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence

import numpy
from bokeh.models import (BasicTickFormatter, ColumnDataSource, DataRange1d, FixedTicker, HoverTool,
                          LinearColorMapper, LogColorMapper, Range1d)
from bokeh.models.annotations import BoxAnnotation, ColorBar, Span
from bokeh.plotting import figure

from .texts import literal, plain

# plots/style.gp: look_colour and look_dash (Wong, Nature Methods 2011), the palette of heat maps.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#999999")
DASHES = ("solid", [9, 2], [3, 2], [9, 2, 2, 2], [5, 2], [5, 2, 2, 2], [2, 4], [14, 3])
_VIRIDIS = ("#440154", "#472D7B", "#3B528B", "#2C728E", "#21918C", "#28AE80", "#5EC962", "#ADDC30",
            "#FDE725")
_PADDING = 0.05  # of the range of y, half of it at each end
_FEW = 12  # a line of up to 12 values has marks: a single value would be invisible
_DIVERGING = ("#0072B2", "#7FB8D8", "#F2F2F2", "#EAAE7F", "#D55E00")


def palette(stops: Sequence[str], count: int = 256) -> list[str]:
    """`count` colours through the stops."""
    rgb = numpy.array([[int(stop[i:i + 2], 16) for i in (1, 3, 5)] for stop in stops], dtype=float)
    at = numpy.linspace(0, len(stops) - 1, count)
    channels = [numpy.interp(at, range(len(stops)), rgb[:, i]).round().astype(int)
                for i in range(3)]
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in zip(*channels)]


VIRIDIS, DIVERGING = palette(_VIRIDIS), palette(_DIVERGING)


class Look(NamedTuple):
    """Colours of everything that is no data, of the light or the dark page."""

    text: str
    grid: str
    ground: str
    black: str  # drawn in place of "#000000" of COLOURS


LIGHT = Look("#202020", "#D8D8D8", "#FFFFFF", "#000000")
DARK = Look("#E0E0E0", "#404040", "#1B1B1B", "#F0F0F0")


class Curve(NamedTuple):
    """x, least, median, largest [B] of a line; n: its place among COLOURS; points: no line."""

    label: str
    x: Any
    least: Any
    median: Any
    largest: Any
    n: int = 0
    points: bool = False


def of_binned(label: str, binned: Any, n: int = 0, column: int = 0, median: Any = None) -> Curve:
    """A Curve of one column of bins.Binned; median: a smoothed one replaces it."""
    middle = binned.median if median is None else median
    return Curve(label, binned.x, binned.least[:, column], middle[:, column],
                 binned.largest[:, column], n)


class Chart:
    """A figure of lines. Call show() before the figure is on the page, then with the same number
    and labels of curves: the figure on the page keeps its models. unit "percent": the axis ends at
    0 and 100, unless the first values lie beyond."""

    def __init__(self, look: Look, x_range: Any, *, title: str, y: str, log: bool = False,
                 height: int = 220, definition: str = "", x: str = "", name: str = "",
                 unit: str = "") -> None:
        self._look, self._log, self._unit = look, log, unit
        self._labels: Any = None
        self._sources: list[Any] = []
        self._marks: list[Any] = []  # of the lines, None for points
        self.figure = _figure(look, x_range, title, height, y_axis_type="log" if log else "linear",
                              y_range=DataRange1d(range_padding=_PADDING, only_visible=True),
                              name=name or None)
        self.figure.yaxis.axis_label = plain(y, 60)
        self.figure.xaxis.axis_label = x
        if not log:  # 0.0005, not 5.000e-4
            self.figure.yaxis.formatter = BasicTickFormatter(power_limit_low=-5)
        self._hover: Any = None
        self._described = (x, definition)
        self._burn_in, self._of_some = (
            BoxAnnotation(fill_color="#808080", fill_alpha=alpha, level="underlay", visible=False)
            for alpha in (0.15, 0.07))
        self.figure.add_layout(self._burn_in)
        self.figure.add_layout(self._of_some)

    def describe(self, title: str, y: str, x: str, definition: str) -> None:
        """Title, names of the axes, and the definition of the hover texts."""
        self.figure.title.text = plain(title, 100)
        self.figure.yaxis.axis_label, self.figure.xaxis.axis_label = plain(y, 60), x
        if self._hover is not None and (x, definition) != self._described:
            self._hover.tooltips = _tooltips(x, definition)
        self._described = (x, definition)

    def burn_in(self, *of: Optional[float]) -> None:
        """Shades from the start to this x; None: nothing. With several runs: to the least, and from
        there lightly to the largest."""
        ends = [end for end in of if end is not None]
        every = min(ends) if ends and len(ends) == len(of) else None
        some = max(ends, default=None)
        self._burn_in.update(right=every, visible=every is not None)
        self._of_some.update(left=every, right=some, visible=some != every)

    def show(self, curves: Sequence[Curve]) -> None:
        """Draws these curves in place of those before."""
        labels = [(curve.label, curve.n, curve.points) for curve in curves]
        if not self._log:
            self._ends(curves)
        if labels != self._labels:
            self._make(curves)
            self._labels = labels
        for source, marks, curve in zip(self._sources, self._marks, curves):
            source.data = _columns(curve)
            if marks is not None:
                marks.visible = int(numpy.isfinite(curve.median).sum()) <= _FEW

    def _ends(self, curves):
        """Around a constant a tenth of it, as statplot does; percents from 0 to 100 at most. Bokeh
        takes the ends that are set when the figure is new, and the span at any time."""
        y_range = self.figure.y_range
        values = numpy.concatenate([[], *([curve.least, curve.largest] for curve in curves)],
                                   axis=None)
        values = values[numpy.isfinite(values)]
        if not len(values):
            return
        low, high = values.min(), values.max()
        room = _PADDING / 2 * (high - low) or 0.1 * abs(high) or 1
        if low == high:
            y_range.default_span = 2 * float(room)
        if self._labels is None and self._unit == "percent" and 0 <= low and high <= 100:
            if low < room:
                y_range.start = 0
            if high + room > 100:
                y_range.end = 100

    def _make(self, curves):
        self.figure.renderers = []
        self.figure.tools = [tool for tool in self.figure.tools if not isinstance(tool, HoverTool)]
        if self.figure.legend:
            self.figure.legend.items = []
        self._sources, self._marks, lines = [], [], []
        for curve in curves:
            source = ColumnDataSource(data=_columns(curve))
            self._sources.append(source)
            lines.append(self._line(source, curve, len(curves) > 1))
        self._hover = HoverTool(
            renderers=lines, mode="vline", point_policy="snap_to_data",
            formatters=dict.fromkeys(("@x", "@least", "@median", "@largest"), "printf"),
            tooltips=_tooltips(*self._described))
        self.figure.add_tools(self._hover)
        if len(curves) > 1:
            self.figure.legend.update(background_fill_alpha=0.6, label_text_font_size="8pt",
                                      background_fill_color=self._look.ground, padding=2,
                                      label_text_color=self._look.text, spacing=0,
                                      click_policy="hide")

    def _line(self, source, curve, named):
        colour, dash = COLOURS[curve.n % 8], DASHES[curve.n % 8]
        colour = self._look.black if colour == "#000000" else colour
        named = {"legend_label": plain(curve.label, 60)} if named else {}
        if curve.points:
            self._marks.append(None)
            return self.figure.scatter("x", "median", source=source, size=5, color=colour, **named)
        self.figure.varea("x", "least", "largest", source=source, fill_color=colour,
                          fill_alpha=0.25)
        self._marks.append(self.figure.scatter("x", "median", source=source, size=4, color=colour))
        return self.figure.line("x", "median", source=source, color=colour, line_width=1.3,
                                line_dash=dash, **named)


def _tooltips(x, definition):
    return [("", "@label"), (x or "x", "@x{%.6g}"), ("median", "@median{%.6g}"),
            ("range", "@least{%.6g} to @largest{%.6g}"),
            *([("definition", literal(definition))] if definition else [])]


def _columns(curve):
    return {"x": curve.x, "least": curve.least, "median": curve.median, "largest": curve.largest,
            "label": [plain(curve.label, 60)] * len(curve.x)}


def _figure(look, x_range, title, height, **more):
    """An empty figure with the tools of all: box zoom along x, pan, wheel, reset."""
    made = figure(title=plain(title, 100), height=height, sizing_mode="stretch_width",
                  tools="xbox_zoom,xpan,xwheel_zoom,reset", active_drag="xbox_zoom",
                  active_scroll=None, min_border_left=64,
                  **({"x_range": x_range} if x_range is not None else {}), **more)
    made.toolbar.logo = None
    made.toolbar.autohide = True
    made.background_fill_color = made.border_fill_color = look.ground
    made.outline_line_color = look.grid
    made.title.text_color = look.text
    made.title.text_font_size = "10pt"
    for axis in (*made.xaxis, *made.yaxis):
        axis.update(axis_label_text_color=look.text, major_label_text_color=look.text,
                    axis_line_color=look.text, major_tick_line_color=look.text,
                    minor_tick_line_color=None, axis_label_text_font_size="9pt",
                    axis_label_text_font_style="normal")
    made.xgrid.grid_line_color = None
    made.ygrid.grid_line_color = look.grid
    return made


class HeatMap:
    """Rows against x, a colour for each value: one image a row, so that a hover names its row.

    log: logarithmic colours; signed: colours around 0.
    """

    def __init__(self, look: Look, x_range: Any, *, title: str, x: str, y: str, log: bool,
                 signed: bool, definition: str = "", height: int = 320, name: str = "") -> None:
        self._log, self._signed = log, signed
        self.y_range = Range1d(start=0, end=1)
        self.figure = _figure(look, x_range, title, height, y_range=self.y_range,
                              name=name or None)
        self.figure.output_backend = "canvas"
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = x, y
        self.figure.ygrid.grid_line_color = None
        self._ticker = FixedTicker(ticks=[])
        self.figure.yaxis.ticker = self._ticker
        self._mapper = (LogColorMapper if log else LinearColorMapper)(
            palette=DIVERGING if signed else VIRIDIS, nan_color="rgba(128,128,128,0.15)")
        self.source = ColumnDataSource(data={name: [] for name in _IMAGE})
        glyph = self.figure.image(image="image", x="x", y="y", dw="dw", dh="dh",
                                  source=self.source, color_mapper=self._mapper)
        self.figure.add_layout(ColorBar(
            color_mapper=self._mapper, width=10, padding=2, background_fill_color=look.ground,
            major_label_text_color=look.text), "right")
        self._mark = Span(dimension="width", line_color="#D55E00", line_width=1.5, visible=False,
                          name="mark")
        self._burn_in = Span(dimension="height", line_color="dimgray" if signed else "white",
                             line_dash="dashed", line_width=2, visible=False, name="burn-in")
        for span in (self._mark, self._burn_in):
            self.figure.add_layout(span)
        self._hover = HoverTool(renderers=[glyph],
                                formatters=dict.fromkeys(("$x", "@image"), "printf"))
        self.figure.add_tools(self._hover)
        self.describe(title, y, x, definition)

    def describe(self, title: str, y: str, x: str, definition: str) -> None:
        """Title, names of the axes, and the definition of the hover texts."""
        self.figure.title.text = plain(title, 100)
        self.figure.yaxis.axis_label, self.figure.xaxis.axis_label = y, x
        self._hover.tooltips = [
            (y, "@name"), (x or "x", "$x{%.6g}"), ("value", "@image{%.6g}"),
            *([("definition", literal(definition))] if definition else [])]

    def show(self, x: tuple[float, float], names: Sequence[str], values: Any) -> None:
        """values [R, B] of the rows `names`, from top to bottom, over the ends of x."""
        rows = len(names)
        self._ends(values)
        left, right = self._seen(*x)
        self.source.data = {
            "image": [numpy.ascontiguousarray(row[None, :], dtype=numpy.float32) for row in values],
            "x": [left] * rows, "dw": [max(right - left, 1e-12)] * rows,
            "y": [rows - i - 1 for i in range(rows)], "dh": [1] * rows,
            "name": [plain(name, 64) for name in names]}
        self.y_range.update(start=0, end=max(rows, 1), reset_start=0, reset_end=max(rows, 1))
        every = (rows - 1) // 24 + 1
        self._ticker.ticks = [rows - i - 0.5 for i in range(0, rows, every)]
        self.figure.yaxis.major_label_overrides = {
            rows - i - 0.5: plain(names[i], 24) for i in range(0, rows, every)}

    def mark(self, row: Optional[int], rows: int) -> None:
        """A line through this row from the top; None: no line."""
        there = row is not None and 0 <= row < rows
        self._mark.update(visible=there, location=rows - (row or 0) - 0.5)

    def burn_in(self, end: Optional[float]) -> None:
        """A dashed line at its end; None: no line."""
        self._burn_in.update(location=end, visible=end is not None)

    def row_at(self, y: float) -> Optional[int]:
        """The row from the top that a click on y means."""
        rows = len(self.source.data["name"])
        row = rows - 1 - int(numpy.floor(y))
        return row if 0 <= row < rows else None

    def _seen(self, left, right):
        """The ends of columns that are not too narrow to be seen, as of a single step."""
        axis = self.figure.x_range
        lacks = 0.02 * (axis.end - axis.start) - (right - left)
        return (left - lacks / 2, right + lacks / 2) if lacks > 0 else (left, right)

    def _ends(self, values):
        finite = values[numpy.isfinite(values)]
        if self._log:
            finite = finite[finite > 0]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.1, 1.0)
        if self._signed:
            high = max(abs(low), abs(high))
            low = -high
        if not high > low:
            high = low * 1.0001 + 1e-30 if self._log else low + 1
        self._mapper.update(low=low, high=high)


_IMAGE = ("image", "x", "y", "dw", "dh", "name")


class Bars:
    """A histogram."""

    def __init__(self, look: Look, *, title: str, x: str, name: str = "") -> None:
        self.figure = _figure(look, None, title, 240, name=name or None)
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = plain(x, 60), "features"
        self.source = ColumnDataSource(data={"left": [], "right": [], "top": []})
        bars = self.figure.quad(left="left", right="right", top="top", bottom=0, source=self.source,
                                fill_color=COLOURS[0], line_color=look.ground)
        self.figure.add_tools(HoverTool(
            renderers=[bars], formatters=dict.fromkeys(("@left", "@right"), "printf"),
            tooltips=[("from", "@left{%.6g}"), ("to", "@right{%.6g}"), ("features", "@top{0}")]))

    def show(self, title: str, x: str, edges: Any, counts: Any) -> None:
        """counts [K] between edges [K + 1]."""
        self.figure.title.text, self.figure.xaxis.axis_label = plain(title, 100), plain(x, 60)
        self.source.data = {"left": edges[:-1], "right": edges[1:], "top": counts}


class Scatter:
    """Points against a diagonal."""

    def __init__(self, look: Look, *, title: str, x: str, y: str, name: str = "") -> None:
        self.figure = _figure(look, DataRange1d(), title, 240, name=name or None)
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = plain(x, 60), plain(y, 60)
        self.source = ColumnDataSource(data={"x": [], "y": [], "feature": []})
        self.line = ColumnDataSource(data={"x": [], "y": []})
        self.figure.line("x", "y", source=self.line, color=look.grid, line_width=2)
        points = self.figure.scatter("x", "y", source=self.source, size=4, color=COLOURS[1])
        self.figure.add_tools(HoverTool(
            renderers=[points], formatters=dict.fromkeys(("@x", "@y"), "printf"),
            tooltips=[("running", "@x{%.6g}"), ("batch", "@y{%.6g}")]))

    def show(self, title: str, names: tuple[str, str], x: Any, y: Any) -> None:
        """Points [K]; names of both axes."""
        self.figure.title.text = plain(title, 100)
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = (
            plain(name, 60) for name in names)
        self.source.data = {"x": x, "y": y, "feature": numpy.arange(len(x))}
        both = numpy.concatenate([x, y])
        both = both[numpy.isfinite(both)]
        ends = [float(both.min()), float(both.max())] if len(both) else []
        self.line.data = {"x": ends, "y": ends}
