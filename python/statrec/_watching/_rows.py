"""Writes the rows of statrec.watch: the sites at the first step, and a row of each step."""
import math

from .._nearest import nearest
from . import _given, _passes, _running

_STEP_ARGUMENTS = ("loss", "lr", "tokens", "epoch", "grad_norm", "update", "step", "scaler",
                   "grad_scale")


def number(value):
    """A float of a number or of a tensor with one element; nan of None."""
    value = value.detach() if hasattr(value, "detach") else value
    return math.nan if value is None else float(value)


class Rows:
    """Calls the methods of a Recorder. taps: the run's, whose list grows until the sites are declared. resumed: of
    _resumed.checked, or None: the rows before the first step come from its file. forward: the passes have no
    gradients."""

    def __init__(self, recorder, taps, repeat, norms, resumed, forward=False):
        self._recorder, self._taps = recorder, taps
        self._repeat, self._norms, self._resumed, self._forward = repeat, norms, resumed, forward
        self.metrics = []  # names that the host has declared
        self._evaluations = []  # they wait for the rows of the file
        self._sites, self._scalars, self.declared = {}, {}, False
        self._settled = None  # taps in the order of the file
        self.silent = set()  # sites without rows up to now
        self.full, self.lacking = 0, {}  # steps with rows; {site: steps in which it has none}

    @property
    def resumes(self):
        """Whether a file is continued."""
        return self._resumed is not None

    @property
    def sites(self):
        """Names of the sites in the order of the file; empty before they are declared."""
        return [site.name for site in self._sites] if self.declared else []

    def check_scalar(self, name, unit, definition, late):
        """ValueError for what no scalar of the host's can have."""
        _given.declaration("scalar", name, unit, definition, self._scalars, late)

    def declare_scalar(self, name, unit, definition, scope, writes):
        """A custom scalar. writes: whether this process has the file."""
        if scope not in ("step", "site"):
            raise ValueError(f'scope: "step" or "site" is wanted, got {scope!r:.80}')
        if name in _STEP_ARGUMENTS:
            raise ValueError(f"scalar: step() has an argument {name} of its own")
        made = self._recorder.declare_scalar(name, unit, definition, scope) if writes else -1
        self._scalars[name] = (scope, made)

    def check(self, scalars):
        """TypeError for one that was not declared, or not so; ValueError for a site that there is not."""
        for name, value in scalars.items():
            if name not in self._scalars:
                raise TypeError(_given.unknown(f"step: no scalar {name!r:.80}", "scalar", name, self._scalars, _STEP_ARGUMENTS))
            if (self._scalars[name][0] == "site") != isinstance(value, dict):
                raise TypeError(f"step: {name} is one number a {self._scalars[name][0]}")
            if not isinstance(value, dict):
                _given.number(value, f"step: {name}")
                continue
            known = {tap.site.name for tap in self._taps}
            for site, one in value.items():
                if known and site not in known:
                    near = nearest(str(site), known)
                    raise ValueError(f"step: {name}: no site {site!r:.80}" + (f"; {near}" if near else ""))
                _given.number(one, f"step: {name}[{site!r:.80}]")

    def settle(self):
        """The sites are the present ones, whenever they are declared: [(site, width)]."""
        if self._recorder is not None:
            self._settled = self._ordered()
        for tap in self._taps:
            tap.site.width = tap.width
        return [(tap.site, tap.width) for tap in self._taps if tap.width is not None]

    def declare(self, step):
        """Sites, in the order of their first forward passes. step: number of the first row."""
        if self._settled is None:
            self.settle()
        for depth, tap in enumerate(self._settled):
            self._sites[tap.site] = self._recorder.add_site(
                **tap.site.declaration(depth, self._repeat))
        self.declared, self.silent = True, set(self._sites)
        if self._resumed:
            for name, *about in self._resumed.metrics:
                if name not in self.metrics:
                    self._recorder.add_metric(name, *about)
            self._recorder.copy_rows(self._resumed.source, min(self._resumed.start, step - 1))
        waiting, self._evaluations = self._evaluations, []
        for one in waiting:
            self.evaluate(*one)

    def _ordered(self):
        """Taps with a width, in the order of the continued file, or of their first forward passes."""
        seen, last = [tap for tap in self._taps if tap.width is not None], len(self._taps)
        if not self._resumed:
            return sorted(seen, key=lambda tap: last if tap.order is None else tap.order)
        places = {name: place for place, name in enumerate(self._resumed.widths)}
        for tap in seen:
            if tap.site.name not in places:
                tap.misfit = f"{self._resumed.source}, which goes on, does not have it"
        return sorted((tap for tap in seen if tap.site.name in places), key=lambda tap: places[tap.site.name])

    def evaluate(self, step, epoch, values):
        """A row of /evals."""
        if self._resumed and not self.declared:
            self._evaluations.append((step, epoch, values))
        else:
            self._recorder.evaluate(step, epoch, **values)

    def write(self, step, hosts, running, row, scalars, seconds, named):
        """A row of each table. hosts: HostPasses; running: [2, width] by site; named: {site:
        {statistic: [width]}}; row: the arguments of Watch.step; scalars: {name: number, or {site name: number}}; seconds: spent on it."""
        recorder = self._recorder
        if not self.declared:
            self.declare(step)
        recorder.add_seconds(seconds)
        recorder.begin_step(step)
        known = [one for one in hosts if one.site in self._sites]
        if self._forward:
            self._put_forward(known)
        else:
            recorder.put_passes(self._of_passes(known, True), self._norms)
            without = self._of_passes(known, False)
            if without:
                recorder.put_passes(without, False)
        shown = {one.site for one in known}
        if self.silent:
            self.silent -= shown
        if known:
            self.full += 1
        if known and len(shown) < len(self._sites):
            for site in [site for site in self._sites if site not in shown]:
                self.lacking[site] = self.lacking.get(site, 0) + 1
        self._put_running(shown, running)
        for site in shown & set(named):
            for name, values in named[site].items():
                recorder.put_vectors(name, [(self._sites[site], values.data_ptr())])
        self._put_scalars(scalars)
        self._withhold(known)
        update = step if row["update"] is None else row["update"]
        recorder.end_step(update=int(update), tokens=int(row["tokens"] or 0),
                          **{name: number(row[name])
                             for name in ("epoch", "loss", "lr", "grad_norm")})

    def _of_passes(self, hosts, squares):
        """Arguments of Recorder.put_passes. squares: of passes whose sum g^2 is known, or of the others."""
        passes, block = [], None
        for one in hosts:
            if one.rows > 0 and one.squares is squares:
                if one.block is not block:
                    block, (at, stride) = one.block, _passes.place(one.block)
                passes.append((self._sites[one.site], one.rows, one.samples, one.padded,
                               at + 8 * one.start, stride, one.has_gamma))
        return passes

    def _put_forward(self, hosts):
        """Passes without gradients, a site's passes as one: the recorder merges backward passes."""
        passes = {}
        for one in hosts:
            if one.rows > 0:
                passes.setdefault(one.site, []).append(one)
        for site, found in passes.items():
            one = _passes.merged(found)
            at, stride = _passes.place(one.block)
            at += 8 * one.start
            self._recorder.put_forward(self._sites[site], one.rows, at, at + stride, at + 2 * stride,
                                       at + 6 * stride if one.has_gamma else None, one.samples,
                                       one.padded)

    def _withhold(self, hosts):
        """The recorder does not derive unknown scalars of a site (Site.unknown)."""
        for one in hosts:
            for name, always in one.site.unknown.items():
                if one.rows > 0 and (always or one.padded > 0):
                    self._recorder.put_scalar(self._sites[one.site], name, math.nan)

    def _put_running(self, sites, running):
        known = getattr(running, "places", {})
        places = [(self._sites[site], *(known.get(site) or _running.place(values)))
                  for site, values in running.items() if site in sites]
        self._recorder.put_vectors("mu", [(site, at) for site, at, _ in places])
        self._recorder.put_vectors("sigma2", [(site, at + row) for site, at, row in places])

    def _put_scalars(self, scalars):
        named = {site.name: place for site, place in self._sites.items()}
        for name, value in scalars.items():
            scope, which = self._scalars.get(name, ("site", name))  # of the recorder's own
            if scope == "step":
                self._recorder.put_step_scalar(which, number(value))
                continue
            # a site may lack a width at the first step
            self._recorder.put_scalars(which, [
                (named[site], one if type(one) is float else number(one))
                for site, one in value.items() if site in named])
