"""Forward passes that wait for their backward passes; then a launch, or less, follows."""
import functools
import time

import torch

from .._watching import _arrivals, _engine, _kinds, _sums
from ._board import NODE, READ
from ._plan import Known, Placed

_dtype = torch.float32


def overwritten(tap, placed=None):
    tap.misfit = "its input was overwritten before the backward pass"
    if placed in tap.passes:
        tap.passes.remove(placed)


class Waiting:
    """A forward pass that waits for its backward pass; x and g are read then. Called as a prehook of the node
    that made the output."""
    __slots__ = ("cards", "card", "plan", "x", "version", "valid", "serial", "output", "shape", "gain", "order")

    def __init__(self, cards, card, plan, x, valid, output, shape, order):
        shared, self.gain, self.order = cards.shared, card.gain, order
        shared.serial = self.serial = shared.serial + 1
        self.cards, self.card, self.plan, self.valid = cards, card, plan, valid
        self.x, self.version, self.output, self.shape = x, x._version, output, shape

    def __call__(self, grads):
        g, x, tap = grads[self.output], self.x, self.card.tap
        shared = tap.shared
        plain = _engine.task() == shared.task or shared.run() == _engine.PLAIN
        if g is None or not shared.on or self.serial <= shared.begun or _kinds.captured(g):
            tap.late(self.serial)
            return
        if (tap.passes or not plain) and not tap.counts(self.serial):
            return
        if plain or not shared.run()[1]:
            self.x = None
        if x is None:
            tap.spoil(_arrivals.FREED)
            return
        start = time.perf_counter()
        try:
            if self.order is not None:
                g = g.permute(self.order)
            if x._version != self.version:
                overwritten(tap)
            else:
                known = self.card.read
                if (known is None or self.valid is not None or tap.passes or not plain
                        or not known.holds(self.plan, g, self.gain)):
                    self._take(g if g.shape == self.shape else g.reshape(self.shape), x)
                else:
                    known.placed.serial = self.serial
                    self._launch(known.launch, g, x, known.slot, known.placed)
                    tap.passes.append(known.placed)
        except Exception as error:
            shared.fail(error)
        shared.seconds += time.perf_counter() - start

    def _take(self, g, x):
        """The first time: findings are kept if the next pass will be like this one."""
        plan, tap, card = self.plan, self.card.tap, self.card
        if not tap.reads("the gradient of its output", g):
            return
        slot = self.cards.slot(tap, READ, x.device, plan.width, self.gain)
        g, alone = g.detach(), not tap.passes and self.valid is None
        alike = plan.whole and g.stride() == plan.stride
        if not alike:
            x, g = plan.formed(x), plan.formed(g)
        placed = Placed(tap, slot, plan.rows if self.valid is None else None, plan.samples, plan.rows,
                        self.serial, plan.norm is not None or self._apart())
        sums = plan.sums(g, self.valid, slot.gained)
        self._launch(sums, g, x, slot, placed)
        if alone and alike and slot.board().live:
            card.read = Known(plan, placed, sums, g.dtype)
        tap.arrived(placed)

    def _launch(self, sums, g, x, slot, placed):
        plan = self.plan
        if plan.small and self.valid is None:
            self.cards.together.add(sums, x, g, slot, functools.partial(overwritten, self.card.tap, placed))
            self.cards.at_the_end()
        else:
            sums(x, g, self.valid, slot)
        if plan.apart:
            self._norms(g, x, slot)

    def _apart(self):
        return self.plan.apart and self.valid is None

    def _norms(self, g, x, slot):
        """Norms of rows where the kernel has none. Masked ones are left out."""
        plan, site = self.plan, self.card.tap.site
        if not self._apart():
            return
        shape = ((plan.shape[0], plan.width, -1) if plan.planes else (-1, plan.width))
        with torch.no_grad():
            g, x = (_sums.upcast(t if plan.planes or t.shape != plan.shape else plan.formed(t)).reshape(shape)
                    for t in (g, x))
            if site.groups and not plan.planes:
                g, x = (_sums.planes(one, plan.shape[0]) for one in (g, x))
            slot.more[:2].add_(_sums.row_norms(g, x, slot.gain if slot.gained else None,
                                               site.eps * site.share, site.uses == "psi2", site.groups))


