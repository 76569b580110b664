"""The page: panels over one state, which its address holds."""
from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Optional, Sequence

import panel
from bokeh.events import RangesUpdate, Tap
from bokeh.models import Range1d

from .._library import Error
from . import draw, state, texts
from .panels import PANELS
from .source import AXES

_BINS, _MOST_BINS = 1000, 2000
_PERIOD = 1000  # ms between two checks of the file
_DEBOUNCE = 60  # ms
_WORKERS = ThreadPoolExecutor(2, "view")
SMOOTH = (0, 3, 5, 9, 15, 25, 51, 101)

CSS = """
:root { color-scheme: light dark; }
body { background: Canvas; color: CanvasText; font-family: system-ui, sans-serif; margin: 0 8px; }
"""
PANE_CSS = """
:host { color: inherit; }
p { margin: 2px 0; }
.verdict { font-size: 1.15em; padding: 6px 10px; border-left: 6px solid #808080; }
.verdict.severe { border-color: #D55E00; } .verdict.notable { border-color: #E69F00; }
.verdict.minor { border-color: #56B4E9; } .verdict.fine { border-color: #009E73; }
code { user-select: all; background: rgba(128,128,128,0.18); padding: 1px 4px; cursor: pointer;
       overflow-wrap: anywhere; }
.commands { font-size: 0.9em; line-height: 1.7; }
.commands code { display: block; width: fit-content; max-width: 100%; box-sizing: border-box;
                 white-space: nowrap; overflow-x: auto; margin-bottom: 2px; }
table { border-collapse: collapse; font-size: 0.85em; }
th, td { text-align: left; padding: 1px 8px 1px 0; vertical-align: top; }
details { font-size: 0.95em; } pre { white-space: pre-wrap; }
summary { cursor: pointer; }
"""


