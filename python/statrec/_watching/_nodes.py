"""Batch norm by its autograd node: what the node has made itself is taken, no tensor is read.

The node of BatchNorm1d, 2d and 3d in training has the batch's mean and 1/s, s = sqrt(variance +
eps), and its backward pass computes sum g (the gradient of bias) and sum g xhat (of weight), for this call alone:
accumulation and shared modules do not mix them. Copying d numbers is all there is to
do; sum g^2 wants a pass over g (square).

If that is not exact enough, the tensors are read (_sums). On the CPU torch sums

planes [N, C, L]  in double or in short chains: like _sums.
rows [R, d]       one after the other in the tensor's own precision. Of float32 against float64:

                  rows     mean in deviations   off by: mean (deviations)  variance  sum g  sum g xhat
                  4,096    0                    8e-8                       3e-6      2e-6   3e-6
                  4,096    1                    3e-6                       3e-6      2e-6   3e-6
                  4,096    10                   3e-5                       3e-6      2e-6   3e-5
                  65,536   0                    8e-8                       2e-5      6e-6   9e-6

                  so that it is taken up to _ROWS rows: off by 5e-6 at most, the mean by 7e-6
                  deviations.

Both round the mean to single precision: sum g xhat is off by 5e-7 sum g for each deviation of the
mean, so that means of up to _MEAN deviations are taken.

variance = 1/inverse^2 - eps is right to 2.4e-7 (1 + eps/variance): not taken where a feature's
variance is below eps/_EPS (dead features, too). The check costs as much as all else, so a site within a quarter of
these limits in the step before is not checked (trust). On other devices the host would have to wait: _believed.py has
measurements of them, and _cards.py checks a step later.
"""
import time

import torch

from .. import _native
from . import _believed, _engine, _kinds, _passes, _sums
from ._catch import saving as _saving
from ._kinds import wrapped as _wrapped

_NAMES = ("NativeBatchNormBackward0", "CudnnBatchNormBackward0", "MiopenBatchNormBackward0")
_MODULES = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)
_ROWS, _MEAN, _EPS = 8192, 2.0, 8.0
_MARGIN = 4  # of what is trusted
UNKNOWN, TRUSTED = (False, False), (True, True)
_is_grad_enabled = torch.is_grad_enabled
_HALVES = (torch.float16, torch.bfloat16)


def plain_batch_norm(site, module):
    """Whether the parameters' gradients are the sums."""
    return site.norm == "bn" and site.stock and type(module) in _MODULES and module.affine


def _in_rows(y):
    """Whether torch's kernel goes through the batch row by row: [R, d] or channels last."""
    if y.dim() > 2 and y.is_contiguous() and y.numel() != y.shape[0] * y.shape[1]:
        return False
    return y.dim() == 2 or y.movedim(1, -1).is_contiguous()


def _exact(tap, mean, inverse, y):
    """Whether the sums of this pass, whose result is y, are good enough."""
    if mean.device.type != "cpu":
        return _believed.believed(y)
    if mean.dtype == torch.float64:
        return True
    tap.in_rows = _in_rows(y)
    if tap.in_rows and y.numel() > _ROWS * y.shape[1]:
        return False
    if not tap.trusted[0] and not inverse.amax().item() ** 2 * tap.site.eps * (1 + 1 / _EPS) <= 1:
        return False
    return tap.trusted[1] or (mean * inverse).abs_().amax().item() <= _MEAN


def trust(taps, hosts):
    """Looks once a step at what all sites had: tap.trusted, of variances and of means, and tap.usual.

    hosts: HostPasses of this process.
    """
    fast = [tap for tap in taps if tap.fast]
    if not fast:
        return
    blocks, low, far = {}, set(), set()
    for one in hosts:
        if one.bounds is None:
            blocks.setdefault(id(one.block), []).append(one)
            continue
        least, largest = one.bounds
        if not least >= _MARGIN / _EPS * one.site.eps:
            low.add(one.site)
        if not largest <= (_MEAN / _MARGIN) ** 2:
            far.add(one.site)
    for here in blocks.values():
        block = here[0].block
        variance, mean = block[_passes.VARIANCE], block[_passes.MEAN]
        least = _MARGIN / _EPS * max([one.site.eps for one in here])
        low.update(_failing(variance >= least, here))
        far.update(_failing(mean * mean <= (_MEAN / _MARGIN) ** 2 * variance, here))
    seen = {one.site for one in hosts}
    for tap in fast:
        site = tap.site
        if site not in seen:
            tap.trusted, tap.usual = UNKNOWN, None
        elif site in low or site in far:
            tap.trusted, tap.usual = (site not in low, site not in far), None
        else:
            tap.trusted, tap.usual = TRUSTED, tap.last


def _failing(true, hosts):
    """Sites at which some feature of some pass fails the check."""
    if bool(true.all()):
        return ()
    return [one.site for one in hosts
            if not bool(true[one.start:one.start + one.width].all())]


