/* bn.c -- batch normalization (Ioffe and Szegedy, ICML 2015; docs/norms.md 2).
 *
 * Per feature over the n valid rows, g = dL/dy:
 *
 *     forward   mu_B = mean[x]  sigma2_B = mean[(x - mu_B)^2]  s = sqrt(sigma2_B + eps)
 *               xhat = (x - mu_B)/s    y = gamma xhat + beta
 *     state     mu <- alpha mu + (1-alpha) mu_B    sigma2 <- alpha sigma2 + (1-alpha) sigma2_B
 *     backward  sum_g = sum g (= dbeta)    sum_gx = sum g xhat (= dgamma)
 *               dx = gamma/s (g - sum_g/n - xhat sum_gx/n)
 *
 * With running statistics (inference) center = mu, s = sqrt(sigma2 + eps) and dx = gamma/s g.
 * Option unbiased: the running variance follows sigma2_B n/(n-1), for n = 1 sigma2_B. Several
 * processes: sync.c; n and the sums run over all of them. Kept: center and 1/s [d].
 */
#include "norm/kernels/batch_stats.h"
#include "norm/methods/methods.h"

enum { STATE_MU, STATE_SIGMA2 };
enum { PARAM_UNBIASED };

static sr_status forward(norm_call *c, const real *x, real *y) {
    batch_kept *k = batch_kept_start(c);
    sr_status status = batch_standardise(c, k, x, c->state[STATE_MU], c->state[STATE_SIGMA2],
                                         c->options->param[PARAM_UNBIASED] != 0);
    if (status == SR_OK) batch_normalize(c, k, x, y);
    return status;
}

const norm_method norm_bn = {
    .name = "bn",
    .citation = "Ioffe and Szegedy, ICML 2015",
    .axis = "batch",
    .family = NORM_FAMILY_SIGMA,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .summary = "batch normalization",
    .affine = true,
    .fuses_scale = true,
    .synchronises = true,
    .eps = 1e-5,
    .alpha = 0.95,
    .param = {{"unbiased", 0, 0, 1, NULL, "1: the running variance follows sigma2_B n/(n-1)", true,
               .place = 4}},
    .state = {{"mu", 0, NULL}, {"sigma2", 1, NULL}},
    .vectors = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B) | NORM_BIT(mu) |
               NORM_BIT(sigma2) | NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx),
    .scalars = NORM_SCALAR_BIT(g_sigma2_rowmean),
    .kept_bytes = batch_kept_bytes,
    .forward = forward,
    .recompute = batch_recompute,
    .backward = batch_backward,
};
