"""A forward pass that waits for its backward pass: at the node of its output, or in a Function."""
import torch

from . import _sums

# Whether a transform of torch.func (vmap, grad) made a tensor: it has no data of its own.
wrapped = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor",
                  lambda tensor: False)
# saving(False): None where tensors that are saved for backward go through no hooks.
saving = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda ignored: True)


def source_of(output, observed):
    """The tensor whose node stays: what is done in place to a view replaces the view's node."""
    base = output._base if output._is_view() and not observed else None
    whole = (base is not None and base.grad_fn is not None and base.numel() == output.numel()
             and base.is_contiguous() and output.is_contiguous())
    return base if whole else output


class Catch:
    """A forward pass that waits for its backward pass."""

    def __init__(self, tap, x, layout):
        shared = tap.shared
        shared.serial += 1
        self.tap, self.layout, self.serial, self.x, self.output = tap, layout, shared.serial, x, 0
        self.version, self.shape = x._version, x.shape
        samples = x.shape[0] if tap.first and x.dim() > 2 else 0
        total = x.numel() // tap.width
        self.counts = layout.rows, samples, total - layout.rows
        self.mean = self.variance = None

    def measure(self):
        self.mean, self.variance = _sums.moments(self.layout(self.x))

    def listen(self, output):
        """Waits at the node that made the output."""
        source = source_of(output, self.tap.observed) if output._is_view() else output
        self.shape = output.shape
        node, self.output = source.grad_fn, source.output_nr
        self.measure()
        node.register_prehook(self.before)

    def before(self, grads):
        """Prehook of the node: g is there, x still is as it was."""
        g, x, self.x = grads[self.output], self.x, None
        if g is None or x is None:
            return
        self.arrived(g if g.shape == self.shape else g.reshape(self.shape), x)

    def arrived(self, g, x):
        """The backward pass came."""
        tap = self.tap
        if not tap.shared.on or tap.passes and tap.outdone(self.serial):
            return
        if not torch.is_grad_enabled():
            tap.shared.guarded(self.take, g, x)
        else:  # create_graph
            with torch.no_grad():
                tap.shared.guarded(self.take, g, x)

    def take(self, g, x):
        if x._version != self.version:
            self.tap.misfit = "its input was overwritten before the backward pass"
            return
        tap, site, layout = self.tap, self.tap.site, self.layout
        dim, g, x = x.dim(), layout(g.detach() if g.requires_grad else g), layout(x)
        sums = _sums.gradient_sums(g, x, self.mean, tap.shared.norms)
        tap.keep("sums", (self.mean, self.variance, *sums), tap.gain(), self.counts, self.serial)
        whole = not site.groups or layout.planes or layout.index is None and dim == 2
        if tap.shared.norms and site.groups is not None and whole:
            kept = tap.passes[-1]
            kept.norms = _sums.row_norms(g, x, kept.gamma, site.eps, site.uses == "psi2",
                                         site.groups)


class Through(torch.autograd.Function):
    """y as it is; x is saved as operations save theirs, so checkpointing forgets and remakes it."""

    @staticmethod
    def forward(ctx, y, x, catch):
        if catch is not None:
            catch.tap.shared.guarded(catch.measure)
            catch.x = None
        ctx.catch = catch
        ctx.save_for_backward(x)
        ctx.mark_dirty(y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        catch, ctx.catch = ctx.catch, None
        if catch is not None:
            catch.version = x._version  # checked when it was unpacked
            catch.arrived(g, x.detach())
        return g, None, None
