/* Covariates of the batches of a site, as mu_B - mu sees them.
 *
 *     length  = rows / samples               valid rows of a sentence, mean over the batch
 *     padding = padded / (rows + padded)
 *
 * Each is bent at its quantiles 1/K .. (K-1)/K over the steps, K terms in all: the covariate itself
 * and max(covariate - quantile, 0). If mu_B = a + sum_j b_j z_j, and mu is the running mean of mu_B
 * from before the update with weight alpha of its old value, then
 *
 *     mu_B - mu = sum_j b_j (z_j - running z_j),   running z_j <- alpha running z_j + (1-alpha) z_j
 *
 * once a is forgotten (mu starts at 0): the constant cancels, and the running means of the terms
 * have to go through every step, also those whose vectors are not recorded. They start at the mean
 * of the term. Steps without valid rows leave them as they are, as the layer does.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "statnet/batchmix.h"

/* Relative differences below this are the rounding of float32. */
#define CONSTANT 1e-6

/* -- columns of every step ------------------------------------------------------------------- */

typedef struct batches {
    int64_t steps, from, to; /* those in the window: from .. to - 1 */
    int64_t *step;           /* [steps] */
    double *rows;            /* [steps] */
    double *samples, *padded;
    double *length, *padding; /* NaN where nothing is known */
} batches;

static void batches_free(batches *b) {
    free(b->step);
    free(b->rows);
}

static sr_status read_column(const mix_site *m, const char *name, int64_t count, double *value,
                             sr_failure *why) {
    float raw[2048];
    sr_status status = SR_OK;
    const bool there = sr_run_has_scalar(m->run, name);
    for (int64_t at = 0; at < count && status == SR_OK; at += 2048) {
        const int64_t some = count - at < 2048 ? count - at : 2048;
        if (there) status = sr_run_scalar(m->run, name, m->site, at, some, raw, why);
        for (int64_t i = 0; i < some && status == SR_OK; i++)
            value[at + i] = there ? (double)raw[i] : NAN;
    }
    return status;
}

static sr_status batches_read(batches *b, const mix_site *m, const step_window *w,
                              sr_failure *why) {
    const int64_t steps = sr_run_get_info(m->run)->steps;
    *b = (batches){.steps = steps};
    b->step = calloc((size_t)steps + 1, sizeof *b->step);
    b->rows = calloc((size_t)(5 * steps) + 1, sizeof *b->rows);
    if (!b->step || !b->rows) return sr_fail(why, SR_MEMORY, "out of memory");
    b->samples = b->rows + steps, b->padded = b->samples + steps;
    b->length = b->padded + steps, b->padding = b->length + steps;
    sr_status status = steps ? sr_run_step_ints(m->run, "step", 0, steps, b->step, why) : SR_OK;
    if (status == SR_OK) status = read_column(m, "rows", steps, b->rows, why);
    if (status == SR_OK) status = read_column(m, "samples", steps, b->samples, why);
    if (status == SR_OK) status = read_column(m, "padded", steps, b->padded, why);
    for (int64_t i = 0; i < steps; i++) {
        const bool empty = !(b->rows[i] > 0);
        b->length[i] = empty ? NAN : b->rows[i] / b->samples[i];
        b->padding[i] = empty ? NAN : b->padded[i] / (b->rows[i] + b->padded[i]);
        b->from += b->step[i] < w->first;
        b->to += b->step[i] <= w->last;
    }
    return status;
}

/* -- one covariate --------------------------------------------------------------------------- */

/* Sorted finite values of the window; NULL when out of memory. */
static double *sorted_values(const batches *b, const double *value, int64_t *count) {
    double *sorted = malloc((size_t)(b->steps + 1) * sizeof *sorted);
    *count = 0;
    for (int64_t i = b->from; sorted && i < b->to; i++)
        if (isfinite(value[i])) sorted[(*count)++] = value[i];
    if (sorted) sort_reals(sorted, *count);
    return sorted;
}

/* Knots of the terms, the first of them none (-infinity); returns how many terms there are. */
static int place_knots(const double *sorted, int64_t count, int wanted, double *knot) {
    if (!count || sorted[count - 1] - sorted[0] <= CONSTANT * fabs(sorted[count - 1])) return 0;
    int terms = 1;
    knot[0] = -INFINITY;
    for (int i = 1; i < wanted; i++) {
        const double at = quantile_of_sorted(sorted, count, (double)i / wanted);
        if (at > sorted[0] && at < sorted[count - 1] && at > knot[terms - 1]) knot[terms++] = at;
    }
    return terms;
}

