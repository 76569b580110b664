/* Covariates of the batches of a site, as mu_B - mu depends on them.
 *
 *     length  = rows / samples               valid rows of a sentence, mean over the batch
 *     padding = padded / (rows + padded)
 *
 * Each has K terms: the covariate itself, and max(covariate - quantile, 0) for its quantiles 1/K ..
 * (K-1)/K over the steps. If mu_B = a + sum_j b_j z_j, and mu is the running mean of mu_B before
 * the update with weight alpha of its old value, then
 *
 *     mu_B - mu = sum_j b_j (z_j - running z_j),   running z_j <- alpha running z_j + (1-alpha) z_j
 *
 * once a is forgotten (mu starts at 0): the constant cancels. The running means of the terms need
 * every step, also steps without recorded vectors. They start at the mean of the term. Steps
 * without valid rows leave them unchanged, as the layer does.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/batchmix/batchmix.h"

/* Relative differences below this are the rounding of float32. */
#define CONSTANT 1e-6

/* -- columns of every step ------------------------------------------------------------------- */

enum { LENGTH, PADDING, COVARIATES, BLOCK = 2048 };
static const char *const beside_rows[COVARIATES] = {"samples", "padded"};

/* Neighbouring steps. */
typedef struct step_block {
    int64_t count, step[BLOCK];
    double rows[BLOCK];
    double value[COVARIATES][BLOCK]; /* NaN where nothing is known */
} step_block;

/* value [count], at most BLOCK of them */
static sr_status read_column(const mix_site *m, const char *name, int64_t first, int64_t count,
                             double *value, sr_failure *why) {
    float raw[BLOCK];
    sr_status status = SR_OK;
    const bool there = sr_run_has_scalar(m->run, name);
    if (there) status = sr_run_scalar(m->run, name, m->site, first, count, raw, why);
    for (int64_t i = 0; i < count && status == SR_OK; i++) value[i] = there ? (double)raw[i] : NAN;
    return status;
}

/* The steps from the first-th on. */
static sr_status block_read(step_block *b, const mix_site *m, int64_t first, sr_failure *why) {
    const int64_t left = sr_run_get_info(m->run)->steps - first;
    b->count = left < BLOCK ? left : BLOCK;
    sr_status status = sr_run_step_ints(m->run, "step", first, b->count, b->step, why);
    if (status == SR_OK) status = read_column(m, "rows", first, b->count, b->rows, why);
    for (int c = 0; c < COVARIATES && status == SR_OK; c++) {
        double *value = b->value[c];
        status = read_column(m, beside_rows[c], first, b->count, value, why);
        for (int64_t i = 0; i < b->count && status == SR_OK; i++) {
            const double rows = b->rows[i];
            const double part = c == LENGTH ? rows / value[i] : value[i] / (rows + value[i]);
            value[i] = rows > 0 ? part : NAN;
        }
    }
    return status;
}

/* -- one covariate --------------------------------------------------------------------------- */

/* knot [MIX_TERMS]; value [rows]: the covariate, reordered */
static void find_knots(mix_site *m, double *value, int64_t rows, int covariate, int wanted,
                       double *knot, int *terms) {
    double quantile[MIX_TERMS] = {0.5}; /* to have one if no knot is wanted */
    for (int i = 1; i < wanted; i++) quantile[i - 1] = (double)i / wanted;
    const column_quantiles found =
        quantiles_make(value, rows, quantile, wanted > 1 ? wanted - 1 : 1);
    *terms = found.finite && found.largest - found.least > CONSTANT * fabs(found.largest);
    knot[0] = -INFINITY; /* the first term has no knot */
    for (int i = 1; i < wanted && *terms; i++) {
        const double at = found.at[i - 1];
        if (at > found.least && at < found.largest && at > knot[*terms - 1]) knot[(*terms)++] = at;
    }
    m->known[covariate] = *terms ? MIX_VARIES : found.finite ? MIX_CONSTANT : MIX_UNKNOWN;
}

/* -- the terms, through all steps ------------------------------------------------------------ */

typedef struct term {
    int covariate;
    double knot, sum, running, square;
    int64_t known, rows; /* how many make up `sum`, and `square` */
} term;

typedef struct term_list {
    int count;
    term term[2 * MIX_TERMS];
} term_list;

static double bend(double value, double knot) {
    return isinf(knot) ? value : value > knot || isnan(value) ? value - knot : 0;
}

