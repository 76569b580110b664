/* row_stats.c -- layer normalization and its relatives: each row over its d features, no state, the
 * same in training and inference (docs/norms.md 3-7).
 *
 *     forward   u = x - mean[x] (or x)    v = sum[u^2]/(d - ddof)
 *               s = sqrt(v + eps) or sqrt(v) + eps    xhat = u/s
 *               phi = C (1 - k xhat)    y = gamma phi xhat + beta
 *     backward  q = gamma phi g, phi a constant
 *               A = sum[q xhat]/(d - ddof), times s/sqrt(v) when eps is outside
 *               dx = (q - [mean[q]] - xhat [A]) / s
 *
 * The first bracket is absent when the mean is not subtracted or detached. The second is absent
 * when the standard deviation is detached or 0. sum_g = sum over rows of g, sum_gx = sum over rows
 * of g phi xhat. Kept: mean and sqrt(v) of each row, in double.
 *
 * With a hook, the statistics of Theorem 1 (Xu et al., NeurIPS 2019) are recorded (18.6): the mean
 * and biased variance of a row's features, averaged over the valid rows. They are taken of dx, as
 * written, and of gamma g. Methods that subtract the mean also record the exact values for their
 * case, from q, xhat and s alone. With qbar, D mean and biased variance of q, m = mean[q xhat]:
 *
 *     mean of dx      0, or qbar/s when the mean is detached
 *     variance of dx  D/s^2 when the standard deviation is detached or 0, else
 *                     (D - A (2 m - A mean[xhat^2])) / s^2, A the second bracket above
 *
 * This is the (D - (2 - Q) m^2)/s^2 of 18.6, Q = v/(v + eps), when eps is inside and ddof 0;
 * mean[xhat^2] = v (d - ddof)/d / s^2. AdaNorm uses q = gamma phi g instead of g. D/s^2 is the
 * variance of dx with both statistics constant, the theorem's bound.
 *
 * Sums along a row are in double, in interleaved SIMD lanes. Sums over rows are in fixed chunks
 * merged in order: bit-identical for any number of threads. */
#include "norm/kernels/row_stats.h"

#include <math.h>
#include <string.h>

#include "norm/kernels/simd_double.h"

/* Sums over rows for hooks: seven means of Theorem 1, and the squares of dx and of q/s. */
enum { CHUNK = 64, ROW_MEANS = 7, ROW_DX2 = ROW_MEANS, ROW_DIRECT2, ROW_SCALARS };

/* One row in the backward pass. */
typedef struct row_view {
    int64_t d;
    const real *x, *g, *gamma;
    double mean, inverse; /* xhat = (x - mean) * inverse */
    double mean_q, along; /* dx = (q - mean_q - xhat * along) * inverse */
    double C, k;
} row_view;

row_rule row_stats_rule(const norm_call *c) {
    const norm_method *m = c->method;
    return (row_rule){.center = true,
                      .ddof = c->options->param[ROW_STATS_UNBIASED] != 0,
                      .eps_outside = c->options->param[ROW_STATS_PLACEMENT] != 0,
                      .detach_mean = (m->constants & NORM_BIT(mu)) != 0,
                      .detach_std = (m->constants & NORM_BIT(sigma2)) != 0,
                      .gain = m->affine,
                      .C = 1};
}

static double row_sum(const real *x, int64_t d) {
    simd_double a = {0}, b = {0}, u, v;
    int64_t k = 0;
    for (; k + 2 * SIMD_WIDTH <= d; k += 2 * SIMD_WIDTH) {
        simd_double_load(&u, x + k);
        simd_double_load(&v, x + k + SIMD_WIDTH);
        a += u;
        b += v;
    }
    a += b;
    double sum = simd_double_total(&a);
    for (; k < d; k++) sum += (double)x[k];
    return sum;
}

static double row_squares(const real *x, int64_t d, double mean) {
    simd_double a = {0}, b = {0}, u, v;
    int64_t k = 0;
    for (; k + 2 * SIMD_WIDTH <= d; k += 2 * SIMD_WIDTH) {
        simd_double_load(&u, x + k);
        simd_double_load(&v, x + k + SIMD_WIDTH);
        u -= mean;
        v -= mean;
        a += u * u;
        b += v * v;
    }
    a += b;
    double sum = simd_double_total(&a);
    for (; k < d; k++) sum += ((double)x[k] - mean) * ((double)x[k] - mean);
    return sum;
}