def as_usual(tap, module, output):
    """Whether nothing that can be seen has changed since a trusted pass: its NodeCatch waits again.

    All in one function, which most forward passes of most batch norms end in."""
    shared, last, own = tap.shared, tap.usual, module._parameters
    if (not shared.on or shared.activations or tap.mask is not None or shared.phase != tap.phase
            or not module.training or not _is_grad_enabled() or type(output) is not torch.Tensor
            or own.get("weight") is not last.weight or own.get("bias") is not last.bias
            or not last.weight.requires_grad or not last.bias.requires_grad
            or "forward" in module.__dict__ or output.shape != last.shape
            or output.stride() != last.stride or output.dtype is not last.dtype
            or _saving(False) is not None or _wrapped(output)
            or output.is_cuda and _kinds.captured(output)):
        return False
    start = time.perf_counter()
    try:
        node = output.grad_fn
        if type(node) is not tap.node_type:
            return False
        tap.last = last
        _wait(tap, node, node._saved_result1, node._saved_result2, last)
    except Exception as error:
        shared.fail(error)
    shared.seconds += time.perf_counter() - start
    return True


def caught(tap, module, output):
    """Whether the node of this output has the sums: a NodeCatch waits at it."""
    node, own = output.grad_fn, module._parameters
    if type(node) is not tap.node_type:
        if node is None or node.name() not in _NAMES:
            return False
        tap.node_type = type(node)
    weight, bias = own.get("weight"), own.get("bias")
    if (weight is None or bias is None or weight.dtype in _HALVES or not weight.requires_grad
            or not bias.requires_grad or output.output_nr != 0):
        return False
    mean, inverse = node._saved_result1, node._saved_result2
    if mean.dtype in _HALVES or not _exact(tap, mean, inverse, output):
        return False
    tap.last = Call(tap, weight, bias, output)
    _wait(tap, node, mean, inverse, tap.last)
    return True


def _wait(tap, node, mean, inverse, call):
    node.register_hook(NodeCatch(tap, mean, inverse, call))


class Call:
    """A call of a module as seen from outside: its Layout, its rows, samples and padded rows."""
    __slots__ = ("weight", "bias", "shape", "stride", "dtype", "counts", "layout", "plain")

    def __init__(self, tap, weight, bias, output):
        self.weight, self.bias = weight, bias
        self.shape, self.stride, self.dtype = output.shape, output.stride(), output.dtype
        self.layout = _sums.Layout(output.detach(), tap.width, True)
        # types that libstatrec reads in place: the parameters' gradients have their type
        self.plain = (self.layout.native is not None and weight.dtype is output.dtype
                      and weight.is_contiguous())
        samples = self.shape[0] if len(self.shape) > 2 else 0
        self.counts = output.numel() // tap.width, samples, 0


class NodeCatch:
    """A forward pass that waits for the backward pass of its node.

    It does little; its cost is that the code is no longer in the processor's cache.
    """
    __slots__ = ("tap", "mean", "inverse", "call", "serial")

    def __init__(self, tap, mean, inverse, call):
        shared = tap.shared
        shared.serial = self.serial = shared.serial + 1
        self.tap, self.mean, self.inverse, self.call = tap, mean, inverse, call

    def __call__(self, inputs, grads):
        """Hook after the node: gradients of x, weight and bias."""
        mean, tap = self.mean, self.tap
        shared = tap.shared
        if mean is None or not shared.on or self.serial <= shared.begun:
            tap.late(self.serial)
            return
        start = time.perf_counter()
        try:
            self._take(tap, mean, grads[0], inputs[2], inputs[1])
        except Exception as error:
            shared.fail(error)
        if _engine.task() == shared.task or not shared.run()[1]:
            self.mean = self.inverse = None
        shared.seconds += time.perf_counter() - start

    def _take(self, tap, mean, g, sum_g, sum_gx):
        call, shared = self.call, tap.shared
        norms, plain = shared.norms, _engine.task() == shared.task or shared.run() == _engine.PLAIN
        if sum_gx is None or sum_g is None:
            tap.no_sums()
            return
        if norms and g is None or (tap.passes or not plain) and not tap.counts(self.serial):
            return
        vectors = mean, self.inverse, sum_g, sum_gx, call.weight
        if call.plain and type(sum_g) is torch.Tensor and sum_g.dtype is mean.dtype and _native.ready() and (
                not norms or g.stride() == call.stride and g.dtype is call.dtype):
            stored = tap.place() if tap.passes or not tap.stored else tap.stored[0]
            told = stored.read_node(call.layout, g if norms else None, vectors, call.counts, self.serial)
            if plain:
                tap.passes.append(told)
            else:
                tap.arrived(told)
            return
        if not tap.reads("the gradient of its bias", sum_g):
            return
        squares = None
        if norms:
            layout = call.layout if g.stride() == call.stride else _sums.Layout(g, tap.width, True)
            squares = _sums.squares(layout(g.detach() if g.requires_grad else g))
        tap.keep("batch_norm", (*vectors[:4], squares), call.weight, call.counts, self.serial)
