/* instancenorm.c -- instance normalization (Ulyanov, Vedaldi and Lempitsky, 2016; docs/norms.md 9).
 *
 * GroupNorm with one feature per group. Mean and biased variance of a feature cover the valid rows
 * of one sample (an image, a sentence). A sample with one valid row gives y = beta and dx = 0. No
 * running statistics. group_stats.c has formulas, shapes and kept values.
 */
#include "norm/kernels/group_stats.h"
#include "norm/methods/methods.h"

static sr_status forward(norm_call *c, const real *x, real *y) {
    return group_stats_forward(c, c->features, x, y);
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    return group_stats_backward(c, c->features, x, dy, dx);
}

const norm_method norm_instancenorm = {
    .name = "instancenorm",
    .citation = "Ulyanov, Vedaldi and Lempitsky, 2016",
    .axis = "sample",
    .family = NORM_FAMILY_ROW,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .summary = "instance normalization: each feature over a sample's rows",
    .affine = true,
    .eps = 1e-5,
    .vectors = NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx),
    .kept_bytes = group_stats_kept_bytes,
    .forward = forward,
    .backward = backward,
};
