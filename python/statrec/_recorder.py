"""Recorder: statrec/record.h for Python, one method per call.

    with statrec.Recorder("run.h5", program="mytrainer", planned_steps=1000) as recorder:
        site = recorder.add_site("norm1", norm="bn", width=64, eps=1e-5, alpha=0.9)
        for step in range(1, 1001):
            recorder.begin_step(step)
            recorder.put_forward(site, rows, mean, variance, mean_square)
            recorder.put_backward(site, sum_g, sum_gc)
            recorder.end_step(update=step, tokens=rows, loss=loss)

Arrays have [width of the site] doubles: any object with the buffer protocol (array.array, NumPy,
memoryview), a ctypes array, a sequence of numbers, or an int, the address of contiguous doubles
that stay alive during the call (tensor.data_ptr()).
"""
from __future__ import annotations

import ctypes
import functools
import math
import os
import struct
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Optional, TypeVar, Union, cast

from . import _abi
from ._arguments import check_options as check_options  # for statrec.watch
from ._arguments import choice, integer, options_of, real, shortened
from ._reading._arrays import address
from ._library import (Error, Handle, decoded, encoded, error_of, library, locked,
                       path_bytes, recorded_here, recorded_twice)
from ._nearest import nearest
from ._watching._say import level

Path = Union[str, bytes, "os.PathLike[Any]"]
Doubles = Any  # [width of the site]: buffer, ctypes array, sequence of numbers, or an address

_NAN = math.nan
_Method = TypeVar("_Method", bound=Callable[..., Any])

# -- calls ------------------------------------------------------------------------------------

def _call(otherwise: Any = None) -> Callable[[_Method], _Method]:
    """A method that calls the library: alone there, and never in a forked child.

    A quiet recorder keeps its exception, and the method returns `otherwise`.
    """
    def wrap(method: _Method) -> _Method:
        @functools.wraps(method)
        def guarded(self, /, *args, **kwargs):
            if self._pid != os.getpid():
                return otherwise
            try:
                with locked():
                    self._must_be_open()
                    return method(self, *args, **kwargs)
            except Error as error:
                self._error = self._error or error
                if not self._quiet:
                    raise
                return otherwise
        return cast(_Method, guarded)
    return wrap


def _forgotten(handle):
    """The recorder went away, or the interpreter goes: its rows stay in PATH.part."""
    pointer = handle.release()
    library().sr_flush(pointer)
    library().sr_abandon(pointer)
    warnings.warn(f"{handle.path} was not closed: its rows are in {handle.path}.part",
                  RuntimeWarning, stacklevel=2)


