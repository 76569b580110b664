"""Run files read by libstatrec. _h5py_reader.Reader gives the same answers without it."""
import ctypes
import os

from .. import _abi
from .._library import (Error, Handle, copy_of, decoded, encoded, error_of, library, locked,
                        path_bytes, recorded_here)

_COLUMNS = 32  # of /final, at most


def _plain(value):
    return decoded(value) if isinstance(value, bytes) or value is None else value


def _fields(struct):
    """{name: value} of a struct, without its size."""
    return {name: _plain(getattr(struct, name)) for name, *_ in struct._fields_[1:]}


def _forgotten(handle):
    library().sr_run_close(handle.release())


class Reader:
    """An open run file. Raises Error."""

    def __init__(self, path):
        why = _abi.Failure()
        with locked():
            pointer = library().sr_run_open(path_bytes(path), ctypes.byref(why))
        if not pointer:
            raise self._not_opened(path, error_of(why))
        self._handle = Handle(self, pointer, path, _forgotten)

    @staticmethod
    def _not_opened(path, error):
        if not recorded_here(path):
            return error
        return Error(f"{os.fsdecode(path)}: a recorder of this process writes it, and no step "
                     "is in it yet", "state", "flush() puts the steps so far into the file")

    def close(self):
        """Closes the file; closing it again does nothing, nor in a forked child."""
        if self._handle.own and self._handle.pointer:
            with locked():
                library().sr_run_close(self._handle.release())

    # -- calls --------------------------------------------------------------------------------

    def _call(self, name, *arguments):
        """The result of the function with this name for this file."""
        with locked():
            return getattr(library(), name)(self._handle.pointer, *arguments)

    def _read(self, name, *arguments):
        """The same for functions that return a status."""
        why = _abi.Failure()
        if self._call(name, *arguments, ctypes.byref(why)):
            raise error_of(why)

    @staticmethod
    def _several(ask):
        """The results of ask(0), ask(1), ... before the first None."""
        found = []
        while True:
            thing = ask(len(found))
            if thing is None:
                return found
            found.append(thing)

    # -- what the run is ----------------------------------------------------------------------

    def info(self):
        """dict, as File.info."""
        with locked():
            return _fields(copy_of(self._call("sr_run_get_info"), _abi.RunInfo))

    def damage(self):
        """Lines."""
        return [decoded(line) for line in self._several(
            lambda i: self._call("sr_run_damage", i))]

    def sites(self):
        """A dict of fields for each site."""
        found = [_fields(struct) for struct in self._several(
            lambda i: copy_of(self._call("sr_run_get_site", i), _abi.RunSite))]
        for site in found:
            site["family"] = decoded(library().sr_family_name(site["family"]))
        return found

    def metrics(self):
        """A dict of name, unit, definition and better for each metric, in their order."""
        words = {number: word for word, number in _abi.BETTER.items()}
        found = [_fields(struct) for struct in self._several(
            lambda i: copy_of(self._call("sr_run_get_metric", i), _abi.RunMetric))]
        return [{**metric, "better": words[metric["better"]]} for metric in found]

    def declared(self):
        """A dict of name, unit, definition and scope for each custom scalar."""
        found = [_fields(struct) for struct in self._several(
            lambda i: copy_of(self._call("sr_run_get_declared", i), _abi.RunDeclared))]
        return [{**scalar, "scope": _abi.SCOPES[scalar["scope"]]} for scalar in found]

    def names(self, group):
        """Names of the members of scalars, vectors, evals, steps or embeddings, in their order."""
        return [decoded(name) for name in self._several(
            lambda i: self._call("sr_run_name", group.encode(), i))]

    def has(self, group, name):
        """Whether a scalar or a vector has values."""
        return self._call(f"sr_run_has_{group[:-1]}", name.encode())

    def definition(self, path):
        """The definition of a dataset, or ""."""
        return decoded(self._call("sr_run_definition", encoded(path, "name")))

    # -- values -------------------------------------------------------------------------------

    def read(self, group, name, site, first, count, where):
        """Writes the rows [first, first + count) of a column to an address: of one site, or all
        (-1). group: scalars, vectors, steps or evals; of the last every column is float64."""
        rows = (first, count, where)
        if group == "vectors" and name == "step":
            self._read("sr_run_vector_steps", *rows)
        elif group in ("scalars", "vectors"):
            self._read(f"sr_run_{group[:-1]}", name.encode(), site, *rows)
        elif group == "steps":
            kind = "ints" if name in _abi.STEP_INTS else "reals"
            self._read(f"sr_run_step_{kind}", name.encode(), *rows)
        else:
            self._read("sr_run_eval", name.encode(), *rows)

    def embedding(self, name):
        """(rows, cols, values of a record, records, method)."""
        about = _abi.RunEmbedding()
        self._read("sr_run_get_embedding", encoded(name, "name"), ctypes.byref(about))
        return about.rows, about.cols, about.values, about.records, _plain(about.method)

    def singular_values(self, name, i, where):
        """Writes record i to an address; its step."""
        step = ctypes.c_int64()
        self._read("sr_run_singular_values", encoded(name, "name"), i, ctypes.byref(step), where)
        return step.value

    def spectrum(self, which, site, i, where):
        """Writes record i of a site's "input" or "gradient" to an address; (step, rows)."""
        step, rows = ctypes.c_int64(), ctypes.c_int64()
        self._read("sr_run_spectrum", _abi.SPECTRA.index(which), site, i, ctypes.byref(step),
                   ctypes.byref(rows), where)
        return step.value, rows.value

    def final(self, where):
        """Writes tid_mean and tid_var of every site to an address; the batches, -1: no pass."""
        batches, sites = ctypes.c_int64(-1), self.info()["sites"]
        # More columns than have a name here, for a library that has more of them.
        spare = (ctypes.c_double * max(sites, 1))()
        columns = (ctypes.c_void_p * _COLUMNS)(*[ctypes.addressof(spare)] * _COLUMNS)
        for i in range(len(_abi.FINALS)):
            columns[i] = where + 8 * i * sites
        self._read("sr_run_final", ctypes.byref(batches), columns)
        return batches.value

    def pairs(self, which, site, where):
        """Writes the pairs of a site to an address: column `which` of _abi.PAIRS."""
        other = (ctypes.c_char * (4 * self.info()["pairs"]))()
        columns = [ctypes.addressof(other)] * len(_abi.PAIRS)
        columns[which] = where
        self._read("sr_run_pairs", site, *columns)
