"""Statistics of several processes (torch.distributed): one all_gather for each step.

Each rank merges its own passes of a step; what rank 0 writes is one pass of every rank. With
DistributedDataParallel the loss that is minimised is the mean over ranks, so the sums of g are
divided by the number of ranks: they equal the sums of one process with all rows and the mean loss.
The loss that is written is this mean, too.
"""
import math

import torch
import torch.distributed as dist

from . import _momentum, _passes

_HEAD = 3    # whether nothing failed, whether there is a loss, the loss
_NORMS = "dx_norm", "direct_norm"  # of row norms, whose squares add up
_COUNTS = 6  # rows, samples, padded, whether there is a gain, squares of these norms
_SUMS = _passes.GAMMA + 1  # rows of a block


class Alone:
    """One process, or rank 0 for itself."""
    merge, writes, told = False, True, ""

    def __init__(self, told="", writes=True):
        self.told, self.writes = told, writes

    @staticmethod
    def agree(work):
        """The result of work()."""
        return work()


class Merging:
    """Gathers the passes of all ranks. widths: of the sites, the same on all ranks."""
    merge = True

    def __init__(self, group=None, buffers=""):
        self.group = group
        self.rank, self.world = dist.get_rank(group), dist.get_world_size(group)
        self.told, self.writes = f"all of {self.world}{buffers}", self.rank == 0

    def agree(self, work):
        """The result of work() on rank 0, which alone has the file; its error ends all ranks."""
        told, error = [None, ""], None
        if self.writes:
            try:
                told[0] = work()
            except Exception as failure:  # the others wait for it
                told[1], error = f"rank 0: {failure}", failure
        first = 0 if self.group is None else dist.get_global_rank(self.group, 0)
        dist.broadcast_object_list(told, src=first, group=self.group)
        if told[1]:
            raise error or RuntimeError(told[1])
        return told[0]

    def _device(self):
        nccl = "nccl" in str(dist.get_backend(self.group))
        return torch.device("cuda", torch.cuda.current_device()) if nccl else torch.device("cpu")

    def _packed(self, sites, passes, norms, sound, loss):
        """[3 + sum over sites of (6 + 7 width)] doubles; the first ones are the head."""
        by_site = {}
        for one in passes:
            if one.rows > 0:
                by_site.setdefault(id(one.site), []).append(one)
        head = float(sound), float(loss is not None), 0.0 if loss is None else loss
        parts = [torch.tensor(head, dtype=torch.float64, device="cpu")]
        for site, width in sites:
            squares = [norms.get(name, {}).get(site.name, math.nan) ** 2 for name in _NORMS]
            parts.append(self._site_part(by_site.get(id(site)), squares, width))
        return torch.cat(parts)

    @staticmethod
    def _site_part(passes, squares, width):
        part = torch.zeros(_COUNTS + _SUMS * width, dtype=torch.float64, device="cpu")
        if passes:
            one = _passes.merged(passes)
            part[:_COUNTS] = torch.tensor(
                [one.rows, one.samples, one.padded, one.has_gamma, *squares], dtype=torch.float64,
                device="cpu")
            part[_COUNTS:] = torch.cat([one[row] for row in range(_SUMS)])
        return part

    def gather(self, sites, passes, norms, sound, loss=None):
        """HostPasses of all ranks, their norms, whether all are sound, and the mean of the losses that
        there are, or None. sites: [(site, width)]. norms: {"dx_norm": {site name: value}, ...} of row
        norms; those of all ranks are NaN where one with rows has none."""
        mine, device = self._packed(sites, passes, norms, sound, loss), self._device()
        if device.type != "cpu":
            mine = mine.pin_memory().to(device, non_blocking=True)
        everyone = mine.new_empty(self.world, mine.numel())
        dist.all_gather(list(everyone.unbind()), mine, group=self.group)
        if self.writes:  # the only wait for the device: once, here or for the heads
            everyone = everyone.cpu()
        heads = everyone[:, :_HEAD].tolist()
        all_sound = all(head[0] == 1 for head in heads)
        losses = [head[2] for head in heads if head[1]]
        mean = sum(losses) / len(losses) if losses else None
        if not self.writes:
            return [], {}, all_sound, mean
        found, squares = [], {}
        for flat in everyone:
            for one, pair in self._unpacked(flat, sites):
                found.append(one)
                squares.setdefault(one.site.name, []).append(pair)
        return found, self._norms(squares), all_sound, mean

    def _norms(self, squares):
        """The norms of all ranks. squares: {site name: a pair of each rank with rows}."""
        known = {name: pairs for name, pairs in squares.items()
                 if not all(map(math.isnan, sum(pairs, ())))}
        return {norm: {name: math.sqrt(sum(pair[place] for pair in pairs)) / self.world
                       for name, pairs in known.items()} for place, norm in enumerate(_NORMS)}

    def _unpacked(self, flat, sites):
        """(HostPass, squares of its norms) of the sites with rows."""
        start = _HEAD
        for site, width in sites:
            rows, samples, padded, has_gamma, *squares = flat[start:start + _COUNTS].tolist()
            start += _COUNTS
            if rows > 0:
                counts = int(rows), int(samples), int(padded)
                sums = flat[start:start + _SUMS * width].view(_SUMS, width)
                yield self._pass(sums, site, width, counts, has_gamma > 0), tuple(squares)
            start += _SUMS * width

    def _pass(self, sums, site, width, counts, has_gamma):
        block = sums.clone()
        block[_passes.SUM_G:_passes.SUM_GG] /= self.world
        block[_passes.SUM_GG] /= self.world ** 2
        return _passes.HostPass(site, counts, block, 0, width, has_gamma)


def choose(ranks, sites, group=None):
    """The meaning of `ranks` of watch() here: "merge", "own", or None for the one that fits the
    sites.

    The text for the file also names sites whose running statistics are not synchronized: a
    BatchNorm under DistributedDataParallel is evaluated with rank 0's.
    """
    if ranks not in (None, "merge", "own"):
        raise ValueError(f'ranks: "merge" or "own" is wanted, got {ranks!r:.80}')
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size(group) == 1:
        return Alone()
    apart = any(_momentum.asked(site) and not site.sync for site in sites)
    buffers = "; running statistics: buffers of rank 0" if apart else ""
    if ranks == "merge" or ranks is None and any(site.sync for site in sites):
        return Merging(group, buffers)
    world = dist.get_world_size(group)
    return Alone(f"rank 0 of {world}{buffers}", dist.get_rank(group) == 0)
