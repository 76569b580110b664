"""statrec.audit: what running statistics cost a model, and which of them; docs/audit.md.

    audit = statrec.audit(model, loader, loss=torch.nn.CrossEntropyLoss())
    print(audit)
    model.load_state_dict(audit.repair(), strict=False)

Forward passes over K batches:

1  running and batch statistics one after the other; the moments of each site with the latter
2  recomputed statistics, averaged over all batches
3  batch statistics at one site, running statistics at the others, if there is a cost to explain;
   on eight batches or fewer, and at as many sites as keep all passes at six over the K batches.
"""
import itertools
import math

import torch

from ._auditing import _audit_report
from ._watching import _probe, _sites
from ._auditing._audit_numbers import Group, Interval, deviations, largest, length, mean_of
from ._auditing._audit_score import NOTHING, UNKNOWN, WORDS, Score
from ._auditing._audit_sites import BATCH, RECOMPUTED, RUNNING, Gauge
from ._auditing._audit_state import (device_of, load, moved, output_of, prefixes, seed, size,
                                     untouched, unwrapped)

PASSES = 6  # over the batches, without each_site
_SITE_BATCHES = 8  # batches at one site; fewer if less than _SITES sites remain
_SITES = 16
_MUCH = 0.5  # fraction of the gap that the best site closes
_ENOUGH = 0.2  # of the gap, that a culprit closes at least
DRIFT = 0.1  # of the standard deviation, which a note names


class SiteAudit:
    """A site of an audit; its numbers are Intervals over batches.

    name; norm; rows: of a batch, mean; calls of the module for a batch, at most. tid_mean, tid_var:
    discrepancy of single calls (docs/definitions.md), mean over those of a batch. shift:
    ||mean - mu|| / ||sigma||, spread: ||s - sigma|| / ||sigma|| with
    mean and s of the data, s^2 with the divisor n - 1 of each batch; the noise of the batches is
    subtracted. feature, largest: where |mean - mu| / sigma is largest, and (mean - mu) / sigma
    there. value: Interval of the measure with batch statistics at this site alone, or None; share:
    fraction of the gap that they close, or None. frozen: training uses the buffers, too. overflows:
    its buffers cannot hold recomputed statistics. notes: texts.
    """

    def __init__(self, gauge):
        self.name, self.norm, self.frozen = gauge.name, gauge.site.norm, gauge.frozen
        self.share = self.value = None
        self.calls = gauge.moments.calls
        self.overflows = gauge.overflows and not gauge.frozen
        self.finite = bool(gauge.mean.isfinite().all() and gauge.variance.isfinite().all())
        nothing = Interval(math.nan)
        self.rows, self.feature = math.nan, None
        self.tid_mean = self.tid_var = self.shift = self.spread = self.largest = nothing
        if len(gauge.moments) and not self.finite:
            self.rows = gauge.moments.rows.mean().item()
        elif len(gauge.moments):
            self._measure(gauge.moments, gauge.mean, gauge.variance)
        self.notes = _notes(self, gauge)

    def _measure(self, moments, mean, variance):
        rows, sigma = moments.rows, variance.sqrt()
        scale = sigma.norm().item()
        self.rows = rows.mean().item()
        self.tid_mean, self.tid_var = (mean_of([one / scale for one in part])
                                       for part in zip(*moments.apart(mean, sigma)))
        apart = moments.means - mean
        self.shift = length([Group(apart, rows)], scale)
        self.spread = length([deviations(moments, variance)], scale)
        self.feature, self.largest = largest([Group(apart, rows)], sigma)

    @property
    def drifts(self):
        """Whether the data's statistics are surely not the running ones."""
        return any(one.low > DRIFT for one in (self.shift, self.spread))

    @property
    def divisor(self):
        """1 - sqrt((n - 1)/n): tid_var of rows whose unbiased variance is the running one."""
        rows = self.rows / max(self.calls, 1)  # of a call
        return 1 - math.sqrt(max(rows - 1, 0) / rows)

    @property
    def biased(self):
        """Whether the divisor n - 1 explains tid_var."""
        return (self.divisor > 0 and abs(self.tid_var.value - self.divisor) < 0.1 * self.divisor
                and self.spread.value < 0.1 * self.divisor)

    def badness(self):
        """Sort key of sites."""
        total = self.tid_mean.value + self.tid_var.value
        return total if self.finite and math.isfinite(total) else math.inf


