"""statrec.open("run.h5"): a run file, finished or growing, as arrays by site and statistic."""
import ctypes
import difflib
import os
from collections.abc import Mapping
from types import SimpleNamespace

from . import _abi, _arrays, _frames, _html
from ._columns import Column, Statistic
from ._library import (Error, Handle, NameMissing, copy_of, decoded, encoded, error_of, library,
                       locked, path_bytes, recorded_here)

_COLUMNS = 32  # of /final, at most
_STEP_INTS = ("step", "update", "tokens")  # the columns of /steps that are whole numbers


def open(path):  # noqa: A001 - statrec.open, as h5py.File
    """Opens a run file; PATH.part if PATH does not exist yet. Returns a File."""
    return File(path)


def check(path):
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
    statistics), axis, uses, constants, observed, merged.
    """

    def __str__(self):
        return self.name


def _site(number, struct):
    fields = {name: _plain(getattr(struct, name)) for name, _ in struct._fields_[1:]}
    fields["family"] = decoded(library().sr_family_name(struct.family))
    for flag in ("observed", "layer_scale_own", "merged"):
        fields[flag] = bool(fields[flag])
    return Site(number=number, **fields)


def _plain(value):
    return decoded(value) if isinstance(value, bytes) or value is None else value


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

    def lazy(self, name):
        """The Column, which reads only requested slices."""
        return super().__getitem__(name)

    def frame(self):
        """All of them as a pandas DataFrame, by step."""
        return _frames.of_columns(self, self._index)


def missing(what, name, known):
    """The error of a name that is not there."""
    near = difflib.get_close_matches(name, list(known), 1)
    return NameMissing(f"{what}: no '{name:.80}'", "usage",
                       f"did you mean '{near[0]}'?" if near else "")


class Spectrum(SimpleNamespace):
    """step [P], rows [P] (-1: not measured), values [P, width]."""


class Embedding(SimpleNamespace):
    """name, rows, cols, method; step [M] and values [M, min(rows, cols)], singular values."""


# -- the file ---------------------------------------------------------------------------------

def _forgotten(handle):
    library().sr_run_close(handle.release())


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

    def __init__(self, path):
        self._path, self._handle = os.fspath(path), None
        self.reopen()

    def reopen(self):
        """Opens the same path again, with the later rows of a growing file. Returns self.

        PATH.part becomes PATH when its run ends, so open a growing file as PATH. Arrays read before
        are copies and stay; a Column has the new rows. HDF5 caches a file while any File of it is
        open in the process, so close all others first. If opening fails the file is closed.
        """
        self.close()
        why = _abi.Failure()
        with locked():
            pointer = library().sr_run_open(path_bytes(self._path), ctypes.byref(why))
        if not pointer:
            raise self._not_opened(error_of(why))
        self._handle = Handle(self, pointer, self._path, _forgotten)
        self._sites = self._about = None
        return self

    def _not_opened(self, error):
        if not recorded_here(self._path):
            return error
        return Error(f"{os.fsdecode(self._path)}: a recorder of this process writes it, and no step "
                     "is in it yet", "state", "flush() puts the steps so far into the file")

    def close(self):
        """Closes the file; closing it again does nothing."""
        if self._handle and self._handle.own and self._handle.pointer:
            with locked():
                library().sr_run_close(self._handle.release())

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        if not (self._handle and self._handle.pointer):
            return f"<statrec.File of {self._path}, closed>"
        info = self.info
        return f"<statrec.File of {info['path']}, {info['status']}, {info['steps']} steps>"

    def _repr_html_(self):
        if not (self._handle and self._handle.pointer):
            return _html.preformatted(repr(self))
        shown = ("model", "data", "status", "reason", "steps", "vectors", "evals", "program", "created")
        sites = [{name: getattr(site, name) for name in ("name", "norm", "kind", "width")}
                 for site in self.sites.values()]
        return _html.table(self.info["path"], {name: self.info[name] for name in shown}, sites)

    @property
    def path(self):
        """The path that was given."""
        return self._path

    def __fspath__(self):
        return os.fsdecode(self._path)

    # -- calls --------------------------------------------------------------------------------

    @property
    def _pointer(self):
        if not (self._handle and self._handle.pointer):
            raise Error(f"{os.fsdecode(self._path)}: the file is closed", "state")
        return self._handle.pointer

    def _call(self, name, *arguments):
        """What the function of this name returns for this file."""
        with locked():
            return getattr(library(), name)(self._pointer, *arguments)

    def _read(self, name, *arguments):
        """The same of functions that return a status."""
        why = _abi.Failure()
        if self._call(name, *arguments, ctypes.byref(why)):
            raise error_of(why)

    def _several(self, ask):
        """What ask(0), ask(1), ... return, until it is None."""
        found = []
        while True:
            thing = ask(len(found))
            if thing is None:
                return found
            found.append(thing)

    def _told(self, what):
        return f"{os.fsdecode(self._path)}: {what}"

    def _named(self, what, things):
        return Named(self._told(what), things)

    def _names(self, group):
        return [decoded(name) for name in self._several(
            lambda i: self._call("sr_run_name", group.encode(), i))]

    # -- what the run is ----------------------------------------------------------------------

    @property
    def info(self):
        """dict: path, program, version, command, config, host, created, git, model, data, task,
        loss_reduction, parent, seed, threads, sites, width, steps, vectors, evals, status, reason,
        weights_digest, finished, wall_seconds, spectra, ranks, pairs.

        status: "running" (or its program died), "complete", "diverged", "interrupted", "failed",
        "damaged".
        """
        if self._pointer and self._about is None:
            with locked():
                struct = copy_of(self._call("sr_run_get_info"), _abi.RunInfo)
                self._about = {name: _plain(getattr(struct, name))
                               for name, _ in _abi.RunInfo._fields_[1:]}
        return dict(self._about)

    @property
    def damage(self):
        """Damage found when the file was opened, one line each."""
        return [decoded(line) for line in self._several(
            lambda i: self._call("sr_run_damage", i))]

    @property
    def sites(self):
        """Site by name (or number), in the order of the forward pass."""
        if self._pointer and self._sites is None:
            structs = self._several(
                lambda i: copy_of(self._call("sr_run_get_site", i), _abi.RunSite))
            sites = [_site(i, struct) for i, struct in enumerate(structs)]
            self._sites = self._named("sites", {site.name: site for site in sites})
        return self._sites

    def site(self, which):
        """The Site of a name, a number or a Site."""
        return self.sites[getattr(which, "name", which)]

    @property
    def metrics(self):
        """Metrics of evaluations by name: name, unit, definition, better ("less", "more" or "")."""
        words = {number: word for word, number in _abi.BETTER.items()}
        found = self._several(
            lambda i: copy_of(self._call("sr_run_get_metric", i), _abi.RunMetric))
        return self._named("metrics", {decoded(m.name): SimpleNamespace(
            name=decoded(m.name), unit=decoded(m.unit), definition=decoded(m.definition),
            better=words[m.better]) for m in found})

    @property
    def declared(self):
        """Custom scalars by name: name, unit, definition, scope ("site", "step")."""
        found = self._several(
            lambda i: copy_of(self._call("sr_run_get_declared", i), _abi.RunDeclared))
        return self._named("declared scalars", {decoded(d.name): SimpleNamespace(
            name=decoded(d.name), unit=decoded(d.unit), definition=decoded(d.definition),
            scope=_abi.SCOPES[d.scope]) for d in found})

    def definition(self, name):
        """Definition of "scalars/dist_mu", or of a plain name; "" without one."""
        groups = [""] if "/" in name else ["scalars/", "vectors/", "steps/", "evals/"]
        for group in groups:
            text = self._call("sr_run_definition", encoded(group + name, "name"))
            if text:
                return decoded(text)
        return ""

    # -- statistics ---------------------------------------------------------------------------

    @property
    def scalars(self):
        """Names of the scalars with values, custom ones included."""
        return [name for name in self._names("scalars")
                if self._call("sr_run_has_scalar", name.encode())]

    @property
    def vectors(self):
        """Names of the vectors with values."""
        return [name for name in self._names("vectors")
                if self._call("sr_run_has_vector", name.encode())]

    def __contains__(self, name):
        return name in self._names("scalars") or name in self._names("vectors")

    def __iter__(self):
        return iter([*self.scalars, *self.vectors])

    def __getitem__(self, name):
        """Statistic of every site; [name][site]: of one site. Indexing its rows reads them."""
        if name in self._names("scalars"):
            self._must_have(name, "scalars")
            return self._statistic(name, "sr_run_scalar", "steps", "sites")
        if name in self._names("vectors"):
            self._must_have(name, "vectors")
            return self._statistic(name, "sr_run_vector", "vectors", "width")
        raise missing(self._told("statistics"), str(name),
                      [*self._names("scalars"), *self._names("vectors")])

    def _statistic(self, name, function, rows, columns):
        def of_site(which):
            site = self.site(which)
            shape = ((lambda: (self.info[rows],)) if columns == "sites"
                     else (lambda: (self.info[rows], site.width)))
            return Column(f"{name} of {site.name}", shape, "f", fill(site.number), definition)

        def fill(number):
            return lambda first, count, where: self._read(
                function, name.encode(), number, first, count, where)

        definition = self.definition(name)
        return Statistic(name, lambda: (self.info[rows], self.info[columns]), "f", fill(-1),
                         definition, of_site=of_site)

    def scalar(self, name, site=None):
        """Array [T] of a site; [T, S] without one."""
        self._must_have(name, "scalars")
        return self[name][:] if site is None else self[name][self.site(site)][:]

    def vector(self, name, site=None):
        """Array [V, width] of a site; [V, W] without one."""
        self._must_have(name, "vectors")
        return self[name][:] if site is None else self[name][self.site(site)][:]

    def _must_have(self, name, group):
        if name not in self._names(group):
            raise missing(self._told(group), str(name), self._names(group))
        if name not in (self.scalars if group == "scalars" else self.vectors):
            raise NameMissing(self._told(f"{name} was not recorded: no site has a value of it"))

    @property
    def vector_steps(self):
        """int64 [V]: the steps that the rows of vectors belong to."""
        return self._vector_steps()[:]

    def _vector_steps(self):
        return Column("vector_steps", lambda: (self.info["vectors"],), "q",
                      lambda *rows: self._read("sr_run_vector_steps", *rows))

    @property
    def steps(self):
        """Columns [T] by name: step, update, tokens (int64), epoch, loss, lr, ... (float64)."""
        return self._columns("steps", self._names("steps"), self._step_reader)

    @property
    def evals(self):
        """Columns [E] by name: step, epoch, and every metric; float64."""
        return self._columns("evals", ["step", *self._names("evals")],
                             lambda name: ("sr_run_eval", "d"))

    @staticmethod
    def _step_reader(name):
        whole = name in _STEP_INTS
        return ("sr_run_step_ints", "q") if whole else ("sr_run_step_reals", "d")

    def _columns(self, group, names, reader):
        def column(name):
            function, typecode = reader(name)
            return Column(name, lambda: (self.info[group],), typecode,
                          lambda *rows: self._read(function, name.encode(), *rows),
                          self.definition(f"{group}/{name}"))
        return Columns(self._told(group), {name: column(name) for name in names}, "step")

    # -- spectra ------------------------------------------------------------------------------

    @property
    def embeddings(self):
        """Names of the embeddings whose singular values are recorded."""
        return self._names("embeddings")

    def embedding(self, name):
        """The Embedding of a name, its singular values read."""
        about, code = _abi.RunEmbedding(), encoded(name, "name")
        self._read("sr_run_get_embedding", code, ctypes.byref(about))
        steps = (ctypes.c_int64 * max(about.records, 1))()

        def fill(where):
            for i in range(about.records):
                self._read("sr_run_singular_values", code, i, _element(steps, i),
                           where + 8 * i * about.values)
        values = _arrays.read(fill, "d", (about.records, about.values))
        return Embedding(name=name, rows=about.rows, cols=about.cols, method=_plain(about.method),
                         step=_integers(steps, about.records), values=values)

    def spectrum(self, which, site):
        """The Spectrum of a site's "input" or "gradient"."""
        if which not in _abi.SPECTRA:
            raise missing(self._told("spectra"), str(which), _abi.SPECTRA)
        site, count = self.site(site), self.info["spectra"]
        steps, rows = ((ctypes.c_int64 * max(count, 1))() for _ in range(2))

        def fill(where):
            for i in range(count):
                self._read("sr_run_spectrum", _abi.SPECTRA.index(which), site.number, i,
                           _element(steps, i), _element(rows, i), where + 8 * i * site.width)
        values = _arrays.read(fill, "d", (count, site.width))
        return Spectrum(step=_integers(steps, count), rows=_integers(rows, count), values=values)

    @property
    def final(self):
        """dict of the final pass over training batches: batches, and tid_mean, tid_var
        [S]; with pairs of input and output pair_x, pair_y, pair_feature [S, K], NaN and -1 at sites
        without pairs. None for a run without a final pass."""
        batches, sites = ctypes.c_int64(-1), self.info["sites"]

        def fill(where):
            # More columns than have a name here, for a library that has more of them.
            columns = (ctypes.c_void_p * _COLUMNS)(*(where + 8 * i * sites
                                                     for i in range(_COLUMNS)))
            self._read("sr_run_final", ctypes.byref(batches), columns)
        values = _arrays.read(fill, "d", (_COLUMNS, sites))
        if batches.value < 0:
            return None
        return {"batches": batches.value,
                **{name: values[i] for i, name in enumerate(_abi.FINALS)}, **self._pairs()}

    def _pairs(self):
        """The columns of pairs by name; none where the run asked for none."""
        sites, count = self.info["sites"], self.info["pairs"]

        def part(which, typecode):
            def fill(where):
                other = (ctypes.c_char * (4 * count))()
                for site in range(sites):
                    columns = [ctypes.addressof(other)] * len(_abi.PAIRS)
                    columns[which] = where + 4 * count * site
                    self._read("sr_run_pairs", site, *columns)
            return _arrays.read(fill, typecode, (sites, count))
        return {name: part(i, code) for i, (name, code) in enumerate(zip(_abi.PAIRS, "ffi"))
                if count}

    # -- other libraries ----------------------------------------------------------------------

    def diagnose(self):
        """Diagnoses the run's normalization (statrec.diagnose)."""
        from ._plot import diagnose
        return diagnose(self)

    def frame(self, scalars=None, sites=None, tidy=False):
        """pandas DataFrame of scalars (default: all with values), index step.

        Columns (site, statistic); tidy: one row per step and site, columns step, site and each
        statistic. sites: names, numbers or Sites; default: all. run.steps.frame() and
        run.evals.frame() have losses and metrics.
        """
        return _frames.frame(self, scalars, sites, tidy)

    def dataset(self):
        """xarray.Dataset with dimensions step, site, vector_step and column; read when used.

        Scalars [step, site], vectors [vector_step, column], columns of steps [step]. Coordinates:
        step, vector_step, site (names), and column_site: the site of each column. Keep the file
        open while it is used.
        """
        return _frames.dataset(self)


def _element(values, i):
    """Pointer to element i of an array of ctypes."""
    return ctypes.cast(ctypes.byref(values, i * ctypes.sizeof(values._type_)),
                       ctypes.POINTER(values._type_))


def _integers(values, count):
    return _arrays.read(lambda where: ctypes.memmove(where, values, 8 * count), "q", (count,))
