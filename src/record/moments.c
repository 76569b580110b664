/* moments.c -- mean, biased variance and mean square per feature over the valid rows of a tensor,
 * and the three sums of the backward pass.
 *
 *   mean[c] = sum_i x[i,c] / n      variance[c] = sum_i (x[i,c] - mean[c])^2 / n
 *   mean_square[c] = sum_i x[i,c]^2 / n
 *   sum_g[c] = sum_i g[i,c]         sum_gc[c] = sum_i g[i,c] (x[i,c] - center[c])
 *   sum_gg[c] = sum_i g[i,c]^2
 *
 * x, g: element (o, c, i) of [outer, channels, inner]; a row is one (o, i), valid [outer * inner]
 * or NULL. A block of valid values is turned into doubles, which stay in the first-level cache for
 * the two passes over it (mean, then squared deviations from it); memory is read once. Blocks are
 * merged by the pairwise update of Chan, Golub and LeVeque (1979):
 *
 *   delta = mean_b - mean;  mean += delta n_b / n;  M2 += M2_b + delta^2 n_a n_b / n,  n = n_a +
 * n_b
 *
 * Everything is added in double. x^2 is summed directly: only variance needs the mean removed.
 */
#include "statrec/moments.h"

#include <math.h>
#include <string.h>

/* BLOCK rows of TILE features, or RUN values of one feature: 16 KiB of doubles. */
enum { TILE = 128, BLOCK = 16, RUN = TILE * BLOCK, LANES = 8 };

/* -- elements -------------------------------------------------------------------------------- */

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The exponent's bias grows from 15 to 127 by a multiplication, which also makes subnormal numbers
 * right; all ones stay all ones. */
static float from_half(uint16_t h) {
    const uint32_t magnitude = (uint32_t)(h & 0x7fffu) << 13, sign = (uint32_t)(h & 0x8000u) << 16;
    const float value = from_bits(magnitude) * 0x1p112f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (magnitude >= 0x0f800000u) bits |= 0x7f800000u;
    return from_bits(bits | sign);
}

/* Elements at .. at + n - 1 as doubles. */
static void load(const sr_tensor *t, int64_t at, int64_t n, double *to) {
    const float *single = t->data;
    const double *real = t->data;
    const uint16_t *half = t->data;
    switch (t->element) {
    case SR_FLOAT32:
        for (int64_t i = 0; i < n; i++) to[i] = single[at + i];
        break;
    case SR_FLOAT64:
        memcpy(to, real + at, (size_t)n * sizeof *to);
        break;
    case SR_BFLOAT16:
        for (int64_t i = 0; i < n; i++) to[i] = from_bits((uint32_t)half[at + i] << 16);
        break;
    case SR_FLOAT16:
        for (int64_t i = 0; i < n; i++) to[i] = from_half(half[at + i]);
        break;
    }
}

/* Moves those of n values that are valid to the front; how many. */
static int64_t keep_valid(double *value, const uint8_t *valid, int64_t n) {
    int64_t kept = 0;
    if (!valid) return n;
    for (int64_t i = 0; i < n; i++)
        if (valid[i]) value[kept++] = value[i];
    return kept;
}

/* -- features innermost (inner = 1) ---------------------------------------------------------- */

/* The next valid rows from *at on, at most BLOCK. */
static int64_t next_rows(const sr_tensor *t, int64_t *at, int64_t row[BLOCK]) {
    int64_t n = 0;
    for (; *at < t->outer && n < BLOCK; ++*at)
        if (!t->valid || t->valid[*at]) row[n++] = *at;
    return n;
}

static void load_rows(const sr_tensor *t, const int64_t *row, int64_t n, int64_t first,
                      int64_t width, double (*to)[TILE]) {
    for (int64_t r = 0; r < n; r++) load(t, row[r] * t->channels + first, width, to[r]);
    for (int64_t r = n; r % 4; r++) memset(to[r], 0, (size_t)width * sizeof to[r][0]);
}

/* Four rows at a time; rows of zeros beyond the last one add nothing. */
static void add_rows(double (*x)[TILE], int64_t n, int64_t width, double *sum, double *square) {
    for (int64_t r = 0; r < n; r += 4) {
        const double *a = x[r], *b = x[r + 1], *c = x[r + 2], *d = x[r + 3];
        for (int64_t k = 0; k < width; k++) {
            sum[k] += (a[k] + b[k]) + (c[k] + d[k]);
            square[k] += (a[k] * a[k] + b[k] * b[k]) + (c[k] * c[k] + d[k] * d[k]);
        }
    }
}

