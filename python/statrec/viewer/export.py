"""The panels of some runs as one HTML file, which needs no server, no network and no other file.

The figures are the page's, with at most `bins` points a series: zoom, pan and hover work, and
zooming one figure of a run zooms the others. Choices that need the server are drawn several times
and fold out: statistics, sites, vectors.
"""
from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from html import escape
from typing import Any, Iterator, NamedTuple, Optional, Sequence

import numpy
from bokeh.document import Document
from bokeh.embed import components
from bokeh.models import SaveTool
from bokeh.resources import Resources

from .._file import check
from .._library import Error
from . import draw, runs, texts, verdict
from .forms import COMPARABLE
from .page import PANE_CSS, Page
from .panels import (Depth, Features, Losses, Own, RunsPanel, Site, Spectra, Step, VerdictPanel)
from .panels.runs import differ

BINS = 2000  # points of a series
MOST = 20 << 20  # bytes of the file
_LEAST_BINS = 100
MOST_RUNS = 6  # runs with their own panels
_SITES, _STATS, _SCALARS, _VECTORS, _OWN = 4, 6, 2, 2, 12  # that are drawn of each run
_OF_HEAD = re.compile(r"_head[0-9]+$")  # a statistic of the whole site replaces these
_QUANTITIES = 8  # of the runs side by side

# The file makes no requests, whatever it contains.
_POLICY = ("default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
           "img-src data: blob:; font-src data:")
_CSS = """
:root { color-scheme: light dark; }
body { font: 15px/1.4 system-ui, sans-serif; max-width: 76rem; margin: 0 auto; padding: 0 1rem 3rem;
       color: #202020; background: #fff; }
@media (prefers-color-scheme: dark) { body { color: #E0E0E0; background: #1B1B1B; } }
h1 { font-size: 1.4rem; }
h2 { font-size: 1.25rem; margin: 1.6rem 0 0.5rem; overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 1.2rem 0 0.3rem; }
.figures { display: grid; gap: 0 1rem; grid-template-columns: 1fr; }
.figures.two { grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.figures > div { min-width: 0; } .wide { overflow-x: auto; }
details.choice > summary { padding: 0.3rem 0; font-weight: bold; }
"""
# Figures have the colours of the light page until the browser prefers dark ones.
_SHADE = """
<script>
const shade = (text) => matchMedia('(prefers-color-scheme: dark)').matches ? %s.reduce(
  (done, [light, dark]) => done.replaceAll('"' + light + '"', '"' + dark + '"'), text) : text;
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => location.reload());
</script>
""" % json.dumps(list(zip(draw.LIGHT, draw.DARK)))
_MODELS = re.compile(r"const docs_json = ('.*?');$", re.MULTILINE)  # as components() writes them


class Still(Page):
    """A page without a server: it draws at once, and listens to nothing."""

    def __init__(self, all_runs: Any, watch: Any, bins: int, name: str,
                 beside: tuple[str, ...] = ()) -> None:
        super().__init__(all_runs, watch)
        self.state.update({"run": name, "with": beside})
        self.bins = bins
        self._span()
        low, high = self._full()  # room for marks at the ends
        room = 0.01 * (high - low)
        self.x_range.update(start=low - room, end=high + room, reset_start=low - room,
                            reset_end=high + room)

    def _build(self):
        """Panels are drawn one by one, and nothing has controls."""
        self.panels = []

    def watch_zoom(self, figure: Any) -> None:
        """There is no more detail than the file has."""

    def watch_click(self, figure: Any, function: Any) -> None:
        """Other sites and features fold out."""

    def later(self, function: Any) -> None:
        function()

    def background(self, key: Any, of: Any, function: Any) -> Any:
        try:
            return function()
        except (Error, OSError):  # a program is missing, say
            return None

    def unreadable(self, run: Any, why: Exception) -> None:
        """A file of what could be read would look like the whole run."""
        raise _unreadable(run, why) from None


class Unreadable(Error):
    """A run that cannot be read: one line, which names its file."""


