"""The kernels of _kernels.py. Importing this module needs Triton.

Rows: x, g [rows, width]; a program has some rows of some features. Planes: x, g [n, width, length]; a
program has one feature of some samples. The first pointers of a kernel may be of any alignment.
"""
import triton
import triton.language as tl


@triton.jit
def _short(x):
    """x with 12 significant bits: x - centre is then exact or its error random, not the same in all rows."""
    return (x.to(tl.int32, bitcast=True) & -4096).to(tl.float32, bitcast=True)


@triton.jit
def _values(at, inside):
    return tl.load(at, mask=inside, other=0).to(tl.float32)


@triton.jit
def _counted(inside, valid, at, MASKED: tl.constexpr):
    """The elements inside the tensor and valid."""
    if MASKED:
        inside = inside & (tl.load(valid + at, mask=inside, other=0) != 0)
    return inside


@triton.jit
def _zeros(HIGH: tl.constexpr, WIDE: tl.constexpr):
    """The five sums of no tile."""
    zero = tl.zeros([HIGH, WIDE], tl.float32)
    return zero, zero, zero, zero, zero


@triton.jit
def _summed(xs, gs, centre, inside, s_x, s_xx, s_g, s_gx, s_gg, SQUARES: tl.constexpr):
    """The five sums with one more tile."""
    c = tl.where(inside, xs - centre, 0)
    s_x += c
    s_xx += c * c
    s_g += gs
    s_gx += gs * c
    if SQUARES:
        s_gg += gs * gs
    return s_x, s_xx, s_g, s_gx, s_gg


@triton.jit
def _norms(xs, gs, gamma, here, inside, width, eps, NORM: tl.constexpr, GAIN: tl.constexpr):
    """dx and gamma g / s of rows. NORM: 1 ln, 2 rms."""
    if NORM == 1:
        xs = tl.where(inside, xs - (tl.sum(xs, 1) / width)[:, None], 0)
    inverse = tl.where(here, 1 / tl.sqrt(tl.sum(xs * xs, 1) / width + eps), 0)
    xhat = xs * inverse[:, None]
    if GAIN:
        gs = gs * gamma[None, :]
    dx = gs - xhat * (tl.sum(gs * xhat, 1) / width)[:, None]
    if NORM == 1:
        dx = tl.where(inside, dx - (tl.sum(gs, 1) / width)[:, None], 0)
    return dx * inverse[:, None], gs * inverse[:, None]


@triton.jit
def _down_mean(some, n):
    """Mean of the n values that each column has, to 12 bits."""
    return _short(tl.sum(some, 0) / tl.maximum(n.to(tl.float32), 1.0))


@triton.jit
def _whole_mean(some, n):
    return _short(tl.sum(tl.sum(some, 1), 0) / tl.maximum(n.to(tl.float32), 1.0))


@triton.jit
def _add(at, stride, centre, n, s_x, s_xx, s_g, s_gx, s_gg, fits, SQUARES: tl.constexpr):
    """Adds sums that are centred to doubles that are not: rows of `stride` at `at`."""
    c, n = centre.to(tl.float64), n.to(tl.float64)
    tl.atomic_add(at, s_x + n * c, mask=fits, sem="relaxed")
    tl.atomic_add(at + stride, s_xx + 2 * c * s_x + n * c * c, mask=fits, sem="relaxed")
    tl.atomic_add(at + 2 * stride, s_g, mask=fits, sem="relaxed")
    tl.atomic_add(at + 3 * stride, s_gx + c * s_g, mask=fits, sem="relaxed")
    if SQUARES:
        tl.atomic_add(at + 4 * stride, s_gg, mask=fits, sem="relaxed")


@triton.jit
def _down(s):
    """Sums [WIDE] of [HIGH, WIDE]."""
    return tl.sum(s.to(tl.float64), 0)


@triton.jit
def _whole(s):
    """The sum of [HIGH, WIDE]."""
    return tl.sum(tl.sum(s, 1).to(tl.float64), 0)


# -- x and g ----------------------------------------------------------------------------------

