/* detachnorm.c -- DetachNorm (Xu et al., NeurIPS 2019; docs/norms.md 5): LayerNorm-simple whose
 * backward pass treats statistics as constants.
 *
 * Per row over its d features, g = dL/dy, y = (x - mean[x])/s:
 *
 *     detach-mean   dx = (g - y mean[g y]) / s
 *     detach-std    dx = (g - mean[g]) / s
 *     detach-both   dx = g / s
 *
 * detach-std cuts off the whole standard deviation. The three methods differ in
 * `constants`. As released: see ln_simple.c. row_stats.c has the kernel and the kept values.
 */
#include "norm/kernels/row_stats.h"
#include "norm/methods/methods.h"

const norm_method norm_detach_mean = {
    .name = "detach-mean",
    .citation = "Xu et al., NeurIPS 2019",
    .axis = "row",
    .family = NORM_FAMILY_ROW,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .constants = NORM_BIT(mu),
    .summary = "LayerNorm-simple, no gradient through the mean",
    .eps = 1e-5,
    .param = {ROW_STATS_RELEASE_PARAMS},
    .vectors = ROW_STATS_VECTORS,
    .scalars = ROW_STATS_THEOREM_SCALARS,
    .kept_bytes = row_stats_kept_bytes,
    .forward = row_stats_centered_forward,
    .recompute = row_stats_centered_forward, /* there is no state */
    .backward = row_stats_centered_backward,
};

const norm_method norm_detach_std = {
    .name = "detach-std",
    .citation = "Xu et al., NeurIPS 2019",
    .axis = "row",
    .family = NORM_FAMILY_ROW,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .constants = NORM_BIT(sigma2),
    .summary = "LayerNorm-simple, no gradient through the standard deviation",
    .eps = 1e-5,
    .param = {ROW_STATS_RELEASE_PARAMS},
    .vectors = ROW_STATS_VECTORS,
    .scalars = ROW_STATS_THEOREM_SCALARS,
    .kept_bytes = row_stats_kept_bytes,
    .forward = row_stats_centered_forward,
    .recompute = row_stats_centered_forward, /* there is no state */
    .backward = row_stats_centered_backward,
};

const norm_method norm_detach_both = {
    .name = "detach-both",
    .citation = "Xu et al., NeurIPS 2019",
    .axis = "row",
    .family = NORM_FAMILY_ROW,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .constants = NORM_BIT(mu) | NORM_BIT(sigma2),
    .summary = "LayerNorm-simple, no gradient through mean and standard deviation",
    .eps = 1e-5,
    .param = {ROW_STATS_RELEASE_PARAMS},
    .vectors = ROW_STATS_VECTORS,
    .scalars = ROW_STATS_THEOREM_SCALARS,
    .kept_bytes = row_stats_kept_bytes,
    .forward = row_stats_centered_forward,
    .recompute = row_stats_centered_forward, /* there is no state */
    .backward = row_stats_centered_backward,
};
