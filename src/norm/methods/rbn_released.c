/* rbn_released.c -- regularized BN, and masked BN with zero weights, as the RBN code computes them
 * (docs/norms.md 14).
 *
 * V = the n valid rows, A = all rows, x = 0 in padded rows, q = gamma g, g = dL/dy:
 *
 *     forward   mu_B, v_B = mean and biased variance over V    s = sqrt(max(v_B, eps))
 *               xhat = (x - mu_B)/s, that is -mu_B/s in padded rows    y = gamma xhat + beta in A
 *     state     mu <- alpha mu + (1-alpha) mu_B    sigma2 <- alpha sigma2 + (1-alpha) v_B, then
 *     penalty   diff     lambda sum (mu - mu_B)^2 + nu sum |sigma2 - v_B|
 *               diff2    lambda sum (mu - mu_B)^2 + nu sum (sigma - sigma_B)^2
 *               reldiff  diff2's terms divided by sigma2
 *               mag      lambda sum mu_B^2 + nu sum v_B
 *     backward  dx_i = q_i/s - sum_A(q)/(n s) - [v_B >= eps] sum_A(q xhat)/n xhat_i/s
 *                      + (dP/dmu_B + 2 dP/dv_B (x_i - mu_B))/n    in valid rows, 0 in padded ones
 *               dgamma = sum over A of g xhat    dbeta = sum over A of g
 *
 * Sums run over A, divisors are n. The penalty treats the updated running statistics as constants.
 * Deviations from the release: v_B is computed without cancellation. If v_B = 0, the derivative of
 * the root in diff2 and reldiff is 0, not NaN. Inference: s = sqrt(max(sigma2, eps)). Not
 * synchronized. Kept: center, 1/s [d].
 */
#include <math.h>

#include "norm/kernels/batch_stats.h"
#include "norm/methods/methods.h"

enum { STATE_MU, STATE_SIGMA2 };
enum { PARAM_LAMBDA, PARAM_NU, PARAM_PENALTY };
enum { PENALTY_DIFF, PENALTY_DIFF2, PENALTY_RELDIFF, PENALTY_MAG };

/* For one feature: the penalty and its derivatives by mu_B and v_B. */
typedef struct term {
    double value, by_mean, by_variance;
} term;

static term difference(double lambda, double nu, int kind, double m, double v, double mu,
                       double sigma2) {
    double scale = kind == PENALTY_RELDIFF ? 1 / sigma2 : 1, s = sqrt(v) - sqrt(sigma2);
    term t = {lambda * (m - mu) * (m - mu) * scale, 2 * lambda * (m - mu) * scale, 0};
    if (kind == PENALTY_DIFF) {
        t.value += nu * fabs(v - sigma2);
        t.by_variance = v > sigma2 ? nu : v < sigma2 ? -nu : 0;
    } else {
        t.value += nu * s * s * scale;
        if (v > 0) t.by_variance = nu * s / sqrt(v) * scale;
    }
    return t;
}

static term penalty_of(const norm_call *c, int64_t j, double mu, double sigma2) {
    const double *p = c->options->param;
    double m = c->stat[NORM_mu_B][j], v = c->stat[NORM_sigma2_B][j];
    int kind = (int)p[PARAM_PENALTY];
    if (kind != PENALTY_MAG)
        return difference(p[PARAM_LAMBDA], p[PARAM_NU], kind, m, v, mu, sigma2);
    return (term){p[PARAM_LAMBDA] * m * m + p[PARAM_NU] * v, 2 * p[PARAM_LAMBDA] * m, p[PARAM_NU]};
}

static void divide(const norm_call *c, batch_kept *k, const double *center, const double *square) {
    double eps = c->options->eps;
    for (int64_t j = 0; j < c->features; j++) {
        k->center[j] = center[j];
        k->inverse[j] = 1 / sqrt(square[j] < eps ? eps : square[j]);
    }
}

static void take_penalty(const norm_call *c, const batch_kept *k) {
    double *by_mean = k->own, *by_variance = by_mean + c->features, sum = 0;
    if (c->rows->mode != NORM_TRAIN) return; /* kept memory is zero */
    for (int64_t j = 0; j < c->features; j++) {
        term t = penalty_of(c, j, c->state[STATE_MU][j], c->state[STATE_SIGMA2][j]);
        sum += t.value;
        by_mean[j] = t.by_mean;
        by_variance[j] = t.by_variance;
    }
    if (c->rows->penalty) *c->rows->penalty += sum;
}