@triton.jit
def _row_sums(x, g, valid, gain, sums, more, stride, rows, width, each, eps, MASKED: tl.constexpr,
              SQUARES: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr, NORM: tl.constexpr,
              GAIN: tl.constexpr):
    """more: two squared norms and the number of valid rows. NORM: 0 none, 1 ln, 2 rms."""
    column = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    fits = column < width
    first = tl.program_id(0).to(tl.int64) * each * HIGH
    r = first + tl.arange(0, HIGH)
    here = _counted(r < rows, valid, r, MASKED)
    some = _values(x + r[:, None] * width + column[None, :], here[:, None] & fits[None, :])
    seen = tl.sum(here.to(tl.int32), 0)
    centre = _down_mean(some, seen)
    count = tl.zeros([HIGH], tl.float32)
    s_x, s_xx, s_g, s_gx, s_gg = _zeros(HIGH, WIDE)
    s_dx, s_direct, _, _, _ = _zeros(HIGH, WIDE)
    gamma = centre
    if NORM != 0:
        if GAIN:
            gamma = _values(gain + column, fits)
    for step in range(each):
        r = first + step * HIGH + tl.arange(0, HIGH)
        here = _counted(r < rows, valid, r, MASKED)
        inside = here[:, None] & fits[None, :]
        at = r[:, None] * width + column[None, :]
        xs, gs = _values(x + at, inside), _values(g + at, inside)
        if MASKED:
            if seen == 0:  # every row before is padding
                seen = tl.sum(here.to(tl.int32), 0)
                centre = _down_mean(xs, seen)
        count += here.to(tl.float32)
        s_x, s_xx, s_g, s_gx, s_gg = _summed(xs, gs, centre[None, :], inside, s_x, s_xx, s_g, s_gx, s_gg,
                                             SQUARES)
        if NORM != 0:
            dx, direct = _norms(xs, gs, gamma, here, inside, width, eps, NORM, GAIN)
            s_dx += dx * dx
            s_direct += direct * direct
    n = tl.sum(count, 0)
    _add(sums + column, stride, centre, n, _down(s_x), _down(s_xx), _down(s_g), _down(s_gx), _down(s_gg),
         fits, SQUARES)
    if NORM != 0:
        tl.atomic_add(more, _whole(s_dx), sem="relaxed")
        tl.atomic_add(more + 1, _whole(s_direct), sem="relaxed")
    if MASKED:
        if tl.program_id(1) == 0:
            tl.atomic_add(more + 2, n.to(tl.float64), sem="relaxed")


@triton.jit
def _plane_sums(x, g, valid, sums, more, stride, n, width, length, each, MASKED: tl.constexpr,
                SQUARES: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr):
    feature = tl.program_id(0)
    first = tl.program_id(1) * each * HIGH
    r, l = first + tl.arange(0, HIGH), tl.arange(0, WIDE)
    inside = _counted((r < n)[:, None] & (l < length)[None, :], valid,
                      r.to(tl.int64)[:, None] * length + l[None, :], MASKED)
    start = (r.to(tl.int64) * width + feature) * length
    some = _values(x + start[:, None] + l[None, :], inside)
    seen = tl.sum(tl.sum(inside.to(tl.int32), 1), 0)
    centre = _whole_mean(some, seen)
    count = tl.zeros([HIGH, WIDE], tl.float32)
    s_x, s_xx, s_g, s_gx, s_gg = _zeros(HIGH, WIDE)
    for step in range(each):
        r = first + step * HIGH + tl.arange(0, HIGH)
        start = (r.to(tl.int64) * width + feature) * length
        for piece in range(0, length, WIDE):
            l = piece + tl.arange(0, WIDE)
            inside = _counted((r < n)[:, None] & (l < length)[None, :], valid,
                              r.to(tl.int64)[:, None] * length + l[None, :], MASKED)
            at = start[:, None] + l[None, :]
            xs, gs = _values(x + at, inside), _values(g + at, inside)
            if MASKED:
                if seen == 0:
                    seen = tl.sum(tl.sum(inside.to(tl.int32), 1), 0)
                    centre = _whole_mean(xs, seen)
            count += inside.to(tl.float32)
            s_x, s_xx, s_g, s_gx, s_gg = _summed(xs, gs, centre, inside, s_x, s_xx, s_g, s_gx, s_gg, SQUARES)
    total = _whole(count)
    _add(sums + feature, stride, centre, total, _whole(s_x), _whole(s_xx), _whole(s_g), _whole(s_gx),
         _whole(s_gg), feature < width, SQUARES)
    if MASKED:
        if feature == 0:
            tl.atomic_add(more + 2, total, sem="relaxed")


@triton.jit(do_not_specialize=["rows", "each"])
def row_sums(x, g, valid, gain, sums, more, stride, rows, width, each, eps, MASKED: tl.constexpr,
             SQUARES: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr, NORM: tl.constexpr,
             GAIN: tl.constexpr):
    _row_sums(x, g, valid, gain, sums, more, stride, rows, width, each, eps, MASKED, SQUARES, HIGH, WIDE,
              NORM, GAIN)