static double divisor(const norm_call *c, const row_rule *rule, double deviation) {
    double eps = c->options->eps;
    return rule->eps_outside ? deviation + eps : sqrt(deviation * deviation + eps);
}

/* -- forward ----------------------------------------------------------------------------------- */

size_t row_stats_kept_bytes(const norm_call *c) {
    return (size_t)(2 * c->rows->valid) * sizeof(double);
}

/* y = gamma phi xhat + beta; plain: phi = 1. */
SIMD_DOUBLE_INLINE void write_row(const norm_call *c, const row_rule *rule, bool plain, bool gain,
                                  const real *x, double mean, double inverse, real *y) {
    int64_t d = c->features, k = 0;
    const real *gamma = c->gamma, *beta = c->beta;
    for (; k + SIMD_WIDTH <= d; k += SIMD_WIDTH) {
        simd_double u, a, b;
        simd_double_load(&u, x + k);
        u = (u - mean) * inverse;
        if (!plain) u *= rule->C * (1 - rule->k * u);
        if (gain) {
            simd_double_load(&a, gamma + k);
            simd_double_load(&b, beta + k);
            u = a * u + b;
        }
        simd_double_store(y + k, &u);
    }
    for (; k < d; k++) {
        double u = ((double)x[k] - mean) * inverse;
        if (!plain) u *= rule->C * (1 - rule->k * u);
        y[k] = (real)((double)gamma[k] * u + (double)beta[k]);
    }
}

static bool is_plain(const row_rule *rule) {
    return rule->C == 1 && rule->k == 0;
}

sr_status row_stats_forward(norm_call *c, const row_rule *rule, const real *x, real *y) {
    int64_t d = c->features, n = c->rows->valid;
    double *kept = c->kept;
#pragma omp parallel for num_threads(c->threads) schedule(static) if (n > CHUNK)
    for (int64_t i = 0; i < n; i++) {
        int64_t at = norm_row_number(c->rows, i) * d;
        double mean = rule->center ? row_sum(x + at, d) / (double)d : 0;
        double deviation = sqrt(row_squares(x + at, d, mean) / (double)(d - rule->ddof));
        kept[2 * i] = mean;
        kept[2 * i + 1] = deviation;
        double inverse = 1 / divisor(c, rule, deviation);
        if (rule->gain && is_plain(rule))
            write_row(c, rule, true, true, x + at, mean, inverse, y + at);
        else if (rule->gain)
            write_row(c, rule, false, true, x + at, mean, inverse, y + at);
        else if (is_plain(rule))
            write_row(c, rule, true, false, x + at, mean, inverse, y + at);
        else
            write_row(c, rule, false, false, x + at, mean, inverse, y + at);
    }
    return SR_OK;
}

/* -- backward ---------------------------------------------------------------------------------- */

static inline double row_xhat(const row_view *r, int64_t k) {
    return ((double)r->x[k] - r->mean) * r->inverse;
}

static inline double row_phi(const row_view *r, double xhat) {
    return r->C * (1 - r->k * xhat);
}

/* Sums of q and of q xhat along a row. Also this row's terms of sum_g and sum_gx, if wanted. */
SIMD_DOUBLE_INLINE void row_products(const row_view *r, bool plain, bool gain, bool sums,
                                     double *sum_g, double *sum_gx, double *q_total,
                                     double *qx_total) {
    simd_double lane_q = {0}, lane_qx = {0}, u, g, a, b;
    int64_t k = 0;
    for (; k + SIMD_WIDTH <= r->d; k += SIMD_WIDTH) {
        simd_double_load(&u, r->x + k);
        simd_double_load(&g, r->g + k);
        u = (u - r->mean) * r->inverse;
        if (sums) {
            simd_double_load_double(&a, sum_g + k);
            a += g;
            simd_double_store_double(sum_g + k, &a);
        }
        if (!plain) g *= r->C * (1 - r->k * u);
        if (sums) {
            simd_double_load_double(&b, sum_gx + k);
            b += g * u;
            simd_double_store_double(sum_gx + k, &b);
        }
        if (gain) {
            simd_double_load(&a, r->gamma + k);
            g *= a;
        }
        lane_q += g;
        lane_qx += g * u;
    }
    *q_total = simd_double_total(&lane_q);
    *qx_total = simd_double_total(&lane_qx);
    for (; k < r->d; k++) {
        double xhat = row_xhat(r, k), gp = (double)r->g[k];
        sum_g[k] += gp;
        if (!plain) gp *= row_phi(r, xhat);
        sum_gx[k] += gp * xhat;
        gp *= (double)r->gamma[k];
        *q_total += gp;
        *qx_total += gp * xhat;
    }
}

