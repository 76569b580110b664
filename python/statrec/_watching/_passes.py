"""Passes of a step on their way to the recorder: one copy from the device, then addresses.

A HostPass is a row of a site's sums in a tensor of doubles on the CPU, [7, W] for the W features of
all passes of a step: mean, variance, mean square, sum g, sum g (x - mean), sum g^2, gain.
"""
import math

import torch

from .. import _native
from . import _sums

MEAN, VARIANCE, MEAN_SQUARE, SUM_G, SUM_GC, SUM_GG, GAMMA = range(7)


class HostPass:
    """Sums of one pass. block [7, W]: columns start to start + width are this pass's. bounds: the least variance and
    the largest mean^2/variance, or None if not computed. squares: whether sum g^2 is known."""
    __slots__ = ("site", "rows", "samples", "padded", "block", "start", "width", "has_gamma", "bounds", "squares")

    def __init__(self, site, counts, block, start, width, has_gamma):
        self.site, self.block, self.start, self.width = site, block, start, width
        self.rows, self.samples, self.padded = counts
        self.has_gamma, self.bounds, self.squares = has_gamma, None, True

    def __getitem__(self, row):
        return self.block[row, self.start:self.start + self.width]


def place(block):
    """Address of the first row's first double, and bytes from a row to the next one."""
    return block.data_ptr(), 8 * block.shape[1]


def fetch(tensors):
    """The tensors as contiguous doubles on the CPU; one copy for each device that they are on."""
    found, waiting = [None] * len(tensors), {}
    for place, tensor in enumerate(tensors):
        if tensor.is_cpu:
            ready = tensor.dtype == torch.float64 and tensor.is_contiguous()
            found[place] = tensor if ready else tensor.detach().double().contiguous()
        else:
            waiting.setdefault(tensor.device, []).append(place)
    for device, places in waiting.items():
        parts = [tensors[place].detach().to(_sums.wide(device)).reshape(-1) for place in places]
        copied = torch.cat(parts).cpu().double()
        for place, part in zip(places, copied.split([part.numel() for part in parts])):
            found[place] = part.view(tensors[place].shape)
    return found


# -- on the device ----------------------------------------------------------------------------

def _width(caught):
    return caught.tensors[0].shape[-1] if caught.block is None else caught.block.shape[1]


def _columns(passes):
    """Their five sums and gains, [6, W]."""
    if all(caught.block is not None for caught in passes):
        return torch.cat([caught.block for caught in passes], 1)
    device, rows = passes[0].tensors[0].device, list(zip(*(caught.tensors for caught in passes)))
    rows.append([caught.tensors[0].new_ones(_width(caught)) if caught.gamma is None
                 else caught.gamma for caught in passes])
    return torch.stack([torch.cat(row).to(_sums.wide(device)) for row in rows])


def _of_nodes(passes):
    """[7, W] of passes whose node gave 1/sqrt(variance + eps) and sum g xhat."""
    mean, inverse, sum_g, sum_gx, sum_gg, gain = _columns(passes)
    eps = {caught.site.eps for caught in passes}
    eps = (eps.pop() if len(eps) == 1
           else torch.cat([inverse.new_full((_width(caught),), caught.site.eps)
                           for caught in passes]))
    variance = (inverse.pow(-2) - eps).clamp_(min=0)
    return torch.stack([mean, variance, variance + mean * mean, sum_g, sum_gx / inverse, sum_gg,
                        gain])


def _of_sums(passes):
    mean, variance, sum_g, sum_gc, sum_gg, gain = _columns(passes)
    return torch.stack([mean, variance, variance + mean * mean, sum_g, sum_gc, sum_gg, gain])


def _gains(passes):
    like = passes[0].tensors[0]
    gains = [like.new_ones(_width(caught)) if caught.gamma is None else caught.gamma
             for caught in passes]
    return torch.cat(gains).to(_sums.wide(like.device))


def _of_leaves(passes):
    """[7, W] of added passes (_traced.leaf_rows), merged: n mean^2 - (n mean)^2/n in double."""
    rows = torch.cat([caught.tensors[0] for caught in passes], 1)
    n = rows[0].clamp(min=1)
    mean = rows[3] / n
    variance = rows[4] / n + (rows[5] / n - mean * mean).clamp(min=0)
    sum_gc = rows[7] + rows[8] - mean * rows[6]
    return torch.stack([mean, variance, variance + mean * mean, rows[6], sum_gc, rows[9],
                        _gains(passes)])


_KINDS = {"batch_norm": _of_nodes, "sums": _of_sums, "leaf": _of_leaves}


def _groups(passes):
    """(passes, block [7, W] on their device), by device and kind."""
    sorted_out = {}
    for caught in passes:
        sorted_out.setdefault((caught.tensors[0].device, caught.kind), []).append(caught)
    for (_, kind), group in sorted_out.items():
        yield group, _KINDS[kind](group)


def _leaf_counts(passes):
    return [caught.tensors[0][:3, 0] for caught in passes if caught.kind == "leaf"]