@triton.jit(do_not_specialize=["n", "each"])
def plane_sums(x, g, valid, gain, sums, more, stride, n, width, length, each, MASKED: tl.constexpr,
               SQUARES: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr):
    _plane_sums(x, g, valid, sums, more, stride, n, width, length, each, MASKED, SQUARES, HIGH, WIDE)


# -- of several sites: program_id(2) is the site ------------------------------------------------

@triton.jit
def _one_of(a, b, c, d):
    which = tl.program_id(2)
    if which == 1:
        a = b
    if which == 2:
        a = c
    if which == 3:
        a = d
    return a


@triton.jit(do_not_specialize=["rows", "each"])
def rows_together(x0, g0, x1, g1, x2, g2, x3, g3, gain0, sums0, more0, gain1, sums1, more1, gain2, sums2,
                  more2, gain3, sums3, more3, stride, rows, width, each, eps, SQUARES: tl.constexpr,
                  HIGH: tl.constexpr, WIDE: tl.constexpr, NORM: tl.constexpr, GAIN: tl.constexpr):
    x, g = _one_of(x0, x1, x2, x3), _one_of(g0, g1, g2, g3)
    _row_sums(x, g, x, _one_of(gain0, gain1, gain2, gain3), _one_of(sums0, sums1, sums2, sums3),
              _one_of(more0, more1, more2, more3), stride, rows, width, each, eps, False, SQUARES, HIGH,
              WIDE, NORM, GAIN)


@triton.jit(do_not_specialize=["n", "each"])
def planes_together(x0, g0, x1, g1, x2, g2, x3, g3, gain0, sums0, more0, gain1, sums1, more1, gain2, sums2,
                    more2, gain3, sums3, more3, stride, n, width, length, each, SQUARES: tl.constexpr,
                    HIGH: tl.constexpr, WIDE: tl.constexpr):
    x, g = _one_of(x0, x1, x2, x3), _one_of(g0, g1, g2, g3)
    _plane_sums(x, g, x, _one_of(sums0, sums1, sums2, sums3), more0, stride, n, width, length, each, False,
                SQUARES, HIGH, WIDE)


# -- what the node of a batch norm has ----------------------------------------------------------

@triton.jit
def _taken(mean, inverse, sum_g, sum_gx, out, stride, at, fits):
    """The four vectors go to rows of `out`."""
    tl.store(out + at, tl.load(mean + at, mask=fits), mask=fits)
    tl.store(out + stride + at, tl.load(inverse + at, mask=fits), mask=fits)
    tl.store(out + 2 * stride + at, tl.load(sum_g + at, mask=fits), mask=fits)
    tl.store(out + 3 * stride + at, tl.load(sum_gx + at, mask=fits), mask=fits)


@triton.jit(do_not_specialize=["rows", "each"])
def row_node(g, mean, inverse, sum_g, sum_gx, sums, out, stride, rows, width, each, SQUARES: tl.constexpr,
             HIGH: tl.constexpr, WIDE: tl.constexpr):
    """g [rows, width]."""
    column = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    fits = column < width
    if tl.program_id(0) == 0:
        _taken(mean, inverse, sum_g, sum_gx, out, stride, column, fits)
    if SQUARES:
        first = tl.program_id(0).to(tl.int64) * each * HIGH
        s_gg = tl.zeros([HIGH, WIDE], tl.float32)
        for step in range(each):
            r = first + step * HIGH + tl.arange(0, HIGH)
            gs = _values(g + r[:, None] * width + column[None, :], (r < rows)[:, None] & fits[None, :])
            s_gg += gs * gs
        tl.atomic_add(sums + column, _down(s_gg), mask=fits, sem="relaxed")


@triton.jit(do_not_specialize=["n", "each"])
def plane_node(g, mean, inverse, sum_g, sum_gx, sums, out, stride, n, width, length, each,
               SQUARES: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr):
    """g [n, width, length]."""
    feature = tl.program_id(0)
    if tl.program_id(1) == 0:
        _taken(mean, inverse, sum_g, sum_gx, out, stride, feature, feature < width)
    if SQUARES:
        s_gg = tl.zeros([HIGH, WIDE], tl.float32)
        for step in range(each):
            r = (tl.program_id(1) * each + step) * HIGH + tl.arange(0, HIGH)
            start = (r.to(tl.int64) * width + feature) * length
            for piece in range(0, length, WIDE):
                l = piece + tl.arange(0, WIDE)
                gs = _values(g + start[:, None] + l[None, :], (r < n)[:, None] & (l < length)[None, :])
                s_gg += gs * gs
        tl.atomic_add(sums + feature, _whole(s_gg), sem="relaxed")
