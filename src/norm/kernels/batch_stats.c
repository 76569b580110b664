/* batch_stats.c -- shared by the methods with statistics over the valid rows of a batch
 * (docs/norms.md 2, 10, 17, 18.2). Each method's file has its formulas. Here n is the number of
 * valid rows of all processes, xhat = (x - center)/s, and s is the method's divisor.
 *
 * Mean over rows of the row norm of the scale statistic's part of dx (18.2), divided by d:
 *
 *     1/(n d) sum_i || c * xhat_i ||_2,  c_k = gamma_k/s_k * sum_gx_k/n
 *
 * It is computed in the pass that writes dx, while the rows are in cache. It is the mean over this
 * process's rows, which hooks merge over all. */
#include "norm/kernels/batch_stats.h"

#include <math.h>
#include <string.h>

#include "norm/kernels/sync.h"

enum { KEPT_ARRAYS = 8 };

size_t batch_kept_bytes(const norm_call *c) {
    const size_t arrays = KEPT_ARRAYS + (size_t)c->method->kept_arrays;
    return sizeof(batch_kept) + arrays * (size_t)c->features * sizeof(double);
}

void *batch_kept_end(const norm_call *c) {
    return (char *)c->kept + batch_kept_bytes(c);
}

batch_kept *batch_kept_start(const norm_call *c) {
    batch_kept *k = c->kept;
    double *a = (double *)(k + 1);
    int64_t d = c->features;
    k->center = a;
    k->inverse = a + d;
    k->part_g = a + 2 * d;
    k->part_gx = a + 3 * d;
    k->scratch = a + 4 * d;
    k->own = a + KEPT_ARRAYS * d;
    return k;
}

/* Computes mu_B and, in sigma2_B, the sums of squared deviations. */
static sr_status own_moments(norm_call *c, const real *x) {
    column_passes m = column_passes_valid(c);
    m.makes_scale = m.scale && !m.scale->made;
    return column_passes_moments(&m, x, c->stat[NORM_mu_B], c->stat[NORM_sigma2_B]);
}

static void divide_moments(norm_call *c, double n) {
    double *mean = c->stat[NORM_mu_B], *variance = c->stat[NORM_sigma2_B];
    for (int64_t j = 0; j < c->features; j++) {
        variance[j] /= n;
        c->stat[NORM_psi2_B][j] = variance[j] + mean[j] * mean[j];
    }
}

sr_status batch_own_statistics(norm_call *c, batch_kept *k, const real *x) {
    sr_status status = own_moments(c, x);
    k->n = (double)c->rows->valid;
    divide_moments(c, k->n);
    return status;
}

sr_status batch_statistics(norm_call *c, batch_kept *k, const real *x) {
    sr_status status = own_moments(c, x);
    if (status == SR_OK)
        status = sync_moments(c, &k->n, c->stat[NORM_mu_B], c->stat[NORM_sigma2_B]);
    if (status == SR_OK) divide_moments(c, k->n);
    return status;
}

sr_status batch_fill_padded(const norm_call *c, const double *value, real *y) {
    column_passes padded;
    sr_status status = column_passes_padded(c, &padded);
    if (status != SR_OK) return status;
    column_passes_fill(&padded, value, y);
    return SR_OK;
}

void batch_advance(const norm_call *c, const batch_kept *k, double *state, const double *batch,
                   double factor) {
    double alpha = c->options->alpha;
    if (c->rows->mode != NORM_TRAIN || !(k->n > 0)) return;
    for (int64_t j = 0; j < c->features; j++)
        state[j] = alpha * state[j] + (1 - alpha) * (batch[j] * factor);
}

sr_status batch_standardise(norm_call *c, batch_kept *k, const real *x, double *mu, double *sigma2,
                            bool unbiased) {
    if (c->rows->mode == NORM_RUNNING) return batch_divide(c, k, mu, sigma2), SR_OK;
    sr_status status = batch_statistics(c, k, x);
    if (status != SR_OK) return status;
    batch_divide(c, k, c->stat[NORM_mu_B], c->stat[NORM_sigma2_B]);
    batch_advance(c, k, mu, c->stat[NORM_mu_B], 1);
    batch_advance(c, k, sigma2, c->stat[NORM_sigma2_B],
                  unbiased && k->n > 1 ? k->n / (k->n - 1) : 1);
    return SR_OK;
}

void batch_normalize_rows(const norm_call *c, const batch_kept *k, const column_passes *m,
                          const real *x, real *y) {
    double *scale = k->scratch, *shift = scale + c->features;
    for (int64_t j = 0; j < c->features; j++) {
        scale[j] = c->stat[NORM_gamma][j] * k->inverse[j];
        shift[j] = (double)c->beta[j];
    }
    column_passes_scale(m, x, k->center, scale, shift, y);
}

void batch_normalize(const norm_call *c, const batch_kept *k, const real *x, real *y) {
    const column_passes m = column_passes_valid(c);
    batch_normalize_rows(c, k, &m, x, y);
}