SIMD_DOUBLE_INLINE void row_write_gradient(const row_view *r, bool plain, bool gain, real *dx) {
    int64_t k = 0;
    for (; k + SIMD_WIDTH <= r->d; k += SIMD_WIDTH) {
        simd_double u, g, a;
        simd_double_load(&u, r->x + k);
        simd_double_load(&g, r->g + k);
        u = (u - r->mean) * r->inverse;
        if (!plain) g *= r->C * (1 - r->k * u);
        if (gain) {
            simd_double_load(&a, r->gamma + k);
            g *= a;
        }
        u = (g - r->mean_q - u * r->along) * r->inverse;
        simd_double_store(dx + k, &u);
    }
    for (; k < r->d; k++) {
        const double xhat = row_xhat(r, k);
        const double q = (double)r->gamma[k] * ((double)r->g[k] * row_phi(r, xhat));
        dx[k] = (real)((q - r->mean_q - xhat * r->along) * r->inverse);
    }
}

/* -- statistics for hooks ---------------------------------------------------------------------- */

/* Mean and biased variance of a row. */
typedef struct row_moments {
    double mean, variance;
} row_moments;

/* sum (a - center), or of its square, in four chains of additions. */
SIMD_DOUBLE_INLINE double deviations(const double *a, int64_t d, double center, bool squared) {
    simd_double lane[4] = {0}, u;
    int64_t k = 0;
    for (; k + 4 * SIMD_WIDTH <= d; k += 4 * SIMD_WIDTH) {
        for (int j = 0; j < 4; j++) {
            simd_double_load_double(&u, a + k + j * SIMD_WIDTH);
            u -= center;
            lane[j] += squared ? u * u : u;
        }
    }
    lane[0] = (lane[0] + lane[1]) + (lane[2] + lane[3]);
    double sum = simd_double_total(lane);
    for (; k < d; k++) sum += (a[k] - center) * (squared ? a[k] - center : 1);
    return sum;
}

static row_moments moments_of(const double *a, int64_t d) {
    const double mean = deviations(a, d, 0, false) / (double)d;
    return (row_moments){mean, deviations(a, d, mean, true) / (double)d};
}

/* gamma phi g [d], gamma g without phi */
static void row_q(const row_view *r, bool phi, double *q) {
    simd_double u, g, a;
    int64_t k = 0;
    for (; k + SIMD_WIDTH <= r->d; k += SIMD_WIDTH) {
        simd_double_load(&g, r->g + k);
        simd_double_load(&a, r->gamma + k);
        simd_double_load(&u, r->x + k);
        if (phi) g *= r->C * (1 - r->k * ((u - r->mean) * r->inverse));
        g *= a;
        simd_double_store_double(q + k, &g);
    }
    for (; k < r->d; k++)
        q[k] = (double)r->gamma[k] * (double)r->g[k] * (phi ? row_phi(r, row_xhat(r, k)) : 1);
}

static void widen_row(const real *from, int64_t d, double *to) {
    simd_double u;
    int64_t k = 0;
    for (; k + SIMD_WIDTH <= d; k += SIMD_WIDTH) {
        simd_double_load(&u, from + k);
        simd_double_store_double(to + k, &u);
    }
    for (; k < d; k++) to[k] = (double)from[k];
}

/* Exact values of Theorem 1 from the moments of q, along = mean[q xhat] and the divisor s. */
static row_moments exact_moments(const row_rule *rule, const row_view *r, row_moments of_q,
                                 double along, double deviation, double s) {
    row_moments exact = {rule->detach_mean ? of_q.mean / s : 0, of_q.variance / (s * s)};
    if (rule->detach_std || deviation == 0) return exact;
    const double ratio = (double)r->d / (double)(r->d - rule->ddof);
    const double square = deviation * deviation / (s * s) / ratio;
    const double factor = along * ratio * (rule->eps_outside ? s / deviation : 1);
    exact.variance -= factor * (2 * along - factor * square) / (s * s);
    return exact;
}

