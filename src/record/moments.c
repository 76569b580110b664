/* moments.c -- mean, biased variance and mean square per feature over the valid rows of a tensor,
 * and the three sums of the backward pass.
 *
 *   mean[c] = sum_i x[i,c] / n      variance[c] = sum_i (x[i,c] - mean[c])^2 / n
 *   mean_square[c] = sum_i x[i,c]^2 / n
 *   sum_g[c] = sum_i g[i,c]         sum_gc[c] = sum_i g[i,c] (x[i,c] - center[c])
 *   sum_gg[c] = sum_i g[i,c]^2
 *
 * x, g: element (o, c, i) of [outer, channels, inner]; a row is one (o, i), valid [outer * inner]
 * or NULL. Memory is read once. A block of n_b valid values is added by its deviations from the mean
 * of the n_a before it, the pairwise update of Chan, Golub and LeVeque (1979) in another form:
 *
 *   S = sum (x - mean), Q = sum (x - mean)^2, n = n_a + n_b:   mean += S / n;  M2 += Q - S^2 / n
 *
 * S^2 <= n_b Q, so at most n_b / n of Q is taken away again: half of it once as many values came
 * before. The first block, which nothing came before, deviates from one of its own values where it
 * is of ROWS rows, and from its own mean where it is longer. mean_square = M2 / n + mean^2, a sum of
 * what is positive. Everything is added in double, whatever the elements.
 */
#include "statrec/moments.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ROWS rows of at most TILE features, or PAIRS of gradients and inputs, or RUN values of one feature
 * are taken at once. */
enum { ROWS = 16, PAIRS = 8, TILE = 512, RUN = 2048, LANES = 8 };

static double add_lanes(const double lane[LANES]) {
    double sum = 0;
    for (int i = 0; i < LANES; i++) sum += lane[i];
    return sum;
}

#define ELEMENT float
#define NAME(x) x##_float
#include "moments_kernels.h"
#undef ELEMENT
#undef NAME
#define ELEMENT double
#define NAME(x) x##_double
#include "moments_kernels.h"
#undef ELEMENT
#undef NAME

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

/* Elements at .. at + n - 1 as double (wide) or float: where they are, or converted to scratch. */
static const void *fetch(const sr_tensor *t, int64_t at, int64_t n, bool wide, void *scratch) {
    const float *single = t->data;
    const double *real = t->data;
    const uint16_t *half = t->data;
    float *narrow_to = scratch;
    double *wide_to = scratch;
    if (t->element == SR_FLOAT64) return real + at;
    if (t->element == SR_FLOAT32 && !wide) return single + at;
    for (int64_t i = 0; i < n && wide; i++)
        wide_to[i] = t->element == SR_FLOAT32    ? single[at + i]
                     : t->element == SR_BFLOAT16 ? from_bits((uint32_t)half[at + i] << 16)
                                                 : from_half(half[at + i]);
    if (wide) return scratch;
    if (t->element == SR_BFLOAT16)
        for (int64_t i = 0; i < n; i++) narrow_to[i] = from_bits((uint32_t)half[at + i] << 16);
    else
        for (int64_t i = 0; i < n; i++) narrow_to[i] = from_half(half[at + i]);
    return scratch;
}

/* The same of those that are valid. */
static const void *fetch_valid(const sr_tensor *t, int64_t at, int64_t n, bool wide,
                               const uint8_t *valid, void *scratch) {
    const void *from = fetch(t, at, n, wide, scratch);
    const float *single = from;
    const double *real = from;
    int64_t kept = 0;
    if (!valid) return from;
    for (int64_t i = 0; i < n; i++) {
        if (!valid[i]) continue;
        if (wide)
            ((double *)scratch)[kept++] = real[i];
        else
            ((float *)scratch)[kept++] = single[i];
    }
    return scratch;
}

static double value_at(const void *from, bool wide, int64_t i) {
    return wide ? ((const double *)from)[i] : ((const float *)from)[i];
}

/* -- features innermost (inner = 1) ---------------------------------------------------------- */

/* The next valid rows from *at on, at most `most`. */
static int64_t next_rows(const sr_tensor *t, int64_t *at, int64_t most, int64_t *row) {
    int64_t n = 0;
    for (; *at < t->outer && n < most; ++*at)
        if (!t->valid || t->valid[*at]) row[n++] = *at;
    return n;
}

