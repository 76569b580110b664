"""The numbers of a step's passes on a GPU: one buffer, in which every site has its place."""
import torch

from .._watching import _passes
from .._watching._caught import copy_all

READ, NODE = "read", "node"
_ALIGN = 16  # features; kernels are compiled for addresses and strides that are multiples of 16
_MORE = 4    # doubles of a slot: || dx ||^2, || gamma g / s ||^2, valid rows, nothing


class Slot:
    """The place of a pass. key: (tap, kind, which pass of the step).

    sums: doubles, the first of rows that are `stride` apart: x, x^2, g, g x, g^2 (READ), or g^2 (NODE). rows:
    floats in the same way: mean, 1/s, sum g, sum g xhat (NODE). gain [width], more [4].
    """

    def __init__(self, key, number, start, stride, width):
        self.key, self.number, self.start, self.stride, self.width = key, number, start, stride, width
        self.tap, self.kind, _ = key
        self.gained, self.rows = False, None


def _padded(width):
    return -(-width // _ALIGN) * _ALIGN


class Board:
    """keys: {key: width}. bytes: all of it, to be copied to the host and given to `received`."""

    def __init__(self, device, keys):
        self.device, self.keys, self.slots = device, dict(keys), {}
        self.widths = {kind: sum(_padded(width) for key, width in keys.items() if key[1] == kind)
                       for kind in (READ, NODE)}
        self._doubles = 5 * self.widths[READ] + self.widths[NODE] + _MORE * len(keys)
        floats = 5 * self.widths[NODE] + self.widths[READ]
        self.bytes = torch.zeros(8 * self._doubles + 4 * floats, dtype=torch.uint8, device=device)
        self.sums, parts = self._cut(self.bytes)
        starts = {READ: 0, NODE: 0}
        for number, (key, width) in enumerate(keys.items()):
            kind = key[1]
            slot = Slot(key, number, starts[kind], self.widths[kind], width)
            end = slot.start + width
            slot.sums = parts[kind, "sums"].view(-1)[slot.start:]
            slot.all = parts[kind, "sums"][:, slot.start:end]
            slot.gain = parts[kind, "gain"][slot.start:end]
            slot.more = parts["more"][number]
            if kind == NODE:
                slot.rows = parts["rows"].view(-1)[slot.start:]
            starts[kind] += _padded(width)
            self.slots[key] = slot
        self._gained, self._host = False, None

    def _cut(self, data):
        """The doubles, and views of all parts by name."""
        read, node = self.widths[READ], self.widths[NODE]
        doubles = data[:8 * self._doubles].view(torch.float64)
        floats = data[8 * self._doubles:].view(torch.float32)
        sizes = [5 * read, node, doubles.numel() - 5 * read - node]
        sums, squares, more = doubles.split(sizes)
        rows, node_gain, read_gain = floats.split([4 * node, node, read])
        return doubles, {(READ, "sums"): sums.view(5, read), (NODE, "sums"): squares.view(1, node),
                         "more": more.view(-1, _MORE), "rows": rows.view(4, node),
                         (NODE, "gain"): node_gain, (READ, "gain"): read_gain}

    def take_gains(self):
        """Gains of all sites, once a step, before any of them changes."""
        if self._gained:
            return
        self._gained = True
        to, gains = [], []
        for slot in self.slots.values():
            gain = slot.tap.gain()
            slot.gained = gain is not None
            if slot.gained:
                to.append(slot.gain)
                gains.append(gain)
        if to:
            with torch.no_grad():
                copy_all(to, gains)

    def cleared(self):
        """Ready for the next step; to be called after `bytes` were copied."""
        self.sums.zero_()
        self._gained = False

    # -- on the host --------------------------------------------------------------------------

    def received(self, data, placed):
        """HostPasses of the board's passes, in their order. data: its bytes on the host."""
        if self._host is None:
            self._host = _Host(self)
        _, parts = self._cut(data)
        return self._host.filled(parts, placed)


class _Host:
    """Blocks [7, W] of _passes, made once."""

    def __init__(self, board):
        self.blocks = {kind: torch.ones(7, width, dtype=torch.float64)
                       for kind, width in board.widths.items()}
        self.n = torch.ones(board.widths[READ], dtype=torch.float64)
        self.eps = torch.zeros(board.widths[NODE], dtype=torch.float64)
        self.counted = {}  # rows by slot, as they are in n
        for slot in board.slots.values():
            if slot.kind == NODE:
                self.eps[slot.start:slot.start + slot.width] = slot.tap.site.eps

    def filled(self, parts, placed):
        counts = parts["more"].tolist()
        told = [self._rows(one, counts) for one in placed]
        kinds = {one.slot.kind for one in placed}
        if READ in kinds:
            self._read(parts)
        if NODE in kinds:
            self._node(parts)
        return [_passes.HostPass(one.site, (rows, one.samples, one.total - rows), self.blocks[one.slot.kind],
                                 one.slot.start, one.slot.width, one.gained)
                for one, rows in zip(placed, told)]

    def _rows(self, one, counts):
        """Valid rows of a pass; n has them."""
        slot, rows = one.slot, one.rows
        if rows is None:  # the kernel has counted them
            rows = int(round(counts[slot.number][2]))
        if slot.kind == READ and self.counted.get(slot.number) != rows:
            self.counted[slot.number] = rows
            self.n[slot.start:slot.start + slot.width] = max(1, rows)
        return rows

    def _read(self, parts):
        mean, variance, square, g, gc, gg, gain = self.blocks[READ].unbind()
        x, xx, sum_g, gx, squares = parts[READ, "sums"].unbind()
        torch.div(x, self.n, out=mean)
        torch.div(xx, self.n, out=square)
        torch.addcmul(square, mean, mean, value=-1, out=variance).clamp_(min=0)
        g.copy_(sum_g)
        torch.addcmul(gx, mean, sum_g, value=-1, out=gc)
        gg.copy_(squares)
        gain.copy_(parts[READ, "gain"])

    def _node(self, parts):
        block = self.blocks[NODE]
        mean, variance, square, g, gc, gg, gain = block.unbind()
        rows = parts["rows"].double()
        mean.copy_(rows[0])
        torch.pow(rows[1], -2, out=variance).sub_(self.eps).clamp_(min=0)
        torch.addcmul(variance, mean, mean, out=square)
        g.copy_(rows[2])
        torch.div(rows[3], rows[1], out=gc)
        gg.copy_(parts[NODE, "sums"][0])
        gain.copy_(parts[NODE, "gain"])