static void add_deviations(double (*x)[TILE], int64_t n, int64_t width, const double *mean,
                           double *m2) {
    int64_t r = 0;
    for (; r + 4 <= n; r += 4)
        for (int64_t k = 0; k < width; k++) {
            const double a = x[r][k] - mean[k], b = x[r + 1][k] - mean[k];
            const double c = x[r + 2][k] - mean[k], d = x[r + 3][k] - mean[k];
            m2[k] += (a * a + b * b) + (c * c + d * d);
        }
    for (; r < n; r++)
        for (int64_t k = 0; k < width; k++) m2[k] += (x[r][k] - mean[k]) * (x[r][k] - mean[k]);
}

/* Merges n rows into `before` rows; m2: sum of squared deviations, square: sum of squares. */
static void merge_rows(double (*x)[TILE], int64_t n, int64_t before, int64_t width, double *mean,
                       double *m2, double *square) {
    double own_mean[TILE] = {0}, own_m2[TILE] = {0};
    const double share = (double)n / (double)(before + n);
    add_rows(x, n, width, own_mean, square);
    for (int64_t k = 0; k < width; k++) own_mean[k] /= (double)n;
    add_deviations(x, n, width, own_mean, own_m2);
    for (int64_t k = 0; k < width; k++) {
        const double delta = own_mean[k] - mean[k];
        mean[k] += delta * share;
        m2[k] += own_m2[k] + delta * delta * ((double)before * share);
    }
}

static int64_t moments_of_columns(const sr_tensor *t, double *mean, double *m2, double *square) {
    double x[BLOCK][TILE];
    int64_t row[BLOCK], n, before = 0;
    for (int64_t at = 0; (n = next_rows(t, &at, row)) > 0; before += n)
        for (int64_t c = 0; c < t->channels; c += TILE) {
            const int64_t width = t->channels - c < TILE ? t->channels - c : TILE;
            load_rows(t, row, n, c, width, x);
            merge_rows(x, n, before, width, mean + c, m2 + c, square + c);
        }
    return before;
}

/* -- features outermost or in the middle (inner > 1) ------------------------------------------- */

static double add_lanes(const double lane[LANES]) {
    double sum = 0;
    for (int i = 0; i < LANES; i++) sum += lane[i];
    return sum;
}

/* Sums of n values, and of their squares; value i goes to lane i mod LANES. */
static void add_values(const double *x, int64_t n, double *sum, double *square) {
    double a[LANES] = {0}, b[LANES] = {0};
    const int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) a[l] += x[i + l], b[l] += x[i + l] * x[i + l];
    for (int64_t i = whole; i < n; i++) a[i - whole] += x[i], b[i - whole] += x[i] * x[i];
    *sum = add_lanes(a), *square = add_lanes(b);
}

static double squared_deviations(const double *x, int64_t n, double mean) {
    double a[LANES] = {0};
    const int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) a[l] += (x[i + l] - mean) * (x[i + l] - mean);
    for (int64_t i = whole; i < n; i++) a[i - whole] += (x[i] - mean) * (x[i] - mean);
    return add_lanes(a);
}

/* Merges n values of one feature into `before`. */
static void merge_values(const double *x, int64_t n, int64_t before, double *mean, double *m2,
                         double *square) {
    double sum, squares;
    if (n == 0) return;
    const double share = (double)n / (double)(before + n);
    add_values(x, n, &sum, &squares);
    const double own = sum / (double)n, delta = own - *mean;
    *m2 += squared_deviations(x, n, own) + delta * delta * ((double)before * share);
    *mean += delta * share;
    *square += squares;
}

static int64_t moments_of_planes(const sr_tensor *t, double *mean, double *m2, double *square) {
    double x[RUN];
    int64_t before = 0;
    for (int64_t o = 0; o < t->outer; o++)
        for (int64_t i = 0, n = 0; i < t->inner; i += RUN, before += n) {
            const int64_t length = t->inner - i < RUN ? t->inner - i : RUN;
            const uint8_t *valid = t->valid ? t->valid + o * t->inner + i : NULL;
            for (int64_t c = 0; c < t->channels; c++) {
                load(t, (o * t->channels + c) * t->inner + i, length, x);
                n = keep_valid(x, valid, length);
                merge_values(x, n, before, mean + c, m2 + c, square + c);
            }
        }
    return before;
}

