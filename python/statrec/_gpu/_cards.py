"""Recording on a GPU: what a forward pass leaves there, and how it comes to the host without waiting.

A forward pass waits at its node, as on the CPU (_taps.py), but nothing is computed in it. When the backward
pass comes, one launch reads x and g (_kernels.py) and adds the sums to the site's place in a buffer (Board),
or takes those of a batch norm's node where they are right (_believed.py, and the step before). At the end of
the step the buffer and all numbers go to pinned memory in one copy (Fetch), and a thread writes them to the
file while the next step runs (Writer).

Whatever is not of this kind, as double precision, checkpointing and compiled graphs, takes the way of the
CPU, and its results the same copy.
"""
import functools
import math
import time

import torch

from . import _kernels
from .._watching import _believed, _nodes, _passes, _running, _sums
from ._board import NODE, READ, Board
from ._fetch import Fetch
from .._watching._caught import copy_all
from .._watching._writer import Writer

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


class Placed:
    """A Pass whose sums are in a slot. rows: None where the kernel counts the valid ones of `total`."""
    kind, norms = "placed", None

    def __init__(self, tap, slot, rows, samples, total, serial, normed):
        self.site, self.slot, self.serial, self.normed = tap.site, slot, serial, normed
        self.rows, self.samples, self.total, self.gained = rows, samples, total, slot.gained


class Plan:
    """What a forward pass of a site looks like, and how it is read."""

    def __init__(self, tap, x, norms):
        self.shape, self.stride, self.dtype, self.device = x.shape, x.stride(), x.dtype, x.device
        self.first = tap.first and x.dim() > 2
        self.planes = self.first and not x.movedim(1, -1).is_contiguous()
        self.rows_shape, self.width = tap._shapes(x)
        self.rows = x.numel() // self.width
        self.samples = x.shape[0] if self.first else 0
        self.whole = self.formed(x) is x  # as the kernels want it
        self.squares, self.launches, self.valid_of = norms, {}, (None, None)
        self.small = x.numel() * x.element_size() <= _kernels.SMALL
        site = tap.site
        by_rows = site.groups == 0 and not self.planes and self.width <= _kernels._WIDEST
        self.norm = (site.eps * site.share, site.uses == "psi2") if norms and by_rows else None
        self.apart = norms and site.groups is not None and not by_rows and (
            not site.groups or self.planes or x.dim() == 2)  # norms of rows by torch's operations

    def fits(self, x):
        return (x.shape == self.shape and x.dtype is self.dtype and x.stride() == self.stride
                and x.device == self.device)

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


class Card:
    """What is kept of a tap. sound: whether its last batch norm was one whose node is exact."""
    __slots__ = ("plan", "node_plan", "node_type", "own", "sound")

    def __init__(self):
        self.plan = self.node_plan = self.node_type = None
        self.own, self.sound = (None, None), False


class Waiting:
    """A forward pass that waits for its backward pass; x and g are read then."""
    __slots__ = ("cards", "tap", "plan", "x", "version", "valid", "serial", "output", "shape")

    def __init__(self, cards, tap, plan, x, valid, serial):
        self.cards, self.tap, self.plan, self.valid, self.serial = cards, tap, plan, valid, serial
        self.x, self.version = x, x._version

    def before(self, grads):
        """Prehook of the node: x still is as it was."""
        g, x, self.x = grads[self.output], self.x, None
        tap = self.tap
        shared = tap.shared
        if g is None or x is None or not shared.on or tap.outdone(self.serial):
            return
        start = time.perf_counter()
        try:
            if x._version != self.version:
                _overwritten(tap)
            else:
                self._take(g if g.shape == self.shape else g.reshape(self.shape), x)
        except Exception as error:
            shared.fail(error)
        shared.seconds += time.perf_counter() - start

    def _take(self, g, x):
        plan, tap = self.plan, self.tap
        slot = self.cards.slot(tap, READ, x.device, plan.width)
        g = g.detach()
        if not plan.whole or g.stride() != plan.stride:
            x, g = plan.formed(x), plan.formed(g)
        placed = Placed(tap, slot, plan.rows if self.valid is None else None, plan.samples, plan.rows,
                        self.serial, plan.norm is not None or self._apart())
        sums = plan.sums(g, self.valid, slot.gained)
        if plan.small and self.valid is None:
            self.cards.together.add(sums, x, g, slot, functools.partial(_overwritten, tap, placed))
        else:
            sums(x, g, self.valid, slot)
        if plan.apart:
            self._norms(g, x, slot)
        tap.note_again(self.serial)
        tap.arrived(placed)

    def _apart(self):
        return self.plan.apart and self.valid is None

    def _norms(self, g, x, slot):
        """Norms of rows where the kernel has none. Masked ones are left out."""
        plan, site = self.plan, self.tap.site
        if not self._apart():
            return
        shape = ((plan.shape[0], plan.width, -1) if plan.planes else (-1, plan.width))
        g, x = (_sums.upcast(t).reshape(shape) for t in (g, x))
        gain = slot.gain if slot.gained else None
        with torch.no_grad():
            slot.more[:2].add_(_sums.row_norms(g, x, gain, site.eps * site.share, site.uses == "psi2", site.groups))