static void fetch_rows(const sr_tensor *t, const int64_t *row, int64_t n, int64_t first,
                       int64_t width, bool wide, double *scratch, const void **to) {
    for (int64_t r = 0; r < n; r++)
        to[r] = fetch(t, row[r] * t->channels + first, width, wide, scratch + r * TILE);
}

static void merge_rows(const void **x, int64_t n, int64_t before, int64_t width, bool wide,
                       double *mean, double *m2) {
    const double share = 1 / (double)(before + n);
    for (int64_t k = 0; k < width && before == 0; k++) mean[k] = value_at(x[0], wide, k);
    if (wide && n == ROWS)
        merge_block_double((const double *const *)x, width, share, mean, m2);
    else if (wide)
        merge_rows_double((const double *const *)x, n, width, share, mean, m2);
    else if (n == ROWS)
        merge_block_float((const float *const *)x, width, share, mean, m2);
    else
        merge_rows_float((const float *const *)x, n, width, share, mean, m2);
}

static int64_t moments_of_columns(const sr_tensor *t, double *mean, double *m2) {
    double scratch[ROWS * TILE];
    const void *x[ROWS];
    const bool wide = t->element == SR_FLOAT64;
    int64_t row[ROWS], n, before = 0;
    for (int64_t at = 0; (n = next_rows(t, &at, ROWS, row)) > 0; before += n)
        for (int64_t c = 0; c < t->channels; c += TILE) {
            const int64_t width = t->channels - c < TILE ? t->channels - c : TILE;
            fetch_rows(t, row, n, c, width, wide, scratch, x);
            merge_rows(x, n, before, width, wide, mean + c, m2 + c);
        }
    return before;
}

/* -- features outermost or in the middle (inner > 1) ------------------------------------------- */

static void sum_values(const void *x, int64_t n, bool wide, double pivot, double *sum,
                       double *square) {
    (wide ? sum_values_double(x, n, pivot, sum, square)
          : sum_values_float(x, n, pivot, sum, square));
}

/* Mean of n values, the first ones of a feature. */
static double first_mean(const void *x, int64_t n, bool wide) {
    double sum, square;
    sum_values(x, n, wide, value_at(x, wide, 0), &sum, &square);
    return value_at(x, wide, 0) + sum / (double)n;
}

/* Merges n values of one feature; share = 1 / (values before + n). */
static void merge_values(const void *x, int64_t n, double share, bool wide, double *mean,
                         double *m2) {
    double sum, square;
    sum_values(x, n, wide, *mean, &sum, &square);
    const double step = sum * share;
    *mean += step, *m2 += square - sum * step;
}

/* At most RUN neighbouring places, of which n are valid; the first at `at` of the first feature. */
typedef struct run {
    int64_t at, length, n;
    const uint8_t *valid;
} run;

static run run_of(const sr_tensor *t, int64_t o, int64_t i) {
    run r = {.at = o * t->channels * t->inner + i,
             .length = t->inner - i < RUN ? t->inner - i : RUN,
             .valid = t->valid ? t->valid + o * t->inner + i : NULL};
    r.n = r.valid ? 0 : r.length;
    for (int64_t k = 0; k < r.length && r.valid; k++) r.n += r.valid[k] != 0;
    return r;
}

static void merge_run(const sr_tensor *t, const run *r, int64_t before, double *mean, double *m2) {
    double scratch[RUN];
    const bool wide = t->element == SR_FLOAT64;
    const double share = 1 / (double)(before + r->n);
    for (int64_t c = 0; c < t->channels && r->n > 0; c++) {
        const void *x = fetch_valid(t, r->at + c * t->inner, r->length, wide, r->valid, scratch);
        if (before == 0) mean[c] = first_mean(x, r->n, wide);
        merge_values(x, r->n, share, wide, mean + c, m2 + c);
    }
}

static int64_t moments_of_planes(const sr_tensor *t, double *mean, double *m2) {
    int64_t before = 0;
    for (int64_t o = 0; o < t->outer; o++)
        for (int64_t i = 0; i < t->inner; i += RUN) {
            const run r = run_of(t, o, i);
            merge_run(t, &r, before, mean, m2);
            before += r.n;
        }
    return before;
}

