"""The kernels of _kernels.py. Importing this module needs Triton."""
import triton
import triton.language as tl


@triton.jit
def _short(x):
    """x with 12 significant bits: x - centre is then exact or its error random, not the same in all rows."""
    return (x.to(tl.int32, bitcast=True) & -4096).to(tl.float32, bitcast=True)


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


@triton.jit(do_not_specialize=["rows", "each"])
def row_sums(x, g, valid, gain, sums, more, stride, rows, width, each, eps, MASKED: tl.constexpr,
             SQUARES: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr, NORM: tl.constexpr,
             GAIN: tl.constexpr):
    """x, g [rows, width]. more: two squared norms and the number of valid rows. NORM: 0 none, 1 ln, 2 rms."""
    column = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    fits = column < width
    high = tl.arange(0, HIGH)
    first = tl.program_id(0).to(tl.int64) * each * HIGH
    r = first + high
    here = r < rows
    if MASKED:
        here = here & (tl.load(valid + r, mask=here, other=0) != 0)
    inside = here[:, None] & fits[None, :]
    some = tl.load(x + r[:, None] * width + column[None, :], mask=inside, other=0).to(tl.float32)
    centre = _short(tl.sum(some, 0) / tl.maximum(tl.sum(here.to(tl.float32), 0), 1.0))
    count = tl.zeros([HIGH], tl.float32)
    s_x = tl.zeros([HIGH, WIDE], tl.float32)
    s_xx = tl.zeros([HIGH, WIDE], tl.float32)
    s_g = tl.zeros([HIGH, WIDE], tl.float32)
    s_gx = tl.zeros([HIGH, WIDE], tl.float32)
    s_gg = tl.zeros([HIGH, WIDE], tl.float32)
    s_dx = tl.zeros([HIGH, WIDE], tl.float32)
    s_direct = tl.zeros([HIGH, WIDE], tl.float32)
    if NORM != 0:
        if GAIN:
            gamma = tl.load(gain + column, mask=fits, other=0).to(tl.float32)
    for step in range(each):
        r = first + step * HIGH + high
        here = r < rows
        if MASKED:
            here = here & (tl.load(valid + r, mask=here, other=0) != 0)
        inside = here[:, None] & fits[None, :]
        at = r[:, None] * width + column[None, :]
        xs = tl.load(x + at, mask=inside, other=0).to(tl.float32)
        gs = tl.load(g + at, mask=inside, other=0).to(tl.float32)
        c = tl.where(inside, xs - centre[None, :], 0)
        count += here.to(tl.float32)
        s_x += c
        s_xx += c * c
        s_g += gs
        s_gx += gs * c
        if SQUARES:
            s_gg += gs * gs
        if NORM != 0:
            if NORM == 1:
                xs = tl.where(inside, xs - (tl.sum(xs, 1) / width)[:, None], 0)
            inverse = tl.where(here, 1 / tl.sqrt(tl.sum(xs * xs, 1) / width + eps), 0)
            xhat = xs * inverse[:, None]
            if GAIN:
                gs = gs * gamma[None, :]
            dx = gs - xhat * (tl.sum(gs * xhat, 1) / width)[:, None]
            if NORM == 1:
                dx = tl.where(inside, dx - (tl.sum(gs, 1) / width)[:, None], 0)
            dx = dx * inverse[:, None]
            gs = gs * inverse[:, None]
            s_dx += dx * dx
            s_direct += gs * gs
    n = tl.sum(count, 0)
    _add(sums + column, stride, centre, n, tl.sum(s_x.to(tl.float64), 0), tl.sum(s_xx.to(tl.float64), 0),
         tl.sum(s_g.to(tl.float64), 0), tl.sum(s_gx.to(tl.float64), 0), tl.sum(s_gg.to(tl.float64), 0), fits,
         SQUARES)
    if NORM != 0:
        tl.atomic_add(more, tl.sum(tl.sum(s_dx, 1).to(tl.float64), 0), sem="relaxed")
        tl.atomic_add(more + 1, tl.sum(tl.sum(s_direct, 1).to(tl.float64), 0), sem="relaxed")
    if MASKED:
        if tl.program_id(1) == 0:
            tl.atomic_add(more + 2, n.to(tl.float64), sem="relaxed")


