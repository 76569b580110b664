/* activations.c -- massive activations (Sun et al., COLM 2024, arXiv 2402.17762) and saturated
 * inputs. Saturation is the scatter of Zhu et al., Transformers without Normalization, CVPR 2025,
 * arXiv 2503.10622, as a number.
 *
 * Over all entries of the valid rows of x, the tensor that the site normalizes:
 *
 *   x_top1 >= x_top2 >= x_top3   the three largest |x|, exact
 *   x_median                     the lower median of |x|, from a histogram
 *   saturated                    share of the entries with |x| > x_median and |xhat| < |k x| / 2,
 *                                xhat = (y - beta)/gamma, k = sum x xhat / sum x^2 over those with
 *                                |x| <= x_median
 *
 * The histogram uses the bits of |x| as float32: exponent and five bits of the mantissa. So a bin
 * is 1/64 to 1/32 of its values wide. The median is interpolated in its bin by rank, as if values
 * were spread evenly. Its relative error is below 1/32, mostly far less. Below 2^-131 it is 0.
 *
 * k is the slope of the line through the smaller half of the inputs, which is never saturated. For
 * y = tanh(a x) an entry is saturated from |a x| = 1.915 on, if the smaller half is well below. A
 * normalization of rows saturates entries of rows with twice the usual standard deviation, or with
 * a mean near the entry. Features without gain are skipped. Means over the batch shift the line
 * without bending it, so saturation is undefined: NaN.
 *
 * With shards, the largest |x| and the median cover all rows. The saturation test uses k and the
 * median of each shard, since its tensors are freed when the next shard passes. The counts of
 * entries add up.
 *
 * Counts are integers, and sums run over fixed blocks of rows in fixed order. So the result is
 * bit-identical for any number of threads and processes.
 */
#include "observe/activations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT = 18, BLOCK = 128 };
_Static_assert(ACTIVATION_BINS == 1 << (31 - SHIFT), "a bin for every |x|");
static const uint32_t infinity_bits = 0x7f800000u;

static double value_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* -- counting -------------------------------------------------------------------------------- */

static void insert_top(activation_counts *c, int64_t bits) {
    int at = ACTIVATION_TOP - 1;
    for (; at > 0 && c->top[at - 1] < bits; at--) c->top[at] = c->top[at - 1];
    c->top[at] = bits;
}

static const real *row_at(const activation_input *in, const real *x, int64_t i) {
    return x + (in->rows->index ? in->rows->index[i] : i) * in->features;
}

void activation_counts_add(activation_counts *to, const activation_counts *from) {
    to->entries += from->entries;
    for (int b = 0; b < ACTIVATION_BINS; b++) to->bin[b] += from->bin[b];
    for (int i = 0; i < ACTIVATION_TOP; i++)
        if (from->top[i] > to->top[ACTIVATION_TOP - 1]) insert_top(to, from->top[i]);
    to->judged += from->judged;
    to->below += from->below;
    to->lineless += from->lineless;
}

/* c [threads], zeroed; c[0] becomes the sum. */
static void count_entries(const activation_input *in, activation_counts *c) {
#pragma omp parallel for num_threads(in->threads) schedule(static, 1)
    for (int t = 0; t < in->threads; t++) {
        const int64_t n = in->rows->valid;
        for (int64_t i = n * t / in->threads; i < n * (t + 1) / in->threads; i++) {
            const real *row = row_at(in, in->x, i);
            for (int64_t k = 0; k < in->features; k++) {
                const float f = (float)row[k];
                uint32_t bits;
                memcpy(&bits, &f, sizeof bits);
                bits &= 0x7fffffffu; /* bits of |x| */
                c[t].bin[bits >> SHIFT]++;
                if (bits > c[t].top[ACTIVATION_TOP - 1]) insert_top(&c[t], bits);
            }
            c[t].entries += in->features;
        }
    }
    for (int t = 1; t < in->threads; t++) activation_counts_add(&c[0], &c[t]);
}

static bool has_nan(const activation_counts *c) {
    return c->top[0] > infinity_bits;
}

/* The lower median of one entry or more. */
static double median_of(const activation_counts *c) {
    const int64_t rank = (c->entries - 1) / 2;
    int64_t below = 0;
    int b = 0;
    while (b < ACTIVATION_BINS - 1 && below + c->bin[b] <= rank) below += c->bin[b++];
    if (b == 0) return 0;
    const double low = value_of((uint32_t)b << SHIFT), high = value_of((uint32_t)(b + 1) << SHIFT);
    if ((uint32_t)b << SHIFT >= infinity_bits) return INFINITY;
    if (isinf(high)) return low;
    return low + (high - low) * ((double)(rank - below) + 0.5) / (double)c->bin[b];
}

/* -- saturation ------------------------------------------------------------------------------ */

/* Sums over the rows of a block: x xhat and x^2 where |x| <= median. With a slope: the number of
 * entries below half of the line, and of all entries. */
