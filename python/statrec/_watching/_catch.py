"""A forward pass that waits for its backward pass: at the node of its output, or in a Function."""
import functools
import time

import torch

from .. import _native
from . import _arrivals, _engine, _sums
from ._kinds import strange, wrapped

_is_grad_enabled = torch.is_grad_enabled
# saving(False): None where tensors that are saved for backward go through no hooks.
saving = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda ignored: True)


def source_of(output, observed):
    """The tensor whose node stays, and which of its dimensions are the output's, or None: the same in the same
    order, or as many elements. An in-place operation on a view replaces the view's node."""
    base = output._base if output._is_view() and not observed else None
    if base is None or base.grad_fn is None or base.numel() != output.numel():
        return output, None
    if base.is_contiguous() and output.is_contiguous():
        return base, None
    order = _order((*zip(base.shape, base.stride()),), (*zip(output.shape, output.stride()),))
    return (output, None) if order is None else (base, order)


@functools.lru_cache(maxsize=256)
def _order(base, output):
    """The index in base of each dimension (size, stride) of the output; None: it is no permutation of them."""
    left, order = list(base), []
    for one in output:
        if one not in left:
            return None
        order.append(left.index(one))
        left[order[-1]] = None
    return order if len(order) == len(base) else None


def as_known(tap, module, args, output):
    """Whether nothing that can be seen has changed since the pass before: a Catch waits again.

    All in one function, which most forward passes of most sites end in."""
    shared, known = tap.shared, tap.known
    x = output if tap.at_output else args[0] if args else None
    try:
        if (type(x) is not torch.Tensor or type(output) is not torch.Tensor or known.native is None
                or not shared.on or shared.activations or shared.cards is not None
                or tap.mask is not None or shared.phase != tap.phase or tap.fast or tap.observed
                or not tap.waits or not module.training or not _is_grad_enabled()
                or x.shape != known.shape or x.stride() != known.stride
                or x.dtype is not known.dtype or output.shape != known.shape or not x.is_cpu
                or saving(False) is not None or wrapped(output) or output.grad_fn is None):
            return False
    except RuntimeError:  # a nested or sparse tensor has no shape or no strides
        return False
    start = time.perf_counter()
    try:
        if not _native.ready():
            Catch(tap, x.detach(), known, tap.plain_gain()).listen(output)
        else:
            source, order = (output, None) if output._base is None else source_of(output, False)
            source.grad_fn.register_prehook(Again(tap, x.detach(), known, tap.plain_gain(), source.output_nr,
                                                  output.shape, order))
    except Exception as error:
        shared.fail(error)
    shared.seconds += time.perf_counter() - start
    return True