def _overwritten(tap, placed=None):
    tap.misfit = "its input was overwritten before the backward pass"
    if placed in tap.passes:
        tap.passes.remove(placed)


class NodeWaiting:
    """A forward pass of a batch norm whose node will have the sums."""
    __slots__ = ("cards", "tap", "plan", "mean", "inverse", "serial")

    def __init__(self, cards, tap, plan, mean, inverse, serial):
        self.cards, self.tap, self.plan, self.serial = cards, tap, plan, serial
        self.mean, self.inverse = mean, inverse

    def __call__(self, inputs, grads):
        """Hook after the node: gradients of x, weight and bias, and g."""
        mean, self.mean = self.mean, None
        tap, g = self.tap, grads[0]
        shared = tap.shared
        if mean is None or g is None or not shared.on or tap.outdone(self.serial):
            return
        start = time.perf_counter()
        try:
            if inputs[1] is None or inputs[2] is None:
                tap.misfit = "a backward pass asked for no gradients of its weight and bias"
            else:
                self._take(g.detach(), mean, inputs[2].detach(), inputs[1].detach())
        except Exception as error:
            shared.fail(error)
        self.inverse = None
        shared.seconds += time.perf_counter() - start

    def _take(self, g, mean, sum_g, sum_gx):
        plan, tap = self.plan, self.tap
        slot = self.cards.slot(tap, NODE, g.device, plan.width)
        if plan.squares and g.stride() != plan.stride:
            g = plan.formed(g)
        vectors = mean, self.inverse, sum_g, sum_gx
        if not all(one.is_contiguous() and one.dtype is torch.float32 for one in (sum_g, sum_gx)):
            vectors = [one.float().contiguous() for one in vectors]
        plan.node_sums(g)(g, vectors, slot)
        tap.note_again(self.serial)
        tap.arrived(Placed(tap, slot, plan.rows, plan.samples, plan.rows, self.serial, False))


