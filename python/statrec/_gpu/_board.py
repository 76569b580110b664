"""The numbers of a step's passes on a GPU: one buffer with a place for every site."""
import weakref

import torch

from .. import _native
from .._watching import _passes
from .._watching._caught import copy_all

READ, NODE = "read", "node"
_ALIGN = 16  # features; kernels are compiled for addresses and strides that are multiples of 16
_MORE = 4    # doubles of a slot: || dx ||^2, || gamma g / s ||^2, valid rows, nothing
_READERS = 8  # orders of passes whose reader is kept


class Slot:
    """The place of a pass. key: (tap, kind, which pass of the step).

    sums: doubles, the first of rows that are `stride` apart: x, x^2, g, g x, g^2 (READ), or g^2 (NODE). rows:
    floats in the same way: mean, 1/s, sum g, sum g xhat (NODE), each of them in `row`. gain [width], more [4].
    parts, at: what a launch is given after the tensors of the host, and its addresses. place: for the library.
    """

    def __init__(self, board, key, number, start, stride, width):
        self.board, self.key, self.number = weakref.ref(board), key, number
        self.start, self.stride, self.width = start, stride, width
        self.tap, self.kind, _ = key
        self.gained, self.rows, self.row, self.gain_of = False, None, (), None

    def take(self, gain):
        """The gain of a pass, if it differs from the site's last forward pass."""
        self.gained, self.gain_of = gain is not None, gain
        if self.gained:
            with torch.no_grad():
                self.gain.copy_(self.tap.whole_gain(gain).reshape(-1))

    def settle(self, first):
        """first: address of the board's bytes."""
        self.parts = ((self.gain, self.sums, self.more) if self.kind == READ else (self.sums, self.rows))
        self.at = tuple(part.data_ptr() for part in self.parts)
        none = self.kind == READ
        self.place = (self.width, self.sums.data_ptr() - first, self.stride,
                      -1 if none else self.rows.data_ptr() - first, self.stride,
                      self.gain.data_ptr() - first, self.more.data_ptr() - first, self.tap.site.eps)


def _padded(width):
    return -(-width // _ALIGN) * _ALIGN


class Board:
    """keys: {key: width}. bytes: all of it, to be copied to the host and given to `received`. live: whether
    the steps to come use it."""

    def __init__(self, device, keys):
        self.device, self.keys, self.slots, self.live = device, dict(keys), {}, True
        self.widths = {kind: sum(_padded(width) for key, width in keys.items() if key[1] == kind)
                       for kind in (READ, NODE)}
        self._doubles = 5 * self.widths[READ] + self.widths[NODE] + _MORE * len(keys)
        floats = 5 * self.widths[NODE] + self.widths[READ]
        self.bytes = torch.zeros(8 * self._doubles + 4 * floats, dtype=torch.uint8, device=device)
        self.sums, parts = self._cut()
        starts = {READ: 0, NODE: 0}
        for number, (key, width) in enumerate(keys.items()):
            kind = key[1]
            slot = Slot(self, key, number, starts[kind], self.widths[kind], width)
            end = slot.start + width
            slot.sums = parts[kind, "sums"].view(-1)[slot.start:]
            slot.all = parts[kind, "sums"][:, slot.start:end]
            slot.gain = parts[kind, "gain"][slot.start:end]
            slot.more = parts["more"][number]
            if kind == NODE:
                slot.rows = parts["rows"].view(-1)[slot.start:]
                slot.row = parts["rows"][:, slot.start:end].unbind()
            slot.settle(self.bytes.data_ptr())
            starts[kind] += _padded(width)
            self.slots[key] = slot
        self.gained, self._readers = False, {}

    def _cut(self):
        """The doubles, and views of all parts by name."""
        read, node = self.widths[READ], self.widths[NODE]
        doubles = self.bytes[:8 * self._doubles].view(torch.float64)
        floats = self.bytes[8 * self._doubles:].view(torch.float32)
        sizes = [5 * read, node, doubles.numel() - 5 * read - node]
        sums, squares, more = doubles.split(sizes)
        rows, node_gain, read_gain = floats.split([4 * node, node, read])
        return doubles, {(READ, "sums"): sums.view(5, read), (NODE, "sums"): squares.view(1, node),
                         "more": more.view(-1, _MORE), "rows": rows.view(4, node),
                         (NODE, "gain"): node_gain, (READ, "gain"): read_gain}

    def take_gains(self):
        """Gains of all sites, once a step, before any of them changes."""
        if self.gained:
            return
        self.gained, to, gains = True, [], []
        for slot in self.slots.values():
            slot.gain_of = gain = None if slot.tap.card is None else slot.tap.card.gain
            slot.gained = gain is not None
            if slot.gained:
                gain = slot.tap.whole_gain(gain)
                to.append(slot.gain)
                gains.append(gain if gain.dim() == 1 else gain.reshape(-1))
        if to:
            with torch.no_grad():
                copy_all(to, gains)

    def cleared(self):
        """Ready for the next step; to be called after `bytes` were copied."""
        self.sums.zero_()
        self.gained = False

    # -- on the host --------------------------------------------------------------------------

    def received(self, data, placed, scale):
        """HostPasses of the board's passes, in their order, and four numbers of each, one after the other:
        see DeviceSums. data: the board's bytes on the host; scale: factor of the loss."""
        numbers = tuple([one.slot.number for one in placed])
        reader = self._readers.get(numbers)
        if reader is None:
            if len(self._readers) == _READERS:
                self._readers.clear()
            reader = self._readers[numbers] = _native.DeviceSums([one.slot.place for one in placed])
        rows, found = reader(data.data_ptr(), scale,
                             [-1 if one.rows is None else one.rows for one in placed])
        hosts, start = [], 0
        for one, count in zip(placed, rows):
            hosts.append(_passes.HostPass(one.site, (count, one.samples, one.total - count), reader.block, start,
                                          one.slot.width, one.gained))
            start += one.slot.width
        return hosts, found