class Catch:
    """A forward pass that waits for its backward pass. gain: the gain of this pass, which torch.func.functional_call
    may have given to the module."""

    def __init__(self, tap, x, layout, gain):
        shared, self.gain = tap.shared, gain
        shared.serial += 1
        self.tap, self.layout, self.serial, self.x, self.output = tap, layout, shared.serial, x, 0
        self.version, self.shape, self.order = x._version, x.shape, None
        self.mean = self.variance = None

    def measure(self, x):
        self.mean, self.variance = _sums.moments(self.layout(x))

    def listen(self, output):
        """Waits at the node that made the output."""
        source, self.order = source_of(output, self.tap.observed) if output._is_view() else (output, None)
        self.shape = output.shape
        node, self.output = source.grad_fn, source.output_nr
        if self.layout.native is None or not _native.ready():
            self.measure(self.x)
        node.register_prehook(self.before)

    def before(self, grads):
        """Prehook of the node: g exists, x is unchanged."""
        g, x, shared = grads[self.output], self.x, self.tap.shared
        if g is None:
            return
        if self.order is not None:
            g = g.permute(self.order)
        run = shared.run()
        if not run[1]:
            self.x = None
        if x is not None:
            self.arrived(g if g.shape == self.shape else g.reshape(self.shape), x, run)
        elif shared.on and run[0]:
            self.tap.spoil(_arrivals.FREED)

    def arrived(self, g, x, run):
        """The backward pass came. run: of the engine (_engine.Runs)."""
        tap = self.tap
        shared, serial = tap.shared, self.serial
        if not shared.on:
            tap.late(serial)
            return
        if (tap.passes or serial <= shared.begun or run != _engine.PLAIN) and not tap.counts(serial):
            return
        if not torch.is_grad_enabled():
            tap.shared.guarded(self.take, g, x)
        else:  # create_graph
            with torch.no_grad():
                tap.shared.guarded(self.take, g, x)

    def take(self, g, x):
        if self.gain is not None and self.gain is not self.layout.gain:
            self.gain = self.tap.whole_gain(self.gain)
        if not (self.tap.reads("the gradient of its output", g) and self.tap.reads("its gain", self.gain)):
            return
        if x._version != self.version:
            self.tap.misfit = "its input was overwritten before the backward pass"
            return
        tap, site, layout = self.tap, self.tap.site, self.layout
        normed = tap.shared.norms and site.groups is not None and (not site.groups or layout.index is None)
        squares = normed and not site.groups and not layout.planes
        if self.mean is None and self.read_in_place(tap, layout, g, x, squares):
            if normed and not squares:
                self.norm_rows(tap, site, layout(g.detach() if g.requires_grad else g), layout(x))
            return
        if self.mean is None:
            self.measure(x)
        g, x = layout(g.detach() if g.requires_grad else g), layout(x)
        sums = _sums.gradient_sums(g, x, self.mean, tap.shared.norms)
        gain = None if self.gain is None else self.gain.detach().reshape(-1)
        tap.keep("sums", (self.mean, self.variance, *sums), gain, layout.counts, self.serial)
        if normed:
            self.norm_rows(tap, site, g, x)

    def norm_rows(self, tap, site, g, x):
        """Adds the squares of row norms to the latest Pass, from g and x as Layout makes them."""
        kept = tap.passes[-1]
        if site.groups and not self.layout.planes:
            g, x = (_sums.planes(one, self.shape[0]) for one in (g, x))
        kept.norms = _sums.row_norms(g, x, kept.gamma, site.eps * site.share, site.uses == "psi2",
                                     site.groups)

    @staticmethod
    def readable(gain, layout):
        """Whether libstatrec takes the gain as it is."""
        return (not strange(gain) and gain.is_contiguous() and gain.is_cpu
                and gain.numel() == layout.width and _native.element(gain.dtype) is not None)

    def read_in_place(self, tap, layout, g, x, squares):
        """Whether libstatrec has read both by one call, where x and g lie alike."""
        if g.stride() != layout.stride or g.dtype is not layout.dtype or not g.is_cpu:
            return False
        gain = self.gain
        if gain is not None and not self.readable(gain, layout):
            return False
        tap.arrived(tap.place().read(layout, g, x, gain, squares, self.serial))
        return True


class Again(Catch):
    """A Catch of a forward pass like the one before. Called as a prehook of the node."""

    def __init__(self, tap, x, layout, gain, output, shape, order):
        shared, self.gain, self.order = tap.shared, gain, order
        shared.serial = self.serial = shared.serial + 1
        self.tap, self.layout, self.x, self.output = tap, layout, x, output
        self.version, self.shape, self.mean = x._version, shape, None

    def __call__(self, grads):
        """As `before`, in few steps where a single backward pass comes, which frees the graph, and g lies as x
        does."""
        g, x, tap, layout = grads[self.output], self.x, self.tap, self.layout
        shared, site, stored = tap.shared, tap.site, tap.stored
        if (type(g) is not torch.Tensor or x is None or not shared.on or tap.passes or not stored
                or self.serial <= shared.begun
                or _engine.task() != shared.task and shared.run() != _engine.PLAIN
                or self.order is not None or not shared.norms or site.groups != 0 or layout.planes
                or x._version != self.version
                or g.shape != self.shape or g.stride() != layout.stride or g.dtype is not layout.dtype
                or not g.is_cpu):
            self.before(grads)
            return
        start = time.perf_counter()
        try:
            gain = self.gain
            if gain is not None and not (gain is layout.gain and gain.dtype is layout.gain_dtype):
                if not self.readable(gain, layout):
                    self.before(grads)
                    return
                layout.gain, layout.gain_dtype = gain, gain.dtype
            self.x = None
            tap.passes.append(stored[0].read(layout, g, x, gain, True, self.serial))
        except Exception as error:
            shared.fail(error)
        shared.seconds += time.perf_counter() - start


class Through(torch.autograd.Function):
    """y as it is; x is saved as operations save theirs, so checkpointing forgets and remakes it."""

    @staticmethod
    def forward(ctx, y, x, catch):
        if catch is not None:
            catch.tap.shared.guarded(catch.measure, catch.x)
            catch.x = None
        ctx.catch = catch
        ctx.save_for_backward(x)
        ctx.mark_dirty(y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        catch = ctx.catch
        if catch is not None:
            catch.version = x._version  # checked when it was unpacked
            catch.arrived(g, x.detach(), catch.tap.shared.run())
        return g, None, None
