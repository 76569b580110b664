"""Statistics of several processes (torch.distributed): one all_gather for each step.

Each rank merges its own passes of a step; what rank 0 writes is one pass of every rank. With
DistributedDataParallel the loss that is minimised is the mean over ranks, so the sums of g are
divided by the number of ranks: they equal the sums of one process with all rows and the mean loss.
The loss that is written is this mean, too.
"""
import torch
import torch.distributed as dist

from . import _momentum, _passes

_HEAD = 3    # whether nothing failed, whether there is a loss, the loss
_COUNTS = 3  # rows, samples, padded
_SUMS = 6    # rows of a block that are sent; the gain is rank 0's


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

    def _packed(self, sites, passes, sound, loss):
        """[3 + sum over sites of (3 + 6 width)] doubles; the first ones are the head."""
        by_site = {}
        for one in passes:
            if one.rows > 0:
                by_site.setdefault(id(one.site), []).append(one)
        head = float(sound), float(loss is not None), 0.0 if loss is None else loss
        parts = [torch.tensor(head, dtype=torch.float64, device="cpu")]
        for site, width in sites:
            parts.append(self._site_part(by_site.get(id(site)), width))
        return torch.cat(parts)

    @staticmethod
    def _site_part(passes, width):
        part = torch.zeros(_COUNTS + _SUMS * width, dtype=torch.float64, device="cpu")
        if passes:
            one = _passes.merged(passes)
            part[:_COUNTS] = torch.tensor([one.rows, one.samples, one.padded], dtype=torch.float64,
                                          device="cpu")
            part[_COUNTS:] = torch.cat([one[row] for row in range(_SUMS)])
        return part

    def gather(self, sites, passes, sound, loss=None):
        """HostPasses of all ranks, whether all are sound, and the mean of the losses that there are, or
        None. sites: [(site, width)]."""
        mine, device = self._packed(sites, passes, sound, loss), self._device()
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
            return [], all_sound, mean
        gains = {id(one.site): one for one in passes}
        found = [one for flat in everyone for one in self._unpacked(flat, sites, gains)]
        return found, all_sound, mean

    def _unpacked(self, flat, sites, gains):
        start = _HEAD
        for site, width in sites:
            counts = [int(count) for count in flat[start:start + _COUNTS].tolist()]
            start += _COUNTS
            if counts[0] > 0:
                yield self._pass(flat[start:start + _SUMS * width], site, width, counts, gains)
            start += _SUMS * width

    def _pass(self, sums, site, width, counts, gains):
        block = torch.ones(_passes.GAMMA + 1, width, dtype=torch.float64, device="cpu")
        block[:_SUMS] = sums.view(_SUMS, width)
        block[_passes.SUM_G:_passes.SUM_GG] /= self.world
        block[_passes.SUM_GG] /= self.world ** 2
        gain = gains.get(id(site))
        if gain is not None:
            block[_passes.GAMMA] = gain[_passes.GAMMA]
        return _passes.HostPass(site, counts, block, 0, width, gain is not None and gain.has_gamma)


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
