"""Forward passes with running, batch or recomputed statistics at each site.

The model evaluates throughout. Before a normalization runs, the moments of its input are taken: the
mean and the biased variance, by which training normalizes. If it is to use batch statistics, they
are written into its buffers (copies, see _audit_state.py). So a site needs no training mode, and
SyncBatchNorm exchanges nothing between processes. Several forward passes of a module for one batch
each use their own.
"""
import torch
from torch.overrides import TorchFunctionMode

from .._watching import _calls, _sums
from ._audit_numbers import Moments
from ._audit_probe import PAIR, statistics

RUNNING, BATCH, RECOMPUTED = "running", "batch", "recomputed"


class Gauge:
    """A site of the model and the statistics of its input.

    site: of _sites.find_sites. key: beginning of its names in the state dict. mean, variance: the
    running statistics [d] in double, or None. is_unknown: evaluation normalizes by statistics, but
    not as batch norms do. frozen: training normalizes by them, too. order: place in the forward
    pass, None before the first.
    """

    def __init__(self, site, key, training):
        self.site, self.name, self.key = site, site.name, key
        self.module, self.width = site.module, site.width
        buffers = self.module._buffers
        self.mean, self.variance = (buffers.get(name) for name in PAIR)
        read = statistics(self.module)
        self.has_running = (site.family == "sigma" and self.mean is not None
                            and self.variance is not None
                            and (read is None or read.issuperset(PAIR)))
        self.is_unknown = bool(read) and not self.has_running  # evaluation has other statistics
        if self.has_running:
            self.width = self.mean.numel()
            self.mean, self.variance = (value.detach().cpu().double().reshape(-1).clone()
                                        for value in (self.mean, self.variance))
        of_buffers = buffers[PAIR[0]].dtype if self.has_running else torch.float64
        self.is_narrow, self.dtype = of_buffers in _sums._HALVES, of_buffers
        self.batch = None  # exact mean and variance of the input, in regime BATCH
        self.frozen = site.norm == "frozenbn" or training and not self.module.training
        self.updates = buffers.get("num_batches_tracked")
        self.updates = None if self.updates is None else int(self.updates)
        self.regime, self.measures, self.order, self.counter = RUNNING, False, None, None
        self.moments, self.passes, self.recomputed, self._entered = Moments(), [], None, []
        self._handles = []

    # -- hooks --------------------------------------------------------------------------------

    def attach(self, counter):
        """Listens to forward passes. counter: gives the order of the sites."""
        self.counter = counter
        if not self.site.calls:
            self._handles = [self.module.register_forward_pre_hook(self._before, with_kwargs=True)]
        if self.site.calls or self.is_narrow:
            self._handles += [self.module.register_forward_pre_hook(self._enter),
                              self.module.register_forward_hook(self._leave, always_call=True)]

    def detach(self):
        for handle in self._handles:
            handle.remove()

    def _before(self, module, args, kwargs):
        x = next((value for value in (*args, *kwargs.values()) if torch.is_tensor(value)), None)
        if x is not None:
            self.arrived(x)

    def _enter(self, module, args):
        mode = _Calls(self)
        mode.__enter__()
        self._entered.append(mode)

    def _leave(self, module, args, output):
        self._entered.pop().__exit__(None, None, None)

    def arrived(self, x):
        """x is about to be normalized."""
        if self.order is None:
            self.order = next(self.counter)
        if not self.measures and self.regime != BATCH:
            return
        first, trailing = self.site.first, self.site.trailing
        width = self.width or (x.shape[1] if first else x.shape[-trailing:].numel())
        layout = _sums.Layout(x.detach(), width, first)
        if not layout.rows:
            return
        mean, variance = _sums.moments(layout(x.detach()))
        if self.measures:
            self.passes.append((layout.rows, mean.cpu().double(), variance.cpu().double()))
        if self.regime == BATCH:
            self.batch = mean, variance
            self._put(mean, variance)

    def _put(self, mean, variance):
        buffers = self.module._buffers
        for name, value in zip(PAIR, (mean, variance)):
            buffers[name].copy_(value.reshape(buffers[name].shape))

    @property
    def overflows(self):
        """Whether the buffers cannot hold recomputed statistics."""
        return any(bool((value.isfinite() & ~value.to(self.dtype).isfinite()).any())
                   for value in self.recomputed or ())

    # -- statistics ---------------------------------------------------------------------------

    def use(self, regime):
        """From now on it normalizes so. Frozen and unknown sites always use their buffers."""
        self.regime = regime if self.has_running and not self.frozen else RUNNING
        if self.has_running:
            of = self.recomputed if self.regime == RECOMPUTED else (self.mean, self.variance)
            self._put(*(of or (self.mean, self.variance)))

    def end_batch(self, place):
        """The passes since the last call belong to the batch with this number."""
        if self.passes:
            self.moments.add(place, self.passes)
            self.passes = []

    def recompute(self):
        """Running statistics of the rows of all batches."""
        self.recomputed = self.moments.pooled() if len(self.moments) else None


class _Calls(TorchFunctionMode):
    """Functional norms within a module, whose own input need not be theirs. Where the buffers are
    of half precision, batch statistics go around them: training computes these in float32."""

    def __init__(self, gauge):
        super().__init__()
        self.gauge = gauge

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function not in _calls._SIGNATURES:
            return function(*args, **(kwargs or {}))
        gauge = self.gauge
        given = _calls._SIGNATURES[function].bind(*args, **(kwargs or {})).arguments
        if gauge.site.calls:
            gauge.arrived(given["input"])
        if not gauge.has_running or given.get(PAIR[0]) is None or given.get(PAIR[1]) is None:
            return function(**given)
        if gauge.is_narrow and gauge.regime == BATCH and gauge.batch is not None:
            return _exact(function, given, gauge.batch)
        for name in PAIR:
            given[name] = gauge.module._buffers[name].to(given[name].dtype)
        return function(**given)


def _exact(function, given, statistics):
    """The norm of a tensor of half precision by these statistics, in float32."""
    dtype = given["input"].dtype
    wide = {name: value.float() if torch.is_tensor(value) else value
            for name, value in given.items()}
    wide.update((name, value.to(torch.float32)) for name, value in zip(PAIR, statistics))
    return function(**wide).to(dtype)