typedef struct block_sums {
    double xy, xx;
    int64_t below, entries;
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

/* Counts saturated entries by the line of these rows. */
static sr_status judge(const activation_input *in, double median, activation_counts *to,
                       sr_failure *why) {
    const int64_t blocks = (in->rows->valid + BLOCK - 1) / BLOCK;
    block_sums *block = malloc((size_t)blocks * sizeof *block);
    if (!block) return sr_fail(why, SR_MEMORY, "out of memory for %lld rows", (long long)blocks);
    const block_sums line = sum_blocks(in, median, 0, block, blocks);
    if (line.xx > 0 && isfinite(line.xy / line.xx)) {
        const block_sums under = sum_blocks(in, median, line.xy / line.xx, block, blocks);
        to->below += under.below;
        to->judged += under.entries;
    } else {
        to->lineless++;
    }
    free(block);
    return SR_OK;
}

sr_status activation_counts_take(activation_counts *to, const activation_input *in,
                                 sr_failure *why) {
    if (in->rows->valid * in->features == 0) return SR_OK;
    activation_counts *c = calloc((size_t)in->threads, sizeof *c);
    if (!c) return sr_fail(why, SR_MEMORY, "out of memory for a histogram");
    count_entries(in, c);
    sr_status status = SR_OK;
    if (!has_nan(c) && !in->centred && in->y) status = judge(in, median_of(c), c, why);
    activation_counts_add(to, c);
    free(c);
    return status;
}

void activation_counts_tell(const activation_counts *c, double value[ACTIVATION_NUMBERS]) {
    for (int i = 0; i < ACTIVATION_NUMBERS; i++) value[i] = NAN;
    if (c->entries == 0 || has_nan(c)) return;
    for (int i = 0; i < ACTIVATION_TOP && i < c->entries; i++)
        value[ACTIVATION_top1 + i] = value_of((uint32_t)c->top[i]);
    value[ACTIVATION_median] = median_of(c);
    if (c->judged > 0 && c->lineless == 0)
        value[ACTIVATION_saturated] = (double)c->below / (double)c->judged;
}

/* -- every site ------------------------------------------------------------------------------ */

struct activations {
    sr_recorder *recorder; /* NULL: another process has it */
    const model *model;
    const hooks *hooks;
    activation_counts *of;      /* [sites of the model] of this step, in this process */
    int id[ACTIVATION_NUMBERS]; /* in the recorder */
    bool wanted;
};

static const char *const names[ACTIVATION_NUMBERS][2] = {
    {"x_top1", "largest |x| of a valid row, x what the site normalises"},
    {"x_top2", "second largest |x|"},
    {"x_top3", "third largest |x|"},
    {"x_median", "median of |x| over valid rows and features, by a histogram: within 1/32 of it"},
    {"saturated",
     "share of the inputs whose normalised value is below half of the line through the "
     "smaller half of the inputs"},
};

activations *activations_create(const model *m, sr_recorder *r, const hooks *h, sr_failure *why) {
    activations *a = calloc(1, sizeof *a);
    if (a) *a = (activations){.recorder = r, .model = m, .hooks = h};
    if (a) a->of = calloc((size_t)m->sites + 1, sizeof *a->of);
    if (!a || !a->of) {
        sr_fail(why, SR_MEMORY, "out of memory for histograms of %d sites", m->sites);
        activations_free(a);
        return NULL;
    }
    for (int i = 0; r && i < ACTIVATION_NUMBERS; i++)
        a->id[i] = sr_declare_scalar(r, names[i][0], "1", names[i][1], SR_PER_SITE);
    const sr_failure *f = r ? sr_failed(r) : NULL;
    if (!f) return a;
    sr_fail(why, f->status, "%s", f->text);
    activations_free(a);
    return NULL;
}

void activations_free(activations *a) {
    if (!a) return;
    free(a->of);
    free(a);
}

void activations_begin_step(activations *a, bool wanted) {
    if (!a) return;
    a->wanted = wanted;
    if (wanted) memset(a->of, 0, (size_t)a->model->sites * sizeof *a->of);
}

void activations_take(void *of, int site, const norm_view *o, sr_failure *why) {
    const activations *a = of;
    const norm_method *m = o->site->method;
    const activation_input in = {.rows = o->call->rows,
                                 .features = o->call->features,
                                 .x = o->x,
                                 .y = o->y,
                                 .gamma = o->call->gamma,
                                 .beta = o->call->beta,
                                 .centred = !strcmp(m->axis, "batch") && m->uses & NORM_BIT(mu),
                                 .threads = o->call->threads};
    activation_counts_take(&a->of[site], &in, why);
}

/* part [ranks]: one site at a time, as histograms are large. Counts are sent as raw words. */
static sr_status exchange_site(const activations *a, int site, const run_exchange *x,
                               activation_counts *part) {
    part[x->rank] = a->of[site];
    sr_status status = x->gather(x->context, (double *)(void *)part, sizeof *part / sizeof(double));
    if (status != SR_OK || !a->recorder) return status;
    for (int k = 1; k < x->ranks; k++) activation_counts_add(&part[0], &part[k]);
    double value[ACTIVATION_NUMBERS];
    activation_counts_tell(&part[0], value);
    for (int i = 0; i < ACTIVATION_NUMBERS; i++)
        sr_put_scalar(a->recorder, hooks_site(a->hooks, site), a->id[i], value[i]);
    return SR_OK;
}

sr_status activations_exchange(activations *a, const run_exchange *x, sr_failure *why) {
    if (!a || !a->wanted) return SR_OK;
    activation_counts *part = calloc((size_t)x->ranks, sizeof *part);
    if (!part) return sr_fail(why, SR_MEMORY, "out of memory for histograms of %d ranks", x->ranks);
    sr_status status = SR_OK;
    for (int i = 0; i < a->model->sites && status == SR_OK; i++)
        if (hooks_watches(a->hooks, i)) status = exchange_site(a, i, x, part);
    free(part);
    return status;
}
