/* ln_simple.c -- LayerNorm-simple (Xu et al., NeurIPS 2019; docs/norms.md 4): layer
 * normalization without gain and bias.
 *
 * Per row over its d features, g = dL/dy:
 *
 *     forward   u = x - mean[x]  v = mean[u^2]  s = sqrt(v + eps)  y = u/s
 *     backward  dx = (g - mean[g] - y mean[g y]) / s
 *
 * As released (unbiased = 1, placement = outside): v = sum[u^2]/(d-1), s = sqrt(v) + eps. The
 * release also allocates gain and bias that nothing uses. row_stats.c has the kernel and the kept
 * values.
 */
#include "norm/kernels/row_stats.h"
#include "norm/methods/methods.h"

const norm_method norm_ln_simple = {
    .name = "ln-simple",
    .citation = "Xu et al., NeurIPS 2019",
    .axis = "row",
    .family = NORM_FAMILY_ROW,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .summary = "layer normalization without gain and bias",
    .eps = 1e-5,
    .param = {ROW_STATS_RELEASE_PARAMS},
    .vectors = ROW_STATS_VECTORS,
    .scalars = ROW_STATS_THEOREM_SCALARS,
    .kept_bytes = row_stats_kept_bytes,
    .forward = row_stats_centered_forward,
    .recompute = row_stats_centered_forward, /* there is no state */
    .backward = row_stats_centered_backward,
};