class NodeWaiting:
    """A forward pass of a batch norm whose node will have the sums. Called as a hook after the node."""
    __slots__ = ("cards", "card", "plan", "mean", "inverse", "serial", "gain")

    def __init__(self, cards, card, plan, mean, inverse):
        shared, self.gain = cards.shared, card.gain
        shared.serial = self.serial = shared.serial + 1
        self.cards, self.card, self.plan, self.mean, self.inverse = cards, card, plan, mean, inverse

    def __call__(self, inputs, grads):
        """inputs: gradients of x, weight and bias; grads: g."""
        mean, inverse, tap, g = self.mean, self.inverse, self.card.tap, grads[0]
        shared = tap.shared
        plain = _engine.task() == shared.task or shared.run() == _engine.PLAIN
        if mean is None or g is None or not shared.on or self.serial <= shared.begun or _kinds.captured(g):
            tap.late(self.serial)
            return
        if plain or not shared.run()[1]:
            self.mean = self.inverse = None
        start = time.perf_counter()
        try:
            if inputs[1] is None or inputs[2] is None:
                tap.no_sums()
            elif not (tap.passes or not plain) or tap.counts(self.serial):
                self._take(g, (mean, inverse, inputs[2], inputs[1]), plain)
        except Exception as error:
            shared.fail(error)
        shared.seconds += time.perf_counter() - start

    def _take(self, g, vectors, plain):
        plan, card = self.plan, self.card
        tap, known = card.tap, card.node
        if known is None or tap.passes or not plain or not known.holds(plan, g, self.gain):
            self._first(g, vectors)
            return
        known.placed.serial = self.serial
        self._launch(known.launch, g, vectors, known.slot, known.placed)
        tap.passes.append(known.placed)

    def _first(self, g, vectors):
        plan, card = self.plan, self.card
        tap = card.tap
        if not tap.reads("the gradient of its output", g):
            return
        alone, alike = not tap.passes, g.stride() == plan.stride and g.shape == plan.shape
        slot = self.cards.slot(tap, NODE, g.device, plan.width, self.gain)
        placed = Placed(tap, slot, plan.rows, plan.samples, plan.rows, self.serial, False)
        if plan.squares and not (alike and plan.whole):
            g = plan.formed(g)
        sums = plan.node_sums(g)
        self._launch(sums, g, vectors, slot, placed)
        if alone and alike and plan.whole and slot.board().live:
            card.node = Known(plan, placed, sums, g.dtype)
        tap.arrived(placed)

    def _launch(self, sums, g, vectors, slot, placed):
        _, _, sum_g, sum_gx = vectors
        if (sum_g.dtype is not _dtype or sum_gx.dtype is not _dtype or not sum_g.is_contiguous()
                or not sum_gx.is_contiguous()):
            vectors = [one.detach().float().contiguous() for one in vectors]
        if self.plan.squares or self._at_once():
            sums(g, vectors, slot)
        else:
            # detached: a gradient with another reference would be copied for .grad
            sum_g, sum_gx = sum_g.detach(), sum_gx.detach()
            self.cards.vectors.append((slot, (*vectors[:2], sum_g, sum_gx), (sum_g._version, sum_gx._version),
                                       self.card, placed))
            self.cards.at_the_end()

    def _at_once(self):
        """Whether the host may overwrite the gradients before the end of the backward pass: by hooks of the
        parameters, or since ranks are joined then."""
        if self.card.at_once or torch.distributed.is_available() and torch.distributed.is_initialized():
            return True
        return any(one._backward_hooks or getattr(one, "_post_accumulate_grad_hooks", None)
                   for one in self.card.own)
