/* pn.c -- PowerNorm as the paper defines it (Shen et al., ICML 2020, Definition 3, equations 10
 * and 13; docs/norms.md 11).
 *
 * Per feature over the n valid rows, t counts calls, g = dL/dy, q = gamma g:
 *
 *     forward   psi = sqrt(psi2_(t-1) + eps)    xhat = x/psi    y = gamma xhat + beta
 *               psi2_t = alpha psi2_(t-1) + (1-alpha) psi2_B,   psi2_B = mean[x^2]
 *     backward  dx = (q - nu_(t-1) xhat) / psi
 *               Gamma = mean[xhat^2] = psi2_B/psi^2    Lambda = mean[q xhat]
 *               nu_t = nu_(t-1) (1 - (1-alpha_bwd) Gamma) + (1-alpha_bwd) Lambda
 *               sum_g = sum g (= dbeta)    sum_gx = sum g xhat (= dgamma)
 *
 * This backward pass is no derivative. psi2 starts at 1 and nu at 0 (as released; the paper is
 * silent). With running statistics (inference) psi = sqrt(psi2 + eps) and dx = q/psi. nu averages
 * gradients of earlier batches, so all batches need the same loss scale, here the summed loss.
 * Kept: 1/psi [d]; nu of the call is in the statistics.
 */
#include <math.h>

#include "norm/kernels/batch_stats.h"
#include "norm/methods/methods.h"

enum { STATE_PSI2, STATE_NU };
enum { PARAM_ALPHA_BWD };

static sr_status forward(norm_call *c, const real *x, real *y) {
    batch_kept *k = batch_kept_start(c);
    double *psi2 = c->state[STATE_PSI2];
    batch_divide(c, k, NULL, psi2);
    if (c->rows->mode != NORM_RUNNING) {
        sr_status status = batch_statistics(c, k, x);
        if (status != SR_OK) return status;
        double most = -INFINITY;
        for (int64_t j = 0; j < c->features; j++) {
            double gamma = c->stat[NORM_psi2_B][j] * k->inverse[j] * k->inverse[j];
            c->stat[NORM_Gamma_t][j] = gamma;
            if (gamma > most || isnan(gamma)) most = gamma; /* a NaN stays */
        }
        c->scalar[NORM_SCALAR_Gamma_max] = most;
        batch_advance(c, k, psi2, c->stat[NORM_psi2_B], 1);
    }
    batch_normalize(c, k, x, y);
    return SR_OK;
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    batch_kept *k = c->kept;
    sr_status status = batch_gradient_sums(c, k, x, dy);
    if (status != SR_OK) return status;
    if (c->rows->mode == NORM_RUNNING) return batch_backward_constant(c, k, dy, dx);
    /* Fills Lambda; moves nu in training. */
    double m = 1 - c->options->param[PARAM_ALPHA_BWD], *nu = c->state[STATE_NU];
    for (int64_t j = 0; j < c->features; j++) {
        double lambda = (double)c->gamma[j] * c->stat[NORM_sum_gx][j] / k->n;
        c->stat[NORM_Lambda_t][j] = lambda;
        if (c->rows->mode == NORM_TRAIN && k->n > 0)
            nu[j] = nu[j] * (1 - m * c->stat[NORM_Gamma_t][j]) + m * lambda;
    }
    batch_terms terms = batch_terms_start(c, k);
    for (int64_t j = 0; j < c->features; j++)
        terms.slope[j] = -c->stat[NORM_nu][j] * k->inverse[j] * k->inverse[j];
    return batch_combine(c, k, &terms, NULL, x, dy, dx);
}

const norm_method norm_pn = {
    .name = "pn",
    .citation = "Shen et al., ICML 2020",
    .axis = "batch",
    .family = NORM_FAMILY_PN,
    .uses = NORM_BIT(psi2),
    .summary = "PowerNorm: running quadratic mean forwards, running correction backwards",
    .affine = true,
    .fuses_scale = true,
    .synchronises = true,
    .eps = 1e-5,
    .alpha = 0.9,
    .param = {{"alpha_bwd", 0.9, 0, 1, NULL, "weight of the OLD nu in the backward pass",
               .option = "pn-alpha-bkw", .place = 1}},
    .state = {{"psi2", 1, NULL}, {"nu", 0, NULL}},
    .vectors = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B) | NORM_BIT(psi2) |
               NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx) | NORM_BIT(nu) |
               NORM_BIT(Gamma_t) | NORM_BIT(Lambda_t),
    .scalars = NORM_SCALAR_BIT(g_psi2_rowmean) | NORM_SCALAR_BIT(Gamma_max),
    .kept_bytes = batch_kept_bytes,
    .forward = forward,
    .recompute = batch_recompute,
    .backward = backward,
};
