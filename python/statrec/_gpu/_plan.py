"""The layout of a site's forward pass, and how it is read; kept from step to step."""
import math

import torch

from . import _kernels


class Plan:
    """Plan for x in its layout: its rows, its launches."""

    def __init__(self, tap, x, norms):
        self.shape, self.stride, self.dtype, self.device = x.shape, x.stride(), x.dtype, x.device
        self.index = x.get_device()
        self.first = tap.first and x.dim() > 2
        self.planes = self.first and not x.movedim(1, -1).is_contiguous()
        self.rows_shape, self.width = tap._shapes(x)
        self.rows = x.numel() // self.width
        self.samples = x.shape[0] if self.first else 0
        self.whole = x.is_contiguous() or self.first and not self.planes  # its elements lie as wanted
        self.squares, self.launches, self.valid_of = norms, {}, (None, None)
        self.small = x.numel() * x.element_size() <= _kernels.SMALL
        site = tap.site
        by_rows = site.groups == 0 and not self.planes and self.width <= _kernels._WIDEST
        self.norm = (site.eps * site.share, site.uses == "psi2") if norms and by_rows else None
        self.apart = norms and site.groups is not None and not by_rows  # norms of rows by torch's operations

    def fits(self, x):
        try:
            return (x.shape == self.shape and x.dtype is self.dtype and x.stride() == self.stride
                    and x.get_device() == self.index)
        except RuntimeError:  # a nested or sparse tensor has no shape or no strides
            return False

    def formed(self, t):
        """t or a copy of it whose elements are in the order of the kernels."""
        if self.first and not self.planes:
            t = t.movedim(1, -1)
        return t if t.is_contiguous() else t.contiguous()

    def valid(self, mask):
        """Bytes of the rows that count, or None. ValueError: the mask fits no rows."""
        if self.valid_of[0] is not mask:
            fitted = mask.fitted(self.rows_shape)
            self.valid_of = mask, (None if fitted is None else
                                   fitted.to(self.device).contiguous().view(torch.uint8))
        return self.valid_of[1]

    def _lengths(self):
        if not self.planes:
            return (self.rows,)
        return self.shape[0], math.prod(self.shape[2:])

    def sums(self, g, valid, gained):
        """The launch for gradients of g's dtype."""
        key = g.dtype, valid is not None, gained
        if key not in self.launches:
            self.launches[key] = _kernels.sums_of(
                (self.dtype, g.dtype), self.device, self.planes, self._lengths(), self.width,
                valid is not None, self.squares, self.norm, gained)
        return self.launches[key]

    def node_sums(self, g):
        if g.dtype not in self.launches:
            self.launches[g.dtype] = _kernels.NodeSums(self.device, self.planes, self._lengths(), self.width,
                                                       self.squares)
        return self.launches[g.dtype]


class Placed:
    """A Pass whose sums are in a slot. rows: None where the kernel counts the valid ones of `total`."""
    kind, norms = "placed", None

    def __init__(self, tap, slot, rows, samples, total, serial, normed):
        self.site, self.slot, self.serial, self.normed = tap.site, slot, serial, normed
        self.rows, self.samples, self.total, self.gained = rows, samples, total, slot.gained


class Known:
    """A backward pass like the one in the step before: all findings about it. launch: Sums or NodeSums, placed: used
    again, the thread that writes reads nothing of it that changes."""
    __slots__ = ("plan", "slot", "placed", "launch", "dtype", "gained")

    def __init__(self, plan, placed, launch, dtype):
        self.plan, self.slot, self.placed, self.launch, self.dtype = plan, placed.slot, placed, launch, dtype
        self.gained = placed.gained

    def holds(self, plan, g, gain):
        """Whether it is so now; gains of the step are taken."""
        slot, board = self.slot, self.slot.board()
        if (type(g) is not torch.Tensor or board is None or not board.live or plan is not self.plan
                or g.dtype is not self.dtype or g.shape != plan.shape or g.stride() != plan.stride):
            return False
        if not board.gained:
            board.take_gains()
        return slot.gained == self.gained and slot.gain_of is gain


class Card:
    """The kept findings about a tap. sound: whether its last batch norm was one whose node is exact. read, node: a
    Known of these kinds, or None. at_once: its node's vectors were once overwritten within a backward pass. gain: of
    the last forward pass."""
    __slots__ = ("tap", "plan", "node_plan", "node_type", "own", "sound", "read", "node", "at_once", "gain")

    def __init__(self, tap):
        self.tap, self.plan, self.node_plan, self.node_type = tap, None, None, None
        self.own, self.sound, self.read, self.node, self.at_once = (None, None), False, None, None, False
        self.gain = None
