"""statrec.open("run.h5"): a run file, finished or growing, as arrays by site and statistic."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _abi, _html
from ._reading import _arrays, _frames
from ._watching import _labels
from ._reading._columns import Column, Statistic
from ._library import Error, NameMissing, encoded, error_of, library, loads, locked, path_bytes
from ._nearest import nearest

if TYPE_CHECKING:
    import pandas
    import xarray

    from ._plot import Diagnosis

Path = Union[str, bytes, "os.PathLike[str]"]
Array = Any  # numpy.ndarray where NumPy is installed, else array.array or a list of them
Which = Union[str, int, "Site"]  # a site


def open(path: Path) -> File:  # noqa: A001 - statrec.open, as h5py.File
    """Opens a run file; PATH.part if PATH does not exist yet. Returns a File."""
    return File(path)


def check(path: Path) -> list[str]:
    """Verifies a complete run file. Returns a list of faults, one line each."""
    faults, why = [], _abi.Failure()
    tell = _abi.TELL(lambda _, fault: faults.append(str(error_of(fault.contents))))
    with locked():
        status = library().sr_run_check_all(path_bytes(path), tell, None, ctypes.byref(why))
    if status and not faults:
        faults.append(str(error_of(why)))
    return faults


# -- what a file holds ------------------------------------------------------------------------

class Site(SimpleNamespace):
    """A normalization site.

    number (from 0), name, norm (its method), called (the method, "+ls" after a layer scale),
    kind, family, width (features), offset (first of its columns in the vectors of all sites),
    depth, layer_scale, layer_scale_own, eps, alpha (weighs the OLD running value; NaN: no running
    statistics), alpha_bwd (weighs PN's OLD nu; NaN: as alpha, or no nu), axis, uses, constants,
    observed, merged.
    """

    def __str__(self):
        return self.name


def _site(number, fields):
    flags = {flag: bool(fields[flag]) for flag in ("observed", "layer_scale_own", "merged")}
    return Site(number=number, **{**fields, **flags})


class Named(Mapping):
    """Values by name, in the order of the file; values of sites by number too."""

    def __init__(self, what, things):
        self._what, self._things = what, things

    def __getitem__(self, name):
        if isinstance(name, int):
            return list(self._things.values())[name]
        try:
            return self._things[str(name)]
        except KeyError:
            raise missing(self._what, str(name), self._things) from None

    def __iter__(self):
        return iter(self._things)

    def __len__(self):
        return len(self._things)

    def __repr__(self):
        return f"<{self._what}: {', '.join(self._things) or 'none'}>"


class Columns(Named):
    """Columns of one length by name, read when they are used."""

    def __init__(self, what, things, index):
        super().__init__(what, things)
        self._index = index

    def __getitem__(self, name):
        return super().__getitem__(name)[:]

    def lazy(self, name: str) -> Column:
        """The Column, which reads only requested slices."""
        return super().__getitem__(name)

    def frame(self) -> pandas.DataFrame:
        """All of them as a pandas DataFrame, by step."""
        return _frames.of_columns(self, self._index)


def missing(what, name, known):
    """The error of a name that is not there."""
    return NameMissing(f"{what}: no '{name:.80}'", "usage", nearest(name, known))


class Spectrum(SimpleNamespace):
    """step [P], rows [P] (-1: not measured), values [P, width]."""


class Embedding(SimpleNamespace):
    """name, rows, cols, method; step [M] and values [M, min(rows, cols)], singular values."""


# -- the file ---------------------------------------------------------------------------------

def _reader(path):
    """A reader of libstatrec, or where that does not load of h5py."""
    if loads():
        from ._reading._native_reader import Reader
    else:
        from ._reading._h5py_reader import Reader
    return Reader(path)


class File:
    """A run file. Close it, or use it as a context manager.

        with statrec.open("run.h5") as run:
            run.info["status"], list(run.sites)
            run["tid_mean"]["norm1"][:]         # [T]
            run["mu_B"]["norm1"][-10:]          # [10, width], the last ten recorded vectors
            run.steps["loss"], run.evals["valid_loss"]

    Values are read when they are requested. A growing file has the rows that existed when it was
    opened; reopen() adds later rows. T steps, V steps with vectors, S sites, W columns of vectors
    (the sum of the sites' widths), E evaluations. Indexing with an unknown name raises
    statrec.Error, which then is a KeyError too.
    """

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path)
        self._open: Any = None
        self._sites: Any = None
        self._about: Any = None
        self.reopen()

    def reopen(self) -> File:
        """Opens the same path again, with the later rows of a growing file. Returns self.

        PATH.part becomes PATH when its run ends, so open a growing file as PATH. Arrays read before
        are copies and stay; a Column has the new rows. HDF5 caches a file while any File of it is
        open in the process, so close all others first. If opening fails the file is closed.
        """
        self.close()
        self._open = _reader(self._path)
        self._sites = self._about = None
        return self

    def close(self) -> None:
        """Closes the file; closing it again does nothing."""
        reader, self._open = self._open, None
        if reader:
            reader.close()

    def __enter__(self) -> File:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self):
        if not self._open:
            return f"<statrec.File of {self._path}, closed>"
        info = self.info
        return f"<statrec.File of {info['path']}, {info['status']}, {info['steps']} steps>"

    def _repr_html_(self):
        if not self._open:
            return _html.preformatted(repr(self))
        shown = ("model", "data", "status", "reason", "steps", "vectors", "evals", "program", "created")
        sites = [{name: getattr(site, name) for name in ("name", "norm", "kind", "width")}
                 for site in self.sites.values()]
        return _html.table(self.info["path"], {name: self.info[name] for name in shown}, sites)

    @property
    def path(self) -> Union[str, bytes]:
        """The path that was given."""
        return self._path

    def __fspath__(self):
        return os.fsdecode(self._path)

    # -- calls --------------------------------------------------------------------------------

    @property
    def _reader(self):
        if not self._open:
            raise Error(f"{os.fsdecode(self._path)}: the file is closed", "state")
        return self._open

    def _told(self, what):
        return f"{os.fsdecode(self._path)}: {what}"

    def _named(self, what, things):
        return Named(self._told(what), things)

    def _names(self, group):
        return self._reader.names(group)

    # -- what the run is ----------------------------------------------------------------------

    @property
    def info(self) -> dict[str, Any]:
        """dict: path, program, version, command, config, host, created, git, model, data, task,
        loss_reduction, parent, seed, threads, sites, width, steps, vectors, evals, status, reason,
        weights_digest, finished, wall_seconds, spectra, ranks, pairs.

        status: "running" (or its program died), "complete", "diverged", "interrupted", "failed",
        "damaged".
        """
        reader = self._reader
        if self._about is None:
            self._about = reader.info()
        return dict(self._about)

    @property
    def damage(self) -> list[str]:
        """Damage found when the file was opened, one line each."""
        return self._reader.damage()

    @property
    def sites(self) -> Mapping[str, Site]:
        """Site by name (or number), in the order of the forward pass."""
        reader = self._reader
        if self._sites is None:
            sites = [_site(i, fields) for i, fields in enumerate(reader.sites())]
            self._sites = self._named("sites", {site.name: site for site in sites})
        return self._sites

    def site(self, which: Which) -> Site:
        """The Site of a name, a number or a Site."""
        return self.sites[which.name if isinstance(which, Site) else which]  # type: ignore[index]

    @property
    def metrics(self) -> Mapping[str, SimpleNamespace]:
        """Metrics of evaluations by name: name, unit, definition, better ("less", "more" or "")."""
        return self._named("metrics", {metric["name"]: SimpleNamespace(**metric)
                                       for metric in self._reader.metrics()})

    @property
    def declared(self) -> Mapping[str, SimpleNamespace]:
        """Custom scalars by name: name, unit, definition, scope ("site", "step")."""
        return self._named("declared scalars", {scalar["name"]: SimpleNamespace(**scalar)
                                                for scalar in self._reader.declared()})

    def definition(self, name: str) -> str:
        """Definition of "scalars/dist_mu", or of a plain name; "" without one."""
        groups = [""] if "/" in name else ["scalars/", "vectors/", "steps/", "evals/"]
        for group in groups:
            encoded(name, "name")
            text = self._reader.definition(group + name)
            if text:
                return text
        return ""

    # -- statistics ---------------------------------------------------------------------------

    @property
    def scalars(self) -> list[str]:
        """Names of the scalars with values, custom ones included."""
        return [name for name in self._names("scalars") if self._reader.has("scalars", name)]

    @property
    def vectors(self) -> list[str]:
        """Names of the vectors with values."""
        return [name for name in self._names("vectors") if self._reader.has("vectors", name)]

    def __contains__(self, name: object) -> bool:
        return name in self._names("scalars") or name in self._names("vectors")

    def __iter__(self) -> Iterator[str]:
        return iter([*self.scalars, *self.vectors])

    def __getitem__(self, name: str) -> Statistic:
        """Statistic of every site; [name][site]: of one site. Indexing its rows reads them."""
        if name in self._names("scalars"):
            self._must_have(name, "scalars")
            return self._statistic(name, "scalars", "steps", "sites")
        if name in self._names("vectors"):
            self._must_have(name, "vectors")
            return self._statistic(name, "vectors", "vectors", "width")
        raise missing(self._told("statistics"), str(name),
                      [*self._names("scalars"), *self._names("vectors")])

    def _statistic(self, name, group, rows, columns):
        def of_site(which):
            site = self.site(which)
            shape = ((lambda: (self.info[rows],)) if columns == "sites"
                     else (lambda: (self.info[rows], site.width)))
            return Column(f"{name} of {site.name}", shape, "f", fill(site.number), definition)

        def fill(number):
            return lambda *part: self._reader.read(group, name, number, *part)

        definition = self.definition(name)
        return Statistic(name, lambda: (self.info[rows], self.info[columns]), "f", fill(-1),
                         definition, of_site=of_site)

    def scalar(self, name: str, site: Optional[Which] = None) -> Array:
        """Array [T] of a site; [T, S] without one."""
        self._must_have(name, "scalars")
        return self[name][:] if site is None else self[name][self.site(site)][:]

    def vector(self, name: str, site: Optional[Which] = None) -> Array:
        """Array [V, width] of a site; [V, W] without one."""
        self._must_have(name, "vectors")
        return self[name][:] if site is None else self[name][self.site(site)][:]

    def _must_have(self, name, group):
        if name not in self._names(group):
            raise missing(self._told(group), str(name), self._names(group))
        if name not in (self.scalars if group == "scalars" else self.vectors):
            raise NameMissing(self._told(f"{name} was not recorded: no site has a value of it"))

    @property
    def vector_steps(self) -> Array:
        """int64 [V]: the steps that the rows of vectors belong to."""
        return self._vector_steps()[:]

    def _vector_steps(self):
        return Column("vector_steps", lambda: (self.info["vectors"],), "q",
                      lambda *rows: self._reader.read("vectors", "step", -1, *rows))

    @property
    def steps(self) -> Columns:
        """Columns [T] by name: step, update, tokens (int64), epoch, loss, lr, ... (float64)."""
        return self._columns("steps", self._names("steps"))

    @property
    def evals(self) -> Columns:
        """Columns [E] by name: step, epoch, and every metric; float64."""
        return self._columns("evals", ["step", *self._names("evals")])

    @property
    def labels(self) -> list[Optional[str]]:
        """The label of each step (watch(labels=...), step(label=...)), None for a step without one;
        empty for a run without labels."""
        about = self.declared.get(_labels.SCALAR)
        if about is None or about.scope != "step":
            return []
        return _labels.read(about.definition, self.steps[_labels.SCALAR])

    def _columns(self, group, names):
        def column(name):
            whole = group == "steps" and name in _abi.STEP_INTS
            return Column(name, lambda: (self.info[group],), "q" if whole else "d",
                          lambda *rows: self._reader.read(group, name, -1, *rows),
                          self.definition(f"{group}/{name}"))
        return Columns(self._told(group), {name: column(name) for name in names}, "step")

    # -- spectra ------------------------------------------------------------------------------

    @property
    def embeddings(self) -> list[str]:
        """Names of the embeddings whose singular values are recorded."""
        return self._names("embeddings")

    def embedding(self, name: str) -> Embedding:
        """The Embedding of a name, its singular values read."""
        if name not in self.embeddings:
            raise NameMissing(self._told(f"no embedding '{name:.80}'"))
        reader, steps = self._reader, []
        rows, cols, width, records, method = reader.embedding(name)

        def fill(where):
            for i in range(records):
                steps.append(reader.singular_values(name, i, where + 8 * i * width))
        values = _arrays.read(fill, "d", (records, width))
        return Embedding(name=name, rows=rows, cols=cols, method=method, step=_integers(steps),
                         values=values)

    def spectrum(self, which: str, site: Which) -> Spectrum:
        """The Spectrum of a site's "input" or "gradient"."""
        if which not in _abi.SPECTRA:
            raise missing(self._told("spectra"), str(which), _abi.SPECTRA)
        site, count = self.site(site), self.info["spectra"]
        places = []

        def fill(where):
            for i in range(count):
                places.append(self._reader.spectrum(which, site.number, i,
                                                    where + 8 * i * site.width))
        values = _arrays.read(fill, "d", (count, site.width))
        return Spectrum(step=_integers([step for step, _ in places]),
                        rows=_integers([rows for _, rows in places]), values=values)

    @property
    def final(self) -> Optional[dict[str, Any]]:
        """dict of the final pass over training batches: batches, and tid_mean, tid_var
        [S]; with pairs of input and output pair_x, pair_y, pair_feature [S, K], NaN and -1 at sites
        without pairs. None for a run without a final pass."""
        batches = []
        values = _arrays.read(lambda where: batches.append(self._reader.final(where)), "d",
                              (len(_abi.FINALS), self.info["sites"]))
        if batches[0] < 0:
            return None
        return {"batches": batches[0],
                **{name: values[i] for i, name in enumerate(_abi.FINALS)}, **self._pairs()}

    def _pairs(self):
        """The columns of pairs by name; none where the run asked for none."""
        sites, count = self.info["sites"], self.info["pairs"]

        def part(which, typecode):
            def fill(where):
                for site in range(sites):
                    self._reader.pairs(which, site, where + 4 * count * site)
            return _arrays.read(fill, typecode, (sites, count))
        return {name: part(i, code) for i, (name, code) in enumerate(zip(_abi.PAIRS, "ffi"))
                if count}

    # -- other libraries ----------------------------------------------------------------------

    def diagnose(self) -> Diagnosis:
        """Diagnoses the run's normalization (statrec.diagnose)."""
        from ._plot import diagnose
        return diagnose(self)

    def frame(self, scalars: Optional[list[str]] = None, sites: Optional[list[Which]] = None,
              tidy: bool = False) -> pandas.DataFrame:
        """pandas DataFrame of scalars (default: all with values), index step.

        Columns (site, statistic); tidy: one row per step and site, columns step, site and each
        statistic. sites: names, numbers or Sites; default: all. run.steps.frame() and
        run.evals.frame() have losses and metrics.
        """
        return _frames.frame(self, scalars, sites, tidy)

    def dataset(self) -> xarray.Dataset:
        """xarray.Dataset with dimensions step, site, vector_step and column; read when used.

        Scalars [step, site], vectors [vector_step, column], columns of steps [step]. Coordinates:
        step, vector_step, site (names), and column_site: the site of each column. Keep the file
        open while it is used.
        """
        return _frames.dataset(self)


def _integers(values):
    """int64 array of a list."""
    numbers = (ctypes.c_int64 * max(len(values), 1))(*values)
    return _arrays.read(lambda where: ctypes.memmove(where, numbers, 8 * len(values)), "q",
                        (len(values),))
