"""statrec.watch: records the normalization sites of a PyTorch model from its own training loop.

    run = statrec.watch(model, "run.h5", sites="*norm*")
    for batch in loader:
        loss = ...
        loss.backward()
        run.step(loss=loss, lr=lr, tokens=n)
    run.close()

docs/python-watch.md describes the recorded statistics, _taps.py the hooks.
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional, Union

import torch

from ._gpu import _cards
from ._watching import (_arrivals, _derived, _fetched, _forward, _given, _labels, _nodes, _notices, _open_runs, _passes,
                        _ranks, _resumed, _running, _sites, _taps, _tensors, _unseen)
from ._watching._mask import Mask
from ._watching._rows import Rows, number
from ._watching._say import warn
from ._version import version

if TYPE_CHECKING:
    from ._plot import Diagnosis
    from ._recorder import Recorder

Number = Union[float, torch.Tensor, None]  # a tensor has one element

_NOTHING: dict = {}
def _recorder(path, **options):
    from ._recorder import Recorder
    return Recorder(path, **options)


class Watch:
    """A run that is being recorded; made by statrec.watch, a context manager. step(), evaluate(), mask(),
    phase(), scalar(), metric(), flush(), diagnose(), plot() and close() have their own documentation.

    path: the run file. model: a torch.nn.Module, after .to(device) and before torch.compile; it
    may be wrapped in DistributedDataParallel. sites: globs over names, types or modules; None:
    every normalization module. observe: selects modules in the same way; BN's statistics are
    observed in place of them. observe_output: the same after the modules.

    alpha: weight of the OLD running value if the module has no running statistics. eps: for
    observed modules. repeat: "last" records the last of several passes in a step, "merge" all of
    them as one batch; None: the last, with a warning. phases: names of passes that are kept apart,
    each with separate sites (`with run.phase("real"):`). ranks: "merge" or "own" with
    torch.distributed (None: merge if there is a SyncBatchNorm or sync=True); with "own" rows and loss are rank 0's.
    every=N: record the sites in every N-th step (and rows of /steps always). vectors=False: scalars only.
    gradient_norms=False: omit dx_norm, direct_norm and their bn
    variants, which cost a pass over g. on_error: "warn" continues without recording, "raise" stops
    the training. kind: a text, or a function of a site's name. start: steps before this run;
    default: 0, with resume=True the last step of the file. Its rows after start are replaced.
    verbose: print the number of sites and the classes that look like norms and are not recorded
    (sites_left_out). forward=True: every forward pass is recorded in any mode, and nothing of
    gradients. labels: names for step(label=...).
    on_finding(finding): called once for each new finding of diagnose, every findings_every steps
    and at the end. Further options are the same as for statrec.Recorder.
    """

    def __init__(self, model, path, *, sites=None, observe=None, observe_output=None, alpha=0.9,
                 eps=1e-5, repeat=None, phases=(), ranks=None, process_group=None, every=1,
                 activations_every=0, on_error="warn",
                 gradient_norms=True, kind=None, start=None, verbose=True, forward=False, labels=(),
                 on_finding=None, findings_every=500, recorder=_recorder, **options):
        self._closed = True  # until all exist
        _given.watch(model, repeat, phases, every, activations_every, on_error, forward, start, alpha, eps,
                     findings_every)
        findings = _findings(on_finding, findings_every)
        _check_options(options)
        self.phases, self.labels, self._forward = tuple(phases), _labels.checked(labels), forward
        self._notices = _notices.Notices(repeat, forward)
        found, self.sites_left_out = _sites.find_sites(model, sites, observe, observe_output,
                                                       alpha, eps, kind, tensors=True)
        self._ranks = _ranks.choose(ranks, found, process_group)
        self.path, self._pid = os.fspath(path), os.getpid()
        resumed = self._resumed(found, start) if options.get("resume") else None
        repeat = repeat or "last"
        self._repeat = "merge" if self._ranks.merge else repeat
        self._every, self._on_error, self._gathered = every, on_error, None
        self._calls = self._number = resumed.start if resumed else start or 0  # steps; number of the last one
        self.failure, self._seconds = None, 0.0
        self._tensors, self._alpha, self._running = _tensors.Tensors(), alpha, {}
        self._keeper, self._named, self._blocks = _running.Keeper(), {}, _passes.Blocks()
        self._diverged = self._parted = False
        self._cards = None
        self._verbose, self._masked, self._followers, self._taps = verbose, False, [], []
        self._shared = _taps.Shared(repeat, gradient_norms)
        self._make_recorder(recorder, options, model)
        try:
            unseen = _unseen.find(model, found) if sites is None else []
            self._begin(model, found, unseen, resumed, gradient_norms, activations_every, findings)
        except BaseException:
            self.detach()
            if self._recorder is not None:
                self._recorder.abandon()  # it has no rows: its file goes
            raise
        self._closed = False
        _open_runs.add(self, self._recorder)

    def _begin(self, model, found, unseen, resumed, norms, activations_every, findings):
        """Steps that may fail once the file exists."""
        self._rows = Rows(self._recorder, self._taps, self._repeat, norms, resumed, self._forward)
        self._derived = _derived.Derived(self._recorder, self._repeat == "merge", activations_every, self._forward,
                                         resumed is not None)
        if self.labels:
            self._rows.declare_scalar(_labels.SCALAR, "", _labels.definition(self.labels), "step",
                                      self._recorder is not None)
        self._make_taps(model, found, resumed.widths if resumed else {})
        self._derived.of_modules(self._taps, self._running)
        if findings is not None and self._recorder is not None:
            self._followers.append(findings)
        if self._verbose and self._ranks.writes:
            _notices.say_sites(self.path, len(self._taps), self.sites_left_out, resumed)
        self._notices.unseen(self.path, unseen, self._verbose and self._ranks.writes)
        self.sites_left_out += [(name, kind) for name, kind, _ in unseen]

    def _resumed(self, found, start):
        """The run that this one continues, the same on all ranks that record."""
        sites = [one for site in found for _, one in _sites.of_phases(site, self.phases)]
        if not (self._ranks.writes or self._ranks.merge):
            return None
        return self._ranks.agree(lambda: _resumed.checked(self.path, start, sites))

    def _make_recorder(self, recorder, options, model):
        self._recorder = None
        if self._ranks.writes:
            told = dict(program=os.path.basename(sys.argv[0] or "python"),
                        version=f"statrec.watch {version}",  # diagnose judges watched models by it
                        model=type(_sites.unwrapped(model)).__name__, loss_reduction="mean",
                        threads=torch.get_num_threads(), seed=torch.initial_seed() % 2 ** 64,
                        ranks=self._ranks.told)
            self._recorder = recorder(self.path, **{**told, **options})

    def _make_taps(self, model, found, widths):
        """widths: {name: features} of the sites of a continued file."""
        self._taps_made = self._ranks.writes or self._ranks.merge
        if not self._taps_made:
            return
        self._records()
        if _sites.is_compiled(model):
            warn("the model is compiled already: call watch() before torch.compile, or nothing is "
                 "recorded of parts that have run")
        tensors = [*model.parameters(), *model.buffers()]
        device = tensors[0].device if tensors else torch.device("cpu")
        for site in found:
            near = next(iter(site.module.parameters(recurse=False)), None)
            for phase, one in _sites.of_phases(site, self.phases):
                one.width = one.width or widths.get(one.name)
                self._taps.append(self._tap_class(one, self._shared, phase))
                self._taps[-1].prepare(device if near is None else near.device)
        devices = {tensor.device for tensor in tensors}
        if not self._forward:  # whose sizes are waited for
            self._cards = self._shared.cards = _cards.make(self._shared, devices, self._ranks)
        self._keep_running()

    @property
    def _tap_class(self):
        return _forward.ForwardTap if self._forward else _taps.Tap

    # -- before the first step ----------------------------------------------------------------

    def scalar(self, name: str, unit: str, definition: str, scope: str = "step") -> None:
        """Declares a custom scalar for step(name=...): one per step, or {site: number}."""
        if not self._ended("scalar"):
            self._rows.check_scalar(name, unit, definition, self._gathered is not None)
        self._rows.declare_scalar(name, unit, definition, scope, self._live)

    def metric(self, name: str, unit: str = "", definition: str = "",
               better: Union[str, int] = 0) -> None:
        """Declares a metric for evaluate(name=...); better: "more" or "less"."""
        if not self._ended("metric"):
            _given.declaration("metric", name, unit, definition, self._rows.metrics, self._gathered is not None)
        if self._live:
            self._recorder.add_metric(name, unit, definition, better)
        self._rows.metrics.append(name)

    def mask(self, valid: Optional[torch.Tensor], sites: Optional[str] = None) -> None:
        """Sets the valid rows of the forward passes up to the next step() or mask().

        valid: True or 1 for valid rows; shape [N], [N, L] or the shape of the sites' rows; None:
        all rows. sites: a glob, if the mask is for some sites only; of none: a warning.
        """
        if not self._listening:
            return
        masked = [tap for tap in self._taps if sites is None or _sites._matches(tap.site.name, None, sites)]
        if not masked and self._taps:
            self._notices.once(("mask", sites), f"run.mask(sites={sites!r:.80}) has no effect: it is none of the "
                               f"{len(self._taps)} sites, which run.sites names")
        mask, self._masked = None if valid is None else Mask(valid), True
        for tap in masked:
            tap.set_mask(mask)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[Watch]:
        """Forward passes within are recorded as the sites "NAME:..." of this phase."""
        if name not in self.phases:
            raise ValueError(f"phase: {name!r:.80} is none of watch(phases={self.phases})")
        before, self._shared.phase = self._shared.phase, name
        try:
            yield self
        finally:
            self._shared.phase = before

    # -- a step -------------------------------------------------------------------------------

    def step(self, loss: Number = None, lr: Number = None, tokens: Union[int, torch.Tensor] = 0,
             epoch: Optional[float] = None, grad_norm: Number = None, update: Optional[int] = None, *,
             step: Optional[int] = None, scaler: Optional[torch.amp.GradScaler] = None,
             grad_scale: float = 1.0, label: Union[str, Number] = None,
             **scalars: Union[Number, dict[str, Number]]) -> None:
        """Ends a step: call it after loss.backward(), once per update, before scaler.update().

        loss, lr, grad_norm: numbers or tensors of one element; they come into the rows of /steps. tokens:
        images or tokens in the loss (diagnose leaves out steps with less than half of the usual number).
        epoch: epochs up to here, with a fraction. step: number of this step; default: one more than the last
        one. update: number of the update; default: the number of the step. scaler: a GradScaler; grad_scale: the factor of the loss instead.
        label: one of watch(labels=...), as the domain or the client of the batch. Declared scalars
        by their names. With forward=True call it after a forward pass, without a loss.

        Raises TypeError or ValueError for a wrong argument; nothing is recorded of this step then, and
        recording continues.
        """
        if label is not None:  # without labels it is a scalar that the host has declared
            scalars[_labels.SCALAR] = _labels.number(self.labels, label)
        self._rows.check(scalars)
        _given.step(loss, lr, tokens, epoch, grad_norm, update)
        _given.step_number(step, self._number if self._gathered is not None else 0 if self._rows.resumes else -1)
        _given.factor(scaler, grad_scale)
        if not self._listening:
            self._ended("step")
            self._farewell()
            return
        if self._gathered is None and self._taps_made:
            self._must_have_sites()
        start, before = time.perf_counter(), self._recorder_seconds()
        self._number, self._calls = self._number + 1 if step is None else int(step), self._calls + 1
        scale = _cards.scale_of(scaler, grad_scale)
        row = dict(update=update, tokens=tokens, epoch=epoch, lr=lr)
        try:
            with _forward.plain() if self._forward else contextlib.nullcontext():
                self._step(row, [loss, grad_norm], scale, scalars)
        except Exception as error:
            self._fail(error)
            return
        self._follow()
        spent = time.perf_counter() - start - (self._recorder_seconds() - before)
        self._seconds += max(0.0, spent)

    def _step(self, row, numbers, scale, scalars):
        if self._cards is not None:
            self._cards.flush()
        idle = self._shared.idle  # no hook has run
        unsure, forwards = self._shared.unsure, None
        if unsure:
            _arrivals.settle(self._taps)
        passes = [] if idle else [caught for tap in self._taps for caught in tap.passes]
        if unsure:
            forwards = _arrivals.places(passes)
        if not idle:
            self._notices.step(self._taps, self._shared, passes)
        if self._gathered is None:
            self._settle()
        before, named = self._running, self._named
        if self._cards is not None:
            self._send(passes, forwards, [*numbers, scale], row,
                       {**scalars, **self._derived.activations(self._taps)}, before)
            return
        self._keep_running()
        scalars = {name: dict(one) if isinstance(one, dict) else one for name, one in scalars.items()}
        try:
            hosts, told, before, after, norms = _fetched.fetched(
                passes, numbers, scale, [before, self._running], [row, scalars, *scalars.values()], self._blocks)
        except Exception as error:  # the other ranks must hear of it
            self._shared.fail(error)
            hosts, told, before, after, norms = _fetched.failed(numbers)
        if forwards is not None and hosts:
            hosts = _arrivals.summed(hosts, forwards)
        _nodes.trust(self._taps, hosts)
        own = hosts
        hosts, norms, loss = self._from_ranks(hosts, norms, None if numbers[0] is None else told[0])
        if self._shared.failure is not None:
            raise self._shared.failure
        row["loss"], row["grad_norm"] = number(loss), told[1]
        self._diverged = loss is not None and not math.isfinite(loss)
        if self._recorder is not None:
            scalars = {**scalars, **norms, **self._derived.activations(self._taps)}
            scalars.update(self._derived.scalars(own, hosts, before, after))
            self._write(hosts, self._derived.running(before), row, scalars, named)
        self._next()

    def _send(self, passes, forwards, numbers, row, scalars, before):
        """Ends a step on a GPU without waiting for it; another thread writes it. before: running
        statistics of modules on the CPU."""
        if self._shared.failure is not None:
            raise self._shared.failure
        if self._shared.on or (self._calls + 1) % self._every == 0:
            self._keep_running()
        names = [*row, *((name, site) for name, one in scalars.items()
                         for site in (one if isinstance(one, dict) else (None,)))]
        values = [*row.values(), *(value for one in scalars.values()
                                   for value in (one.values() if isinstance(one, dict) else (one,)))]
        sent = self._cards.send(passes, [*numbers, *values], before, self._running)
        sent.forwards = forwards
        self._next()
        job = functools.partial(self._received, sent, dict(number=self._number), names)
        self._cards.put(job)
        if self._cards.writer.waited > _LONG:
            self._notices.once("slow", f"{self.path} is written more slowly than the steps: step() waits for it")

    def _received(self, sent, begun, names):
        """In the thread that writes: the step is on the host now."""
        hosts, values, before, after, norms = sent.received(2)
        loss, grad_norm, _, *values = values
        row, scalars = dict(loss=loss, grad_norm=grad_norm, **begun), norms
        for name, value in zip(names, values):
            if not isinstance(name, tuple):
                row[name] = value
            elif name[1] is None:
                scalars[name[0]] = value
            else:
                scalars.setdefault(name[0], {})[name[1]] = value
        self._diverged = loss is not None and not math.isfinite(loss)
        scalars.update(self._derived.scalars(hosts, hosts, before, after))
        self._write(hosts, before, row, scalars)

    def _drain(self):
        """Waits until all sent rows are in the recorder; raises the exception of its thread."""
        if self._cards is not None:
            self._cards.writer.drain()

    def _from_ranks(self, hosts, norms, loss):
        """The passes and row norms of all ranks on rank 0, and the mean of their losses; all of them
        stop when one of them has failed."""
        if not self._ranks.merge:
            return hosts, norms, loss
        hosts, norms, sound, loss = self._ranks.gather(self._gathered, hosts, norms,
                                                       self._shared.failure is None, loss)
        if not sound:
            self._parted = True
            self._shared.fail(RuntimeError("another rank stopped recording"))
        return hosts, norms, loss

    def _farewell(self):
        """Reports to the other ranks, which wait for this one, that it failed after the last gather."""
        if self.failure is not None and self._ranks.merge and not self._parted:
            self._parted = True
            self._ranks.gather(self._gathered, [], {}, False)

    def _next(self):
        """Everything as it has to be before the next forward pass."""
        for tap in self._taps if not self._shared.idle or self._masked else ():
            tap.passes.clear()
            tap.activations = None
            if tap.mask is not None:
                tap.set_mask(None)
            if tap.device is not tap.prepared:
                tap.prepare(tap.device)
        self._masked = self._shared.unsure = self._shared.retained = False
        self._shared.begun = self._shared.serial
        self._records()

    def _records(self):
        """Whether the next step is recorded, by counting: its number is not known yet."""
        due, rest = divmod(self._calls + 1, self._every)
        self._shared.on = self._shared.saves = rest == 0
        self._shared.idle = not self._shared.on and self._gathered is not None
        self._shared.activations = self._derived.wanted(due, rest)

    def _keep_running(self):
        """The modules' own running statistics, after a step and before the next one. Those kept
        before stay unchanged."""
        taps = [tap for tap in self._taps if tap.site.own_running]
        if self._cards is not None:
            taps = self._cards.keep_running(taps)
        self._running = self._keeper.kept(taps)
        if self._cards is None:  # a copy from a GPU would wait for it
            self._named = _running.named(self._taps)

    def _must_have_sites(self):
        """ValueError without any site."""
        if not self._taps:
            self.failure = _sites.nothing(None, self.sites_left_out)
            self.detach()
            if self._recorder is not None:
                self._recorder.abandon()
            raise ValueError(f"watch: {self.failure}")

    # -- to the file --------------------------------------------------------------------------

    def _settle(self):
        """The sites that have a width; it stays as it is now."""
        for tap in self._taps:
            if tap.width is None:
                self._notices.never(tap)
        self._gathered = self._rows.settle()
        lazy = [tap for tap in self._taps if tap.site.own_running and tap.site not in self._running]
        if lazy:
            self._running = _running.Kept({**self._running, **_running.initial(lazy)})

    def _write(self, hosts, running, row, scalars, named=_NOTHING):
        step = row.pop("number", self._number)
        seconds = self._seconds + self._shared.seconds
        self._seconds = self._shared.seconds = 0.0
        self._rows.write(step, hosts, running, row, scalars, seconds, named)

    def evaluate(self, epoch: Optional[float] = None, **metrics: Number) -> None:
        """Writes a row of /evals after the last step; metrics as declared by metric().

        Raises TypeError for a metric that was not declared or is no number; recording continues.
        """
        _given.number(epoch, "evaluate: epoch")
        _given.metrics(metrics, self._rows.metrics)
        self._ended("evaluate")
        if not self._live:
            return
        try:
            self._drain()
            self._rows.evaluate(self._number, number(epoch),
                                {name: number(value) for name, value in metrics.items()})
        except Exception as error:
            self._fail(error)

    def flush(self) -> None:
        """Writes all buffered rows to the file. Call it when you save a checkpoint."""
        if self._live:
            try:
                self._drain()
                self._recorder.flush()
            except Exception as error:
                self._fail(error)

    def plot(self, figure: str, *files: Union[str, os.PathLike], **options: Any) -> Any:
        """Draws a figure of this run and of further files with statplot."""
        from ._plot import plot
        return plot(figure, self._readable(), *files, **options)

    def diagnose(self) -> Diagnosis:
        """Diagnoses the normalization up to the last step (statrec.diagnose)."""
        from ._plot import diagnose
        return diagnose(self._readable())

    def log_to(self, writer: Any, sites: Union[str, list[str]] = "*",
               scalars: Optional[list[str]] = None, every: int = 100) -> None:
        """Sends scalars of sites to a tracker every N steps, and the diagnosis at the end.

        writer: wandb, trackio, mlflow, or a tensorboard SummaryWriter. sites: globs; scalars: names
        as in the file; default: tid_mean, tid_var, dx_norm, g_mu, g_sigma2. Exceptions of the
        tracker become one warning.
        """
        from ._trackers import SCALARS, Follower
        follower = Follower(writer, sites, scalars or SCALARS, every)
        if self._live:
            self._followers.append(follower)

    def _follow(self, end=False):
        """The followers get new rows; at the end the findings too."""
        for follower in list(self._followers):
            if not end and self._calls % follower.every:
                continue
            try:
                from ._file import open as open_file
                with open_file(self._readable()) as file:
                    follower.send(file)
                    if end:
                        follower.conclude(file, self._number)
            except Exception as error:  # the training continues without the follower
                self._followers.remove(follower)
                warn(f"{follower.what}: {type(error).__name__}: {error}")

    def _readable(self):
        """The path of the file, with everything up to now in it."""
        self.flush()
        return self.path if self._closed else self.path + ".part"

    # -- state --------------------------------------------------------------------------------

    @property
    def sites(self) -> list[str]:
        """Names of the sites: in the order of the file once it is known, after the first step; before it in
        the order of the modules."""
        return self._rows.sites or [tap.site.name for tap in self._taps]

    @property
    def steps(self) -> int:
        """Number of the last step."""
        return self._number

    @property
    def recorder(self) -> Optional[Recorder]:
        """The Recorder, on rank 0."""
        self._drain()
        return self._recorder

    @property
    def _live(self):
        return self._listening and self._recorder is not None

    @property
    def _listening(self):
        """Whether this process records: not closed, not failed, not a forked child."""
        return not self._closed and self.failure is None and self._pid == os.getpid()

    def _recorder_seconds(self):
        known = self._recorder is not None and self._cards is None  # its lock is not waited for
        return self._recorder.own_seconds if known else 0.0

    def _ended(self, what):
        """Whether the run is closed; one warning then."""
        if self._closed and self.failure is None and self._pid == os.getpid():
            self._notices.once("ended", f"{self.path} is closed: {what}() after close() records nothing")
        return self._closed

    # -- the end ------------------------------------------------------------------------------

    def _fail(self, error):
        """The recorder cannot continue; the training can."""
        self.failure = f"{type(error).__name__}: {error}"
        self._shared.failure = None  # its traceback would hold this run
        self._part()
        self.detach()
        try:
            if self._recorder is not None:
                self._recorder.close("failed", self.failure)
        except Exception:  # this failure is reported below
            pass
        if self._on_error == "raise":
            raise error
        warn(f"{self.path} is not recorded any further: {self.failure}")

    def _part(self):
        """Ends the thread that writes, after the sent rows."""
        cards, self._cards, self._shared.cards = self._cards, None, None
        if cards is not None:
            cards.writer.stop()
        return cards

    def _silence(self):
        """Records nothing any more; of a forked child."""
        self._shared.on = False

    def detach(self) -> None:
        """Removes the hooks from the model. close() does it too."""
        self._shared.on = False
        for tap in self._taps:
            tap.detach()
        self._running, self._keeper, self._blocks = {}, _running.Keeper(), _passes.Blocks()

    def close(self, status: Optional[str] = None, reason: str = "") -> None:
        """Closes the file. status: "complete" ("diverged" if the last loss is not finite),
        "interrupted" or "failed"."""
        without = self._without_rows()
        if without and self._verbose:
            print(f"statrec: {self.path}: {without}", file=sys.stderr)
        self._end(status, reason or "; ".join(filter(None, (self._notices.not_recorded(), without))))

    def _without_rows(self):
        """"'NAME' and 3 more: no rows (REASON)", of sites that have none in the whole file; or ""."""
        if not self._live:
            return ""
        with contextlib.suppress(Exception):  # _end() meets it too
            self._drain()
        return self._notices.without_rows(self._taps, self._rows)

    def _end(self, status, reason):
        if self._closed or self._pid != os.getpid():
            return
        self._closed = True
        _open_runs.runs.discard(self)
        if self._recorder is None or self.failure is not None:
            self.detach()
            return
        try:
            cards = self._part()
            if cards is not None:
                cards.writer.check()
            if status is None:
                status = "diverged" if self._diverged else "complete"
            if not self._rows.declared:
                self._rows.declare(self._number + 1)
            self.detach()
            self._recorder.close(status, reason)
            self._follow(end=True)
        except Exception as error:
            self._fail(error)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: object) -> None:
        if kind is None:
            self.close()
        elif issubclass(kind, Exception):
            self._end("failed", f"{kind.__name__}: {error}")
        else:
            self._end("interrupted", f"{kind.__name__}: {error}")

    def __del__(self):
        if not getattr(self, "_closed", True):
            self._end("interrupted", "the run was dropped without close()")

    def _repr_html_(self):
        from . import _html
        facts = {"steps": self._number, "state": "closed" if self._closed else "open",
                 "failure": self.failure,
                 "not recorded": _sites.counted(self.sites_left_out)}
        sites = [{"name": tap.site.name, "norm": tap.site.norm, "kind": tap.site.kind,
                  "width": tap.width} for tap in self._taps]
        return _html.table(self.path, facts, sites)

    def __repr__(self) -> str:
        state = "failed" if self.failure else "closed" if self._closed else "open"
        return (f"<statrec.watch of {len(self._taps)} sites, {self.path}, step {self._number}, "
                f"{state}>")


_LONG = 1.0  # seconds that steps have waited for the file before a warning


def _check_options(options):
    from ._recorder import check_options
    own = inspect.signature(Watch.__init__).parameters
    check_options([name for name in options if name != "quiet"], "watch", own)


def _findings(function, every):
    """The follower of the run for on_finding=, or None."""
    from ._trackers import Findings
    return None if function is None else Findings(function, every)


def watch(model, path, **options):
    """Records the normalization sites of a model; see Watch for the options."""
    return Watch(model, path, **options)