/* Sum of the squares of the row's d values. */
static double square_of(row_moments m, int64_t d) {
    return (double)d * (m.variance + m.mean * m.mean);
}

static void add_moments(row_moments m, double *sum) {
    sum[0] += m.mean;
    sum[1] += m.variance;
}

/* Moments from sums of d differences from `near` and of their squares. As exact as from the mean,
 * if `near` is within a few standard deviations of it. */
static row_moments moments_near(double near, double sum, double squares, int64_t d) {
    const double n = (double)d, mean = sum / n, variance = (squares - sum * mean) / n;
    return (row_moments){near + mean, variance < 0 ? 0 : variance};
}

/* Moments of q = gamma g and of dx in one pass. On entry each mean is a number near the mean. */
static void plain_moments(const row_view *r, const real *dx, row_moments *of_q,
                          row_moments *of_dx) {
    simd_double q = {0}, q2 = {0}, x = {0}, x2 = {0}, u, v, a;
    int64_t k = 0;
    for (; k + SIMD_WIDTH <= r->d; k += SIMD_WIDTH) {
        simd_double_load(&u, r->g + k);
        simd_double_load(&a, r->gamma + k);
        simd_double_load(&v, dx + k);
        u = u * a - of_q->mean;
        v -= of_dx->mean;
        q += u, q2 += u * u;
        x += v, x2 += v * v;
    }
    double sum[4] = {simd_double_total(&q), simd_double_total(&q2), simd_double_total(&x),
                     simd_double_total(&x2)};
    for (; k < r->d; k++) {
        const double t = (double)r->gamma[k] * (double)r->g[k] - of_q->mean;
        const double w = (double)dx[k] - of_dx->mean;
        sum[0] += t, sum[1] += t * t;
        sum[2] += w, sum[3] += w * w;
    }
    *of_q = moments_near(of_q->mean, sum[0], sum[1], r->d);
    *of_dx = moments_near(of_dx->mean, sum[2], sum[3], r->d);
}

/* Moments of one row. */
typedef struct row_found {
    row_moments of_g, of_q, of_dx; /* gamma g, q, dx */
} row_found;

static row_found find_plain(const row_view *r, const real *dx, double q) {
    row_found f = {.of_q = {q, 0}, .of_dx = {(q - r->mean_q) * r->inverse, 0}};
    plain_moments(r, dx, &f.of_q, &f.of_dx);
    f.of_g = f.of_q;
    return f;
}

/* scratch [d] */
static row_found find_row(const row_view *r, bool gain, const real *dx, double *scratch) {
    row_found f;
    row_q(r, gain, scratch); /* with a gain phi is a constant factor of it (unit_norm.c) */
    f.of_g = f.of_q = moments_of(scratch, r->d);
    if (!gain) {
        row_q(r, true, scratch);
        f.of_q = moments_of(scratch, r->d);
    }
    widen_row(dx, r->d, scratch);
    f.of_dx = moments_of(scratch, r->d);
    return f;
}

/* along: mean[q xhat]; sum [ROW_SCALARS] */
static void measure_row(const norm_call *c, const row_rule *rule, const row_view *r,
                        const row_found *f, double along, double deviation, double *sum) {
    const double s = divisor(c, rule, deviation);
    add_moments(f->of_g, sum + 2);
    if (rule->center) {
        add_moments(exact_moments(rule, r, f->of_q, along, deviation, s), sum + 4);
        sum[6] += f->of_q.variance / (s * s);
    }
    add_moments(f->of_dx, sum);
    sum[ROW_DX2] += square_of(f->of_dx, r->d);
    sum[ROW_DIRECT2] += square_of(f->of_q, r->d) / (s * s);
}

/* -- a chunk of the rows ----------------------------------------------------------------------- */