class Answers:
    """The verdict on each run, asked for once; in place of verdict.Watch."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[Optional[verdict.Verdict], str]] = {}

    def get(self, run: Any) -> tuple[Optional[verdict.Verdict], str]:
        """(Verdict or None, why there is none)."""
        if run.path not in self._of:
            try:
                found = verdict.diagnose(run)
                found.page = verdict.page_of(run)
                self._of[run.path] = found, ""
            except (Error, OSError, ValueError, KeyError) as why:
                self._of[run.path] = None, f"statrec diagnose: {why}"
        return self._of[run.path]


class Piece(NamedTuple):
    """A panel as it was drawn: label of its choice, figures, columns of them, texts below."""

    label: str
    figures: list[Any]
    columns: int
    said: str
    below: str


# -- what is drawn ---------------------------------------------------------------------------------


def _piece(page: Still, kind: Any, label: str, **state: Any) -> Optional[Piece]:
    """The panel in this state of the page; None where the run has nothing for it."""
    before = dict(page.state)
    page.state.update(state)
    one = kind(page)
    card = one.build()
    card.collapsed = False
    one.refresh()
    page.state.update(before)
    if not card.visible:
        return None
    for figure in one.figures:
        figure.output_backend = "canvas"
        figure.add_tools(SaveTool())
        if kind is Depth:  # its mark is the site that the other panels show
            figure.select_one({"name": "mark"}).visible = False
    return Piece(label, one.figures, one.columns, *one.words())


def _first(wanted: Sequence[str], names: Sequence[str], most: int) -> list[str]:
    """The wanted names, in their order; without one the first names."""
    return [name for name in dict.fromkeys(wanted) if name in names][:most] or list(names[:most])


def _sites(page: Still, scalar: str = "") -> list[str]:
    """The sites of findings, then the first, the middle and the last one; among those with values
    of this scalar, if there are any."""
    names = [site.name for site in page.run.sites]
    if scalar:
        of_all = page.run.scalar(scalar, None, page.window(page.run), page.bins)
        there = numpy.isfinite(of_all.median).any(axis=0)
        names = [name for name, has in zip(names, there) if has] or names
    if not names:
        return []
    answer = page.watch.get(page.run)[0]
    found = [row["site"] for row in answer.findings] if answer else []
    return _first([*found[:1], names[0], names[len(names) // 2], names[-1]], names, _SITES)


def _of_run(page: Still) -> Iterator[tuple[str, list[Optional[Piece]]]]:
    """(title, parts) of the panels of a run; the first part is unfolded."""
    run = page.run
    try:
        scalars, vectors = run.scalars, run.vectors
        drawn = {scalar: _sites(page, scalar) for scalar in _first(Site.usual, scalars, _SCALARS)}
        sites = next(iter(drawn.values()), _sites(page))
        own = Own(page).names()
        declared = [name for name, about in run.file.declared.items()
                    if about.scope == "site" and not _OF_HEAD.search(name)]
    except (LookupError, ValueError):
        scalars, vectors, drawn, sites, own, declared = [], [], {}, [], [], []
    except (Error, OSError) as why:
        raise _unreadable(run, why) from None
    yield Losses.title, [_piece(page, Losses, "")]
    stats = _first((*Depth.usual, *COMPARABLE), scalars, _STATS)
    stats += [name for name in declared if name in scalars][:_OWN]
    yield Depth.title, [_piece(page, Depth, stat, stat=stat) for stat in stats]
    yield Site.title, [_piece(page, Site, f"{scalar} at {site}", site=site, scalar=scalar)
                       for scalar, there in drawn.items() for site in there]
    picked = _first(Features.usual, vectors, _VECTORS)
    yield Features.title, [_piece(page, Features, f"{vector} at {site}", site=site, vector=vector)
                           for vector in picked for site in sites]
    yield Step.title, [_piece(page, Step, f"{vector} at {site}", site=site, vector=vector)
                       for vector in picked for site in sites]
    yield Spectra.title, [_piece(page, Spectra, site, site=site) for site in sites[:1] or [""]]
    yield Own.title, [_piece(page, Own, name, own=name) for name in own[:_OWN]]


def _side_by_side(page: Still) -> list[Optional[Piece]]:
    """Comparable statistics come first if the runs differ in data or model."""
    quantities = ["loss", *page.run.metrics[:2],
                  *_first(COMPARABLE, page.run.scalars, _QUANTITIES)][:_QUANTITIES]
    if differ(page.chosen()):
        quantities.sort(key=lambda name: name not in COMPARABLE)
    return [_piece(page, RunsPanel, name, compare=name) for name in quantities]


# -- the file --------------------------------------------------------------------------------------


class _Document:
    """Parts of HTML, and the figures in them."""

    def __init__(self) -> None:
        self.parts: list[Any] = []  # texts, and numbers of figures
        self.figures: list[Any] = []
        self._count: dict[str, int] = {}  # figures of a name

    def add(self, text: str) -> None:
        self.parts.append(text)

    def panel(self, title: str, pieces: Sequence[Optional[Piece]]) -> None:
        """A heading and its existing parts; several fold out."""
        there = [piece for piece in pieces if piece is not None]
        if not there:
            return
        self.add(f"<h3>{escape(title)}</h3>")
        for i, piece in enumerate(there):
            if len(there) > 1:
                self.add(f"<details class='choice'{'' if i else ' open'}>"
                         f"<summary>{texts.escaped(piece.label, 160)}</summary>")
            self._piece(piece)
            self.add("</details>" if len(there) > 1 else "")

    def _piece(self, piece):
        self.add(piece.said)
        self.add(f"<div class='figures{' two' if piece.columns > 1 else ''}'>")
        for figure in piece.figures:
            self._count[figure.name] = count = self._count.get(figure.name, 0) + 1
            figure.name += f"-{count}" if count > 1 else ""
            self.parts.append(len(self.figures))
            self.figures.append(figure)
        self.add(f"</div>{piece.below}")

    def html(self, title: str) -> str:
        """The file's text."""
        document = Document()
        with document.models.freeze():  # else each root asks for the models of all before
            for figure in self.figures:
                document.add_root(figure)
        script, places = components(document.roots) if self.figures else ("", ())
        shaded, made = _MODELS.subn(r"const docs_json = shade(\1);", script)
        if made != bool(self.figures):
            raise Error("this version of Bokeh writes its models in another way")
        bokeh = Resources(mode="inline", components=["bokeh"]).js_raw  # without Panel's own
        return "\n".join((
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>",
            f"<meta http-equiv='Content-Security-Policy' content=\"{_POLICY}\">",
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            "<meta name='generator' content='statrec view'>",
            f"<title>{escape(title)}</title><link rel='icon' href='data:,'>",
            f"<style>{_CSS}{PANE_CSS}</style>",
            *(f"<script>{text}</script>" for text in bokeh), "</head><body><main>",
            *(part if isinstance(part, str) else places[part] for part in self.parts),
            f"</main>{_SHADE}{shaded}</body></html>\n"))


