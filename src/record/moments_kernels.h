/* moments_kernels.h -- the inner loops of moments.c for one type of element, which the includer
 * defines: ELEMENT, and NAME(x) for the names. No guard: it is included once per type. */

/* -- features innermost: ROWS rows at once ------------------------------------------------------ */

/* Merges n rows of one block into the moments; share = 1 / (rows before + n). */
static __attribute__((noinline)) void NAME(merge_rows)(const ELEMENT *const *row, int64_t n,
                                                       int64_t width, double share,
                                                       double *restrict mean, double *restrict m2) {
    for (int64_t k = 0; k < width; k++) {
        double sum = 0, square = 0;
        for (int64_t r = 0; r < n; r++) {
            const double delta = row[r][k] - mean[k];
            sum += delta, square += delta * delta;
        }
        const double step = sum * share;
        mean[k] += step, m2[k] += square - sum * step;
    }
}

/* The same with a number of rows that the compiler knows. */
static __attribute__((noinline)) void NAME(merge_block)(const ELEMENT *const *row, int64_t width,
                                                        double share, double *restrict mean,
                                                        double *restrict m2) {
    for (int64_t k = 0; k < width; k++) {
        double sum = 0, square = 0;
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) {
            const double delta = row[r][k] - mean[k];
            sum += delta, square += delta * delta;
        }
        const double step = sum * share;
        mean[k] += step, m2[k] += square - sum * step;
    }
}

static __attribute__((noinline)) void
NAME(add_gradients)(const ELEMENT *const *g, const ELEMENT *const *x, int64_t n, int64_t width,
                    const double *restrict center, double *restrict sum_g, double *restrict sum_gc,
                    double *restrict sum_gg) {
    for (int64_t k = 0; k < width; k++)
        for (int64_t r = 0; r < n; r++) {
            const double v = g[r][k];
            sum_g[k] += v, sum_gc[k] += v * (x[r][k] - center[k]), sum_gg[k] += v * v;
        }
}

static __attribute__((noinline)) void
NAME(add_gradient_block)(const ELEMENT *const *g, const ELEMENT *const *x, int64_t width,
                         const double *restrict center, double *restrict sum_g,
                         double *restrict sum_gc, double *restrict sum_gg) {
    for (int64_t k = 0; k < width; k++) {
        double a = 0, b = 0, e = 0;
#pragma GCC unroll 8
        for (int r = 0; r < PAIRS; r++) {
            const double v = g[r][k];
            a += v, b += v * (x[r][k] - center[k]), e += v * v;
        }
        sum_g[k] += a, sum_gc[k] += b, sum_gg[k] += e;
    }
}

/* -- features outermost or in the middle: n values of one feature ------------------------------- */

/* Value i goes to lane i mod LANES. */
static __attribute__((noinline)) void NAME(sum_values)(const ELEMENT *x, int64_t n, double pivot,
                                                       double *sum, double *square) {
    double a[LANES] = {0}, b[LANES] = {0};
    const int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) {
            const double delta = x[i + l] - pivot;
            a[l] += delta, b[l] += delta * delta;
        }
    for (int64_t i = whole; i < n; i++) {
        const double delta = x[i] - pivot;
        a[i - whole] += delta, b[i - whole] += delta * delta;
    }
    *sum = add_lanes(a), *square = add_lanes(b);
}

static __attribute__((noinline)) void
NAME(sum_gradients)(const ELEMENT *g, const ELEMENT *x, int64_t n, double center, double sums[3]) {
    double a[LANES] = {0}, b[LANES] = {0}, e[LANES] = {0};
    const int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) {
            const double v = g[i + l];
            a[l] += v, b[l] += v * (x[i + l] - center), e[l] += v * v;
        }
    for (int64_t i = whole; i < n; i++) {
        const double v = g[i];
        a[i - whole] += v, b[i - whole] += v * (x[i] - center), e[i - whole] += v * v;
    }
    sums[0] = add_lanes(a), sums[1] = add_lanes(b), sums[2] = add_lanes(e);
}