class Page:
    """Panels of some runs. query: the state, as an address has it. location: Panel's, or None."""

    def __init__(self, runs: Any, watch: Any, query: str = "", location: Any = None,
                 document: Any = None, dark: bool = False) -> None:
        self.runs, self.watch = runs, watch
        self.state, self._wrong = state.parse(query)
        self._location, self._document = location, document
        self.look = draw.DARK if dark else draw.LIGHT
        self.bins, self._waiting, self._due = _BINS, False, 0.0
        self._busy = 0  # passes of refresh_in_turn in progress; models are sent one after the other
        self._jobs: dict[Any, tuple[Future, Any]] = {}
        self.x_range = Range1d(start=0, end=1)
        self._span()
        self.panels = [kind(self) for kind in PANELS]
        self.layout = self._build()

    # -- what panels ask for ------------------------------------------------------------------

    @property
    def run(self) -> Any:
        """The run that most panels show."""
        return self.runs.get(self.state["run"])

    def chosen(self) -> list[Any]:
        """That run and those beside it, at most as many as there are looks."""
        names = [self.run.name, *(name for name in self.state["with"] if name in self.runs)]
        return [self.runs.get(name) for name in dict.fromkeys(names)][:24]

    @property
    def site(self) -> Any:
        """The chosen site of the run, or its first one."""
        return self.run.site(self.state["site"])

    def choice(self, field: str, options: Sequence[str], usual: Sequence[str] = ()) -> str:
        """The value of a field if it is among the options, else the first usual one that is."""
        if self.state[field] in options:
            return self.state[field]
        return next((name for name in usual if name in options), options[0] if options else "")

    def ends(self, run: Any) -> tuple[Optional[float], Optional[float]]:
        """Ends of the x axis, None without zoom."""
        return self.state["from"], self.state["to"]

    def window(self, run: Any) -> Any:
        """The rows of a run that are on screen."""
        return run.window(self.state["x"], *self.ends(run))

    def steps_of(self, run: Any) -> Optional[tuple[int, int]]:
        """Steps on screen; None where all are."""
        low, high = self.ends(run)
        return None if low is None and high is None else run.step_range(self.state["x"], low, high)

    def burn_in(self, run: Any) -> Optional[float]:
        """The x where the burn-in ends; None without one."""
        if not run.burn_in or not len(run.steps):
            return None
        return float(run.at_steps(self.state["x"], [run.burn_in_end])[0])

    def unreadable(self, run: Any, why: Exception) -> None:
        """Hears of what a panel could not read of a run; the panel shows the rest."""

    def watch_zoom(self, figure: Any) -> None:
        """Reads more detail when the x axis of the figure changes, as many bins as it is wide."""
        figure.on_event(RangesUpdate, self._zoomed)
        figure.on_change("inner_width", self._resized)

    def watch_click(self, figure: Any, function: Callable[[Any], Any]) -> None:
        """Calls function(event) of a click on the figure."""
        figure.on_event(Tap, function)

    def background(self, key: Any, of: Any, function: Callable[[], Any]) -> Any:
        """Result of function() in another thread; None before it is ready, then the panel `of`
        shows it."""
        if key not in self._jobs:
            self._jobs[key] = (_WORKERS.submit(function), of)
            return None
        job = self._jobs[key][0]
        return job.result() if job.done() and job.exception() is None else None

    def later(self, function: Callable[[], Any]) -> None:
        """Calls it after the drawn figures have been sent."""
        if self._document is None or not self._document.session_context:
            function()
        else:
            self._document.add_next_tick_callback(function)

    # -- the state ----------------------------------------------------------------------------

    def set(self, **changes: Any) -> None:
        """Changes the state, the address, and the panels that show these fields."""
        changes = {name: value for name, value in changes.items() if self.state[name] != value}
        if not changes:
            return
        self.state.update(changes)
        if {"run", "x", "with"} & set(changes):
            if "x" in changes:
                self.state.update({"from": None, "to": None})
            self._span()
        if self._location is not None:
            self._location.search = self.state.query()
        self._sync()
        changed = set(changes) | ({"from", "to"} if "x" in changes else set())
        for one in self.panels:
            if one.uses & changed:
                one.refresh()

    def set_if_new(self, field: str, value: Any) -> None:
        """set() with the value of a widget; None sets nothing."""
        if value is not None:
            self.set(**{field: value})

    def _full(self):
        """Ends of the x axis without zoom: over all drawn runs."""
        ends = []
        for run in self.chosen():
            try:
                x = run.axis(self.state["x"])
                ends += [float(x[0]), float(x[-1])] if len(x) else []
            except (Error, OSError, LookupError):
                continue
        low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
        return low, high if high > low else low + 1

    def _span(self):
        low, high = self._full()
        start, end = self.state["from"], self.state["to"]
        self.x_range.update(start=low if start is None else start, end=high if end is None else end,
                            reset_start=low, reset_end=high)

    def _zoomed(self, event):
        if event.x0 is None or event.x1 is None or not event.x0 < event.x1:
            return
        self._wanted = (float(event.x0), float(event.x1))
        if self._waiting:
            return
        if self._document is None or not self._document.session_context:
            self._zoom()
        else:
            self._waiting = True
            self._document.add_timeout_callback(self._zoom, _DEBOUNCE)

    def _zoom(self):
        self._waiting = False
        low, high = self._wanted
        first, last = self._full()
        slack = 1e-6 * (last - first)
        if low <= first + slack and high >= last - slack:
            low = high = None
        now = (self.state["from"], self.state["to"])
        if (low, high) == now:
            return
        self.set(**{"from": low, "to": high})

    def _resized(self, attribute, old, new):
        wanted = min(int(new or 0), _MOST_BINS)
        if wanted > 1.2 * self.bins:
            self.bins = wanted
            if self._busy == 0:
                self.later(self.refresh_in_turn)

    # -- the layout ---------------------------------------------------------------------------

    def _build(self):
        self._run = panel.widgets.Select(name="run", options=list(self.runs), value=self.run.name,
                                         width=280)
        self._x = panel.widgets.Select(name="x axis", options=list(AXES), width=110)
        self._smooth = panel.widgets.Select(name="smoothing (bins)", options=list(SMOOTH),
                                            width=120)
        self._from = panel.widgets.FloatInput(name="from", width=110, placeholder="start")
        self._to = panel.widgets.FloatInput(name="to", width=110, placeholder="end")
        for field, widget in self._widgets():
            widget.param.watch(
                lambda event, field=field: self._from_widget(field, event.new), "value")
        self._all = panel.widgets.Button(name="whole run", width=100, margin=(22, 4, 0, 4))
        self._all.on_click(lambda event: self._whole())
        self._told = panel.pane.HTML("", sizing_mode="stretch_width")
        self._sync()
        controls = panel.FlexBox(self._run, self._x, self._smooth, self._from, self._to, self._all,
                                 align_items="flex-start")
        cards = [one.build() for one in self.panels]
        column = panel.Column(cards[0], self._told, controls, *cards[1:],
                              sizing_mode="stretch_width", css_classes=["statrec"])
        for pane in column.select(panel.pane.HTML):
            pane.stylesheets = [PANE_CSS]
        return column

    def _widgets(self):
        return (("run", self._run), ("x", self._x), ("smooth", self._smooth), ("from", self._from),
                ("to", self._to))

    def _from_widget(self, field, value):
        if field in ("from", "to"):
            low, high = (value if name == field else self.state[name] for name in ("from", "to"))
            first, last = self._full()
            if not (first if low is None else low) < (last if high is None else high):
                return self._sync()
            if value != self.state[field]:
                self.set(**{field: value})
                self._span()
        elif value is not None:
            self.set(**{field: value})

    def _whole(self):
        self.set(**{"from": None, "to": None})
        self._span()

    def _sync(self):
        """The controls of the page show the state."""
        if self.state["smooth"] not in self._smooth.options:
            self._smooth.options = sorted({*SMOOTH, self.state["smooth"]})
        for field, widget in self._widgets():
            value = self.run.name if field == "run" else self.state[field]
            if widget.value != value:
                widget.value = value
        self._tell()

    def _tell(self):
        """Lines on faults of the address or the files."""
        lines = list(self._wrong) + [run.problem for run in self.chosen() if run.problem]
        text = "".join(f"<p role='alert'><b>{texts.escaped(line, 600)}</b></p>" for line in lines)
        if self._told.object != text:
            self._told.object = text

    def refresh(self) -> None:
        """Draws every panel again."""
        for one in self.panels:
            one.refresh()

    def refresh_in_turn(self) -> None:
        """The same, one after the other, each sent before the next is drawn."""
        waiting = list(self.panels)
        self._busy += 1

        def next_one():
            if waiting:
                waiting.pop(0).refresh()
                self.later(next_one)
            else:
                self._busy -= 1
        next_one()

    def darken(self, dark: bool) -> None:
        """Draws in the colours of the dark or the light page."""
        look = draw.DARK if dark else draw.LIGHT
        if look is not self.look:
            self.look = look
            self.refresh_in_turn()

    # -- a growing run ------------------------------------------------------------------------

    def tick(self) -> None:
        """Checks the files again, and shows new rows. Call it every second."""
        now = time.monotonic()
        if now < self._due or self._busy:
            return
        changed = [run.refresh() for run in self.chosen()]
        if any(changed):
            self._span()
            self._tell()
            self.refresh_in_turn()
            self._due = time.monotonic() + 4 * (time.monotonic() - now)
        else:
            self.panels[0].refresh()
        self._finish_jobs()

    def _finish_jobs(self):
        for key, (job, of) in list(self._jobs.items()):
            if of is not None and job.done():
                self._jobs[key] = (job, None)
                of.refresh()


def start(page: Page) -> None:
    """Lets a page check its files, in a session of Panel's."""
    panel.state.add_periodic_callback(page.tick, period=_PERIOD)
