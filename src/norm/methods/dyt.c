/* dyt.c -- Dynamic Tanh (Zhu, Chen, He, LeCun and Liu, CVPR 2025, arXiv 2503.10622, section 4;
 * docs/norms.md 19).
 *
 *     forward   y = gamma tanh(alpha x) + beta, element by element; alpha one number of the layer
 *     backward  dx = gamma g (1 - tanh^2) alpha    dalpha = sum gamma g (1 - tanh^2) x
 *               sum_g = sum g (= dbeta)    sum_gx = sum g tanh (= dgamma)
 *
 * The option alpha0 initializes alpha. No statistic, no eps, no state; kernel: pointwise.c.
 */
#include <math.h>

#include "norm/kernels/pointwise.h"
#include "norm/methods/methods.h"

static double slope(double z, double f) {
    (void)z;
    return 1 - f * f;
}

static pointwise_rule rule_of(const norm_call *c) {
    return (pointwise_rule){
        .value = tanh, .slope = slope, .alpha = (double)c->own[POINTWISE_ALPHA][0]};
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    pointwise_rule rule = rule_of(c);
    return pointwise_forward(c, &rule, x, y);
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    pointwise_rule rule = rule_of(c);
    return pointwise_backward(c, &rule, x, dy, dx);
}

const norm_method norm_dyt = {
    .name = "dyt",
    .citation = "Zhu et al., CVPR 2025",
    .axis = "-",
    .family = NORM_FAMILY_NONE,
    .summary = "Dynamic Tanh: no statistic, y = gamma tanh(alpha x) + beta with learnt alpha",
    .affine = true,
    .param = {{"alpha0", 0.5, -1e9, 1e9, NULL, "alpha before the first update"}},
    .own = {{"alpha", .from = "alpha0"}},
    .vectors = NORM_BIT(gamma),
    .forward = forward,
    .backward = backward,
};
