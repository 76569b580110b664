/* unit_norm.c -- unit norm with a scale vector, from nGPT (docs/norms.md 23).
 *
 * Loshchilov, Hsieh, Sun and Ginsburg, ICLR 2025, arXiv 2410.01131, equations 15 and 16, section
 * 2.5.
 *
 * Per row over its d features, g = dL/dy:
 *
 *     forward   r = sqrt(sum x^2 + eps)    z = x/r    s = p s_init/s_scale    y = s z
 *     backward  q = s g    dx = (q - z sum[q z])/r    dp = s_init/s_scale sum over rows of g z
 *
 * p [d] is learned. It is initialized to s_scale, hence s to s_init. An optimizer with steps of
 * fixed size moves s by s_init/s_scale times as much. s_scale = 0 means 1/sqrt(d). No bias. The
 * paper has no eps; here it only matters for rows of zeros, whose z would be NaN.
 *
 * Recorded: gamma is s, sum_gx = sum g z. row_stats.c has the kernel and the kept values, with
 * "variance" sum x^2. After them s [d] is kept for the observer of batch statistics.
 */
#include <math.h>

#include "norm/kernels/row_stats.h"
#include "norm/methods/methods.h"

enum { PARAM_S_INIT, PARAM_S_SCALE };

static double first_p(const norm_options *o, int64_t features) {
    const double scale = o->param[PARAM_S_SCALE];
    return scale > 0 ? scale : 1 / sqrt((double)features);
}

static size_t kept_bytes(const norm_call *c) {
    return row_stats_kept_bytes(c) + (size_t)c->features * sizeof(real);
}

/* sum x^2 = sum/(d - (d - 1)); the ratio is the constant factor of the gain. */
static row_rule rule_of(const norm_call *c) {
    const double ratio = c->options->param[PARAM_S_INIT] / first_p(c->options, c->features);
    return (row_rule){.ddof = (int)(c->features - 1), .gain = true, .C = ratio};
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    row_rule rule = rule_of(c);
    real *s = (real *)((char *)c->kept + row_stats_kept_bytes(c));
    c->gamma = c->own[0];
    sr_status status = row_stats_forward(c, &rule, x, y);
    for (int64_t k = 0; k < c->features; k++) {
        c->stat[NORM_gamma][k] = (double)c->own[0][k] * rule.C;
        s[k] = (real)c->stat[NORM_gamma][k];
    }
    c->gamma = s;
    return status;
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    row_rule rule = rule_of(c);
    const real *s = c->gamma;
    c->gamma = c->own[0];
    sr_status status = row_stats_backward(c, &rule, x, dy, dx);
    c->gamma = s;
    if (status != SR_OK) return status;
    for (int64_t k = 0; k < c->features; k++) {
        c->own_grad[0][k] = c->stat[NORM_sum_gx][k];
        c->stat[NORM_sum_gx][k] /= rule.C;
    }
    return SR_OK;
}

const norm_method norm_unit = {
    .name = "unit",
    .citation = "Loshchilov et al., ICLR 2025",
    .axis = "row",
    .family = NORM_FAMILY_ROW,
    .uses = NORM_BIT(psi2),
    .summary = "unit norm of every row times a learnt vector, as in nGPT",
    .eps = 1e-12,
    .param = {{"s_init", 1, 1e-9, 1e9, NULL, "scale before the first update"},
              {"s_scale", 0, 0, 1e9, NULL,
               "size of the learnt numbers before the first update; 0: 1/sqrt(features)"}},
    .own = {{"s", true, .first = first_p}},
    .vectors = ROW_STATS_VECTORS,
    .scalars = ROW_STATS_SCALARS,
    .kept_bytes = kept_bytes,
    .forward = forward,
    .recompute = forward, /* there is no state */
    .backward = backward,
};
