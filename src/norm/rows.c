/* rows.c -- layer normalization and its relatives: every row by itself over its d features, no
 * state, the same in training and inference (norms.md sections 3 to 7).
 *
 *     forward   u = x - mean[x] (or x)    v = sum[u^2]/(d - ddof)    s = sqrt(v + eps) or sqrt(v) +
 * eps xhat = u/s    phi = C (1 - k xhat)    y = gamma phi xhat + beta backward  q = gamma phi g,
 * phi constant dx = (q - [mean[q]] - xhat [sum[q xhat]/(d - ddof) * (s/sqrt(v) when eps is
 * outside)]) / s
 *
 * The first bracket is absent when the mean is not subtracted or detached, the second when the
 * standard deviation is detached or 0. sum_g = sum over rows of g, sum_gx = sum over rows of g phi
 * xhat. Kept: mean and sqrt(v) of each row, in double.
 *
 * Recorded for Theorem 1 (Xu et al., NeurIPS 2019), only when somebody observes: averages over the
 * valid rows of mean and biased variance over the row's features of dx and of gamma g (18.6),
 * computed apart from dx so that observing cannot change it.
 *
 * Sums along a row are in double in LANES interleaved partial sums, sums over rows in fixed pieces
 * merged in order: the same bytes for any number of threads.
 */
#include "rows.h"

#include <math.h>
#include <string.h>

enum { PIECE = 64, LANES = 16, ROW_SCALARS = 4 };

/* One row as the backward pass sees it. */
typedef struct row_view {
    int64_t d;
    const real *x, *g, *gamma;
    double mean, inverse; /* xhat = (x - mean) * inverse */
    double mean_q, along; /* dx = (q - mean_q - xhat * along) * inverse */
    double C, k;
} row_view;

static int64_t row_number(const norm_call *c, int64_t i) {
    return c->rows->index ? c->rows->index[i] : i;
}

static double lanes_total(const double *lane) {
    double a[LANES];
    memcpy(a, lane, sizeof a);
    for (int half = LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++) a[j] += a[j + half];
    return a[0];
}

static double row_sum(const real *x, int64_t d) {
    double lane[LANES] = {0};
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += (double)x[k + j];
    for (int j = 0; k < d; k++, j++) lane[j] += (double)x[k];
    return lanes_total(lane);
}

static double row_squares(const real *x, int64_t d, double mean) {
    double lane[LANES] = {0};
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES) {
        for (int j = 0; j < LANES; j++) {
            double u = (double)x[k + j] - mean;
            lane[j] += u * u;
        }
    }
    for (int j = 0; k < d; k++, j++) {
        double u = (double)x[k] - mean;
        lane[j] += u * u;
    }
    return lanes_total(lane);
}

static double divisor(const norm_call *c, const row_rule *rule, double deviation) {
    double eps = c->options->eps;
    return rule->eps_outside ? deviation + eps : sqrt(deviation * deviation + eps);
}

/* -- forward -------------------------------------------------------------------------------------
 */

size_t rows_kept_bytes(const norm_call *c) {
    return (size_t)(2 * c->rows->valid) * sizeof(double);
}

static void write_row(const norm_call *c, const row_rule *rule, const real *x, double mean,
                      double inverse, real *y) {
    int64_t d = c->features;
    const real *gamma = c->gamma, *beta = c->beta;
    if (rule->k == 0 && rule->C == 1) {
        for (int64_t k = 0; k < d; k++)
            y[k] = (real)((double)gamma[k] * (((double)x[k] - mean) * inverse) + (double)beta[k]);
        return;
    }
    for (int64_t k = 0; k < d; k++) {
        double xhat = ((double)x[k] - mean) * inverse, phi = rule->C * (1 - rule->k * xhat);
        y[k] = (real)((double)gamma[k] * (phi * xhat) + (double)beta[k]);
    }
}

sr_status rows_forward(norm_call *c, const row_rule *rule, const real *x, real *y) {
    int64_t d = c->features, n = c->rows->valid;
    double *kept = c->kept;
#pragma omp parallel for num_threads(c->threads) schedule(static) if (n > PIECE)
    for (int64_t i = 0; i < n; i++) {
        int64_t at = row_number(c, i) * d;
        double mean = rule->center ? row_sum(x + at, d) / (double)d : 0;
        double deviation = sqrt(row_squares(x + at, d, mean) / (double)(d - rule->ddof));
        kept[2 * i] = mean;
        kept[2 * i + 1] = deviation;
        write_row(c, rule, x + at, mean, 1 / divisor(c, rule, deviation), y + at);
    }
    return SR_OK;
}

/* -- backward ------------------------------------------------------------------------------------
 */

static inline double row_xhat(const row_view *r, int64_t k) {
    return ((double)r->x[k] - r->mean) * r->inverse;
}

static inline double row_phi(const row_view *r, double xhat) {
    return r->C * (1 - r->k * xhat);
}

