/* repbn.c -- RepBN and its progressive form. Source: SLAB, Guo, Chen, Tang and Wang, ICML 2024,
 * arXiv 2405.11582; docs/norms.md 22.
 *
 * xhat = (x - mu_B)/s, s = sqrt(sigma2_B + eps) per feature as in bn.c. x1 = (x - m)/r, r = sqrt(v
 * + eps) per row as in ln.c. c counts calls from 1, g = dL/dy:
 *
 *     RepBN(x) = gamma xhat + beta + eta x          LN(x) = ln_gamma x1 + ln_beta
 *     forward   lambda = 1 - (c - 1)/T0 until it is 0    y = lambda LN(x) + (1-lambda) RepBN(x)
 *     state     mu, sigma2 as in bn.c
 *     backward  h = (1-lambda) g    q = lambda ln_gamma g
 *               dx = gamma/s (h - sum h/n - xhat sum[h xhat]/n) + eta h
 *                    + (q - mean[q] - x1 mean[q x1])/r
 *               dgamma = sum h xhat    dbeta = sum h    deta = sum over rows and features of h x
 *               dln_gamma = sum lambda g x1    dln_beta = sum lambda g
 *
 * T0 = 0: lambda = 0, and there is no LN. With running statistics mu and sigma2 replace the
 * batch's. Outside training lambda keeps its value of the last training call. It is stored as a
 * running statistic [d] of equal numbers. eta is one number of the layer.
 *
 * Recorded: gamma contains (1-lambda) gamma, sum_gx = sum g xhat; g_mu and g_sigma2 are measured
 * here. Kept: as bn.c, lambda, dgamma and dbeta [2 d], and of the LN m and 1/r of each row.
 */
#include <math.h>
#include <string.h>

#include "norm/kernels/batch_stats.h"
#include "norm/methods/methods.h"

enum { STATE_MU, STATE_SIGMA2, STATE_LAMBDA };
enum { PARAM_T0 = 1 };
enum { OWN_ETA, OWN_LN_GAMMA, OWN_LN_BETA };
/* Offsets after the sums [2 d] of a chunk of rows. */
enum { CHUNK = 64, ROW_NORM = 0, DX2, DIRECT2, CHUNK_SCALARS };

/* lambda */
static double lambda_of(const norm_call *c) {
    const double t0 = c->options->param[PARAM_T0], past = (double)c->calls - 1;
    if (t0 == 0) return 0;
    if (c->rows->mode != NORM_TRAIN) return c->state[STATE_LAMBDA][0];
    return past < t0 ? 1 - past / t0 : 0;
}

/* After batch_kept: lambda, [2 d] dgamma, dbeta, [2 valid] m and 1/r. */
static size_t kept_bytes(const norm_call *c) {
    const int64_t rows = c->options->param[PARAM_T0] > 0 ? c->rows->valid : 0;
    return batch_kept_bytes(c) + (1 + 2 * (size_t)(c->features + rows)) * sizeof(double);
}

/* lambda of this call: a later call may change the running one before this call's backward pass. */
static double *kept_lambda(const norm_call *c) {
    return batch_kept_end(c);
}

static double *kept_gradients(const norm_call *c) {
    return kept_lambda(c) + 1;
}

static double *kept_rows(const norm_call *c) {
    return kept_gradients(c) + 2 * c->features;
}

/* -- forward ----------------------------------------------------------------------------------- */

static void row_statistics(const norm_call *c, const real *x, double *mean, double *inverse) {
    const double d = (double)c->features;
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < c->features; k++) sum += (double)x[k];
    *mean = sum / d;
    for (int64_t k = 0; k < c->features; k++)
        squares += ((double)x[k] - *mean) * ((double)x[k] - *mean);
    *inverse = 1 / sqrt(squares / d + c->options->eps);
}

