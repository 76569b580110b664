/* rbn.c -- regularized batch normalization (Wang, Wu and Huang, NeurIPS 2022; docs/norms.md 14).
 *
 * The forward pass is BN (bn.c). To the loss of the step is added, per layer,
 *
 *     penalty = lambda sum_k (mu_B - mu)^2 + nu sum_k (sigma_B - sigma)^2,   sigma = sqrt(sigma2)
 *
 * without eps, mu and sigma constants from before or after this call's update (option running:
 * after, as released). Every valid row then gets, besides the gradient of BN,
 *
 *     dx_i += (1/n) (2 lambda (mu_B - mu) + 2 nu (sigma_B - sigma)/sigma_B (x_i - mu_B))
 *
 * with the second term 0 where sigma_B = 0 (the root has no derivative there). gamma and beta get
 * nothing. The loss is summed, as in the release. scale = mean multiplies both weights by the token
 * count of the batch, which makes them relative to the loss per token. Only while training
 * (NORM_TRAIN). Kept: as bn.c, and mu and sigma2 of the penalty [d].
 */
#include <math.h>
#include <string.h>

#include "norm/kernels/batch_stats.h"
#include "norm/methods/methods.h"

enum { STATE_MU, STATE_SIGMA2 };
enum { PARAM_LAMBDA, PARAM_NU, PARAM_RUNNING, PARAM_SCALE };
enum { RUNNING_BEFORE, RUNNING_AFTER };

static double weight_of(const norm_call *c, int which) {
    return c->options->param[which] * (c->options->param[PARAM_SCALE] != 0 ? c->rows->tokens : 1);
}

/* Keeps the running mean and standard deviation of the penalty. */
static void keep_running(const norm_call *c, const batch_kept *k) {
    double *mu = k->own, *sigma = mu + c->features;
    for (int64_t j = 0; j < c->features; j++) {
        mu[j] = c->state[STATE_MU][j];
        sigma[j] = sqrt(c->state[STATE_SIGMA2][j]);
    }
}

/* Adds the penalty to the loss of the step, once for all processes. */
static void add_penalty(const norm_call *c, const batch_kept *k) {
    const double *mu = k->own, *sigma = mu + c->features;
    double mean_part = 0, deviation_part = 0;
    if (!c->rows->penalty || c->rows->rank != 0) return;
    for (int64_t j = 0; j < c->features; j++) {
        double m = c->stat[NORM_mu_B][j] - mu[j], s = sqrt(c->stat[NORM_sigma2_B][j]) - sigma[j];
        mean_part += m * m;
        deviation_part += s * s;
    }
    *c->rows->penalty += weight_of(c, PARAM_LAMBDA) * mean_part;
    *c->rows->penalty += weight_of(c, PARAM_NU) * deviation_part;
}

static sr_status forward_batch(norm_call *c, batch_kept *k, const real *x) {
    bool after = c->options->param[PARAM_RUNNING] == RUNNING_AFTER;
    sr_status status = batch_statistics(c, k, x);
    if (status != SR_OK) return status;
    batch_divide(c, k, c->stat[NORM_mu_B], c->stat[NORM_sigma2_B]);
    if (!after) keep_running(c, k);
    batch_advance(c, k, c->state[STATE_MU], c->stat[NORM_mu_B], 1);
    batch_advance(c, k, c->state[STATE_SIGMA2], c->stat[NORM_sigma2_B], 1);
    if (after) keep_running(c, k);
    if (c->rows->mode == NORM_TRAIN && k->n > 0) add_penalty(c, k);
    return SR_OK;
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    batch_kept *k = batch_kept_start(c);
    if (c->rows->mode == NORM_RUNNING) {
        batch_divide(c, k, c->state[STATE_MU], c->state[STATE_SIGMA2]);
    } else {
        sr_status status = forward_batch(c, k, x);
        if (status != SR_OK) return status;
    }
    batch_normalize(c, k, x, y);
    return SR_OK;
}

static void add_penalty_terms(const norm_call *c, const batch_kept *k, batch_terms *t) {
    const double *mu = k->own, *sigma = mu + c->features;
    double lambda = 2 * weight_of(c, PARAM_LAMBDA) / k->n, nu = 2 * weight_of(c, PARAM_NU) / k->n;
    for (int64_t j = 0; j < c->features; j++) {
        double sigma_B = sqrt(c->stat[NORM_sigma2_B][j]);
        t->b[j] += lambda * (c->stat[NORM_mu_B][j] - mu[j]);
        if (sigma_B > 0) t->slope[j] += nu * (sigma_B - sigma[j]) / sigma_B;
    }
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    batch_kept *k = c->kept;
    sr_status status = batch_gradient_sums(c, k, x, dy);
    if (status != SR_OK) return status;
    if (c->rows->mode == NORM_RUNNING) return batch_backward_constant(c, k, dy, dx);
    batch_terms t = batch_statistic_terms(c, k);
    double *weight = k->scratch + 3 * c->features; /* records the slope of BN alone */
    memcpy(weight, t.slope, (size_t)c->features * sizeof *weight);
    if (c->rows->mode == NORM_TRAIN) add_penalty_terms(c, k, &t);
    return batch_combine(c, k, &t, weight, x, dy, dx);
}

const norm_method norm_rbn = {
    .name = "rbn",
    .citation = "Wang, Wu and Huang, NeurIPS 2022",
    .axis = "batch",
    .family = NORM_FAMILY_SIGMA,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .summary = "regularized BN: batch statistics are drawn to the running ones by a penalty",
    .affine = true,
    .fuses_scale = true,
    .synchronises = true,
    .eps = 1e-5,
    .alpha = 0.95,
    .param = {{"lambda", 0.1, 0, 1e9, NULL, "weight of ||mu_B - mu||^2 in the loss",
               .option = "rbn-lambda-mean", .place = 5},
              {"nu", 0.01, 0, 1e9, NULL, "weight of ||sigma_B - sigma||^2 in the loss",
               .option = "rbn-lambda-std", .place = 6},
              {"running", RUNNING_AFTER, 0, 1, "before after",
               "running values of the penalty: before or after this call's update",
               .option = "rbn-running", .place = 7},
              {"scale", 0, 0, 1, "sum mean",
               "weights are relative to the summed loss, or to the loss per token",
               .option = "rbn-scale", .place = 8}},
    .state = {{"mu", 0, NULL}, {"sigma2", 1, NULL}},
    .vectors = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B) | NORM_BIT(mu) |
               NORM_BIT(sigma2) | NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx),
    .scalars = NORM_SCALAR_BIT(g_sigma2_rowmean),
    .kept_bytes = batch_kept_bytes,
    .kept_arrays = 2, /* running mean and standard deviation of the penalty */
    .forward = forward,
    .recompute = batch_recompute,
    .backward = backward,
};