class Recorder:
    """Writes a run file; statrec/record.h documents each method.

    Options, as fields of sr_options there: force (replace the file), resume, program, version,
    command, config, host, git, model, data, task, loss_reduction ("sum" or "mean"), parent, seed,
    threads, ranks; scalars, vectors (datasets to record), vectors_every, planned_steps, size_limit
    (bytes), overhead (of the run's time), flush_steps, flush_seconds, started, spectra, final,
    planned_spectra, running, sync, pairs.

    A failed call raises statrec.Error. With quiet=True only wrong options raise: the first failure
    is kept in .failure, and later calls do nothing. In a forked child (a DataLoader's worker) every
    method does nothing.

    As a context manager it is closed as "complete"; after an exception as "failed", after a
    KeyboardInterrupt or SystemExit as "interrupted"; the exception propagates. A recorder that
    is never closed leaves PATH.part, which statrec.open reads.
    """

    def __init__(self, path: Path, *, quiet: bool = False, **options: Any) -> None:
        self._pid, self._quiet, self._path = os.getpid(), quiet, os.fsdecode(path)
        self._error: Optional[Error] = None
        self._handle: Optional[Handle] = None
        self._widths: list[int] = []
        self._metrics: set[str] = set()
        self._declared: dict[str, int] = {}
        try:
            self._create(path, options_of(options))
        except Error as error:
            self._error = error
            if not quiet:
                raise

    def _create(self, path, options):
        why = _abi.Failure()
        with locked():
            pointer = library().sr_create(path_bytes(path), ctypes.byref(options),
                                          ctypes.byref(why))
        if not pointer:
            error = error_of(why)
            if error.status == "exists" and recorded_here(path):
                raise recorded_twice(path)
            raise error
        self._handle = Handle(self, pointer, self._path, _forgotten).records()
        refused = library().sr_lock_refused(pointer)
        if refused:
            warnings.warn(decoded(refused), RuntimeWarning, stacklevel=level())

    def __repr__(self) -> str:
        return f"<statrec.Recorder of {self._path}, {'open' if self._pointer else 'closed'}>"

    @property
    def _pointer(self):
        return self._handle.pointer if self._handle else None

    def _must_be_open(self):
        if not self._pointer:
            raise self._error or Error(f"{self._path}: the recorder is closed", "state")

    def _done(self, status):
        """Raises the failure that the library keeps, unless status is a success."""
        if status == 0:
            return
        why = library().sr_failed(self._pointer)
        if why:
            raise error_of(why.contents)
        raise Error(f"{self._path}: {decoded(library().sr_status_name(status))}", "state")

    def _numbered(self, number):
        if number < 0:
            self._done(-1)
        return number

    def _width(self, site):
        if isinstance(site, int) and 0 <= site < len(self._widths):
            return self._widths[site]
        raise Error(f"{self._path}: no site {site!r:.80}; there are {len(self._widths)}, from 0")

    # -- declaring ----------------------------------------------------------------------------

    @_call(-1)
    def add_site(self, name: str, norm: str = "", kind: str = "", family: str = "sigma", *,
                 width: int, depth: int = 0, eps: float, alpha: float = _NAN, layer_scale: int = 0,
                 repeat: str = "last", observed: bool = False, axis: Optional[str] = None,
                 uses: Optional[str] = None, constants: Optional[str] = None,
                 alpha_bwd: float = _NAN) -> int:
        """Adds a site of `width` features, returns its number. alpha weighs the OLD running value,
        alpha_bwd the OLD nu of PN (NaN: alpha does).

        family: "sigma", "psi", "pn", "row", "own" or "none". repeat: "last" records the last of
        several forward passes in a step, "merge" all as one batch. observed: an observer computes
        the batch statistics, the method does not use them. axis ("batch", "row", "sample", "-"),
        uses ("mu,sigma2") and constants: as in /sites; omitted ones follow from the family.
        """
        number = library().sr_family_find(encoded(family, "family"))
        if library().sr_family_name(number) != family.encode():
            raise Error(f"{self._path}: site {name}: no family '{family:.80}'")
        site = _abi.Site(
            name=encoded(name, "name"), norm=encoded(norm, "norm"), kind=encoded(kind, "kind"),
            family=number, width=integer(width, "width", 32), depth=integer(depth, "depth", 32),
            eps=real(eps, "eps"), alpha=real(alpha, "alpha"),
            layer_scale=integer(layer_scale, "layer_scale", 32),
            repeat=_abi.REPEATS.index(choice(repeat, _abi.REPEATS, "repeat")),
            **{field: encoded(text, field)
               for field, text in (("axis", axis), ("uses", uses), ("constants", constants))
               if text is not None})
        added = self._numbered(library().sr_add_site(self._pointer, ctypes.byref(site)))
        self._widths.append(site.width)
        self._done(library().sr_set_alpha_backward(self._pointer, added,
                                                   real(alpha_bwd, "alpha_bwd")))
        if observed:
            self._done(library().sr_set_observed(self._pointer, added))
        return added

    @_call()
    def add_metric(self, name: str, unit: str = "", definition: str = "",
                   better: Union[str, int] = 0) -> None:
        """Declares a metric of evaluations. better: "less", "more", "", or -1, 1, 0."""
        known: dict[Any, int] = {**_abi.BETTER,
                                 **{number: number for number in _abi.BETTER.values()}}
        direction = known[choice(better, known, "better")]
        self._done(library().sr_add_metric(self._pointer, encoded(name, "name"),
                                           encoded(unit, "unit"),
                                           encoded(definition, "definition"), direction))
        self._metrics.add(name)

    @_call(-1)
    def declare_scalar(self, name: str, unit: str, definition: str, scope: str = "site") -> int:
        """Declares a custom scalar, one per "site" and step or one per "step"; returns its id."""
        number = self._numbered(library().sr_declare_scalar(
            self._pointer, encoded(name, "name"), encoded(unit, "unit"),
            encoded(definition, "definition"),
            _abi.SCOPES.index(choice(scope, _abi.SCOPES, "scope"))))
        self._declared[name] = number
        return number

    @property
    @_call(0)
    def vectors_every(self) -> int:
        """Spacing of the steps with vectors; 0: none."""
        return library().sr_vectors_every(self._pointer)

    @property
    @_call(-1)
    def projected_bytes(self) -> int:
        """Projected size of the finished file; -1 without planned_steps."""
        return library().sr_projected_bytes(self._pointer)

    @property
    @_call(0.0)
    def own_seconds(self) -> float:
        """Seconds spent in the recorder so far."""
        return library().sr_own_seconds(self._pointer)

    @_call()
    def add_seconds(self, seconds: float) -> None:
        """Adds seconds that the host program spent on recording."""
        library().sr_add_seconds(self._pointer, real(seconds, "seconds"))

    # -- a step -------------------------------------------------------------------------------

    @_call()
    def begin_step(self, step: int) -> None:
        """Begins a step, one forward and backward pass; step numbers increase."""
        self._done(library().sr_begin_step(self._pointer, integer(step, "step")))

    @_call(False)
    def wants_vectors(self) -> bool:
        """Whether this step records vectors."""
        return library().sr_wants_vectors(self._pointer)

    @_call()
    def put_forward(self, site: int, rows: int, mean: Doubles, variance: Doubles,
                    mean_square: Doubles, gamma: Optional[Doubles] = None, samples: int = 0,
                    padded: int = 0) -> None:
        """Moments of a forward pass over its valid rows, [width] each; biased variance."""
        width = self._width(site)
        names = ("mean", "variance", "mean_square", "gamma")
        found = [address(value, width, name)
                 for name, value in zip(names, (mean, variance, mean_square, gamma))]
        forward = _abi.Forward(rows=integer(rows, "rows"), samples=integer(samples, "samples"),
                               padded=integer(padded, "padded"),
                               **{name: where for name, (where, _) in zip(names, found)})
        self._done(library().sr_put_forward(self._pointer, site, ctypes.byref(forward)))

    @_call()
    def put_backward(self, site: int, sum_g: Doubles, sum_gc: Doubles,
                     sum_gg: Optional[Doubles] = None) -> None:
        """Sums over valid rows of g, g (x - mean) and g^2, [width] each."""
        width = self._width(site)
        names = ("sum_g", "sum_gc", "sum_gg")
        found = [address(value, width, name)
                 for name, value in zip(names, (sum_g, sum_gc, sum_gg))]
        backward = _abi.Backward(**{name: where for name, (where, _) in zip(names, found)})
        self._done(library().sr_put_backward(self._pointer, site, ctypes.byref(backward)))

    @_call()
    def put_passes(self, passes: Sequence[tuple[int, int, int, int, int, int, bool]],
                   gradient_norms: bool = True) -> None:
        """put_forward and put_backward of many passes: (site, rows, samples, padded, address,
        stride, has_gamma) each.

        address: [width] doubles of mean; each `stride` bytes later the next ones: variance,
        mean square, sum g, sum g (x - mean), sum g^2 (gradient_norms), gamma.
        """
        size = ctypes.sizeof(_abi.Pass)
        given: list[int] = []
        for site, rows, samples, padded, at, stride, has_gamma in passes:
            given += (size, site, gradient_norms, has_gamma, rows, samples, padded, stride // 8, at)
        self._done(library().sr_put_passes(
            self._pointer, struct.pack("@" + len(passes) * _abi.PASS, *given), len(passes)))

    @_call()
    def put_rows(self, site: int, rows: int) -> None:
        """Number of valid rows of this step; put_forward sets it too."""
        self._width(site)
        self._done(library().sr_put_rows(self._pointer, site, integer(rows, "rows")))

    @_call()
    def put_vector(self, site: int, name: str, values: Doubles) -> None:
        """A statistic of /vectors by its name, [width]."""
        width, number = self._width(site), library().sr_vector_id(encoded(name, "name"))
        if number < 0:
            raise Error(f"{self._path}: no vector '{name:.80}'", "usage",
                        nearest(name, _names("sr_vector_name")))
        where, keep = address(values, width, name)
        self._done(library().sr_put_vector(self._pointer, site, number, where))
        del keep

    @_call()
    def put_vectors(self, name: str, places: Sequence[tuple[int, int]]) -> None:
        """put_vector of one statistic at many sites: (site, address of [width] doubles) each."""
        if not places:
            return
        sites, addresses = zip(*places)
        number, count = library().sr_vector_id(encoded(name, "name")), len(places)
        self._done(library().sr_put_vectors(self._pointer, number, (ctypes.c_int * count)(*sites),
                                            (ctypes.c_void_p * count)(*addresses), count))

    @_call()
    def put_scalar(self, site: int, which: Union[str, int], value: float) -> None:
        """A statistic of /scalars by its name, or a declared one by name or id."""
        self._width(site)
        number = which if isinstance(which, int) else self._scalar_id(which)
        self._done(library().sr_put_scalar(self._pointer, site, number, real(value, which)))

    @_call()
    def put_scalars(self, which: Union[str, int], values: Sequence[tuple[int, float]]) -> None:
        """put_scalar of one statistic at many sites: (site, value) each."""
        if not values:
            return
        number = which if isinstance(which, int) else self._scalar_id(which)
        sites, count = [site for site, _ in values], len(values)
        reals = [value if type(value) is float else real(value, which) for _, value in values]
        self._done(library().sr_put_scalars(self._pointer, number, (ctypes.c_int * count)(*sites),
                                            (ctypes.c_double * count)(*reals), count))

    def _scalar_id(self, name):
        if name in self._declared:
            return self._declared[name]
        number = library().sr_scalar_id(encoded(name, "name"))
        if number >= 0:
            return number
        raise Error(f"{self._path}: no scalar '{name:.80}'", "usage",
                    nearest(name, [*self._declared, *_names("sr_scalar_name")]))

    @_call()
    def put_step_scalar(self, which: Union[str, int], value: float) -> None:
        """A scalar that declare_scalar(scope="step") declared, by its id or name."""
        number = which if isinstance(which, int) else self._declared.get(which)
        if number is None:
            raise Error(f"{self._path}: no scalar '{which!s:.80}' was declared", "usage",
                        nearest(str(which), list(self._declared)))
        self._done(library().sr_put_step_scalar(self._pointer, number, real(value, which)))

    @_call()
    def end_step(self, update: int, tokens: int, epoch: float = _NAN, loss: float = _NAN,
                 lr: float = _NAN, grad_norm: float = _NAN) -> None:
        """Ends the step; one of the next flushes writes its row to the file."""
        row = _abi.Step(update=integer(update, "update"), tokens=integer(tokens, "tokens"),
                        epoch=real(epoch, "epoch"), loss=real(loss, "loss"),
                        lr=real(lr, "lr"), grad_norm=real(grad_norm, "grad_norm"))
        self._done(library().sr_end_step(self._pointer, ctypes.byref(row)))

    # -- beside the steps ---------------------------------------------------------------------

    @_call()
    def evaluate(self, /, step: int, epoch: float = _NAN, **metrics: float) -> None:
        """Writes a row of /evals: metrics by the names of add_metric; omitted ones are NaN."""
        values = [(encoded(name, "metric"), real(value, name)) for name, value in metrics.items()]
        for name in metrics:
            if name not in self._metrics:
                raise Error(f"{self._path}: no metric '{name:.80}' was declared", "usage",
                            f"declared: {', '.join(sorted(self._metrics)) or 'none'}")
        self._done(library().sr_begin_eval(self._pointer, integer(step, "step"),
                                           real(epoch, "epoch")))
        try:
            for name, value in values:
                self._done(library().sr_put_metric(self._pointer, name, value))
        finally:  # also after a Ctrl-C that the host survives
            status = library().sr_end_eval(self._pointer)
        self._done(status)

    @_call()
    def flush(self) -> None:
        """Writes buffered rows and running statistics. Call it when you save a checkpoint."""
        self._done(library().sr_flush(self._pointer))

    @_call()
    def copy_rows(self, path: Path, up_to_step: int = -1) -> dict[str, int]:
        """Copies the rows of another run file with step <= up_to_step (< 0: all).

        Call it before the first step, with the same sites. Returns a dict: steps, vectors, evals
        (copied), lost_steps, lost_vectors, lost_evals (unreadable), running_step (step of the
        running statistics that continue; -1: they are initialized).
        """
        result = _abi.Recovery()
        last = integer(up_to_step, "up_to_step")
        self._done(library().sr_copy_rows(self._pointer, path_bytes(path), last, last,
                                          ctypes.byref(result)))
        return {name: getattr(result, name) for name, _ in _abi.Recovery._fields_[1:]}

    # -- the end ------------------------------------------------------------------------------

    @property
    def failure(self) -> Optional[str]:
        """The first failure, one line, or None."""
        if self._error is None and self._pointer and self._pid == os.getpid():
            with locked():
                why = library().sr_failed(self._pointer)
                self._error = error_of(why.contents) if why else None
        return str(self._error) if self._error else None

    def close(self, status: str = "complete", reason: str = "") -> None:
        """Writes buffered rows and renames PATH.part to PATH. Closing again does nothing.

        status: "complete", "diverged", "interrupted" or "failed". Raises the first failure of all
        calls.
        """
        if self._pid == os.getpid() and self._pointer:
            self._close(status, reason)

    @_call()
    def _close(self, status, reason):
        finish = _abi.Finish(status=encoded(status, "status"),
                             reason=encoded(shortened(reason), "reason"))
        why = _abi.Failure()
        if library().sr_close(self._handle.release(), ctypes.byref(finish), ctypes.byref(why)):
            raise error_of(why)

    def abandon(self) -> None:
        """Stops without finishing the file: PATH.part stays, as after a crash."""
        if self._pid == os.getpid() and self._handle and self._pointer:
            with locked():
                library().sr_abandon(self._handle.release())

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: Optional[type[BaseException]],
                 exception: Optional[BaseException], trace: object) -> None:
        if kind is None:
            self.close()
            return
        stopped = issubclass(kind, (KeyboardInterrupt, SystemExit, GeneratorExit))
        try:
            self.close("interrupted" if stopped else "failed",
                       f"{kind.__name__}: {exception}")
        except Error as error:
            warnings.warn(f"{self._path} could not be closed: {error}", RuntimeWarning,
                          stacklevel=level())


def _names(function):
    """All names of sr_vector_name or sr_scalar_name."""
    names, ask = [], getattr(library(), function)
    while True:
        name = ask(len(names))
        if not name:
            return names
        names.append(decoded(name))
