"""A run file as the page reads it: reduced to bins, growing, and possibly damaged or gone."""
from __future__ import annotations

import math
import os
import re
import threading
import warnings
from collections import OrderedDict
from typing import Any, Optional

import numpy

from .._file import File
from .._library import Error
from . import bins, forms

_REPLICA = re.compile(r".@[1-9][0-9]*$")  # of a site, in a rank or shard: docs/file-format.md
AXES = ("step", "epoch", "percent")
_CACHE = 32 << 20  # bytes of reduced values that a run keeps
BURN_IN_LEFT = 0.01  # SR_STARTUP_LEFT of statrec/runfile.h


class Window:
    """Rows [first, last) of a column, and their values on the x axis."""

    def __init__(self, first, last, x):
        self.first, self.last, self.x = first, last, x

    def __len__(self):
        return self.last - self.first


class Run:
    """One run. Reading raises Error or OSError; `problem` has the last one as a line, or "".

    path: as given. name: what the page calls it. All methods may be called from any thread.
    """

    def __init__(self, path, name=None):
        self.path, self.name = os.fspath(path), name or os.path.basename(os.fspath(path))
        self.problem = ""
        self.whole = bins.WHOLE  # rows a bin up to which every row is kept
        self._file: Optional[File] = None
        self._stamp: Any = None
        self._kept: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.RLock()

    # -- the file -----------------------------------------------------------------------------

    @property
    def file(self) -> File:
        """The open file."""
        with self._lock:
            if self._file is None:
                stamp = self.now()
                self._file = File(self.path)
                self._stamp = stamp
            return self._file

    def now(self) -> Any:
        """A stamp that changes with the file; None if it is gone."""
        for ending in ("", ".part"):
            try:
                about = os.stat(self.path + ending)
            except OSError:
                continue
            return ending, about.st_ino, about.st_size, about.st_mtime_ns
        return None

    def refresh(self) -> bool:
        """Opens the file again if it changed. Returns whether anything is new, or a problem."""
        with self._lock:
            now, before = self.now(), self.problem
            if now is None:
                self.problem = f"{self.path}: the file is gone; the page shows what was read before"
                return self.problem != before
            if now == self._stamp and self._file is not None and not before:
                return False
            self.close()
            try:
                self._file = File(self.path)
            except (Error, OSError) as why:
                self.problem = str(why)
                return self.problem != before
            self._stamp, self.problem = now, ""
            self._kept.clear()
            return True

    @property
    def stamp(self) -> Any:
        """Value of now() when the file was opened."""
        return self._stamp

    def close(self) -> None:
        """Closes the file; reading opens it again."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = None

    # -- what it is ---------------------------------------------------------------------------

    def _once(self, key, make):
        """make(), remembered until the file changes; at most _CACHE bytes of arrays are kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            value = self._kept[key] = make()
            while sum(map(_bytes, self._kept.values())) > _CACHE and len(self._kept) > 1:
                self._kept.popitem(last=False)
            return value

    @property
    def info(self) -> dict[str, Any]:
        """As File.info."""
        return self._once("info", lambda: self.file.info)

    @property
    def running(self) -> bool:
        """Whether the run is being written, according to the file."""
        return self.info["status"] == "running"

    @property
    def sites(self) -> list[Any]:
        """The sites of the model, without replicas, in the order of the forward pass."""
        return self._once("sites", lambda: [site for site in self.file.sites.values()
                                            if not _REPLICA.search(site.name)])

    def site(self, name: str) -> Any:
        """The Site of a name, or the first one."""
        return next((site for site in self.sites if site.name == name), self.sites[0])

    @property
    def scalars(self) -> list[str]:
        """Scalars with values, then the forms that follow from them."""
        def find():
            names = self.file.scalars
            return names + [form.name for form in forms.FORMS
                            if form.follows(names) and form.name not in names]
        return self._once("scalars", find)

    @property
    def vectors(self) -> list[str]:
        """Vectors with values, then the differences from running values."""
        def find():
            names = self.file.vectors
            return names + [pair.name for pair in forms.DIFFERENCES
                            if set(pair.needs) <= set(names)]
        return self._once("vectors", find)

    def definition(self, name: str) -> str:
        """Definition of a statistic, a metric or a form."""
        for row in (*forms.FORMS, *forms.DIFFERENCES):
            if row.name == name:
                return row.definition
        return self.file.definition(name)

    @property
    def burn_in(self) -> int:
        """Passes until the initial running values weigh less than 1 % at every site."""
        alphas = [site.alpha for site in self.sites if 0 < site.alpha < 1]
        if not alphas:
            return 0
        return math.ceil(math.log(BURN_IN_LEFT) / math.log(max(alphas)) - 1e-9)

    @property
    def burn_in_end(self) -> int:
        """Last step of the burn-in. Other programs than `statrec train` may not number passes."""
        if not self.burn_in or self.file.info["program"] == "statrec train":
            return self.burn_in
        return int(self.steps[min(self.burn_in, len(self.steps)) - 1])

    # -- the x axis ---------------------------------------------------------------------------

    def column(self, name: str) -> Any:
        """A column of /steps [T]."""
        return self._once(("column", name), lambda: numpy.asarray(self.file.steps[name]))

    @property
    def steps(self) -> Any:
        """int64 [T]."""
        return self.column("step")

    def axis(self, name: str) -> Any:
        """The x of every step [T], which does not fall: step, epoch, or percent of training."""
        def make():
            steps = self.steps.astype(numpy.float64)
            if name == "percent" and len(steps):
                return 100 * steps / steps[-1]
            if name == "epoch" and self.has_epochs:
                return numpy.maximum.accumulate(self.column("epoch"))
            return steps
        return self._once(("axis", name), make)

    @property
    def has_epochs(self) -> bool:
        """Whether every step has an epoch."""
        return bool(len(self.steps)) and bool(numpy.isfinite(self.column("epoch")).all())

    def at_steps(self, axis: str, steps: Any) -> Any:
        """The x of these steps: from the last row that is not after each."""
        x = self.axis(axis)
        rows = numpy.searchsorted(self.steps, steps, side="right") - 1
        return x[numpy.clip(rows, 0, len(x) - 1)] if len(x) else numpy.zeros(len(rows))

    def window(self, axis: str, low: Optional[float] = None,
               high: Optional[float] = None) -> Window:
        """The rows whose x is in [low, high], and one on each side so that lines reach the edges."""
        return _window(self.axis(axis), low, high)

    def step_range(self, axis: str, low: Optional[float], high: Optional[float]) -> tuple[int, int]:
        """First and last step in [low, high] of the axis: what a command takes."""
        x, steps = self.axis(axis), self.steps
        if not len(x):
            return 0, 0
        first = 0 if low is None else int(numpy.searchsorted(x, low, side="left"))
        last = len(x) if high is None else int(numpy.searchsorted(x, high, side="right"))
        first = min(first, len(x) - 1)
        return int(steps[first]), int(steps[max(last - 1, first)])

    # -- values -------------------------------------------------------------------------------

    def curve(self, name: str, window: Window, count: int) -> bins.Binned:
        """A column of /steps, reduced to `count` bins, or row by row."""
        def make():
            column = self.column(name)
            return bins.reduce(window.x, lambda first, last:
                               column[window.first + first:window.first + last], count,
                               self.whole)
        return self._once(("curve", name, window.first, window.last, count, _key(window.x)), make)

    def scalar(self, name: str, site: Optional[int], window: Window, count: int) -> bins.Binned:
        """A scalar of one site, or of all (None), reduced to `count` bins."""
        key = ("scalar", name, site, window.first, window.last, count, _key(window.x))
        return self._once(key, lambda: bins.reduce(
            window.x, _Reader(self, name, site, window.first), count, self.whole))

    def vector_steps(self) -> Any:
        """int64 [V]."""
        return self._once("vector_steps", lambda: numpy.asarray(self.file.vector_steps))

    def vector_window(self, axis: str, low: Optional[float], high: Optional[float]) -> Window:
        """As window(), of the rows of vectors."""
        return _window(self.at_steps(axis, self.vector_steps()), low, high)

    def vector(self, name: str, site: str, window: Window, count: int) -> bins.Binned:
        """A vector of a site, its features as columns, reduced to `count` bins."""
        read = self._vector_reader(name, site, window.first)
        key = ("vector", name, site, window.first, window.last, count, _key(window.x))
        return self._once(key, lambda: bins.reduce(window.x, read, count, self.whole))

    def feature(self, name: str, site: str, feature: int, window: Window, count: int):
        """One feature of it through time."""
        read = self._vector_reader(name, site, window.first)
        one = _Call(lambda first, last: read(first, last)[:, feature], read.columns)
        key = ("feature", name, site, feature, window.first, window.last, count, _key(window.x))
        return self._once(key, lambda: bins.reduce(window.x, one, count, self.whole))

    def vector_row(self, name: str, site: str, row: int) -> Any:
        """[d] of one recorded step."""
        return self._vector_reader(name, site, row)(0, 1)[0]

    def _vector_reader(self, name, site, begin):
        pair = next((row for row in forms.DIFFERENCES if row.name == name), None)
        needs = pair.needs if pair else (name,)

        def read(first, last):
            got = [self.file[part][site][begin + first:begin + last] for part in needs]
            if pair is None:
                return got[0]
            with numpy.errstate(all="ignore"):
                return pair.formula([part.astype(numpy.float64) for part in got], eps)
        eps = self.site(site).eps
        return _Call(read, self.site(site).width)

    def feature_order(self, name: str, site: str, window: Window, order: str) -> Any:
        """Features [d] in their order, or by a falling score (`stat-features --order`):

        "largest": largest absolute value; "outlier": mean over steps of |value - median over
        features| / median absolute deviation. Features without a value come last.
        """
        def make():
            read, width = self._vector_reader(name, site, window.first), self.site(site).width
            if order == "feature":
                return numpy.arange(width)
            score, rows = numpy.zeros(width), numpy.zeros(width)
            each = max(1, bins.BLOCK // width)
            for first in range(0, len(window), each):
                values = read(first, min(first + each, len(window))).astype(numpy.float64)
                there = numpy.isfinite(values)
                values = numpy.where(there, values, numpy.nan)
                rows += there.sum(axis=0)
                if order == "largest":
                    sizes = numpy.where(there, numpy.abs(values), 0)
                    score = numpy.maximum(score, sizes.max(axis=0))
                else:
                    score += _deviations(values)
            with numpy.errstate(all="ignore"):
                score = numpy.where(rows > 0, score / (1 if order == "largest" else rows), -1)
            return numpy.argsort(-score, kind="stable")
        return self._once(("order", name, site, window.first, window.last, order), make)

    # -- evaluations --------------------------------------------------------------------------

    def metric(self, name: str, axis: str) -> tuple[Any, Any]:
        """(x [E], values [E]) of a metric, evaluations without a value left out."""
        def make():
            steps = numpy.asarray(self.file.evals["step"])
            values = numpy.asarray(self.file.evals[name])
            there = numpy.isfinite(values)
            return self.at_steps(axis, steps[there]), values[there]
        return self._once(("metric", name, axis), make)

    @property
    def metrics(self) -> list[str]:
        """Metrics with at least one value, in the file's order."""
        return self._once("metrics", lambda: [
            name for name in self.file.metrics
            if numpy.isfinite(numpy.asarray(self.file.evals[name])).any()])


class _Call:
    """A function of rows, with the number of columns that it reads."""

    def __init__(self, function, columns):
        self._function, self.columns = function, columns

    def __call__(self, first, last):
        return self._function(first, last)


class _Reader:
    """Reads rows of a scalar, or of the form that follows from scalars."""

    def __init__(self, run, name, site, begin):
        self._run, self._site, self._begin = run, site, begin
        self._form = next((form for form in forms.FORMS if form.name == name
                           and name not in run.file.scalars), None)
        self._names = (name,) if self._form is None else [
            one for one in self._form.needs + self._form.either if one in run.file.scalars]
        self._sites = run.sites if site is None else [run.sites[site]]
        self._one = None if site is None else self._sites[0]
        self.columns = len(self._names) * (run.info["sites"] if site is None else 1)

    def _read(self, name, rows):
        """[n, S] of the sites."""
        if self._one is not None:
            return self._run.file[name][self._one][rows][:, None]
        values = self._run.file[name][rows]
        if len(self._sites) == values.shape[1]:
            return values
        return values[:, [site.number for site in self._sites]]

    def __call__(self, first, last):
        rows = slice(self._begin + first, self._begin + last)
        got = {name: self._read(name, rows) for name in self._names}
        if self._form is None:
            return got[self._names[0]]
        of = {name: value.astype(numpy.float64) for name, value in got.items()}
        with numpy.errstate(all="ignore"):
            return self._form.formula({**dict.fromkeys(self._form.either, numpy.nan), **of}, self._sites)


def _deviations(values):
    """Sum over rows [n, d] of each feature's deviation from the others; NaN values add nothing."""
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # rows without a value
        apart = numpy.abs(values - numpy.nanmedian(values, axis=1, keepdims=True))
        spread = numpy.nanmedian(apart, axis=1, keepdims=True)
        return numpy.nansum(numpy.where(apart == 0, 0, apart / spread), axis=0)


def _window(x, low, high):
    first = 0 if low is None else max(int(numpy.searchsorted(x, low, side="left")) - 1, 0)
    last = len(x) if high is None else min(int(numpy.searchsorted(x, high, side="right")) + 1,
                                           len(x))
    first = min(first, len(x))
    return Window(first, max(last, first), x[first:max(last, first)])


def _key(x):
    """Key that distinguishes two axes of the same rows."""
    return (float(x[0]), float(x[-1])) if len(x) else ()


def _bytes(value):
    if isinstance(value, tuple):
        return sum(map(_bytes, value))
    return getattr(value, "nbytes", 64)
