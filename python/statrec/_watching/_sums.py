"""Statistics of tensors over rows, taken where the tensors are.

The sums behind sr_forward and sr_backward (statrec/record.h): mean and biased variance of x, and
the sums of g, g (x - mean) and g^2, per feature. Variances use centred values; float16 and bfloat16
are summed as float32. On the CPU libstatrec reads each tensor once where torch has few threads
(_native.py). With more of them large tensors are read once or twice, in torch's fused batch norm
kernels where those are exact enough:

rows [R, d]     on the CPU those kernels add up R rows one after the other in float32 (3e-5 of the
                variance at R = 100,000, mean 0). They therefore get blocks of some 256 rows,
                K blocks side by side as [R/K, K d]; the blocks are merged in double (Chan et al.).
planes [N,d,L]  sums over L in float32 (vectorised, hence short chains), over N in double.
"""
import functools

import torch

from .. import _native

_BLOCK = 256  # rows that are added up in the tensor's own precision
_HALVES = (torch.float16, torch.bfloat16)


def wide(device):
    """The dtype of sums: double where the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def upcast(x):
    """x in float32 or better."""
    return x.float() if x.dtype in _HALVES else x


# -- layout -----------------------------------------------------------------------------------

class Layout:
    """How a tensor's elements become rows of `width` features.

    first: dimension 1 has the features (N, C, ...); otherwise the last dimensions have. index: flat
    numbers of the rows that count (None: all). A tensor and its gradient have the same layout.
    """

    def __init__(self, x, width, first, index=None):
        self.width, self.index, self.shape, self.stride = width, index, x.shape, x.stride()
        self.first = first and x.dim() > 2
        self.planes = self.first and index is None and not x.movedim(1, -1).is_contiguous()
        self.rows = x.numel() // width if index is None else index.numel()
        self.dtype, self.native = x.dtype, self._native(x)
        self.gain = self.gain_dtype = None  # a gain that the library reads as it is
        samples = x.shape[0] if self.first else 0
        self.counts = self.rows, samples, x.numel() // width - self.rows  # and padded ones

    def _native(self, x):
        """(outer, width, inner) of what libstatrec reads in place, or None."""
        if (self.index is not None or not x.is_cpu or _native.element(x.dtype) is None
                or not self.rows):
            return None
        if not (x.movedim(1, -1) if self.first and not self.planes else x).is_contiguous():
            return None
        outer = x.shape[0] if self.planes else self.rows
        return outer, self.width, self.rows // outer

    def __call__(self, x):
        """x contiguous as [N, width, L] (planes) or [rows, width], float32 or better."""
        if self.planes:
            return upcast(x).reshape(x.shape[0], self.width, -1).contiguous()
        if self.first:
            x = x.movedim(1, -1)
        if x.dim() != 2 or x.shape[1] != self.width:
            x = x.reshape(-1, self.width)
        if self.index is not None:
            x = x.index_select(0, self.index)
        return (x.float() if x.dtype in _HALVES else x).contiguous()


def planes(rows, samples):
    """[N, width, L] of rows [N L, width], the last ones within a sample."""
    return rows.view(samples, -1, rows.shape[1]).transpose(1, 2)


# -- which kernels ----------------------------------------------------------------------------

def _kernels_agree(dtype):
    x = torch.arange(12, dtype=dtype, device="cpu").view(4, 3).sin()
    mean, variance = torch.batch_norm_update_stats(x, None, None, 0.0)
    sum_gc, sum_g = _fused(x, x, mean)
    c = x - x.mean(0)
    pairs = ((mean, x.mean(0)), (variance, c.square().mean(0)), (sum_g, x.sum(0)),
             (sum_gc, (x * c).sum(0)))
    return all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in pairs)


@functools.lru_cache(maxsize=None)
def _has_kernels(dtype):
    """Whether this torch's batch norm kernels on the CPU can be called for sums alone."""
    try:
        return _kernels_agree(dtype)
    except (RuntimeError, AttributeError, TypeError, NotImplementedError):
        return False


