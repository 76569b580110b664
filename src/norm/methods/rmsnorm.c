/* rmsnorm.c -- RMSNorm (Zhang and Sennrich, NeurIPS 2019; docs/norms.md 7).
 *
 * Per row over its d features, g = dL/dy, q = gamma g, r2 = mean[x^2]:
 *
 *     forward   inside:  s = sqrt(r2 + eps)      z = x/s    y = gamma z + beta
 *               outside: s = sqrt(r2) + eps
 *     backward  inside:  dx = (q - z mean[q z]) / s
 *               outside: dx = (q - z mean[q z] s/sqrt(r2)) / s, second term 0 where r2 = 0
 *
 * The reference code has eps outside (1e-8) and no bias by default. Here eps is inside, and a bias
 * exists; an untrained bias keeps its initial value. row_stats.c has the kernel and the kept
 * values.
 */
#include "norm/kernels/row_stats.h"
#include "norm/methods/methods.h"

enum { PARAM_PLACEMENT };

static row_rule rule_of(const norm_call *c) {
    return (row_rule){.eps_outside = c->options->param[PARAM_PLACEMENT] != 0, .gain = true, .C = 1};
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    row_rule rule = rule_of(c);
    return row_stats_forward(c, &rule, x, y);
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    row_rule rule = rule_of(c);
    return row_stats_backward(c, &rule, x, dy, dx);
}

const norm_method norm_rmsnorm = {
    .name = "rmsnorm",
    .citation = "Zhang and Sennrich, NeurIPS 2019",
    .axis = "row",
    .family = NORM_FAMILY_ROW,
    .uses = NORM_BIT(psi2),
    .summary = "RMSNorm: layer normalization without the mean",
    .affine = true,
    .eps = 1e-5,
    .param = {{"placement", 0, 0, 1, "inside outside",
               "inside: s = sqrt(r2 + eps); outside: s = sqrt(r2) + eps, the reference code",
               .place = 12}},
    .vectors = ROW_STATS_VECTORS,
    .scalars = ROW_STATS_SCALARS,
    .kept_bytes = row_stats_kept_bytes,
    .forward = forward,
    .recompute = forward, /* there is no state */
    .backward = backward,
};
