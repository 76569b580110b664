"""A tap within torch.compile: a Function whose backward pass gives all sums to a leaf.

Only plain operations, which the compiler fuses with their neighbours. The sums are float32 of the
compiler's making, packed in double so that passes can be added (leaf_rows).
"""
import torch

from . import _sums

LEAF_ROWS = 10
_is_tracing, _is_compiling = torch._C._is_tracing, torch.compiler.is_compiling
_fx = torch.fx._symbolic_trace
_is_fx_tracing = getattr(_fx, "_get_is_fx_tracing", None) or (lambda: getattr(_fx, "_is_fx_tracing_flag", False))
_proxy = getattr(getattr(torch._C, "_TorchDispatchModeKey", None), "PROXY", None)
_mode = torch._C._get_dispatch_mode if _proxy is not None else lambda key: None


def elsewhere():
    """Whether this forward pass makes a graph that runs without the recorder: torch.export, torch.onnx,
    torch.jit.trace, torch.fx, make_fx. None of it is recorded."""
    if _is_compiling():  # a flag: torch.compile takes is_exporting() for true in some versions
        return getattr(torch.compiler, "_is_exporting_flag", False)
    return _is_tracing() or _is_fx_tracing() or _mode(_proxy) is not None


def fitted(valid, rows_shape):
    """Mask.fitted for a traced graph: None without a fit."""
    if len(rows_shape) == 1 and valid.dim() != 1:
        return valid.reshape(-1) if valid.numel() == rows_shape[0] else None
    if valid.dim() > len(rows_shape) or tuple(rows_shape[:valid.dim()]) != tuple(valid.shape):
        return None
    more = len(rows_shape) - valid.dim()
    return valid.reshape(*valid.shape, *[1] * more).expand(rows_shape)


def _flat(x, form):
    """Dimensions that rows are in, and the shape that a vector of features has beside x."""
    first, trailing = form
    if first:
        return [0, *range(2, x.dim())], [1, -1] + [1] * (x.dim() - 2)
    return list(range(x.dim() - trailing)), list(x.shape[x.dim() - trailing:])


def _plain_moments(x, valid, form):
    """Rows, mean and biased variance, the last two as x is shaped."""
    dims, _ = _flat(x, form)
    if valid is None:
        variance, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
        return None, mean, variance
    rows = valid.sum()
    mean = torch.where(valid, x, 0).sum(dims, keepdim=True) / rows.clamp(min=1)
    centred = torch.where(valid, x - mean, 0)
    return rows, mean, centred.square().sum(dims, keepdim=True) / rows.clamp(min=1)


def _spread(valid, x, form):
    """valid [rows] with a dimension of one for each of the features' dimensions."""
    if valid is None:
        return None
    return valid.unsqueeze(1) if form[0] else valid.reshape(*valid.shape, *[1] * form[1])


def leaf_rows(g, centred, mean, variance, rows, samples, form, dtype):
    """The sums of a pass as rows that add up over passes, [10, width].

    rows n, samples, all rows, n mean, n variance, n mean^2, sum g, sum g (x - mean),
    mean sum g, sum g^2. centred: x - mean; its sums are the error of the mean.
    """
    dims, _ = _flat(g, form)
    total = g.numel() // mean.numel()
    sums = [(s.sum(dims)).reshape(-1).to(dtype) for s in (g, g * centred, g * g, centred)]
    mean, variance = mean.reshape(-1).to(dtype), variance.reshape(-1).to(dtype)
    one = torch.ones_like(mean)
    n = one * (total if rows is None else rows)
    rest = sums[3] / n.clamp(min=1)
    mean, sums[1] = mean + rest, sums[1] - rest * sums[0]
    return torch.stack([n, one * samples, one * total, n * mean, n * variance, n * mean * mean,
                        sums[0], sums[1], mean * sums[0], sums[2]])


def _forward(ctx, x, leaf, valid, form):
    x = _sums.upcast(x.detach())
    valid = _spread(valid, x, form)
    rows, mean, variance = _plain_moments(x, valid, form)
    ctx.form, ctx.dtype = form, leaf.dtype
    ctx.masked = valid is not None
    ctx.save_for_backward(x, mean, variance, *(() if valid is None else (valid, rows)))


def _backward(ctx, g):
    x, mean, variance, *more = ctx.saved_tensors
    wide, centred = _sums.upcast(g.detach()), x - mean
    if ctx.masked:
        wide, centred = torch.where(more[0], wide, 0), torch.where(more[0], centred, 0)
    samples = x.shape[0] if ctx.form[0] and x.dim() > 2 else 0
    return leaf_rows(wide, centred, mean, variance, more[1] if ctx.masked else None, samples, ctx.form,
                      ctx.dtype)


class Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, x, leaf, valid, form):
        _forward(ctx, x, leaf, valid, form)
        ctx.mark_dirty(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g, None, _backward(ctx, g), None, None


class ThroughCopy(torch.autograd.Function):
    """The same for an output that may be its module's input, or is saved by the host."""

    @staticmethod
    def forward(ctx, y, x, leaf, valid, form):
        _forward(ctx, x, leaf, valid, form)
        return y.clone()

    @staticmethod
    def backward(ctx, g):
        return g, None, _backward(ctx, g), None, None
