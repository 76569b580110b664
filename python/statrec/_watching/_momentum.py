"""How far the running mean of a batch norm moved in a step, as two sums of each site.

Over steps v = sum mu_moved / sum mu_apart is the effective momentum: 1 - alpha where the buffers
are updated once a step, 1 - alpha^k where k passes of (nearly) the same batch update them, 0 where
they stand still. Vectors are recorded in few steps, and mu of consecutive steps is needed: hence
scalars.
"""
import torch

from . import _passes

SCALARS = {
    "mu_moved": "sum over features of (mu[t+1] - mu[t]) (mu_B[t] - mu[t]); mu[t]: running mean "
                "before the step's first forward pass; mu[t+1]: after its last; mu_B: recorded "
                "batch mean of the step (of merged passes the merged one)",
    "mu_apart": "sum over features of (mu_B[t] - mu[t])^2; mu[t]: running mean before the step's "
                "first forward pass; mu_B: recorded batch mean of the step (of merged passes the "
                "merged one)",
}


def asked(site):
    """Whether the site normalizes over the batch and its module keeps a running mean."""
    return site.own_running and site.norm != "frozenbn"


def declare(recorder):
    """Declares SCALARS."""
    for name, definition in SCALARS.items():
        recorder.declare_scalar(name, "1", definition, "site")


class Movement:
    """Both sums of all sites of a step, by few operations on their concatenated features."""

    def __init__(self):
        self._widths, self._places = None, None

    def scalars(self, hosts, before, after):
        """{scalar: {site name: number}}.

        hosts: HostPasses of the step, of all ranks; before, after: running statistics by site, [2,
        width] of doubles, whose first row is the mean.
        """
        passes = {}
        for one in hosts:
            if one.rows > 0 and asked(one.site) and one.site in before and one.site in after:
                passes.setdefault(one.site, []).append(one)
        if not passes:
            return {}
        batch, old, new = (_side_by_side(passes, before, after)
                           or _concatenated(passes, before, after))
        apart = batch - old
        sums = torch.zeros(2, len(passes), dtype=torch.float64)
        sums.index_add_(1, self._sites([found[0].width for found in passes.values()]),
                        torch.stack([(new - old) * apart, apart * apart]))
        names = [site.name for site in passes]
        return {name: dict(zip(names, row)) for name, row in zip(SCALARS, sums.tolist())}

    def _sites(self, widths):
        """Number of the site of each feature."""
        if widths != self._widths:
            self._widths = widths
            self._places = torch.arange(len(widths)).repeat_interleave(torch.tensor(widths))
        return self._places


def _concatenated(passes, before, after):
    """Batch means, means before and after of the sites' features."""
    return (torch.cat([_passes.merged(found)[_passes.MEAN] for found in passes.values()]),
            torch.cat([before[site][0] for site in passes]),
            torch.cat([after[site][0] for site in passes]))


def _side_by_side(passes, before, after):
    """The same where they lie so already, in the usual step: one pass of every site. None elsewhere."""
    blocks = [getattr(kept, "block", None) for kept in (before, after)]
    if any(block is None for block in blocks) or not list(passes) == list(before) == list(after):
        return None
    first = next(iter(passes.values()))[0]
    end = first.start
    for found in passes.values():
        one = found[0]
        if len(found) > 1 or one.block is not first.block or one.start != end:
            return None
        end += one.width
    return first.block[_passes.MEAN, first.start:end], blocks[0][0], blocks[1][0]