def _fusable(x):
    return x.device.type == "cpu" and _has_kernels(x.dtype)


def _fused(g, x, center):
    """sum of g (x - center) and of g by feature, in one pass over both."""
    _, sum_gc, sum_g = torch.ops.aten.native_batch_norm_backward(
        g, x, None, None, None, center, torch.ones_like(center), True, 0.0, [False, True, True])
    return sum_gc, sum_g


def _blocks(x):
    """x [R, d] as [B, K d], K columns of blocks with B rows each, and the remaining rows [r, d]."""
    rows, width = x.shape
    count = max(1, rows // _BLOCK)
    head = rows // count * count
    return x[:head].view(head // count, count * width), x[head:], count


# -- forward ----------------------------------------------------------------------------------

def moments(x):
    """Mean and biased variance [d] in double, of x [R, d] or [N, d, L] (Layout), R > 0."""
    if _native.reads(x):
        return _native.moments(x).unbind()[:2]
    if x.dim() == 3:
        return _plane_moments(x) if x.device.type == "cpu" else _plain_moments(x, (0, 2))
    return _row_moments(x) if _fusable(x) else _plain_moments(x, 0)


def _plain_moments(x, dims):
    variance, mean = torch.var_mean(x, dims, correction=0)
    return mean.to(wide(x.device)), variance.to(wide(x.device))


def _row_moments(x):
    head, tail, count = _blocks(x)
    mean, variance = torch.batch_norm_update_stats(head, None, None, 0.0)
    mean, variance = mean.double().view(count, -1), variance.double().view(count, -1)
    if count == 1:
        return mean[0], variance[0]
    return _merged([(head.shape[0], mean, variance), *_tail_moments(tail)], x.shape[0])


def _tail_moments(tail):
    if not tail.shape[0]:
        return []
    mean, variance = torch.batch_norm_update_stats(tail, None, None, 0.0)
    return [(tail.shape[0], mean.double()[None], variance.double()[None])]


def _merged(parts, rows):
    """(rows of each, means [K, d], variances [K, d]) of parts as one (Chan et al. 1979)."""
    mean = sum(n * m.sum(0) for n, m, _ in parts) / rows
    variance = sum(n * (v + (m - mean).square_()).sum(0) for n, m, v in parts) / rows
    return mean, variance


def _plane_moments(x):
    rows = x.shape[0] * x.shape[2]
    mean = x.sum(2).double().sum(0) / rows
    center = mean.to(x.dtype)
    squares = torch.linalg.vector_norm(x - center.view(1, -1, 1), 2, 2).double().square_().sum(0)
    return mean, (squares / rows - (mean - center).square()).clamp_(min=0)


# -- backward ---------------------------------------------------------------------------------

def gradient_sums(g, x, mean, norms=True):
    """sum g, sum g (x - mean), sum g^2 [d] in double; g and x as Layout makes them.

    Without norms sum g^2 may be missing (zeros): it is another pass over g.
    """
    if _native.reads(x, g):
        return _native.gradient_sums(g, x, mean).unbind()
    center = mean.to(x.dtype)
    if g.dtype != x.dtype:
        g = g.to(x.dtype)
    if not _fusable(x):
        sums = _plain_sums(g, x, center)
    elif x.dim() == 3:
        sum_gc, sum_g = _fused(g, x, center)
        sums = sum_g.double(), sum_gc.double(), squares(g) if norms else mean.new_zeros(mean.shape)
    else:
        sums = _row_sums(g, x, center, norms)
    sum_g, sum_gc, sum_gg = sums
    return sum_g, sum_gc - _rest(x, center) * sum_g, sum_gg


def _rest(x, center):
    """mean(x) - center [d], in double where the device has it. A mean of 100 deviations, summed in
    single precision, is off by 1e-5 of them."""
    dims, shape = (0, (-1,)) if x.dim() == 2 else ((0, 2), (1, -1, 1))
    return (x - center.view(shape)).mean(dims).to(wide(x.device))


def _plain_sums(g, x, center):
    dims, shape = (0, (-1,)) if x.dim() == 2 else ((0, 2), (1, -1, 1))
    sums = g.sum(dims), (g * (x - center.view(shape))).sum(dims), g.square().sum(dims)
    return tuple(s.to(wide(x.device)) for s in sums)


def _row_sums(g, x, center, norms):
    g_head, g_tail, count = _blocks(g)
    x_head, x_tail, _ = _blocks(x)
    sums = _block_sums(g_head, x_head, center.repeat(count), count, norms)
    if not g_tail.shape[0]:
        return sums
    return [a + b for a, b in zip(sums, _block_sums(g_tail, x_tail, center, 1, norms))]


def _block_sums(g, x, center, count, norms):
    sum_gc, sum_g = _fused(g, x, center)
    sum_gg = _column_squares(g) if norms else torch.zeros_like(sum_g)
    return [s.double().view(count, -1).sum(0) for s in (sum_g, sum_gc, sum_gg)]


def _column_squares(g):
    """sum g^2 of [B, d], B rows that the tensor's own precision may add up."""
    mean, variance = torch.batch_norm_update_stats(g, None, None, 0.0)
    return (variance.double() + mean.double().square_()) * g.shape[0]


def squares(g):
    """sum g^2 [d] in double; g as Layout makes it."""
    if g.dim() == 3:
        return torch.linalg.vector_norm(g, 2, 2).to(wide(g.device)).square_().sum(0)
    if _native.reads(g):
        return _native.moments(g)[2] * g.shape[0]
    if not _fusable(g):
        return g.square().sum(0).to(wide(g.device))
    head, tail, count = _blocks(g)
    sums = _column_squares(head).view(count, -1).sum(0)
    return sums + _column_squares(tail) if tail.shape[0] else sums


# -- gradient of the input of row norms -------------------------------------------------------

_PIECE = 1 << 20  # elements of x whose dx is in memory at a time


def row_norms(g, x, gamma, eps, root, groups):
    """sum dx^2 and sum (gamma g / s)^2 [2] in double, of a norm over features or samples.

    g, x: as Layout makes them. root: the norm divides by the root mean square alone. groups: 0 if
    each row has its own s; otherwise features are normalized in this number of groups over each
    sample. With q = gamma g, dx = (q - mean(q) - xhat mean(q xhat)) / s, without mean(q) where
    root.
    """
    if not groups and x.dim() == 2 and _native.reads(x, g):
        return _native.row_norms(g, x, gamma, eps, root)
    total = torch.zeros(2, dtype=wide(x.device), device=x.device)
    pieces = max(1, x.numel() // _PIECE)
    for part_g, part_x in zip(g.tensor_split(pieces), x.tensor_split(pieces)):
        total += _row_norms(part_g, part_x, gamma, eps, root, groups)
    return total


def _row_norms(g, x, gamma, eps, root, groups):
    if gamma is not None:
        g = g * gamma.to(g.dtype).view([1, -1] + [1] * (x.dim() - 2))
    if groups:
        x, g = (t.reshape(t.shape[0], groups, -1) for t in (x, g))
    dim = -1 if groups or x.dim() == 2 else 1
    mean = 0 if root else x.mean(dim, keepdim=True)
    centred = x - mean
    inverse = (centred.square().mean(dim, keepdim=True) + eps).rsqrt()
    xhat = centred * inverse
    dx = g - xhat * (g * xhat).mean(dim, keepdim=True)
    if not root:
        dx = dx - g.mean(dim, keepdim=True)
    return torch.stack([(t * inverse).to(wide(x.device)).square().sum() for t in (dx, g)])