int64_t sr_moments(const sr_tensor *x, double *mean, double *variance, double *mean_square) {
    const size_t bytes = (size_t)x->channels * sizeof *mean;
    memset(mean, 0, bytes), memset(variance, 0, bytes);
    const int64_t n = (x->inner == 1 ? moments_of_columns : moments_of_planes)(x, mean, variance);
    for (int64_t c = 0; c < x->channels; c++) {
        if (n == 0) mean[c] = NAN;
        variance[c] = n ? variance[c] / (double)n : NAN;
        mean_square[c] = variance[c] + mean[c] * mean[c];
    }
    return n;
}

/* -- backward -------------------------------------------------------------------------------- */

static void add_rows(const void **g, const void **x, int64_t n, int64_t width, bool wide,
                     const double *center, double *sum_g, double *sum_gc, double *sum_gg) {
    const double *const *gd = (const double *const *)g, *const *xd = (const double *const *)x;
    const float *const *gs = (const float *const *)g, *const *xs = (const float *const *)x;
    if (wide && n == PAIRS)
        add_gradient_block_double(gd, xd, width, center, sum_g, sum_gc, sum_gg);
    else if (wide)
        add_gradients_double(gd, xd, n, width, center, sum_g, sum_gc, sum_gg);
    else if (n == PAIRS)
        add_gradient_block_float(gs, xs, width, center, sum_g, sum_gc, sum_gg);
    else
        add_gradients_float(gs, xs, n, width, center, sum_g, sum_gc, sum_gg);
}

static void sums_of_columns(const sr_tensor *g, const sr_tensor *x, bool wide, const double *center,
                            double *sum_g, double *sum_gc, double *sum_gg) {
    double of_g[PAIRS * TILE], of_x[PAIRS * TILE];
    const void *gs[PAIRS], *xs[PAIRS];
    int64_t row[PAIRS], n;
    for (int64_t at = 0; (n = next_rows(x, &at, PAIRS, row)) > 0;)
        for (int64_t c = 0; c < x->channels; c += TILE) {
            const int64_t width = x->channels - c < TILE ? x->channels - c : TILE;
            fetch_rows(g, row, n, c, width, wide, of_g, gs);
            fetch_rows(x, row, n, c, width, wide, of_x, xs);
            add_rows(gs, xs, n, width, wide, center + c, sum_g + c, sum_gc + c, sum_gg + c);
        }
}

static void sums_of_run(const sr_tensor *g, const sr_tensor *x, bool wide, const run *r,
                        const double *center, double *sum_g, double *sum_gc, double *sum_gg) {
    double of_g[RUN], of_x[RUN], sums[3];
    for (int64_t c = 0; c < x->channels; c++) {
        const int64_t at = r->at + c * x->inner;
        const void *gs = fetch_valid(g, at, r->length, wide, r->valid, of_g);
        const void *xs = fetch_valid(x, at, r->length, wide, r->valid, of_x);
        (wide ? sum_gradients_double(gs, xs, r->n, center[c], sums)
              : sum_gradients_float(gs, xs, r->n, center[c], sums));
        sum_g[c] += sums[0], sum_gc[c] += sums[1], sum_gg[c] += sums[2];
    }
}

static void sums_of_planes(const sr_tensor *g, const sr_tensor *x, bool wide, const double *center,
                           double *sum_g, double *sum_gc, double *sum_gg) {
    for (int64_t o = 0; o < x->outer; o++)
        for (int64_t i = 0; i < x->inner; i += RUN) {
            const run r = run_of(x, o, i);
            sums_of_run(g, x, wide, &r, center, sum_g, sum_gc, sum_gg);
        }
}

void sr_gradient_sums(const sr_tensor *g, const sr_tensor *x, const double *center, double *sum_g,
                      double *sum_gc, double *sum_gg) {
    const size_t bytes = (size_t)x->channels * sizeof *sum_g;
    const bool wide = g->element == SR_FLOAT64 || x->element == SR_FLOAT64;
    memset(sum_g, 0, bytes), memset(sum_gc, 0, bytes), memset(sum_gg, 0, bytes);
    (x->inner == 1 ? sums_of_columns : sums_of_planes)(g, x, wide, center, sum_g, sum_gc, sum_gg);
}
