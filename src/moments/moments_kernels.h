/* moments_kernels.h -- the inner loops of moments.c for one type of element. The includer defines
 * ELEMENT and NAME(x); simd_load.h has NAME(value) and NAME(load). There is no include guard, since
 * the file is included once per type. */

/* n elements as double. */
static void NAME(read)(const void *x, int64_t n, double *to) {
    for (int64_t k = 0; k < n; k++) to[k] = NAME(value)((const ELEMENT *)x + k);
}

/* -- features innermost ------------------------------------------------------------------------ */

INLINE void NAME(merge_feature)(const ELEMENT *const *row, int n, int64_t k, double share,
                                double *mean, double *m2) {
    double sum = 0, square = 0;
    for (int r = 0; r < n; r++) {
        const double delta = NAME(value)(row[r] + k) - mean[k];
        sum += delta, square += delta * delta;
    }
    const double step = sum * share;
    mean[k] += step, m2[k] += square - sum * step;
}

/* merge_feature for ROWS rows and the features k .. k + WIDTH - 1. */
INLINE void NAME(merge_features)(const ELEMENT *const *row, const ELEMENT *const *later, int64_t k,
                                 double share, double *mean, double *m2) {
    simd sum = {0}, square = {0}, delta, center, m;
    load_double(&center, mean + k), load_double(&m, m2 + k);
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
        __builtin_prefetch(later[r] + k);
        NAME(load)(&delta, row[r] + k);
        delta -= center, sum += delta, square += delta * delta;
    }
    const simd step = sum * share;
    center += step, m += square - sum * step;
    memcpy(mean + k, &center, sizeof center), memcpy(m2 + k, &m, sizeof m);
}

/* Merges n rows of one block into the moments; share = 1 / (rows before + n). */
static void NAME(merge_rows)(const void *const *rows, const void *const *rows_later, int n,
                             int64_t width, double share, double *restrict mean,
                             double *restrict m2) {
    const ELEMENT *x[ROWS], *later[ROWS];
    int64_t k = 0;
    for (int r = 0; r < n; r++) x[r] = rows[r], later[r] = rows_later[r];
    for (; n == ROWS && k + WIDTH <= width; k += WIDTH)
        NAME(merge_features)(x, later, k, share, mean, m2);
    for (; k < width; k++) NAME(merge_feature)(x, n, k, share, mean, m2);
}

INLINE void NAME(add_feature)(const ELEMENT *g, const ELEMENT *x, int64_t k, double center,
                              gradient_sums to) {
    const double v = NAME(value)(g + k);
    to.g[k] += v, to.gc[k] += v * (NAME(value)(x + k) - center), to.gg[k] += v * v;
}

INLINE void NAME(add_features)(const ELEMENT *const *g, const ELEMENT *const *x, int64_t k,
                               const double *at, gradient_sums to) {
    simd a, b, e, v, delta, center;
    load_double(&a, to.g + k), load_double(&b, to.gc + k), load_double(&e, to.gg + k);
    load_double(&center, at + k);
#pragma GCC unroll 8
    for (int r = 0; r < PAIRS; r++) {
        NAME(load)(&v, g[r] + k), NAME(load)(&delta, x[r] + k);
        delta -= center, a += v, b += v * delta, e += v * v;
    }
    memcpy(to.g + k, &a, sizeof a), memcpy(to.gc + k, &b, sizeof b),
        memcpy(to.gg + k, &e, sizeof e);
}

/* Adds n rows of gradients and inputs. */
static void NAME(add_pairs)(const row_pairs *rows, int n, int64_t width, const double *center,
                            gradient_sums to) {
    const row_pairs p = *rows;
    const ELEMENT *const *g = (const ELEMENT *const *)p.g, *const *x = (const ELEMENT *const *)p.x;
    int64_t k = 0;
    for (; n == PAIRS && k + WIDTH <= width; k += WIDTH) {
        for (int r = 0; r < PAIRS; r++)
            __builtin_prefetch((const ELEMENT *)p.g_later[r] + k),
                __builtin_prefetch((const ELEMENT *)p.x_later[r] + k);
        NAME(add_features)(g, x, k, center, to);
    }
    for (; k < width; k++)
        for (int r = 0; r < n; r++) NAME(add_feature)(g[r], x[r], k, center[k], to);
}

