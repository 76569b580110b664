/* derf.c -- Derf (Chen, Lu, Zhu, Sun and Liu, 2025, arXiv 2512.10938; docs/norms.md 20).
 *
 *     forward   z = alpha x + s    y = gamma erf(z) + beta, element by element; alpha and s one
 *               number of the layer each
 *     backward  erf'(z) = 2/sqrt(pi) exp(-z^2)    dx = gamma g erf'(z) alpha
 *               dalpha = sum gamma g erf'(z) x    ds = sum gamma g erf'(z)
 *               sum_g = sum g (= dbeta)    sum_gx = sum g erf(z) (= dgamma)
 *
 * The options alpha0 and s0 initialize alpha and s. No statistic, no eps, no state; kernel:
 * pointwise.c.
 */
#include <math.h>

#include "norm/kernels/pointwise.h"
#include "norm/methods/methods.h"

static double slope(double z, double f) {
    static const double two_by_root_pi = 1.12837916709551257390;
    (void)f;
    return two_by_root_pi * exp(-z * z);
}

static pointwise_rule rule_of(const norm_call *c) {
    return (pointwise_rule){.value = erf,
                            .slope = slope,
                            .alpha = (double)c->own[POINTWISE_ALPHA][0],
                            .shift = (double)c->own[POINTWISE_SHIFT][0]};
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    pointwise_rule rule = rule_of(c);
    return pointwise_forward(c, &rule, x, y);
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    pointwise_rule rule = rule_of(c);
    return pointwise_backward(c, &rule, x, dy, dx);
}

const norm_method norm_derf = {
    .name = "derf",
    .citation = "Chen et al., 2025",
    .axis = "-",
    .family = NORM_FAMILY_NONE,
    .summary = "Derf: no statistic, y = gamma erf(alpha x + s) + beta with learnt alpha and s",
    .affine = true,
    .param = {{"alpha0", 0.5, -1e9, 1e9, NULL, "alpha before the first update"},
              {"s0", 0, -1e9, 1e9, NULL, "s before the first update"}},
    .own = {{"alpha", .from = "alpha0"}, {"s", .from = "s0"}},
    .vectors = NORM_BIT(gamma),
    .forward = forward,
    .backward = backward,
};