/* They start at the mean of the term. */
static sr_status start_running(const mix_site *m, term_list *l, step_block *b, sr_failure *why) {
    const int64_t steps = l->count ? sr_run_get_info(m->run)->steps : 0;
    sr_status status = SR_OK;
    for (int64_t first = 0; first < steps && status == SR_OK; first += BLOCK) {
        status = block_read(b, m, first, why);
        for (int j = 0; j < l->count && status == SR_OK; j++) {
            term *t = &l->term[j];
            const double *value = b->value[t->covariate];
            for (int64_t i = 0; i < b->count; i++)
                if (isfinite(value[i])) t->sum += bend(value[i], t->knot), t->known++;
        }
    }
    for (int j = 0; j < l->count; j++) {
        term *t = &l->term[j];
        t->running = t->known ? t->sum / (double)t->known : 0;
    }
    return status;
}

/* Filters the rows from *row on that are in the block. */
static void filter_block(const mix_site *m, term_list *l, const step_block *b, int64_t *row) {
    for (int64_t i = 0; i < b->count && *row < m->rows; i++) {
        const bool here = b->step[i] == m->step[*row];
        double *z = here ? m->z + *row * l->count : NULL;
        for (int j = 0; j < l->count; j++) {
            term *t = &l->term[j];
            const double v = bend(b->value[t->covariate][i], t->knot), moved = v - t->running;
            if (z) z[j] = moved;
            if (z && isfinite(moved)) t->square += moved * moved, t->rows++;
            if (isfinite(v)) t->running += (1 - m->at->alpha) * moved;
        }
        if (here) m->n[(*row)++] = b->rows[i];
    }
}

/* z and n at the steps of the vectors, z scaled to a mean square of 1. */
static sr_status filter_terms(const mix_site *m, term_list *l, step_block *b, sr_failure *why) {
    const int64_t steps = sr_run_get_info(m->run)->steps;
    sr_status status = SR_OK;
    int64_t row = 0;
    for (int64_t first = 0; first < steps && row < m->rows && status == SR_OK; first += BLOCK) {
        status = block_read(b, m, first, why);
        if (status == SR_OK) filter_block(m, l, b, &row);
    }
    for (int j = 0; j < l->count; j++) {
        const term *t = &l->term[j];
        const double scale = t->square > 0 ? sqrt((double)t->rows / t->square) : 0;
        for (int64_t i = 0; i < m->rows; i++) m->z[i * l->count + j] *= scale;
    }
    return status;
}

/* -- the site -------------------------------------------------------------------------------- */

/* Finds the rows of /vectors in the window. Their blocks have twice the memory of the running mean,
   but leave one for every fold. */
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
    m->block = memory >= 1 && memory < (double)most ? (int64_t)memory : most;
    return SR_OK;
}

static sr_status choose_terms(mix_site *m, const mix_wanted *wanted, term_list *l, step_block *b,
                              sr_failure *why) {
    const series steps = {.run = m->run, .site = m->site, .source = FROM_SCALARS};
    const int most[COVARIATES] = {wanted->length_terms, wanted->padding_terms};
    int *const terms[COVARIATES] = {&m->length, &m->padding};
    int64_t from = 0, rows = 0;
    column_block of = {0};
    *l = (term_list){0};
    sr_status status = window_rows(wanted->window, &steps, &from, &rows, why);
    if (status == SR_OK) status = columns_create(&of, COVARIATES, rows, why);
    for (int64_t at = 0; at < rows && status == SR_OK; at += BLOCK) {
        const size_t some = (size_t)(rows - at < BLOCK ? rows - at : BLOCK);
        status = block_read(b, m, from + at, why);
        for (int c = 0; c < COVARIATES && status == SR_OK; c++)
            memcpy(of.value[c] + at, b->value[c], some * sizeof *b->value[c]);
    }
    for (int c = 0; c < COVARIATES && status == SR_OK; c++) {
        double knot[MIX_TERMS];
        find_knots(m, of.value[c], rows, c, most[c], knot, terms[c]);
        for (int j = 0; j < *terms[c]; j++)
            l->term[l->count++] = (term){.covariate = c, .knot = knot[j]};
    }
    columns_free(&of);
    return status;
}

sr_status mix_site_read(mix_site *m, const mix_wanted *wanted, sr_failure *why) {
    term_list l;
    sr_status status = find_rows(m, wanted->window, why);
    if (status != SR_OK || !m->rows) return status;
    step_block *b = malloc(sizeof *b);
    if (!b) return sr_fail(why, SR_MEMORY, "out of memory");
    status = choose_terms(m, wanted, &l, b, why);
    m->n = calloc((size_t)m->rows, sizeof *m->n);
    m->z = calloc((size_t)(m->rows * l.count) + 1, sizeof *m->z);
    if (status == SR_OK && (!m->n || !m->z)) status = sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = start_running(m, &l, b, why);
    if (status == SR_OK) status = filter_terms(m, &l, b, why);
    free(b);
    return status;
}

void mix_site_free(mix_site *m) {
    free(m->z);
    free(m->n);
    free(m->step);
    m->z = m->n = NULL;
    m->step = NULL;
}
