"""statrec.compare: how far statistics of two data sets are apart at each site; docs/audit.md."""
import itertools
import math

from .. import _html
from .._watching import _sites
from ._audit_numbers import Group, Interval, deviations, largest, length
from ._audit_report import counted, table_lines
from ._audit_sites import Gauge
from ._audit_state import device_of, first, moved, output_of, prefixes, seed, untouched, unwrapped


class SiteShift:
    """A site of a comparison; Intervals over batches, with the noise of the batches subtracted.

    name; norm; rows_a, rows_b: of a batch, mean. shift: ||mean_b - mean_a|| / ||s_a||; spread:
    ||s_b - s_a|| / ||s_a||, s^2 with the divisor n - 1 of each batch. feature, largest: where
    |mean_b - mean_a| / s_a is largest, and (mean_b - mean_a) / s_a there. lost: numbers of
    batches of a and b that are left out, since the input is not finite.
    """

    def __init__(self, name, norm, a, b):
        self.name, self.norm, self.lost = name, norm, (a.lost, b.lost)
        self.rows_a, self.rows_b = (one.rows.mean().item() for one in (a, b))
        self.shift = self.spread = self.largest = Interval(math.nan)
        self.feature = None
        if len(a) and len(b):
            self._measure(a, b)

    def _measure(self, a, b):
        weights = a.freedom
        variance = weights @ a.unbiased() / weights.sum()
        center, sigma = a.means[0], variance.sqrt()
        scale = sigma.norm().item()
        means = [Group(a.means - center, a.rows), Group(b.means - center, b.rows)]
        apart = [_negative(means[0]), means[1]]
        self.shift = length(apart, scale)
        self.feature, self.largest = largest(apart, sigma)
        self.spread = length([_negative(deviations(a, variance)), deviations(b, variance)], scale)


def _negative(group):
    return Group(-group.parts, group.weights)


class Comparison:
    """The result of statrec.compare; print() shows it, a notebook shows a table.

    sites: SiteShift in the order of the forward pass. batches: numbers of batches of a and b.
    worst: name of the site with the largest shift.
    """

    def __init__(self, model, batches, sites):
        self.model, self.batches, self.sites = type(model).__name__, batches, sites
        self.worst = max(sites, key=_size).name

    def _rows(self):
        rows = [{"site": site.name, "rows a": f"{site.rows_a:.6g}", "rows b": f"{site.rows_b:.6g}",
                 "shift": str(site.shift), "spread": str(site.spread),
                 "largest": "" if site.feature is None else f"{site.largest} at {site.feature}",
                 "note": _note(site.lost)} for site in self.sites]
        if not any(row["note"] for row in rows):
            for row in rows:
                del row["note"]
        return rows

    def _title(self):
        a, b = self.batches
        return (f"comparison of {self.model}: {counted(a, 'batch')} of a, {b} of b; largest shift: "
                f"{self.worst}")

    def __str__(self):
        return "\n".join([self._title(), "", *table_lines(self._rows())])

    __repr__ = __str__

    def _repr_html_(self):
        return _html.table(self._title(), {}, self._rows())


def _note(lost):
    if not any(lost):
        return ""
    return (f"its input is not finite in {counted(lost[0], 'batch')} of a and {lost[1]} of b, which its "
            "numbers leave out")


def _size(site):
    return math.inf if math.isnan(site.shift.value) else site.shift.value


def compare(model, loader_a, loader_b, batches=50, *, call=None):
    """See statrec.compare."""
    inner = unwrapped(model)
    keys = prefixes(model)
    with untouched(inner, [loader_a, loader_b]):
        found = [_measured(inner, keys, loader, batches, call) for loader in (loader_a, loader_b)]
    (a, count_a), (b, count_b) = found
    shared = [(one, other) for one, other in zip(a, b) if one.moments.seen and other.moments.seen]
    if not shared:
        raise ValueError("no normalization of the model is used in its forward pass")
    shared.sort(key=lambda pair: pair[0].order)
    sites = [SiteShift(one.name, one.site.norm, one.moments, other.moments)
             for one, other in shared]
    return Comparison(inner, (count_a, count_b), sites)


def _measured(inner, keys, loader, batches, call):
    """(Gauges, number of batches) after one pass, in evaluation."""
    gauges = [Gauge(site, keys[id(site.module)], False) for site in _sites.find_sites(inner)[0]]
    device, counter, count = device_of(inner), itertools.count(), 0
    try:
        for gauge in gauges:
            gauge.attach(counter)
            gauge.measures = True
        for place, batch in enumerate(first(loader, batches)):
            seed(place)
            output_of(inner, moved(batch, device), call)
            count += 1
            for gauge in gauges:
                gauge.end_batch(place)
    finally:
        for gauge in gauges:
            gauge.detach()
    return gauges, count