/* Sums of q and of q xhat along a row, and this row's terms of sum_g and sum_gx. */
static void row_products(const row_view *r, double *sum_g, double *sum_gx, double *q_total,
                         double *qx_total) {
    double lane_q[LANES] = {0}, lane_qx[LANES] = {0};
    for (int64_t from = 0; from < r->d; from += LANES) {
        int64_t width = r->d - from < LANES ? r->d - from : LANES;
        for (int64_t j = 0; j < width; j++) {
            int64_t k = from + j;
            double xhat = row_xhat(r, k), g = (double)r->g[k], gp = g * row_phi(r, xhat);
            double q = (double)r->gamma[k] * gp;
            sum_g[k] += g;
            sum_gx[k] += gp * xhat;
            lane_q[j] += q;
            lane_qx[j] += q * xhat;
        }
    }
    *q_total = lanes_total(lane_q);
    *qx_total = lanes_total(lane_qx);
}

static inline double row_gradient(const row_view *r, int64_t k) {
    double xhat = row_xhat(r, k);
    double q = (double)r->gamma[k] * ((double)r->g[k] * row_phi(r, xhat));
    return (q - r->mean_q - xhat * r->along) * r->inverse;
}

/* Mean and biased variance of a row of doubles, added to sum[0] and sum[1]. */
static void add_mean_variance(const double *a, int64_t d, double *sum) {
    double total = 0, square = 0;
    for (int64_t k = 0; k < d; k++) total += a[k];
    double mean = total / (double)d;
    for (int64_t k = 0; k < d; k++) square += (a[k] - mean) * (a[k] - mean);
    sum[0] += mean;
    sum[1] += square / (double)d;
}

static void observe_row(const row_view *r, double *scratch, double *sum) {
    for (int64_t k = 0; k < r->d; k++) scratch[k] = row_gradient(r, k);
    add_mean_variance(scratch, r->d, sum);
    for (int64_t k = 0; k < r->d; k++) scratch[k] = (double)r->gamma[k] * (double)r->g[k];
    add_mean_variance(scratch, r->d, sum + 2);
}

/* Rows first .. end-1: dx, and the piece's sums [2 d + ROW_SCALARS + d of scratch]. */
static void piece_backward(const norm_call *c, const row_rule *rule, const real *x, const real *dy,
                           real *dx, int64_t first, int64_t end, double *part) {
    int64_t d = c->features;
    const double *kept = c->kept;
    memset(part, 0, (size_t)(2 * d + ROW_SCALARS) * sizeof *part);
    for (int64_t i = first; i < end; i++) {
        int64_t at = row_number(c, i) * d;
        double deviation = kept[2 * i + 1], s = divisor(c, rule, deviation), q, qx;
        row_view r = {d, x + at, dy + at, c->gamma, kept[2 * i], 1 / s, 0, 0, rule->C, rule->k};
        row_products(&r, part, part + d, &q, &qx);
        if (rule->center && !rule->detach_mean) r.mean_q = q / (double)d;
        if (!rule->detach_std && deviation != 0)
            r.along = qx / (double)(d - rule->ddof) * (rule->eps_outside ? s / deviation : 1);
        for (int64_t k = 0; k < d; k++) dx[at + k] = (real)row_gradient(&r, k);
        if (c->observed) observe_row(&r, part + 2 * d + ROW_SCALARS, part + 2 * d);
    }
}

sr_status rows_backward(norm_call *c, const row_rule *rule, const real *x, const real *dy,
                        real *dx) {
    int64_t d = c->features, n = c->rows->valid, pieces = (n + PIECE - 1) / PIECE;
    int64_t width = 3 * d + ROW_SCALARS;
    double *part = tape_alloc(c->tape, (size_t)(pieces * width) * sizeof *part);
    if (!part) return SR_MEMORY;
#pragma omp parallel for num_threads(c->threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        int64_t end = (i + 1) * PIECE < n ? (i + 1) * PIECE : n;
        piece_backward(c, rule, x, dy, dx, i * PIECE, end, part + i * width);
    }
    for (int64_t i = 1; i < pieces; i++)
        for (int64_t k = 0; k < 2 * d + ROW_SCALARS; k++) part[k] += part[i * width + k];
    memcpy(c->stat[NORM_sum_g], part, (size_t)d * sizeof *part);
    memcpy(c->stat[NORM_sum_gx], part + d, (size_t)d * sizeof *part);
    if (!c->observed) return SR_OK;
    const norm_scalar place[ROW_SCALARS] = {NORM_SCALAR_row_grad_mean, NORM_SCALAR_row_grad_var,
                                            NORM_SCALAR_row_g_mean, NORM_SCALAR_row_g_var};
    for (int j = 0; j < ROW_SCALARS; j++) c->scalar[place[j]] = part[2 * d + j] / (double)n;
    return SR_OK;
}