sr_status batch_recompute(norm_call *c, const real *x, real *y) {
    batch_normalize(c, c->kept, x, y);
    return SR_OK;
}

sr_status batch_gradient_sums(norm_call *c, batch_kept *k, const real *x, const real *dy) {
    double *sum_g = c->stat[NORM_sum_g], *sum_gx = c->stat[NORM_sum_gx];
    size_t bytes = (size_t)c->features * sizeof(double);
    column_passes m = column_passes_valid(c);
    sr_status status = column_passes_gradient_sums(&m, x, dy, k->center, k->inverse, sum_g, sum_gx);
    if (status != SR_OK || !c->rows->gather) return status;
    c->dbeta = memcpy(k->part_g, sum_g, bytes);
    c->dgamma = memcpy(k->part_gx, sum_gx, bytes);
    return sync_sums(c, sum_g, sum_gx);
}

void batch_divide(const norm_call *c, batch_kept *k, const double *center, const double *square) {
    for (int64_t j = 0; j < c->features; j++) {
        k->center[j] = center ? center[j] : 0;
        k->inverse[j] = 1 / sqrt(square[j] + c->options->eps);
    }
}

batch_terms batch_terms_start(const norm_call *c, const batch_kept *k) {
    int64_t d = c->features;
    batch_terms t = {k->scratch, k->scratch + d, k->scratch + 2 * d};
    for (int64_t j = 0; j < d; j++) {
        t.a[j] = (double)c->gamma[j] * k->inverse[j];
        t.b[j] = t.slope[j] = 0;
    }
    return t;
}

void batch_record_norms(norm_call *c, const dx_norms *norms) {
    if (!c->has_hook) return;
    c->scalar[NORM_SCALAR_dx_norm] = sqrt(norms->dx2);
    c->scalar[NORM_SCALAR_direct_norm] = sqrt(norms->direct2);
}

double batch_part(const norm_call *c, const double *slope, norm_vector square) {
    double sum = 0;
    for (int64_t j = 0; j < c->features; j++) sum += slope[j] * slope[j] * c->stat[square][j];
    return sqrt(sum) / (double)c->features;
}

void batch_record_parts(norm_call *c, const batch_terms *t) {
    double sum = 0;
    for (int64_t j = 0; j < c->features; j++) sum += t->b[j] * t->b[j];
    c->scalar[NORM_SCALAR_g_mu] = sqrt(sum) / (double)c->features;
    c->scalar[NORM_SCALAR_g_sigma2] = batch_part(c, t->slope, NORM_sigma2_B);
}

sr_status batch_combine(norm_call *c, const batch_kept *k, const batch_terms *terms,
                        const double *weight, const real *x, const real *dy, real *dx) {
    column_passes m = column_passes_valid(c);
    column_passes_line line = {k->center, terms->a, terms->b, terms->slope};
    dx_norms norms = {.weight = !c->want_rows ? NULL : weight ? weight : terms->slope};
    sr_status status = column_passes_combine(&m, x, dy, &line, dx, c->has_hook ? &norms : NULL);
    const norm_scalar rowmean = c->method->uses & NORM_BIT(psi2) ? NORM_SCALAR_g_psi2_rowmean
                                                                 : NORM_SCALAR_g_sigma2_rowmean;
    if (c->want_rows) c->scalar[rowmean] = norms.row_norm / (double)m.rows / (double)c->features;
    batch_record_norms(c, &norms);
    return status;
}

batch_terms batch_statistic_terms(const norm_call *c, const batch_kept *k) {
    batch_terms t = batch_terms_start(c, k);
    for (int64_t j = 0; j < c->features; j++) {
        if (c->method->uses & NORM_BIT(mu)) t.b[j] = -t.a[j] * (c->stat[NORM_sum_g][j] / k->n);
        t.slope[j] = -t.a[j] * (c->stat[NORM_sum_gx][j] / k->n) * k->inverse[j];
    }
    return t;
}

sr_status batch_backward(norm_call *c, const real *x, const real *dy, real *dx) {
    batch_kept *k = c->kept;
    sr_status status = batch_gradient_sums(c, k, x, dy);
    if (status != SR_OK) return status;
    if (c->rows->mode == NORM_RUNNING) return batch_backward_constant(c, k, dy, dx);
    const batch_terms t = batch_statistic_terms(c, k);
    return batch_combine(c, k, &t, NULL, x, dy, dx);
}

sr_status batch_backward_constant(norm_call *c, const batch_kept *k, const real *dy, real *dx) {
    double *a = k->scratch, *zero = a + c->features;
    for (int64_t j = 0; j < c->features; j++) {
        a[j] = (double)c->gamma[j] * k->inverse[j];
        zero[j] = 0;
    }
    column_passes m = column_passes_valid(c);
    m.scale = NULL; /* dy is not scaled */
    column_passes_scale(&m, dy, zero, a, zero, dx);
    m.scale = c->scale;
    if (m.scale) column_passes_scale_rows(&m, layer_scale_backward);
    return SR_OK;
}
