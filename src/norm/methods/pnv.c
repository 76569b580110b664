/* pnv.c -- PN-V (Shen et al., ICML 2020, Definition 1; docs/norms.md 10).
 *
 * BN without the mean: per feature over the n valid rows, g = dL/dy,
 *
 *     forward   psi2_B = mean[x^2]  s = sqrt(psi2_B + eps)  xhat = x/s  y = gamma xhat + beta
 *     state     psi2 <- alpha psi2 + (1-alpha) psi2_B
 *     backward  sum_g = sum g (= dbeta)    sum_gx = sum g xhat (= dgamma)
 *               dx = gamma/s (g - xhat sum_gx/n)
 *
 * With running statistics s = sqrt(psi2 + eps) and dx = gamma/s g; the paper does not print this.
 * psi2_B is sigma2_B + mu_B^2, a sum of non-negative terms, so all three statistics come from one
 * sweep. Several processes: sync.c. Kept: 1/s [d] (center is zero).
 */

#include "norm/kernels/batch_stats.h"
#include "norm/methods/methods.h"

enum { STATE_PSI2 };

static sr_status forward(norm_call *c, const real *x, real *y) {
    batch_kept *k = batch_kept_start(c);
    double *psi2 = c->state[STATE_PSI2];
    if (c->rows->mode == NORM_RUNNING) {
        batch_divide(c, k, NULL, psi2);
    } else {
        sr_status status = batch_statistics(c, k, x);
        if (status != SR_OK) return status;
        batch_divide(c, k, NULL, c->stat[NORM_psi2_B]);
        batch_advance(c, k, psi2, c->stat[NORM_psi2_B], 1);
    }
    batch_normalize(c, k, x, y);
    return SR_OK;
}

const norm_method norm_pnv = {
    .name = "pnv",
    .citation = "Shen et al., ICML 2020",
    .axis = "batch",
    .family = NORM_FAMILY_PSI,
    .uses = NORM_BIT(psi2),
    .summary = "PN-V: divided by the batch's root mean square, mean kept",
    .affine = true,
    .fuses_scale = true,
    .synchronises = true,
    .eps = 1e-5,
    .alpha = 0.95,
    .state = {{"psi2", 1, NULL}},
    .vectors = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B) | NORM_BIT(psi2) |
               NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx),
    .scalars = NORM_SCALAR_BIT(g_psi2_rowmean),
    .kept_bytes = batch_kept_bytes,
    .forward = forward,
    .backward = batch_backward,
};