static double bend(double value, double knot) {
    return isinf(knot) ? value : value > knot || isnan(value) ? value - knot : 0;
}

static double mean_of_term(const batches *b, const double *value, double knot) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < b->steps; i++)
        if (isfinite(value[i])) sum += bend(value[i], knot), count++;
    return count ? sum / (double)count : 0;
}

/* Column `term` of z [rows, terms]: at the steps of the vectors, scaled to a mean square of 1. */
static void filter_term(const mix_site *m, const batches *b, const double *value, double knot,
                        double *z, int terms) {
    const double alpha = m->at->alpha;
    double running = mean_of_term(b, value, knot), square = 0;
    int64_t row = 0, count = 0;
    for (int64_t i = 0; i < b->steps && row < m->rows; i++) {
        const double v = bend(value[i], knot), moved = v - running;
        if (b->step[i] == m->step[row]) {
            z[row++ * terms] = moved;
            if (isfinite(moved)) square += moved * moved, count++;
        }
        if (isfinite(v)) running += (1 - alpha) * moved;
    }
    const double scale = square > 0 ? sqrt((double)count / square) : 0;
    for (int64_t i = 0; i < m->rows; i++) z[i * terms] *= scale;
}

/* -- the site -------------------------------------------------------------------------------- */

/* The rows of /vectors in the window, and how many of them stay together: twice the memory
 * of the running mean, at most what leaves a block for every fold. */
static sr_status find_rows(mix_site *m, const step_window *w, sr_failure *why) {
    const series vectors = {.run = m->run, .site = m->site, .source = FROM_VECTORS};
    sr_status status = window_rows(w, &vectors, &m->first, &m->rows, why);
    m->step = calloc((size_t)m->rows + 1, sizeof *m->step);
    if (!m->step) return sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK && m->rows)
        status = sr_run_vector_steps(m->run, m->first, m->rows, m->step, why);
    if (status != SR_OK) return status;
    if (m->rows < 2) return m->block = 1, SR_OK;
    const double every = (double)(m->step[m->rows - 1] - m->step[0]) / (double)(m->rows - 1);
    const double memory = ceil(2 / (1 - m->at->alpha) / every);
    const int64_t most = m->rows / MIX_FOLDS > 1 ? m->rows / MIX_FOLDS : 1;
    m->block = memory < (double)most ? (int64_t)memory : most;
    return SR_OK;
}

static sr_status make_terms(mix_site *m, const batches *b, const mix_wanted *wanted,
                            sr_failure *why) {
    const double *const value[2] = {b->length, b->padding};
    const int most[2] = {wanted->length_terms, wanted->padding_terms};
    int *const terms[2] = {&m->length, &m->padding};
    double knot[2][MIX_TERMS];
    for (int c = 0; c < 2; c++) {
        int64_t count;
        double *sorted = sorted_values(b, value[c], &count);
        if (!sorted) return sr_fail(why, SR_MEMORY, "out of memory");
        *terms[c] = place_knots(sorted, count, most[c], knot[c]);
        free(sorted);
        m->known[c] = *terms[c] ? MIX_VARIES : count ? MIX_CONSTANT : MIX_UNKNOWN;
    }
    const int all = m->length + m->padding;
    m->z = calloc((size_t)(m->rows * all) + 1, sizeof *m->z);
    if (!m->z) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int j = 0; j < all; j++) {
        const int c = j >= m->length;
        filter_term(m, b, value[c], knot[c][j - (c ? m->length : 0)], m->z + j, all);
    }
    return SR_OK;
}

static sr_status pick_row_counts(mix_site *m, const batches *b, sr_failure *why) {
    m->n = calloc((size_t)m->rows + 1, sizeof *m->n);
    if (!m->n) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0, row = 0; i < b->steps && row < m->rows; i++)
        if (b->step[i] == m->step[row]) m->n[row++] = b->rows[i];
    return SR_OK;
}

sr_status mix_site_read(mix_site *m, const mix_wanted *wanted, sr_failure *why) {
    batches b;

    sr_status status = batches_read(&b, m, wanted->window, why);
    if (status == SR_OK) status = find_rows(m, wanted->window, why);
    if (status == SR_OK) status = pick_row_counts(m, &b, why);
    if (status == SR_OK && m->rows) status = make_terms(m, &b, wanted, why);
    batches_free(&b);
    return status;
}

void mix_site_free(mix_site *m) {
    free(m->z);
    free(m->n);
    free(m->step);
    m->z = m->n = NULL;
    m->step = NULL;
}
