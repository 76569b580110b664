"""Statistics of single passes where repeat="merge" makes one batch of several.

A batch norm normalizes each pass by the rows of that pass. The discrepancy between its batch and
running statistics (Wang, Wu and Huang, NeurIPS 2022, section 3) is therefore about its own rows,
and merged rows make it smaller by the root of their number. The scalars here are means over the
passes of a step; mu and sigma2 are the running statistics from before the step, as in tid_mean.
"""
import math

import torch

from . import _passes

SCALARS = {
    "passes": ("1", "passes of the step that are merged, of this process"),
    "pass_rows": ("rows", "valid rows n of one pass, mean over the passes of the step"),
    "pass_samples": ("samples", "samples of one pass, mean over the passes of the step"),
    "pass_tid_mean": ("1", "||mu_B - mu||_2 / ||sqrt(sigma2)||_2 with mu_B of one pass, mean over "
                           "the passes of the step"),
    "pass_tid_var": ("1", "||sqrt(sigma2_B) - sqrt(sigma2)||_2 / ||sqrt(sigma2)||_2 with sigma2_B "
                          "of one pass, mean over the passes of the step"),
}


def declare(recorder):
    """Declares SCALARS."""
    for name, (unit, definition) in SCALARS.items():
        recorder.declare_scalar(name, unit, definition, "site")


def _by_site(passes):
    found = {}
    for one in passes:
        if one.rows > 0:
            found.setdefault(one.site, []).append(one)
    return found


def _numbers(passes, running):
    """Values of SCALARS, in their order. running: [2, width] of doubles, or None."""
    count, samples = len(passes), sum(one.samples for one in passes)
    counts = [count, sum(one.rows for one in passes) / count, samples / count or math.nan]
    if running is None:
        return [*counts, math.nan, math.nan]
    mu, sigma = running[0], running[1].sqrt()
    mean = torch.stack([one[_passes.MEAN] for one in passes]) - mu
    deviation = torch.stack([one[_passes.VARIANCE] for one in passes]).sqrt() - sigma
    return [*counts, *((part.norm(dim=1).mean() / sigma.norm()).item() for part in (mean, deviation))]


class OwnRows:
    """Keeps the running statistics of sites whose modules have none, as the recorder does.

    resumed: the recorder continues with values of an earlier run, which are not known here; such
    sites then have no discrepancy of single passes.
    """

    def __init__(self, resumed=False):
        self._running, self._resumed = {}, resumed

    def scalars(self, own, whole, running):
        """{scalar: {site name: number}} of a step.

        own: HostPasses of this process; whole: HostPasses of all ranks; running: [2, width] by
        site, for modules with their own running statistics. A SyncBatchNorm normalizes the rows of
        all ranks, whose passes are known where each rank had a single one.
        """
        found, whole = {name: {} for name in SCALARS}, _by_site(whole)
        for site, passes in _by_site(own).items():
            if site.sync and len(whole.get(site, passes)) > 1:
                if len(passes) > 1:
                    continue
                passes = [_passes.merged(whole[site])]
            values = _numbers(passes, running.get(site, self._before(site, passes[0].width)))
            for name, value in zip(SCALARS, values):
                found[name][site.name] = value
        self._advance(whole)
        return found

    def _before(self, site, width):
        if self._resumed or site.own_running or math.isnan(site.alpha):
            return None
        if site not in self._running:
            self._running[site] = torch.tensor([[0.0], [1.0]], dtype=torch.float64, device="cpu").repeat(1, width)
        return self._running[site]

    def _advance(self, whole):
        for site, running in self._running.items():
            if site in whole:
                one = _passes.merged(whole[site])
                batch = torch.stack([one[_passes.MEAN], one[_passes.VARIANCE]])
                self._running[site] = site.alpha * running + (1 - site.alpha) * batch
