/* adanorm.c -- AdaNorm (Xu et al., NeurIPS 2019; docs/norms.md 6).
 *
 * Per row over its d features, g = dL/dz, y the output of LayerNorm-simple:
 *
 *     forward   phi = C (1 - k y)    z = phi y
 *     backward  q = phi g, phi a constant
 *               dx = (q - mean[q] - y mean[q y]) / s
 *
 * No parameters to train. k = 1/10; C depends on the task (the paper has 0.3 to 2). As released
 * (unbiased = 1, placement = outside): see ln_simple.c; C is 2 there by default. phi is negative
 * for y > 10, which is not clipped. row_stats.c has the kernel and the kept values.
 */
#include "norm/kernels/row_stats.h"
#include "norm/methods/methods.h"

enum { PARAM_C = ROW_STATS_PARAMS, PARAM_K };

static row_rule rule_of(const norm_call *c) {
    row_rule rule = row_stats_rule(c);
    rule.C = c->options->param[PARAM_C];
    rule.k = c->options->param[PARAM_K];
    return rule;
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    row_rule rule = rule_of(c);
    return row_stats_forward(c, &rule, x, y);
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    row_rule rule = rule_of(c);
    return row_stats_backward(c, &rule, x, dy, dx);
}

const norm_method norm_adanorm = {
    .name = "adanorm",
    .citation = "Xu et al., NeurIPS 2019",
    .axis = "row",
    .family = NORM_FAMILY_ROW,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .summary = "LayerNorm-simple times C (1 - k y), a constant in the backward pass",
    .eps = 1e-5,
    .param = {ROW_STATS_RELEASE_PARAMS,
              {"C", 1, -1e6, 1e6, NULL, "scale of phi = C (1 - k y)", .option = "adanorm-c",
               .place = 10},
              {"k", 0.1, -1e6, 1e6, NULL, "slope of phi", .option = "adanorm-k", .place = 11}},
    .vectors = ROW_STATS_VECTORS,
    .scalars = ROW_STATS_THEOREM_SCALARS,
    .kept_bytes = row_stats_kept_bytes,
    .forward = forward,
    .recompute = forward, /* there is no state */
    .backward = backward,
};