/* y = lambda LN(x) + a (x - center) + b */
static void write_both(const norm_call *c, const batch_kept *k, double lambda, const double *a,
                       const double *b, const real *x, real *y) {
    const real *gain = c->own[OWN_LN_GAMMA], *bias = c->own[OWN_LN_BETA];
    const int64_t n = c->rows->valid;
    double *kept = kept_rows(c);
#pragma omp parallel for num_threads(c->threads) schedule(static) if (n > CHUNK)
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = norm_row_number(c->rows, i) * c->features;
        row_statistics(c, x + at, &kept[2 * i], &kept[2 * i + 1]);
        for (int64_t j = 0; j < c->features; j++) {
            const double u = (double)x[at + j], x1 = (u - kept[2 * i]) * kept[2 * i + 1];
            const double ln = (double)gain[j] * x1 + (double)bias[j];
            y[at + j] = (real)(lambda * ln + (a[j] * (u - k->center[j]) + b[j]));
        }
    }
}

static void write_output(const norm_call *c, const batch_kept *k, const real *x, real *y) {
    const double lambda = *kept_lambda(c), eta = (double)c->own[OWN_ETA][0];
    double *a = k->scratch, *b = a + c->features;
    for (int64_t j = 0; j < c->features; j++) {
        a[j] = (1 - lambda) * ((double)c->gamma[j] * k->inverse[j] + eta);
        b[j] = (1 - lambda) * ((double)c->beta[j] + eta * k->center[j]);
        c->stat[NORM_gamma][j] = (1 - lambda) * (double)c->gamma[j];
    }
    column_passes m = column_passes_valid(c);
    if (lambda > 0)
        write_both(c, k, lambda, a, b, x, y);
    else
        column_passes_scale(&m, x, k->center, a, b, y);
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    batch_kept *k = batch_kept_start(c);
    sr_status status =
        batch_standardise(c, k, x, c->state[STATE_MU], c->state[STATE_SIGMA2], false);
    if (status != SR_OK) return status;
    *kept_lambda(c) = lambda_of(c);
    for (int64_t j = 0; c->rows->mode == NORM_TRAIN && k->n > 0 && j < c->features; j++)
        c->state[STATE_LAMBDA][j] = *kept_lambda(c);
    write_output(c, k, x, y);
    return SR_OK;
}

/* -- backward ---------------------------------------------------------------------------------- */

/* From this process's rows: dgamma, dbeta, deta. */
static void parameter_gradients(norm_call *c, const batch_kept *k, double lambda) {
    double *dgamma = kept_gradients(c), *dbeta = dgamma + c->features, by_eta = 0;
    for (int64_t j = 0; j < c->features; j++) {
        const double sum_gx = c->dgamma[j], sum_g = c->dbeta[j];
        by_eta += sum_gx / k->inverse[j] + k->center[j] * sum_g;
        dgamma[j] = (1 - lambda) * sum_gx;
        dbeta[j] = (1 - lambda) * sum_g;
    }
    c->own_grad[OWN_ETA][0] = (1 - lambda) * by_eta;
    c->dgamma = dgamma;
    c->dbeta = dbeta;
}

/* The terms of RepBN; reports the part through its statistics. */
static batch_terms terms_of(norm_call *c, const batch_kept *k, double lambda) {
    const bool running = c->rows->mode == NORM_RUNNING;
    const double eta = (double)c->own[OWN_ETA][0];
    batch_terms t = running ? batch_terms_start(c, k) : batch_statistic_terms(c, k);
    for (int64_t j = 0; j < c->features; j++) {
        t.a[j] = (1 - lambda) * (t.a[j] + eta);
        t.b[j] *= 1 - lambda;
        t.slope[j] *= 1 - lambda;
    }
    if (!running) batch_record_parts(c, &t);
    return t;
}

/* Inputs of one row's pass. */
typedef struct mixture {
    const norm_call *c;
    const batch_kept *k;
    const batch_terms *t;
    double lambda;
} mixture;

