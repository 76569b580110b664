/* activations.c -- massive activations (Sun et al., COLM 2024, arXiv 2402.17762) and saturated inputs
 * (the scatter of Zhu et al., Transformers without Normalization, CVPR 2025, arXiv 2503.10622, as a number).
 *
 * Over all entries of the valid rows of x, the tensor that the site normalises:
 *
 *   x_top1 >= x_top2 >= x_top3   the three largest |x|, exact
 *   x_median                     the lower median of |x|, from a histogram
 *   saturated                    share of the entries with |x| > x_median and |xhat| < |k x| / 2,
 *                                xhat = (y - beta)/gamma, k = sum x xhat / sum x^2 over those with
 *                                |x| <= x_median
 *
 * The histogram goes by the bits of |x| as float32: exponent and five bits of the mantissa, so that a bin is
 * 1/64 to 1/32 of its values wide. The median is looked for in its bin by its rank there, as if the values
 * were spread evenly: it is off by less than 1/32 of itself, mostly by far less. Below 2^-131 it is 0.
 *
 * k is the slope of the line that the smaller half of the inputs lies on; none of them is saturated. For
 * y = tanh(a x) an entry is saturated from |a x| = 1.915 on, if the smaller half is well below; for a
 * normalization of rows where the row's deviation is more than twice the usual one, or its mean is near the
 * entry. Features without gain are left out. Means over the batch, which bend no line but move it, make the
 * question meaningless: NaN there.
 *
 * Counts are whole numbers and sums are of fixed blocks of rows in fixed order: same bytes for any number of
 * threads.
 */
#include "activations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT = 18, BINS = 1 << (31 - SHIFT), TOP = 3, BLOCK = 128 };
static const uint32_t infinity_bits = 0x7f800000u;

static uint32_t bits_of(real x) {
    const float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits & 0x7fffffffu;
}

static double value_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* -- counting -------------------------------------------------------------------------------- */

typedef struct counts {
    int64_t bin[BINS];
    uint32_t top[TOP]; /* descending; NaN is above infinity */
} counts;

static void insert_top(counts *c, uint32_t bits) {
    int at = TOP - 1;
    for (; at > 0 && c->top[at - 1] < bits; at--) c->top[at] = c->top[at - 1];
    c->top[at] = bits;
}

static const real *row_at(const activation_input *in, const real *x, int64_t i) {
    return x + (in->rows->index ? in->rows->index[i] : i) * in->features;
}

static void count_row(const real *row, int64_t d, counts *c) {
    for (int64_t k = 0; k < d; k++) {
        const uint32_t bits = bits_of(row[k]);
        c->bin[bits >> SHIFT]++;
        if (bits > c->top[TOP - 1]) insert_top(c, bits);
    }
}

static void add_counts(counts *to, const counts *from) {
    for (int b = 0; b < BINS; b++) to->bin[b] += from->bin[b];
    for (int i = 0; i < TOP; i++)
        if (from->top[i] > to->top[TOP - 1]) insert_top(to, from->top[i]);
}

/* c [threads], zeroed; the sum is in the first. */
static void count_entries(const activation_input *in, counts *c) {
#pragma omp parallel for num_threads(in->threads) schedule(static, 1)
    for (int t = 0; t < in->threads; t++) {
        const int64_t n = in->rows->valid;
        for (int64_t i = n * t / in->threads; i < n * (t + 1) / in->threads; i++)
            count_row(row_at(in, in->x, i), in->features, &c[t]);
    }
    for (int t = 1; t < in->threads; t++) add_counts(&c[0], &c[t]);
}

/* The value of this rank, from 0 for the smallest. */
static double value_of_rank(const counts *c, int64_t rank) {
    int64_t below = 0;
    int b = 0;
    while (b < BINS - 1 && below + c->bin[b] <= rank) below += c->bin[b++];
    if (b == 0) return 0;
    const double low = value_of((uint32_t)b << SHIFT), high = value_of((uint32_t)(b + 1) << SHIFT);
    if ((uint32_t)b << SHIFT >= infinity_bits) return INFINITY;
    if (isinf(high)) return low;
    return low + (high - low) * ((double)(rank - below) + 0.5) / (double)c->bin[b];
}

/* -- saturation ------------------------------------------------------------------------------ */

/* Of the block's rows: sums of x xhat and x^2 where |x| <= median, or with a slope how many entries are
 * below half of the line, and how many there are. */
typedef struct block_sums {
    double xy, xx, below, entries;
} block_sums;