def _document(all_runs: Any, watch: Answers, bins: int) -> str:
    """The file's text with this many points a series."""
    made, names = _Document(), list(all_runs)
    title = f"statrec: {len(names)} run{'s' if len(names) > 1 else ''}"
    made.add(f"<h1>{title}</h1>\n<p>Drag over a figure to zoom, and reset it by the tool at its "
             f"right. A series has at most {bins} points: the median of each bin of steps, and its "
             "range as a band. <code>statrec view</code> shows single steps.</p>")
    pages = [Still(all_runs, watch, bins, name) for name in names[:MOST_RUNS]]
    for page in pages:
        made.add(_verdict(page, len(names) > 1))
    if len(names) > 1:
        table = texts.table(*runs.columns(all_runs.summaries()))
        made.add(f"<h2>{RunsPanel.title}</h2><details><summary>Table of the runs</summary>"
                 f"<div class='wide'>{table}</div></details>")
        made.panel("One quantity of all", _side_by_side(
            Still(all_runs, watch, bins, names[0], tuple(names[1:]))))
    for page in pages:
        made.add(f"<section><h2>{texts.escaped(page.run.name)}</h2>")
        for name, pieces in _of_run(page):
            made.panel(name, pieces)
        made.add("</section>")
    if len(names) > MOST_RUNS:
        made.add(f"<p>Panels of the first {MOST_RUNS} runs; the others are in the comparison.</p>")
    return made.html(title)


def _verdict(page, named):
    one = VerdictPanel(page)
    one.build()
    one.refresh()
    name = f"<h2>{texts.escaped(page.run.name)}</h2>" if named else ""
    return f"<section class='panel-verdict'>{name}{one.words()}</section>"


def write(paths: Sequence[Any], output: str, bins: int = BINS, most: int = MOST) -> int:
    """Writes the file, which replaces one of that name when it is whole. Returns its bins.

    bins: points of a series at most; fewer where the file would have more than `most` bytes.
    Raises Error where 100 are still too many, a run cannot be read, or there is no place for the
    file; then it leaves nothing.
    """
    _must_fit(output)
    all_runs, watch = runs.Runs(paths), Answers()
    try:
        for name in all_runs:
            _must_open(all_runs.get(name))
        while True:
            text = _document(all_runs, watch, bins).encode()
            if len(text) <= most:
                break
            if bins <= _LEAST_BINS:
                raise Error(f"{output}: {len(text) / 1e6:.0f} MB with {bins} bins are more than "
                            f"{most / 1e6:.0f} MB; name fewer runs")
            bins = max(_LEAST_BINS, int(numpy.floor(0.9 * bins * most / len(text))))
    finally:
        all_runs.close()
    _replace(output, text)
    return bins


def said(why: Exception, path: str) -> str:
    """The exception as one line that names this file."""
    text = getattr(why, "strerror", None) or str(why)
    return text if path in text else f"{path}: {text}"


def _unreadable(run, why):
    return why if isinstance(why, Unreadable) else Unreadable(said(why, run.path))


def _must_open(run):
    """Raises Unreadable for a path that is no run file, or an incomplete one."""
    run.whole = 1
    try:
        if run.now() is None:
            raise Unreadable(f"{run.path}: no such file")
        _ = run.sites, run.steps
        faults = check(run.path) if run.info["status"] == "complete" else []
        if faults:  # as where the end of the file is missing, with the sums of all values
            raise Unreadable(faults[0])
    except (Error, OSError) as why:
        raise _unreadable(run, why) from None


def _must_fit(output):
    """Raises Error where the folder takes no file, before anything is drawn."""
    folder = os.path.dirname(output) or "."
    why = (errno.EISDIR if os.path.isdir(output) else
           errno.ENOENT if not os.path.exists(folder) else
           errno.ENOTDIR if not os.path.isdir(folder) else
           errno.EACCES if not os.access(folder, os.W_OK | os.X_OK) else 0)
    if why:
        raise Error(f"{output}: {os.strerror(why)}")


def _replace(output, text):
    path = None
    try:
        handle, path = tempfile.mkstemp(dir=os.path.dirname(output) or ".", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(path, 0o666 & ~mask)
        os.replace(path, output)
    except BaseException as why:
        if path is not None:
            os.unlink(path)
        if isinstance(why, OSError):
            raise Error(said(why, output)) from None
        raise
