"""Recording on a GPU: what a forward pass leaves there, and how it comes to the host without waiting.

A forward pass waits at its node, as on the CPU (_taps.py), but nothing is computed in it. When the backward
pass comes, one launch reads x and g (_kernels.py) and adds the sums to the site's place in a buffer (Board),
or takes the sums of a batch norm's node if they are right (_believed.py, and the step before). Small tensors wait for
the end of the backward pass, and are launched for several sites at once. At the end of the step the buffer and all
numbers go to pinned memory in one copy (Fetch), and a thread writes them to the file while the next step runs
(Writer).

Findings about a site are kept (Card, Known): a pass like the one before costs a few comparisons and a launch by
addresses.

Whatever is not of this kind, as double precision, checkpointing and compiled graphs, takes the way of the
CPU, and its results the same copy.
"""
import time

import torch

from .. import _native
from . import _kernels
from .._watching import _believed, _kinds, _nodes
from .._watching._catch import saving, source_of
from .._watching._caught import copy_all
from .._watching._kinds import wrapped
from .._watching._writer import Writer
from ._board import Board
from ._plan import Card, Plan
from ._sent import Running, Sent
from ._waiting import NodeWaiting, Waiting, overwritten

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_is_grad_enabled = torch.is_grad_enabled


class Cards:
    """The GPUs of a run."""

    def __init__(self, shared):
        self.shared, self.boards, self.more, self.wanted = shared, {}, [], {}
        self.keepers, self.kept, self.writer, self.together = [], 0, Writer(), _kernels.Together()
        self.before, self.running = [], []  # (Running, its values): last but one, and last
        self.vectors, self.queued = [], False  # of nodes, until the backward pass ends
        self.used, self.sent, self.look = set(), 0, 2  # keys since the last check of them, steps, the next check
        self.gone = set()  # keys whose places went

    # -- forward ------------------------------------------------------------------------------

    def takes(self, x):
        """Whether x is a tensor that the kernels read."""
        return (torch.is_tensor(x) and x.dtype in _DTYPES and x.dim() > 1 and x.numel() > 0
                and (x.is_cuda or x.is_cpu and _kernels.interpreted()))

    def again(self, tap, module, args, output):
        """Whether nothing that can be seen has changed since the pass before, and this one waits in the same
        way. All in one function, which most forward passes of most sites end in."""
        card, shared = tap.card, tap.shared
        if (type(output) is not torch.Tensor or not shared.on or shared.activations or tap.mask is not None
                or shared.phase != tap.phase or not module.training or not _is_grad_enabled()
                or saving(False) is not None or wrapped(output) or _kinds.captured(output)):
            return False
        start = time.perf_counter()
        try:
            if tap.fast and card.sound:
                if card.node_plan is None or not self._by_node(tap, card, module, output):
                    return False
            else:
                x, plan = output if tap.at_output else args[0] if args else None, card.plan
                node = output.grad_fn
                if (plan is None or node is None or type(x) is not torch.Tensor or not plan.fits(x)
                        or output.shape != plan.shape or "forward" in module.__dict__):
                    return False
                self._wait(tap, card, plan, x, None, output)
        except Exception as error:
            shared.fail(error)
        shared.seconds += time.perf_counter() - start
        return True

    def forward(self, tap, module, args, output):
        """Whether this forward pass is taken care of; False: it takes the way of the CPU."""
        shared = tap.shared
        if not shared.on or not torch.is_tensor(output):
            return False
        card = tap.card
        if card is None:
            card = tap.card = Card(tap)
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
        except ValueError:  # reported by the other path
            return False
        self._wait(tap, card, plan, x, valid, output)
        return True

    def _wait(self, tap, card, plan, x, valid, output):
        source, order = (output, None) if output._base is None else source_of(output, tap.observed)
        card.gain = tap.plain_gain()
        source.grad_fn.register_prehook(Waiting(self, card, plan, x.detach(), valid, source.output_nr,
                                                output.shape, order))

    def _planned(self, tap, x):
        if not self.takes(x):
            return None
        _, width = tap._shapes(x)
        if tap.width is not None and width != tap.width:
            return None  # reported by the other path
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
        weight, bias = own.get("weight"), own.get("bias")
        if (plan is None or type(node) is not card.node_type or not plan.fits(output)
                or weight is not card.own[0] or bias is not card.own[1]):
            if not self._node_plan(tap, card, node, (weight, bias), output):
                return False
            plan = card.node_plan
        if not weight.requires_grad or not bias.requires_grad:
            return False
        card.gain = weight
        node.register_hook(NodeWaiting(self, card, plan, node._saved_result1, node._saved_result2))
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

    def slot(self, tap, kind, device, width, gain):
        """The place of a backward pass that is here now, with the gain of its forward pass."""
        here = [one for one in tap.passes
                if one.kind == "placed" and one.slot.kind == kind] if tap.passes else ()
        key = tap, kind, len(here)
        board = self.boards.get(device)
        if board is None or board.keys.get(key) != width:
            self.wanted.setdefault(device, {})[key] = width
            board = Board(device, {key: width})
            board.live = False
            self.more.append(board)
        board.take_gains()
        slot = board.slots[key]
        if slot.gain_of is not gain:
            slot.take(gain)
        return slot

    def forget(self, passes):
        """The places of these passes are for others."""
        slots = [one.slot for one in passes if one.kind == "placed"]
        if slots:
            self.flush()
        for slot in slots:
            slot.all.zero_()
            slot.more.zero_()

    # -- the end of a step ----------------------------------------------------------------------

    def at_the_end(self):
        """Waiting sums are launched when this backward pass ends; if torch has no such hook, by step()."""
        if not self.queued:
            self.queued = True
            _queue(self._ended)

    def _ended(self):
        try:
            self.flush()
        except Exception as error:
            self.shared.fail(error)

    def flush(self):
        """Launches waiting sums. Called also before the passes of a step are collected: after a failed backward pass
        nothing else does it."""
        self.queued = False
        self.together.flush()
        vectors, self.vectors = self.vectors, []
        to, given = [], []
        for slot, four, versions, card, placed in vectors:
            if (four[2]._version, four[3]._version) == versions:
                to += slot.row
                given += four
            else:
                card.at_once = True
                overwritten(card.tap, placed)
        if to:
            with torch.no_grad():
                copy_all(to, given)

    def keep_running(self, taps):
        """Running statistics on GPUs, as they are now: after a step and before the next one. The
        other taps."""
        self.kept += 1
        if self.kept <= 2:  # lazy modules have them after the first step
            self.keepers = Running.of(taps)
        self.before, self.running = self.running, [(one, one.keep()) for one in self.keepers]
        mine = {id(tap) for one in self.keepers for tap, _ in one.taps}
        return [tap for tap in taps if id(tap) not in mine]

    def send(self, passes, values, before, after):
        """A Sent of all passes and values (numbers and tensors); the boards are ready for the next step.

        before, after: running statistics by site of modules on the CPU."""
        sent = Sent(self, passes, values, before, after)
        self.before = []  # on its way; the card has one copy less while the next step runs
        for board in self.boards.values():
            if board.gained:
                board.cleared()
        if passes:
            self._look(sent)
        for device, keys in self.wanted.items():
            self._board(device, keys)
        self.more, self.wanted = [], {}
        return sent

    def _board(self, device, keys, kept=lambda key: True):
        """A new one, of the old one's keys that are kept, and these."""
        old = self.boards.get(device)
        if old is not None:
            _retire(old)
        self.boards[device] = Board(device, {**{key: width for key, width in (old.keys if old else {}).items()
                                                if kept(key)}, **keys})

    def _look(self, sent):
        """Removes places that no pass has used for some steps: their sites were read first, and their node is believed
        since. After 2 steps, 2 more, 4 more and so on, and each of them once: a site that is read in some steps and
        believed in others has both places from then on, and no new board."""
        self.used.update(one.slot.key for placed in sent.placed.values() for one in placed)
        self.sent += 1
        if self.sent < self.look:
            return
        for device, board in list(self.boards.items()):
            gone = board.keys.keys() - self.used - self.gone
            if gone:
                self._board(device, {}, lambda key: key not in gone)
                self.gone |= gone
        self.look, self.used = 2 * self.look, set()

    def put(self, job):
        """job() will be called by the thread that writes."""
        self.writer.put(job)


def _retire(board):
    """Passes of the next step have places in another board."""
    for slot in board.slots.values():
        if slot.tap.card is not None:
            slot.tap.card.read = slot.tap.card.node = None


def _queue(done):
    """done() at the end of the backward pass that is running."""
    try:
        torch.autograd.Variable._execution_engine.queue_callback(done)
    except (AttributeError, RuntimeError):  # no such function, or none is running
        pass


def make(shared, devices, ranks):
    """Cards of a run; None where no module is on a GPU, or without Triton, or where ranks gather."""
    wanted = any(device.type == "cuda" for device in devices) or _kernels.interpreted()
    usable = wanted and not ranks.merge and _kernels.load() is not None and _native.loaded()
    return Cards(shared) if usable else None


def scale_of(scaler, scale):
    """The factor of the loss, a number or a tensor on its GPU, which is not waited for."""
    if scaler is None:
        return scale
    if not getattr(scaler, "is_enabled", lambda: True)():
        return 1.0
    kept = getattr(scaler, "_scale", None)
    return kept.detach().clone() if torch.is_tensor(kept) else scaler.get_scale()