def _notes(site, gauge):
    found = []
    if not gauge.moments.seen:
        return ["not used in the forward pass"]
    if not site.finite:
        found.append("running statistics are not finite")
    if gauge.moments.lost:
        lost = _audit_report.counted(gauge.moments.lost, "batch")
        found.append(f"its input is not finite in {lost}, which its numbers leave out")
    if site.overflows:
        found.append(f"{str(gauge.dtype)[6:]} cannot hold its recomputed statistics: keep its "
                     "buffers in float32")
    if not getattr(gauge.module, "track_running_stats", True):
        found.append("track_running_stats is False: evaluation uses its buffers, which training "
                     "does not update")
    elif gauge.updates == 0 and gauge.mean.eq(0).all() and gauge.variance.eq(1).all():
        found.append("never updated")
    if site.frozen:
        found.append("frozen: training uses its buffers too")
    if site.calls > 1:
        found.append(f"{site.calls} calls for a batch, each with batch statistics of its own")
    if site.biased:
        found.append(f"divisor bias, no drift: tid_var is 1 - sqrt((n - 1)/n) = {site.divisor:.4f}")
    elif site.drifts:
        found.append("drift")
    return found


class Audit:
    """The result of statrec.audit; print() shows it, a notebook shows a table.

    verdict: "nothing", "notable", "severe", or "no verdict" of fewer than two batches. measures: by
    name, with values {regime: [number of
    each batch]} and mean(regime), cost(regime, other); regimes are "running", "batch" and
    "recomputed". sites: SiteAudit in the order of the forward pass. culprit: name of a site, or
    None. forwards, batches: numbers. memory: bytes of the batches. left_out: (name, class) of
    modules that look like normalizations and are not recognized. unaudited: the same of those that
    evaluate by running statistics, but not as batch norms do.
    """

    def __init__(self, work):
        self.model, self.batches = type(work.inner).__name__, len(work.batches)
        self.forwards = work.forwards
        self.memory = sum(map(size, work.batches))
        self.measures = {one.name: one for one in work.score.measures}
        self.sites, self.tried = work.sites, work.tried
        self.left_out, self.unaudited = work.left_out, work.unknown
        self.weights_finite = all(bool(one.isfinite().all()) for one in work.inner.parameters())
        self.main, self.verdict, self.against, self.cost = work.judged
        self.culprit = work.culprit()
        self._repaired = {}
        for gauge in work.gauges:
            if gauge.recomputed is not None and not gauge.frozen and not gauge.overflows:
                for name, value in zip(("running_mean", "running_var"), gauge.recomputed):
                    buffer = gauge.module._buffers[name]
                    self._repaired[gauge.key + name] = value.to(buffer.device, buffer.dtype)

    def repair(self):
        """{name: tensor} of recomputed running means and variances, for
        model.load_state_dict(audit.repair(), strict=False): mean and unbiased variance of the rows
        of all batches, within calls. Without sites whose buffers would overflow. The model is not
        changed."""
        return {name: value.clone() for name, value in self._repaired.items()}

    def __str__(self):
        return _audit_report.text(self)

    __repr__ = __str__

    def _repr_html_(self):
        return _audit_report.html(self)


def _judged(measures):
    """(measure, word, regime, cost) of the most severe one; the first of equal ones."""
    judged = [(one, *one.worst()) for one in measures]
    ranks = [WORDS.index(word) for _, word, _, _ in judged]
    return judged[ranks.index(max(ranks))]