static sr_status forward_batch(norm_call *c, batch_kept *k, const real *x) {
    const double *mean = c->stat[NORM_mu_B], *variance = c->stat[NORM_sigma2_B];
    sr_status status = batch_own_statistics(c, k, x);
    if (status != SR_OK) return status;
    divide(c, k, mean, variance);
    batch_advance(c, k, c->state[STATE_MU], mean, 1);
    batch_advance(c, k, c->state[STATE_SIGMA2], variance, 1);
    take_penalty(c, k);
    return SR_OK;
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    batch_kept *k = batch_kept_start(c);
    double *value = k->scratch + 3 * c->features;
    sr_status status = SR_OK;
    if (c->rows->mode == NORM_RUNNING)
        divide(c, k, c->state[STATE_MU], c->state[STATE_SIGMA2]);
    else
        status = forward_batch(c, k, x);
    if (status != SR_OK) return status;
    batch_normalize(c, k, x, y);
    for (int64_t j = 0; j < c->features; j++)
        value[j] = (double)c->gamma[j] * (-k->center[j] * k->inverse[j]) + (double)c->beta[j];
    return batch_fill_padded(c, value, y);
}

/* sum_g and sum_gx over all rows; dx = 0 in padded rows. */
static sr_status sums(norm_call *c, const batch_kept *k, const real *x, const real *dy, real *dx) {
    int64_t d = c->features;
    double *part = k->scratch, *unused = part + d;
    column_passes padded, m = column_passes_valid(c);
    sr_status status = column_passes_gradient_sums(&m, x, dy, k->center, k->inverse,
                                                   c->stat[NORM_sum_g], c->stat[NORM_sum_gx]);
    if (status == SR_OK) status = column_passes_padded(c, &padded);
    if (status == SR_OK)
        status = column_passes_gradient_sums(&padded, dy, dy, k->center, k->inverse, part, unused);
    if (status != SR_OK) return status;
    for (int64_t j = 0; j < d; j++) {
        c->stat[NORM_sum_g][j] += part[j];
        c->stat[NORM_sum_gx][j] -= part[j] * k->center[j] * k->inverse[j];
        part[j] = 0;
    }
    return batch_fill_padded(c, part, dx);
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    batch_kept *k = c->kept;
    const double *by_mean = k->own, *by_variance = by_mean + c->features;
    double *weight = k->scratch + 3 * c->features;
    sr_status status = sums(c, k, x, dy, dx);
    if (status != SR_OK) return status;
    if (c->rows->mode == NORM_RUNNING) return batch_backward_constant(c, k, dy, dx);
    batch_terms t = batch_statistic_terms(c, k);
    for (int64_t j = 0; j < c->features; j++) {
        if (c->stat[NORM_sigma2_B][j] < c->options->eps) t.slope[j] = 0;
        weight[j] = t.slope[j];
        t.b[j] += by_mean[j] / k->n;
        t.slope[j] += 2 * by_variance[j] / k->n;
    }
    return batch_combine(c, k, &t, weight, x, dy, dx);
}

const norm_method norm_rbn_released = {
    .name = "rbn-released",
    .citation = "Wang, Wu and Huang, NeurIPS 2022, released code",
    .axis = "batch",
    .family = NORM_FAMILY_SIGMA,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .summary = "RBN and masked BN as released: clamped variance, padding counted backwards",
    .affine = true,
    .padded = true,
    .fuses_scale = true,
    .eps = 1e-5,
    .alpha = 0.95,
    .param = {{"lambda", 0.1, 0, 1e9, NULL, "weight of the penalty on the mean",
               .option = "rbn-lambda-mean"},
              {"nu", 0.01, 0, 1e9, NULL, "weight of the penalty on the variance",
               .option = "rbn-lambda-std"},
              {"penalty", PENALTY_DIFF, 0, 3, "diff diff2 reldiff mag", "form of the penalty",
               .option = "rbn-penalty", .place = 9}},
    .state = {{"mu", 0, NULL}, {"sigma2", 1, NULL}},
    .vectors = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B) | NORM_BIT(mu) |
               NORM_BIT(sigma2) | NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx),
    .scalars = NORM_SCALAR_BIT(g_sigma2_rowmean),
    .kept_bytes = batch_kept_bytes,
    .kept_arrays = 2, /* derivatives of the penalty */
    .forward = forward,
    .backward = backward,
};