@triton.jit(do_not_specialize=["n", "each"])
def plane_sums(x, g, valid, gain, sums, more, stride, n, width, length, each, MASKED: tl.constexpr,
               SQUARES: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr):
    """x, g [n, width, length]; a program has one feature of some samples."""
    feature = tl.program_id(0)
    first = tl.program_id(1) * each * HIGH
    high, wide = tl.arange(0, HIGH), tl.arange(0, WIDE)
    r = first + high
    inside = (r < n)[:, None] & (wide < length)[None, :]
    if MASKED:
        flat = r.to(tl.int64)[:, None] * length + wide[None, :]
        inside = inside & (tl.load(valid + flat, mask=inside, other=0) != 0)
    start = (r.to(tl.int64) * width + feature) * length
    some = tl.load(x + start[:, None] + wide[None, :], mask=inside, other=0).to(tl.float32)
    centre = _short(tl.sum(tl.sum(some, 1), 0) / tl.maximum(tl.sum(tl.sum(inside.to(tl.float32), 1), 0), 1.0))
    count = tl.zeros([HIGH, WIDE], tl.float32)
    s_x = tl.zeros([HIGH, WIDE], tl.float32)
    s_xx = tl.zeros([HIGH, WIDE], tl.float32)
    s_g = tl.zeros([HIGH, WIDE], tl.float32)
    s_gx = tl.zeros([HIGH, WIDE], tl.float32)
    s_gg = tl.zeros([HIGH, WIDE], tl.float32)
    for step in range(each):
        r = first + step * HIGH + high
        start = (r.to(tl.int64) * width + feature) * length
        for piece in range(0, length, WIDE):
            l = piece + wide
            inside = (r < n)[:, None] & (l < length)[None, :]
            if MASKED:
                flat = r.to(tl.int64)[:, None] * length + l[None, :]
                inside = inside & (tl.load(valid + flat, mask=inside, other=0) != 0)
            at = start[:, None] + l[None, :]
            xs = tl.load(x + at, mask=inside, other=0).to(tl.float32)
            gs = tl.load(g + at, mask=inside, other=0).to(tl.float32)
            c = tl.where(inside, xs - centre, 0)
            count += inside.to(tl.float32)
            s_x += c
            s_xx += c * c
            s_g += gs
            s_gx += gs * c
            if SQUARES:
                s_gg += gs * gs
    total = tl.sum(tl.sum(count, 1).to(tl.float64), 0)
    _add(sums + feature, stride, centre, total, tl.sum(tl.sum(s_x, 1).to(tl.float64), 0),
         tl.sum(tl.sum(s_xx, 1).to(tl.float64), 0), tl.sum(tl.sum(s_g, 1).to(tl.float64), 0),
         tl.sum(tl.sum(s_gx, 1).to(tl.float64), 0), tl.sum(tl.sum(s_gg, 1).to(tl.float64), 0),
         feature < width, SQUARES)
    if MASKED:
        if feature == 0:
            tl.atomic_add(more + 2, total, sem="relaxed")


@triton.jit(do_not_specialize=["rows", "each"])
def row_node(g, mean, inverse, sum_g, sum_gx, sums, out, stride, rows, width, each, SQUARES: tl.constexpr,
             HIGH: tl.constexpr, WIDE: tl.constexpr):
    """g [rows, width]; the four vectors go to rows of `out`."""
    column = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    fits = column < width
    if tl.program_id(0) == 0:
        tl.store(out + column, tl.load(mean + column, mask=fits), mask=fits)
        tl.store(out + stride + column, tl.load(inverse + column, mask=fits), mask=fits)
        tl.store(out + 2 * stride + column, tl.load(sum_g + column, mask=fits), mask=fits)
        tl.store(out + 3 * stride + column, tl.load(sum_gx + column, mask=fits), mask=fits)
    if SQUARES:
        high = tl.arange(0, HIGH)
        first = tl.program_id(0).to(tl.int64) * each * HIGH
        s_gg = tl.zeros([HIGH, WIDE], tl.float32)
        for step in range(each):
            r = first + step * HIGH + high
            inside = (r < rows)[:, None] & fits[None, :]
            gs = tl.load(g + r[:, None] * width + column[None, :], mask=inside, other=0).to(tl.float32)
            s_gg += gs * gs
        tl.atomic_add(sums + column, tl.sum(s_gg.to(tl.float64), 0), mask=fits, sem="relaxed")


@triton.jit(do_not_specialize=["n", "each"])
def plane_node(g, mean, inverse, sum_g, sum_gx, sums, out, stride, n, width, length, each,
               SQUARES: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr):
    """g [n, width, length]."""
    feature = tl.program_id(0)
    if tl.program_id(1) == 0:
        tl.store(out + feature, tl.load(mean + feature))
        tl.store(out + stride + feature, tl.load(inverse + feature))
        tl.store(out + 2 * stride + feature, tl.load(sum_g + feature))
        tl.store(out + 3 * stride + feature, tl.load(sum_gx + feature))
    if SQUARES:
        high, wide = tl.arange(0, HIGH), tl.arange(0, WIDE)
        s_gg = tl.zeros([HIGH, WIDE], tl.float32)
        for step in range(each):
            r = (tl.program_id(1) * each + step) * HIGH + high
            start = (r.to(tl.int64) * width + feature) * length
            for piece in range(0, length, WIDE):
                l = piece + wide
                inside = (r < n)[:, None] & (l < length)[None, :]
                gs = tl.load(g + start[:, None] + l[None, :], mask=inside, other=0).to(tl.float32)
                s_gg += gs * gs
        tl.atomic_add(sums + feature, tl.sum(tl.sum(s_gg, 1).to(tl.float64), 0), sem="relaxed")