/* Rows first .. end-1: dx, and the chunk's sums [2 d + ROW_SCALARS + d of scratch]. */
static void chunk_backward(const norm_call *c, const row_rule *rule, const real *x, const real *dy,
                           real *dx, int64_t first, int64_t end, double *part) {
    int64_t d = c->features;
    const double *kept = c->kept;
    bool plain = is_plain(rule);
    memset(part, 0, (size_t)(2 * d + ROW_SCALARS) * sizeof *part);
    for (int64_t i = first; i < end; i++) {
        int64_t at = norm_row_number(c->rows, i) * d;
        double deviation = kept[2 * i + 1], s = divisor(c, rule, deviation), q, qx;
        row_view r = {d, x + at, dy + at, c->gamma, kept[2 * i], 1 / s, 0, 0, rule->C, rule->k};
        if (rule->gain && plain)
            row_products(&r, true, true, true, part, part + d, &q, &qx);
        else if (rule->gain)
            row_products(&r, false, true, true, part, part + d, &q, &qx);
        else if (plain)
            row_products(&r, true, false, c->has_hook, part, part + d, &q, &qx);
        else
            row_products(&r, false, false, c->has_hook, part, part + d, &q, &qx);
        if (rule->center && !rule->detach_mean) r.mean_q = q / (double)d;
        if (!rule->detach_std && deviation != 0)
            r.along = qx / (double)(d - rule->ddof) * (rule->eps_outside ? s / deviation : 1);
        if (rule->gain && plain)
            row_write_gradient(&r, true, true, dx + at);
        else if (rule->gain)
            row_write_gradient(&r, false, true, dx + at);
        else if (plain)
            row_write_gradient(&r, true, false, dx + at);
        else
            row_write_gradient(&r, false, false, dx + at);
        if (!c->has_hook) continue;
        const row_found f = plain ? find_plain(&r, dx + at, q / (double)d)
                                  : find_row(&r, rule->gain, dx + at, part + 2 * d + ROW_SCALARS);
        measure_row(c, rule, &r, &f, qx / (double)d, deviation, part + 2 * d);
    }
}

/* sum [ROW_SCALARS] over all rows. */
static void record_means(norm_call *c, const row_rule *rule, const double *sum) {
    const double n = (double)c->rows->valid;
    static const norm_scalar scalar_of[ROW_MEANS] = {
        NORM_SCALAR_row_grad_mean, NORM_SCALAR_row_grad_var,   NORM_SCALAR_row_g_mean,
        NORM_SCALAR_row_g_var,     NORM_SCALAR_row_exact_mean, NORM_SCALAR_row_exact_var,
        NORM_SCALAR_row_free_var};
    for (int j = 0; j < (rule->center ? ROW_MEANS : 4); j++) c->scalar[scalar_of[j]] = sum[j] / n;
    c->scalar[NORM_SCALAR_dx_norm] = sqrt(sum[ROW_DX2]);
    c->scalar[NORM_SCALAR_direct_norm] = sqrt(sum[ROW_DIRECT2]);
}

sr_status row_stats_backward(norm_call *c, const row_rule *rule, const real *x, const real *dy,
                             real *dx) {
    int64_t d = c->features, n = c->rows->valid, width = 3 * d + ROW_SCALARS;
    int64_t chunks = n ? (n + CHUNK - 1) / CHUNK : 1; /* sums are zeros in a process without rows */
    const size_t bytes = (size_t)(chunks * width) * sizeof(double);
    double *part = tape_borrow(c->tape, bytes);
    if (!part) return SR_MEMORY;
#pragma omp parallel for num_threads(c->threads) schedule(static) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        int64_t end = (i + 1) * CHUNK < n ? (i + 1) * CHUNK : n;
        chunk_backward(c, rule, x, dy, dx, i * CHUNK, end, part + i * width);
    }
    for (int64_t i = 1; i < chunks; i++)
        for (int64_t k = 0; k < 2 * d + ROW_SCALARS; k++) part[k] += part[i * width + k];
    memcpy(c->stat[NORM_sum_g], part, (size_t)d * sizeof *part);
    memcpy(c->stat[NORM_sum_gx], part + d, (size_t)d * sizeof *part);
    if (c->has_hook) record_means(c, rule, part + 2 * d);
    tape_return(c->tape, part, bytes);
    return SR_OK;
}

sr_status row_stats_centered_forward(norm_call *c, const real *x, real *y) {
    const row_rule rule = row_stats_rule(c);
    return row_stats_forward(c, &rule, x, y);
}

sr_status row_stats_centered_backward(norm_call *c, const real *x, const real *dy, real *dx) {
    const row_rule rule = row_stats_rule(c);
    return row_stats_backward(c, &rule, x, dy, dx);
}