class Cards:
    """The GPUs of a run."""

    def __init__(self, shared):
        self.shared, self.boards, self.more, self.wanted = shared, {}, [], {}
        self.keepers, self.kept, self.writer, self.together = [], 0, Writer(), _kernels.Together()
        self.before, self.running = [], []  # (_Running, what it kept): last but one, and last

    # -- forward ------------------------------------------------------------------------------

    def takes(self, x):
        """Whether x is a tensor that the kernels read."""
        return (torch.is_tensor(x) and x.dtype in _DTYPES and x.dim() > 1 and x.numel() > 0
                and (x.is_cuda or x.is_cpu and _kernels.interpreted()))

    def forward(self, tap, module, args, output):
        """Whether this forward pass is taken care of; False: it takes the way of the CPU."""
        shared = tap.shared
        if not shared.on or not torch.is_tensor(output):
            return False
        card = tap.card
        if card is None:
            card = tap.card = Card()
        if tap.fast and card.sound and tap.mask is None and self._by_node(tap, card, module, output):
            return True
        x = output if tap.at_output else args[0] if args else None
        plan = card.plan
        if plan is None or not torch.is_tensor(x) or not plan.fits(x):
            plan = card.plan = self._planned(tap, x)
        if plan is None or output.shape != x.shape or output.grad_fn is None:
            return False
        try:
            valid = None if tap.mask is None else plan.valid(tap.mask)
        except ValueError:  # told by the other way
            return False
        shared.serial += 1
        waiting = Waiting(self, tap, plan, x.detach(), valid, shared.serial)
        source = output if output._base is None else _source(tap, output)
        node = source.grad_fn
        waiting.output, waiting.shape = source.output_nr, output.shape
        node.register_prehook(waiting.before)
        return True

    def _planned(self, tap, x):
        if not self.takes(x):
            return None
        _, width = tap._shapes(x)
        if tap.width is not None and width != tap.width:
            return None  # told by the other way
        self._first(tap, width, x.device)
        return Plan(tap, x, tap.shared.norms)

    @staticmethod
    def _first(tap, width, device):
        if tap.order is None:
            tap.order, tap.width = next(tap.shared.order), tap.width or width
        tap.device = device

    def _by_node(self, tap, card, module, output):
        node, own, plan = output.grad_fn, module._parameters, card.node_plan
        if node is None or "forward" in module.__dict__:
            return False
        pair = own.get("weight"), own.get("bias")
        if (plan is None or type(node) is not card.node_type or not plan.fits(output)
                or pair[0] is not card.own[0] or pair[1] is not card.own[1]):
            if not self._node_plan(tap, card, node, pair, output):
                return False
            plan = card.node_plan
        if not pair[0].requires_grad or not pair[1].requires_grad:
            return False
        shared = tap.shared
        shared.serial += 1
        node.register_hook(NodeWaiting(self, tap, plan, node._saved_result1, node._saved_result2,
                                       shared.serial))
        return True

    def _node_plan(self, tap, card, node, pair, output):
        if (None in pair or node.name() not in _nodes._NAMES or pair[0].dtype is not torch.float32
                or output.output_nr != 0 or not self.takes(output) or not _believed.believed(output)
                or node._saved_result1.dtype is not torch.float32):
            return False
        self._first(tap, output.shape[1], output.device)
        card.node_plan, card.node_type, card.own = Plan(tap, output, tap.shared.norms), type(node), pair
        return True

    # -- backward -----------------------------------------------------------------------------

    def slot(self, tap, kind, device, width):
        """The place of a backward pass that is here now."""
        here = [one for one in tap.passes
                if one.kind == "placed" and one.slot.kind == kind] if tap.passes else ()
        last = self.shared.repeat == "last"
        key = tap, kind, 0 if last else len(here)
        board = self.boards.get(device)
        if board is None or board.keys.get(key) != width:
            self.wanted.setdefault(device, {})[key] = width
            board = Board(device, {key: width})
            self.more.append(board)
        elif last and here:
            slot = board.slots[key]
            self.together.flush()
            slot.all.zero_()
            slot.more.zero_()
        board.take_gains()
        return board.slots[key]

    # -- the end of a step ----------------------------------------------------------------------

    def flush(self):
        """Launches what waits for other sites; before the passes of a step are collected."""
        self.together.flush()

    def keep_running(self, taps):
        """Running statistics on GPUs, as they are now: after a step and before the next one. The
        other taps."""
        self.kept += 1
        if self.kept <= 2:  # lazy modules have them after the first step
            self.keepers = _Running.of(taps)
        self.before, self.running = self.running, [(one, one.keep()) for one in self.keepers]
        mine = {id(tap) for one in self.keepers for tap, _ in one.taps}
        return [tap for tap in taps if id(tap) not in mine]

    def send(self, passes, values, before, after):
        """A Sent of all passes and values (numbers and tensors); the boards are ready for the next step.

        before, after: running statistics by site of modules on the CPU."""
        sent = Sent(self, passes, values, before, after)
        for board in self.boards.values():
            if board._gained:
                board.cleared()
        for device, keys in self.wanted.items():
            old = self.boards.get(device)
            self.boards[device] = Board(device, {**(old.keys if old else {}), **keys})
        self.more, self.wanted = [], {}
        return sent

    def put(self, job):
        """job() will be called by the thread that writes."""
        self.writer.put(job)