/* -- features outermost or in the middle: n values of one feature ------------------------------ */

/* Adds value i to partial sum i mod 2 LANES, the last ones to one sum. */
static void NAME(sum_values)(const void *values, int64_t n, double pivot, double *sum,
                             double *square) {
    const ELEMENT *x = values;
    simd a[2 * PARTS] = {0}, b[2 * PARTS] = {0}, v;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        __builtin_prefetch(
            (const void *)((uintptr_t)(x + i) + PLANE_AHEAD)); /* may be past the end */
#pragma GCC unroll 4
        for (int p = 0; p < 2 * PARTS; p++) {
            NAME(load)(&v, x + i + p * WIDTH);
            v -= pivot, a[p] += v, b[p] += v * v;
        }
    }
    for (int p = 0; p < PARTS; p++) a[p] += a[PARTS + p], b[p] += b[PARTS + p];
    *sum = lanes_sum(a), *square = lanes_sum(b);
    for (; i < n; i++) {
        const double delta = NAME(value)(x + i) - pivot;
        *sum += delta, *square += delta * delta;
    }
}

static void NAME(sum_gradients)(const void *gradients, const void *inputs, int64_t n, double center,
                                double sums[3]) {
    const ELEMENT *g = gradients, *x = inputs;
    simd a[PARTS] = {0}, b[PARTS] = {0}, e[PARTS] = {0}, v, delta;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma GCC unroll 2
        for (int p = 0; p < PARTS; p++) {
            NAME(load)(&v, g + i + p * WIDTH), NAME(load)(&delta, x + i + p * WIDTH);
            delta -= center, a[p] += v, b[p] += v * delta, e[p] += v * v;
        }
    sums[0] = lanes_sum(a), sums[1] = lanes_sum(b), sums[2] = lanes_sum(e);
    for (; i < n; i++) {
        const double u = NAME(value)(g + i);
        sums[0] += u, sums[1] += u * (NAME(value)(x + i) - center), sums[2] += u * u;
    }
}

/* -- rows ---------------------------------------------------------------------------------- */

/* Adds the sums of x - pivot, its square, q = gamma g, q^2 and q (x - pivot). gamma NULL: ones. */
static void NAME(sum_products)(const void *gradients, const void *inputs, const double *gamma,
                               int64_t n, double pivot, double sums[5]) {
    const ELEMENT *g = gradients, *x = inputs;
    simd a[PARTS] = {0}, b[PARTS] = {0}, c[PARTS] = {0}, e[PARTS] = {0}, f[PARTS] = {0}, q, v, gain;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma GCC unroll 2
        for (int p = 0; p < PARTS; p++) {
            const int64_t k = i + p * WIDTH;
            NAME(load)(&q, g + k), NAME(load)(&v, x + k);
            if (gamma) load_double(&gain, gamma + k), q *= gain;
            v -= pivot, a[p] += v, b[p] += v * v, c[p] += q, e[p] += q * q, f[p] += q * v;
        }
    sums[0] += lanes_sum(a), sums[1] += lanes_sum(b), sums[2] += lanes_sum(c);
    sums[3] += lanes_sum(e), sums[4] += lanes_sum(f);
    for (; i < n; i++) {
        const double w = NAME(value)(g + i) * (gamma ? gamma[i] : 1);
        const double u = NAME(value)(x + i) - pivot;
        sums[0] += u, sums[1] += u * u, sums[2] += w, sums[3] += w * w, sums[4] += w * u;
    }
}

/* Copies the valid ones of n values in order; returns their number. */
static int64_t NAME(keep_valid)(const void *values, int64_t n, const uint8_t *valid, void *kept) {
    const ELEMENT *x = values;
    ELEMENT *to = kept;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (valid[i]) to[count++] = x[i];
    return count;
}

static const kernels NAME(kernels) = {
    sizeof(ELEMENT),  NAME(read),          NAME(merge_rows),   NAME(add_pairs),
    NAME(sum_values), NAME(sum_gradients), NAME(sum_products), NAME(keep_valid),
};

#undef ELEMENT
#undef NAME