# -- by the library ---------------------------------------------------------------------------

class Blocks:
    """HostPasses of passes whose sums are in blocks on the CPU, by one call of the library. Its arguments stay
    prepared while a step has the passes of the step before."""

    def __init__(self):
        self._passes = self._like = self._joined = self._hosts = None

    def to_host(self, passes, scale):
        """HostPasses in the order of passes, which the next call fills again; None: to_host() makes them.
        scale: a number."""
        like = [(one.kind, one.rows, one.samples, one.padded, one.gamma is None) for one in passes]
        if passes != self._passes or like != self._like:
            if not passes or not _native.loaded() or any(one.block is None for one in passes):
                return None
            self._prepare(passes, like)
        self._joined(scale)
        bounds = iter(self._joined.bounds)
        for host in self._hosts:
            host.bounds = next(bounds), next(bounds)
        return self._hosts

    def _prepare(self, passes, like):
        self._passes, self._like = list(passes), like
        self._joined = _native.Joined([(one.block, one.site.eps if one.kind == "batch_norm" else -1)
                                       for one in passes])
        self._hosts = list(_cut(passes, self._joined.block, ()))


# -- on the host ------------------------------------------------------------------------------

def to_host(passes, others=(), scale=1.0, blocks=None):
    """HostPasses in the order of passes, the tensors of others, all in one copy per device, and the
    scale as a number.

    scale: what the loss was multiplied by, a number or a tensor; the sums of g are divided by it.
    blocks: Blocks of the run.
    """
    joined = None if blocks is None or torch.is_tensor(scale) else blocks.to_host(passes, float(scale))
    if joined is not None:
        return joined, fetch(list(others)), float(scale)
    groups = list(_groups(passes))
    ordered = [caught for group, _ in groups for caught in group]
    counted = _leaf_counts(ordered)
    scales = [scale] if torch.is_tensor(scale) else []
    got = fetch([block for _, block in groups] + counted + list(others) + scales)
    scale = got.pop().item() if scales else float(scale)
    blocks, counts = got[:len(groups)], iter(got[len(groups):len(groups) + len(counted)])
    hosts = {}
    for (group, _), block in zip(groups, blocks):
        if scale != 1.0:
            block[SUM_G:SUM_GG] /= scale
            block[SUM_GG] /= scale * scale
        hosts.update(zip(map(id, group), _cut(group, block, counts)))
    return [hosts[id(caught)] for caught in passes], got[len(groups) + len(counted):], scale


def _cut(group, block, counts):
    start = 0
    for caught in group:
        told, width = (caught.rows, caught.samples, caught.padded), _width(caught)
        if caught.kind == "leaf":
            rows, samples, total = (int(round(count)) for count in next(counts).tolist())
            told = rows, samples, total - rows
        yield HostPass(caught.site, told, block, start, width, caught.gamma is not None)
        start += width


def merged(passes):
    """One pass of several with rows, as if their rows had been one batch (Chan et al. 1979)."""
    if len(passes) == 1:
        return passes[0]
    rows = sum(one.rows for one in passes)
    block = torch.empty(7, passes[0].width, dtype=torch.float64, device="cpu")
    mean = block[MEAN] = sum(one.rows * one[MEAN] for one in passes) / rows
    block[VARIANCE] = sum(one.rows * (one[VARIANCE] + (one[MEAN] - mean) ** 2)
                          for one in passes) / rows
    block[MEAN_SQUARE] = block[VARIANCE] + mean * mean
    block[SUM_G] = sum(one[SUM_G] for one in passes)
    block[SUM_GC] = sum(one[SUM_GC] + (one[MEAN] - mean) * one[SUM_G] for one in passes)
    block[SUM_GG] = sum(one[SUM_GG] for one in passes)
    block[GAMMA] = passes[-1][GAMMA]
    counts = rows, sum(one.samples for one in passes), sum(one.padded for one in passes)
    return HostPass(passes[0].site, counts, block, 0, passes[0].width, passes[-1].has_gamma)


def row_norms(normed, fetched, scale):
    """{"dx_norm": {site name: value}, "direct_norm": ...} of passes, whose squares add. normed: pairs of site
    and Pass.norms; fetched: those norms that are tensors, on the CPU."""
    found, fetched = {}, iter(fetched)
    for site, norms in normed:
        add_squares(found, site, norms if type(norms) is list else next(fetched).tolist())
    return roots(found, scale)


def add_squares(found, site, two):
    """Adds the squares of a pass's row norms to the site's other passes, {site name: pair}."""
    (dx, direct), share, name = two, site.share, site.name
    if name in found:
        before = found[name]
        found[name] = before[0] + share * dx, before[1] + share * direct
    else:
        found[name] = share * dx, share * direct


def roots(found, scale):
    """The result of row_norms, from squares of add_squares."""
    if not found:
        return {}
    return {name: {site: math.sqrt(pair[place]) / scale for site, pair in found.items()}
            for place, name in enumerate(("dx_norm", "direct_norm"))}
