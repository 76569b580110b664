/* ln.c -- layer normalization (Ba, Kiros and Hinton, 2016; docs/norms.md 3).
 *
 * Per row over its d features, g = dL/dy, q = gamma g:
 *
 *     forward   mu = mean[x]  v = mean[(x - mu)^2]  s = sqrt(v + eps)  xhat = (x - mu)/s
 *               y = gamma xhat + beta
 *     backward  dx = (q - mean[q] - xhat mean[q xhat]) / s
 *               sum_g = sum over rows of g (= dbeta)    sum_gx = sum over rows of g xhat (= dgamma)
 *
 * Option unbiased: the variance is sum/(d-1), as with option layer_1 of the RBN release. The last
 * term is then xhat sum[q xhat]/(d-1), and d = 1 gives NaN. row_stats.c has the kernel and the kept
 * values.
 */
#include "norm/kernels/row_stats.h"
#include "norm/methods/methods.h"

const norm_method norm_ln = {
    .name = "ln",
    .citation = "Ba, Kiros and Hinton, 2016",
    .axis = "row",
    .family = NORM_FAMILY_ROW,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .summary = "layer normalization",
    .affine = true,
    .eps = 1e-5,
    .param = {{"unbiased", 0, 0, 1, NULL, "1: variance over d-1 (RBN release, layer_1)", true}},
    .vectors = ROW_STATS_VECTORS,
    .scalars = ROW_STATS_THEOREM_SCALARS,
    .kept_bytes = row_stats_kept_bytes,
    .forward = row_stats_centered_forward,
    .recompute = row_stats_centered_forward, /* there is no state */
    .backward = row_stats_centered_backward,
};