int64_t sr_moments(const sr_tensor *x, double *mean, double *variance, double *mean_square) {
    const size_t bytes = (size_t)x->channels * sizeof *mean;
    memset(mean, 0, bytes), memset(variance, 0, bytes), memset(mean_square, 0, bytes);
    const int64_t n =
        (x->inner == 1 ? moments_of_columns : moments_of_planes)(x, mean, variance, mean_square);
    for (int64_t c = 0; c < x->channels; c++) {
        if (n == 0) mean[c] = NAN;
        variance[c] = n ? variance[c] / (double)n : NAN;
        mean_square[c] = n ? mean_square[c] / (double)n : NAN;
    }
    return n;
}

/* -- backward -------------------------------------------------------------------------------- */

static void sums_of_rows(double (*g)[TILE], double (*x)[TILE], int64_t n, int64_t width,
                         const double *center, double *sum_g, double *sum_gc, double *sum_gg) {
    for (int64_t r = 0; r < n; r += 4) {
        const double *g0 = g[r], *g1 = g[r + 1], *g2 = g[r + 2], *g3 = g[r + 3];
        const double *x0 = x[r], *x1 = x[r + 1], *x2 = x[r + 2], *x3 = x[r + 3];
        for (int64_t k = 0; k < width; k++) {
            const double c = center[k];
            sum_g[k] += (g0[k] + g1[k]) + (g2[k] + g3[k]);
            sum_gc[k] += (g0[k] * (x0[k] - c) + g1[k] * (x1[k] - c)) +
                         (g2[k] * (x2[k] - c) + g3[k] * (x3[k] - c));
            sum_gg[k] += (g0[k] * g0[k] + g1[k] * g1[k]) + (g2[k] * g2[k] + g3[k] * g3[k]);
        }
    }
}

static void sums_of_columns(const sr_tensor *g, const sr_tensor *x, const double *center,
                            double *sum_g, double *sum_gc, double *sum_gg) {
    double gs[BLOCK][TILE], xs[BLOCK][TILE];
    int64_t row[BLOCK], n;
    for (int64_t at = 0; (n = next_rows(x, &at, row)) > 0;)
        for (int64_t c = 0; c < x->channels; c += TILE) {
            const int64_t width = x->channels - c < TILE ? x->channels - c : TILE;
            load_rows(g, row, n, c, width, gs);
            load_rows(x, row, n, c, width, xs);
            sums_of_rows(gs, xs, n, width, center + c, sum_g + c, sum_gc + c, sum_gg + c);
        }
}

static void sums_of_values(const double *g, const double *x, int64_t n, double center,
                           double *sum_g, double *sum_gc, double *sum_gg) {
    double a[LANES] = {0}, b[LANES] = {0}, e[LANES] = {0};
    const int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) {
            a[l] += g[i + l], e[l] += g[i + l] * g[i + l];
            b[l] += g[i + l] * (x[i + l] - center);
        }
    for (int64_t i = whole; i < n; i++) {
        a[i - whole] += g[i], e[i - whole] += g[i] * g[i];
        b[i - whole] += g[i] * (x[i] - center);
    }
    *sum_g += add_lanes(a), *sum_gc += add_lanes(b), *sum_gg += add_lanes(e);
}

static void sums_of_planes(const sr_tensor *g, const sr_tensor *x, const double *center,
                           double *sum_g, double *sum_gc, double *sum_gg) {
    double gs[RUN], xs[RUN];
    for (int64_t o = 0; o < x->outer; o++)
        for (int64_t i = 0; i < x->inner; i += RUN) {
            const int64_t length = x->inner - i < RUN ? x->inner - i : RUN;
            const uint8_t *valid = x->valid ? x->valid + o * x->inner + i : NULL;
            for (int64_t c = 0; c < x->channels; c++) {
                const int64_t at = (o * x->channels + c) * x->inner + i;
                load(g, at, length, gs);
                load(x, at, length, xs);
                const int64_t n = keep_valid(gs, valid, length);
                keep_valid(xs, valid, length);
                sums_of_values(gs, xs, n, center[c], sum_g + c, sum_gc + c, sum_gg + c);
            }
        }
}

void sr_gradient_sums(const sr_tensor *g, const sr_tensor *x, const double *center, double *sum_g,
                      double *sum_gc, double *sum_gg) {
    const size_t bytes = (size_t)x->channels * sizeof *sum_g;
    memset(sum_g, 0, bytes), memset(sum_gc, 0, bytes), memset(sum_gg, 0, bytes);
    (x->inner == 1 ? sums_of_columns : sums_of_planes)(g, x, center, sum_g, sum_gc, sum_gg);
}
