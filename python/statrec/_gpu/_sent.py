"""A step on its way from a GPU to the thread that writes."""
import copy

import torch

from .. import _native
from .._watching import _arrivals, _nodes, _passes, _running
from ._fetch import Fetch


class Sent:
    """The results of a step on their way to the host."""

    def __init__(self, cards, passes, values, before, after):
        # the next step uses the CPU's again
        self.passes = [one if one.kind == "placed" else copy.copy(one) for one in passes]
        self.forwards = None  # of _arrivals.places
        self.placed, plain = {}, []
        for one in self.passes:
            if one.kind == "placed":
                self.placed.setdefault(one.slot.board(), []).append(one)
            else:
                plain.append(one)
        self.groups = list(_passes._groups(plain)) if plain else []
        ordered = [one for group, _ in self.groups for one in group]
        counted = _passes._leaf_counts(ordered)
        self.normed = [(one.site, one.norms) for one in plain if one.norms is not None]
        self.running = (cards.before, cards.running) if passes else ([], [])
        self.kept = (list(before), list(after)) if passes else ([], [])  # sites
        self.values = values
        parts = [[board.bytes for board in self.placed], [block for _, block in self.groups], counted,
                 [norms for _, norms in self.normed if torch.is_tensor(norms)],
                 *([block for _, block in running] for running in self.running),
                 [before[site] for site in self.kept[0]], [after[site] for site in self.kept[1]],
                 [one for one in values if torch.is_tensor(one)]]
        self.counts = [len(part) for part in parts]
        self.fetch = Fetch([tensor for part in parts for tensor in part])

    def received(self, scale_at):
        """(HostPasses, values as numbers, running statistics by site before and after the step, norms of
        rows by name). values[scale_at] is what the loss was multiplied by. Waits for the copy."""
        got, parts = iter(self.fetch.get()), []
        for count in self.counts:
            parts.append([next(got) for _ in range(count)])
        boards, blocks, counted, norms, *running, numbers = parts
        numbers = iter(numbers)
        values = [next(numbers).item() if torch.is_tensor(one) else one for one in self.values]
        scale = float(values[scale_at])
        hosts, squares = {}, {}
        for (board, placed), data in zip(self.placed.items(), boards):
            hosts.update(zip(map(id, placed), _of_board(board, placed, data, scale, squares)))
        self._of_groups(blocks, iter(counted), scale, hosts)
        told = _passes.row_norms(self.normed, norms, scale)
        for name, sites in _passes.roots(squares, 1.0).items():
            told.setdefault(name, {}).update(sites)
        before, after = (self._by_site(when, running[when], running[2 + when]) for when in (0, 1))
        hosts = [hosts[id(one)] for one in self.passes]
        if self.forwards is not None:
            hosts = _arrivals.summed(hosts, self.forwards)
        return hosts, values, before, after, told

    def _by_site(self, when, blocks, kept):
        """Running statistics [2, width] by site. when: 0 before the step, 1 after it."""
        found = {site: block.double() for site, block in zip(self.kept[when], kept)}
        for (one, _), block in zip(self.running[when], blocks):
            found.update(one.by_site(block, when))
        return found

    def _of_groups(self, blocks, counted, scale, hosts):
        for (group, _), block in zip(self.groups, blocks):
            block = block.double()
            if scale != 1.0:
                block[_passes.SUM_G:_passes.SUM_GG] /= scale
                block[_passes.SUM_GG] /= scale * scale
            hosts.update(zip(map(id, group), _passes._cut(group, block, counted)))


def _of_board(board, placed, data, scale, squares):
    hosts, found = board.received(data, placed, scale)
    for place, one in enumerate(placed):
        dx, direct, variance, mean = found[4 * place:4 * place + 4]
        if one.normed:
            _passes.add_squares(squares, one.site, (dx, direct))
        tap, card = one.slot.tap, one.slot.tap.card
        if tap.fast and card is not None:  # not detached: whether the next step believes its node
            card.sound = variance * _nodes._EPS >= one.site.eps and mean <= _nodes._MEAN ** 2
    return hosts


class Running:
    """Running statistics of the modules on a device: mean and variance of a site, then those of the next."""

    def __init__(self, device, taps):
        self.device, self.taps, self.places, start = device, taps, [], 0
        for tap, width in taps:
            self.places.append((tap.site, start, start + 2 * width))
            start += 2 * width
        self.count = start
        self._hosts = [None, None]  # (doubles on the CPU, their views by site): before and after a step

    @classmethod
    def of(cls, taps):
        by_device = {}
        for tap in taps:
            mean = _buffers(tap)[0]
            if mean is not None and not _running.is_lazy(mean) and mean.is_cuda:
                by_device.setdefault(mean.device, []).append((tap, mean.shape[0]))
        return [cls(device, pairs) for device, pairs in by_device.items()]

    def keep(self):
        """A copy of them, float32."""
        with torch.no_grad():
            return torch.cat([buffer for tap, _ in self.taps for buffer in _buffers(tap)]).float()

    def by_site(self, block, when):
        """Views [2, width] of doubles that the next call with this `when` fills again. block: what keep()
        returned, on the host."""
        if self._hosts[when] is None:
            doubles = torch.empty(self.count, dtype=torch.float64, device="cpu")
            self._hosts[when] = doubles, {site: doubles[a:b].view(2, -1) for site, a, b in self.places}
        doubles, views = self._hosts[when]
        _native.read_vectors([block], doubles)
        return views


def _buffers(tap):
    module = tap.module()
    own = {} if module is None else module._buffers
    return own.get("running_mean"), own.get("running_var")