class Work:
    """The forward passes of an audit."""

    def __init__(self, model, score, call):
        self.inner, self.batches, self.score, self.call = unwrapped(model), [], score, call
        found, self.left_out = _sites.find_sites(self.inner)
        keys = prefixes(model)
        gauges = [Gauge(site, keys[id(site.module)], self.inner.training) for site in found]
        self.gauges = [gauge for gauge in gauges if gauge.has_running]
        self.unknown = [(gauge.name, _probe.class_of(gauge.module).__name__)
                        for gauge in gauges if gauge.is_unknown]
        if not self.gauges and self.unknown:
            raise ValueError(_audit_report.unaudited(self.unknown))
        if not self.gauges:
            raise ValueError(f"none of the {len(gauges)} normalizations has running statistics: "
                             "evaluation normalizes as training does")
        self.forwards, self.tried, self.sites, self.judged = 0, 0, [], None
        self._device = device_of(self.inner)

    def run(self, each_site):
        """All passes. The model is in the state of untouched()."""
        counter = itertools.count()
        try:
            for gauge in self.gauges:
                gauge.attach(counter)
            self._both()
            self._recomputed()
            self._report_sites()
            self.judged = _judged(self.score.measures)
            if each_site or self._costs:
                self._site_by_site(each_site)
        finally:
            for gauge in self.gauges:
                gauge.detach()

    # -- passes -------------------------------------------------------------------------------

    def _output(self, place):
        """The output of a batch, and the batch as the loss may see it."""
        self.forwards += 1
        batch = moved(self.batches[place], self._device)
        seed(place)
        return output_of(self.inner, batch, self.call), batch

    def _use(self, regime, only=None):
        for gauge in self.gauges:
            gauge.use(regime if only is None or gauge is only else RUNNING)

    def _batch_output(self, place):
        """With batch statistics everywhere; (output, batch)."""
        self._use(BATCH)
        return self._output(place)

    def _both(self):
        for place in range(len(self.batches)):
            self._use(RUNNING)
            if place == 0:
                with self.score.listen():
                    running, batch = self._output(place)
                self.score.begin(running)
            else:
                running, batch = self._output(place)
            for gauge in self.gauges:
                gauge.measures = True
            reference, again = self._batch_output(place)
            for gauge in self.gauges:
                gauge.measures = False
                gauge.end_batch(place)
            self._add(RUNNING, self.score.numbers(running, batch, reference))
            self._add(BATCH, self.score.numbers(reference, again, reference))

    def _recomputed(self):
        for gauge in self.gauges:
            gauge.recompute()
        for place in range(len(self.batches)):
            reference = self._batch_output(place)[0] if self.score.compares else None
            self._use(RECOMPUTED)
            self._add(RECOMPUTED, self.score.numbers(*self._output(place), reference))

    def _add(self, regime, numbers):
        for measure in self.score.measures:
            measure.values.setdefault(regime, []).append(numbers[measure.name])

    @property
    def _costs(self):
        """Whether there is a cost to explain."""
        return self.judged[1] not in (NOTHING, UNKNOWN)

    def _report_sites(self):
        last = len(self.gauges)
        self.gauges.sort(key=lambda gauge: last if gauge.order is None else gauge.order)
        self.sites = [SiteAudit(gauge) for gauge in self.gauges]

    # -- site by site -------------------------------------------------------------------------

    def _site_by_site(self, each_site):
        """Shares of the gap. each_site: of every site and all batches, in as many passes. First
        come batches in which running statistics give something not finite."""
        measure, _, against, _ = self.judged
        used = [(site, gauge) for site, gauge in zip(self.sites, self.gauges)
                if len(gauge.moments) and not gauge.frozen]
        used.sort(key=lambda pair: -pair[0].badness())
        running = measure.values[RUNNING]
        places = sorted(measure.kept, key=lambda place: math.isfinite(running[place]))
        used, count = (used, len(places)) if each_site else self._affordable(used)
        places = places[:count]
        self.tried = len(used)
        values = [[] for _ in used]
        for place in places:
            reference = self._batch_output(place)[0] if self.score.compares else None
            for (_, gauge), of_site in zip(used, values):
                self._use(against, only=gauge)
                of_site.append(self.score.numbers(*self._output(place), reference)[measure.name])
        for (site, _), of_site in zip(used, values):
            site.value = mean_of(of_site)
            if self._costs:
                site.share = _share(measure, against, of_site, places)

    def _affordable(self, used):
        """The worst sites, and a number of batches, that keep all passes at PASSES."""
        whole, more = len(self.batches), int(self.score.compares)
        left = PASSES * whole - self.forwards
        count = min(_SITE_BATCHES, whole, max(1, left // (min(len(used), _SITES) + more)))
        return used[:left // count - more], count

    def culprit(self):
        """The first site that closes much of the gap; one that is not finite comes before."""
        measure = self.judged[0]
        if not self._costs:
            return None
        lost = [site for site in self.sites if not site.finite and not site.frozen]
        if lost and measure.broken():
            return lost[0].name
        shares = [(site.name, site.share) for site in self.sites
                  if site.share is not None and math.isfinite(site.share)]
        best = max((share for _, share in shares), default=0.0)
        if best < _ENOUGH:
            return None
        return next(name for name, share in shares if share >= _MUCH * best)


def _share(measure, against, values, places):
    """(running - these)/(running - against), from sums over the batches with these numbers."""
    if measure.broken():
        return float(all(map(math.isfinite, values)))
    running, other = (math.fsum(measure.of(regime, places)) for regime in (RUNNING, against))
    return (running - math.fsum(values)) / (running - other) if running != other else math.nan


def audit(model, loader, loss=None, metric=None, batches=50, each_site=False, path=None, *,
          call=None, unit=None):
    """See statrec.audit."""
    if path is not None:
        from ._auditing import _audit_file
        _audit_file.check(path)
    score = Score(loss, metric, unit)
    work = Work(model, score, call)
    with untouched(work.inner, [loader]):
        work.batches = load(loader, batches)
        work.run(each_site)
    found = Audit(work)
    if path is not None:
        _audit_file.write(found, work, path)
    return found