class Sent:
    """What a step left, on its way to the host."""

    def __init__(self, cards, passes, values, before, after):
        self.passes = passes
        self.placed, plain = {}, []
        for one in passes:
            if one.kind == "placed":
                board = next(board for board in [*cards.more, *cards.boards.values()]
                             if board.slots.get(one.slot.key) is one.slot)
                self.placed.setdefault(board, []).append(one)
            else:
                plain.append(one)
        self.groups = [(group, block) for group, block in _passes._groups(plain)]
        ordered = [one for group, _ in self.groups for one in group]
        counted = _passes._leaf_counts(ordered)
        self.normed = [one for one in plain if one.norms is not None]
        self.running = (cards.before, cards.running) if passes else ([], [])
        self.kept = (list(before), list(after)) if passes else ([], [])  # sites
        self.values = values
        parts = [[board.bytes for board in self.placed], [block for _, block in self.groups], counted,
                 [one.norms for one in self.normed],
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
        values = [next(numbers).reshape(()).item() if torch.is_tensor(one) else one for one in self.values]
        scale = float(values[scale_at])
        hosts, found = {}, {}
        for (board, placed), data in zip(self.placed.items(), boards):
            hosts.update(zip(map(id, placed), self._of_board(board, placed, data, scale, found)))
        self._of_groups(blocks, iter(counted), scale, hosts)
        told = _passes.row_norms(self.normed, [one.double() for one in norms], scale)
        for name, sites in found.items():
            told.setdefault(name, {}).update(sites)
        before, after = (self._by_site(when, running[when], running[2 + when]) for when in (0, 1))
        return [hosts[id(one)] for one in self.passes], values, before, after, told

    def _by_site(self, when, blocks, kept):
        """Running statistics [2, width] by site. when: 0 before the step, 1 after it."""
        found = {site: block.double() for site, block in zip(self.kept[when], kept)}
        for (one, _), block in zip(self.running[when], blocks):
            found.update(one.by_site(block.double()))
        return found

    def _of_board(self, board, placed, data, scale, found):
        hosts = board.received(data, placed)
        for block in {id(one.block): one.block for one in hosts}.values():
            _judge(block, [(one.slot.tap, host) for one, host in zip(placed, hosts)
                           if host.block is block and one.slot.tap.fast])
            _scaled(block, scale)
        more = board._cut(data)[1]["more"]
        squares = {}
        for one in placed:
            if one.normed:
                squares[one.site.name] = (squares.get(one.site.name, 0)
                                           + one.site.share * more[one.slot.number, :2])
        if squares:
            roots = (torch.stack(list(squares.values())).sqrt() / scale).tolist()
            for place, name in enumerate(("dx_norm", "direct_norm")):
                found.setdefault(name, {}).update(
                    {site: pair[place] for site, pair in zip(squares, roots)})
        return hosts

    def _of_groups(self, blocks, counted, scale, hosts):
        for (group, _), block in zip(self.groups, blocks):
            block = block.double()
            _scaled(block, scale)
            hosts.update(zip(map(id, group), _passes._cut(group, block, counted)))


def _scaled(block, scale):
    if scale != 1.0:
        block[_passes.SUM_G:_passes.SUM_GG] /= scale
        block[_passes.SUM_GG] /= scale * scale


def _judge(block, pairs):
    """Whether the node of each batch norm may be believed in the next step: see _nodes.py."""
    if not pairs:
        return
    variance, mean = block[_passes.VARIANCE], block[_passes.MEAN]
    eps = max(tap.site.eps for tap, _ in pairs)
    sound = (variance * _nodes._EPS >= eps) & (mean * mean <= _nodes._MEAN ** 2 * variance)
    every = bool(sound.all())
    for tap, host in pairs:
        card = tap.card
        if card is not None:  # not detached
            card.sound = every or bool(sound[host.start:host.start + host.width].all())


class _Running:
    """Running statistics of the modules on a device, [2, W] float32: those of two times."""

    def __init__(self, device, taps):
        self.taps, self.places, start = taps, [], 0
        for tap, width in taps:
            self.places.append((tap.site, start, start + width))
            start += width
        self.times = [(values, [row[a:b] for _, a, b in self.places for row in values])
                      for values in torch.empty(2, 2, start, device=device)]

    @classmethod
    def of(cls, taps):
        by_device = {}
        for tap in taps:
            mean = _buffers(tap)[0]
            if mean is not None and not _running.is_lazy(mean) and mean.is_cuda:
                by_device.setdefault(mean.device, []).append((tap, mean.shape[0]))
        return [cls(device, pairs) for device, pairs in by_device.items()]

    def keep(self):
        """Copies them; what the call before returned stays as it is."""
        tensors = [buffer for tap, _ in self.taps for buffer in _buffers(tap)]
        self.times.reverse()
        values, to = self.times[0]
        with torch.no_grad():
            copy_all(to, [one.detach() for one in tensors])
        return values

    def by_site(self, block):
        return {site: block[:, a:b] for site, a, b in self.places}


def _buffers(tap):
    module = tap.module()
    own = {} if module is None else module._buffers
    return own.get("running_mean"), own.get("running_var")


def _source(tap, output):
    """The tensor whose node stays: what is done in place to a view replaces the view's node."""
    base = None if tap.observed else output._base
    whole = (base is not None and base.grad_fn is not None and base.numel() == output.numel()
             and base.is_contiguous() and output.is_contiguous())
    return base if whole else output


def make(shared, devices, ranks):
    """Cards of a run; None where no module is on a GPU, or without Triton, or where ranks gather."""
    wanted = any(device.type == "cuda" for device in devices) or _kernels.interpreted()
    return Cards(shared) if wanted and not ranks.merge and _kernels.load() is not None else None


def scale_of(scaler, scale):
    """The factor of the loss, a number or a tensor on its GPU, which is not waited for."""
    if scaler is None:
        return scale
    if not getattr(scaler, "is_enabled", lambda: True)():
        return 1.0
    kept = getattr(scaler, "_scale", None)
    return kept.detach().clone() if torch.is_tensor(kept) else scaler.get_scale()