static void add_row(const activation_input *in, int64_t i, double median, double slope,
                    block_sums *s) {
    const real *x = row_at(in, in->x, i), *y = row_at(in, in->y, i);
    for (int64_t k = 0; k < in->features; k++) {
        const double gain = (double)in->gamma[k], at = (double)x[k];
        if (gain == 0) continue;
        const double xhat = ((double)y[k] - (double)in->beta[k]) / gain;
        const bool small = fabs(at) <= median;
        s->xy += small ? at * xhat : 0;
        s->xx += small ? at * at : 0;
        s->below += !small && fabs(xhat) < 0.5 * fabs(slope * at);
        s->entries++;
    }
}

/* block [blocks] */
static block_sums sum_blocks(const activation_input *in, double median, double slope,
                             block_sums *block, int64_t blocks) {
    block_sums all = {0, 0, 0, 0};
#pragma omp parallel for num_threads(in->threads) schedule(static)
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t end = (b + 1) * BLOCK < in->rows->valid ? (b + 1) * BLOCK : in->rows->valid;
        block[b] = (block_sums){0, 0, 0, 0};
        for (int64_t i = b * BLOCK; i < end; i++) add_row(in, i, median, slope, &block[b]);
    }
    for (int64_t b = 0; b < blocks; b++) {
        all.xy += block[b].xy;
        all.xx += block[b].xx;
        all.below += block[b].below;
        all.entries += block[b].entries;
    }
    return all;
}

static sr_status measure_saturated(const activation_input *in, double median, double *share,
                                   sr_failure *why) {
    const int64_t blocks = (in->rows->valid + BLOCK - 1) / BLOCK;
    block_sums *block = malloc((size_t)blocks * sizeof *block);
    if (!block) return sr_fail(why, SR_MEMORY, "out of memory for %lld rows", (long long)blocks);
    const block_sums line = sum_blocks(in, median, 0, block, blocks);
    if (line.xx > 0 && isfinite(line.xy / line.xx)) {
        const block_sums under = sum_blocks(in, median, line.xy / line.xx, block, blocks);
        *share = under.below / under.entries;
    }
    free(block);
    return SR_OK;
}

/* -- a site ---------------------------------------------------------------------------------- */

sr_status activations_measure(const activation_input *in, double value[ACTIVATION_NUMBERS],
                              sr_failure *why) {
    const int64_t entries = in->rows->valid * in->features;
    for (int i = 0; i < ACTIVATION_NUMBERS; i++) value[i] = NAN;
    if (entries == 0) return SR_OK;
    counts *c = calloc((size_t)in->threads, sizeof *c);
    if (!c) return sr_fail(why, SR_MEMORY, "out of memory for a histogram");
    count_entries(in, c);
    const bool known = c->top[0] <= infinity_bits;
    for (int i = 0; i < TOP && known && i < entries; i++)
        value[ACTIVATION_top1 + i] = value_of(c->top[i]);
    if (known) value[ACTIVATION_median] = value_of_rank(c, (entries - 1) / 2);
    free(c);
    if (!known || in->centred || !in->y) return SR_OK;
    return measure_saturated(in, value[ACTIVATION_median], &value[ACTIVATION_saturated], why);
}

static const char *const names[ACTIVATION_NUMBERS][2] = {
    {"x_top1", "largest |x| of a valid row, x what the site normalises"},
    {"x_top2", "second largest |x|"},
    {"x_top3", "third largest |x|"},
    {"x_median", "median of |x| over valid rows and features, by a histogram: within 1/32 of it"},
    {"saturated",
     "share of the inputs whose normalised value is below half of the line through the "
     "smaller half of the inputs"},
};

sr_status activations_declare(sr_recorder *r, int *id, sr_failure *why) {
    for (int i = 0; i < ACTIVATION_NUMBERS; i++)
        id[i] = sr_declare_scalar(r, names[i][0], "1", names[i][1], SR_PER_SITE);
    const sr_failure *f = sr_failed(r);
    return f ? sr_fail(why, f->status, "%s", f->text) : SR_OK;
}

sr_status activations_put(sr_recorder *r, int site, const int *id, const norm_view *o,
                          sr_failure *why) {
    double value[ACTIVATION_NUMBERS];
    const norm_method *m = o->site->method;
    const activation_input in = {.rows = o->call->rows,
                                 .features = o->call->features,
                                 .x = o->x,
                                 .y = o->y,
                                 .gamma = o->call->gamma,
                                 .beta = o->call->beta,
                                 .centred = !strcmp(m->axis, "batch") && m->uses & NORM_BIT(mu),
                                 .threads = o->call->threads};
    if (!o->x) return SR_OK; /* out of memory for it: the tape tells */
    sr_status status = activations_measure(&in, value, why);
    for (int i = 0; i < ACTIVATION_NUMBERS && status == SR_OK; i++)
        sr_put_scalar(r, site, id[i], value[i]);
    return status;
}