static void row_backward(const mixture *m, const double *kept, const real *x, const real *g,
                         real *dx, double *part) {
    const int64_t d = m->c->features;
    const real *gain = m->c->own[OWN_LN_GAMMA];
    double mean_q = 0, mean_qx = 0, norm = 0, *scalar = part + 2 * d;
    for (int64_t j = 0; j < d; j++) {
        const double h = m->lambda * (double)g[j], x1 = ((double)x[j] - kept[0]) * kept[1];
        part[j] += h * x1;
        part[d + j] += h;
        mean_q += h * (double)gain[j] / (double)d;
        mean_qx += h * (double)gain[j] * x1 / (double)d;
    }
    for (int64_t j = 0; j < d; j++) {
        const double u = (double)x[j] - m->k->center[j], x1 = ((double)x[j] - kept[0]) * kept[1];
        const double direct = m->t->a[j] + m->lambda * (double)gain[j] * kept[1];
        const double through = m->t->slope[j] * u;
        dx[j] = (real)(direct * (double)g[j] + m->t->b[j] + through -
                       (mean_q + x1 * mean_qx) * kept[1]);
        norm += through * through;
        scalar[DX2] += (double)dx[j] * (double)dx[j];
        scalar[DIRECT2] += direct * (double)g[j] * (direct * (double)g[j]);
    }
    scalar[ROW_NORM] += sqrt(norm);
}

/* Sums of chunks of rows, merged in order. */
static sr_status backward_both(norm_call *c, const mixture *m, const real *x, const real *dy,
                               real *dx) {
    const int64_t d = c->features, n = c->rows->valid, width = 2 * d + CHUNK_SCALARS;
    const int64_t chunks = n ? (n + CHUNK - 1) / CHUNK : 1;
    double *part = tape_alloc(c->tape, (size_t)(chunks * width) * sizeof *part);
    if (!part) return SR_MEMORY;
    memset(part, 0, (size_t)(chunks * width) * sizeof *part);
#pragma omp parallel for num_threads(c->threads) schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++)
        for (int64_t i = p * CHUNK; i < n && i < (p + 1) * CHUNK; i++)
            row_backward(m, kept_rows(c) + 2 * i, x + norm_row_number(c->rows, i) * c->features,
                         dy + norm_row_number(c->rows, i) * c->features,
                         dx + norm_row_number(c->rows, i) * c->features, part + p * width);
    for (int64_t p = 1; p < chunks; p++)
        for (int64_t j = 0; j < width; j++) part[j] += part[p * width + j];
    memcpy(c->own_grad[OWN_LN_GAMMA], part, (size_t)d * sizeof *part);
    memcpy(c->own_grad[OWN_LN_BETA], part + d, (size_t)d * sizeof *part);
    if (c->want_rows)
        c->scalar[NORM_SCALAR_g_sigma2_rowmean] = part[2 * d + ROW_NORM] / (double)n / (double)d;
    batch_record_norms(c, &(dx_norms){.dx2 = part[2 * d + DX2], .direct2 = part[2 * d + DIRECT2]});
    return SR_OK;
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    batch_kept *k = c->kept;
    const double lambda = *kept_lambda(c);
    sr_status status = batch_gradient_sums(c, k, x, dy);
    if (status != SR_OK) return status;
    parameter_gradients(c, k, lambda);
    batch_terms t = terms_of(c, k, lambda);
    if (lambda > 0) return backward_both(c, &(mixture){c, k, &t, lambda}, x, dy, dx);
    return batch_combine(c, k, &t, NULL, x, dy, dx);
}

const norm_method norm_repbn = {
    .name = "repbn",
    .citation = "Guo et al., ICML 2024",
    .axis = "batch",
    .family = NORM_FAMILY_OWN,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .summary = "RepBN: BN plus eta times its input; PRepBN: from LN to it over T0 calls",
    .affine = true,
    .synchronises = true,
    .eps = 1e-5,
    .alpha = 0.95,
    .param = {{"eta0", 1, -1e9, 1e9, NULL, "eta before the first update"},
              {"t0", 0, 0, 1e12, NULL, "calls over which LN gives way to RepBN; 0: no LN", true}},
    .own = {{"eta", .from = "eta0"},
            {"ln_gamma", true, .initial = 1, .when = "t0"},
            {"ln_beta", true, .initial = 0, .when = "t0"}},
    .state = {{"mu", 0, NULL}, {"sigma2", 1, NULL}, {"lambda", 1, NULL}},
    .vectors = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B) | NORM_BIT(mu) |
               NORM_BIT(sigma2) | NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx),
    .scalars =
        NORM_SCALAR_BIT(g_mu) | NORM_SCALAR_BIT(g_sigma2) | NORM_SCALAR_BIT(g_sigma2_rowmean),
    .kept_bytes = kept_bytes,
    .forward = forward,
    .backward = backward,
};
