/* groupnorm.c -- group normalization (Wu and He, ECCV 2018; docs/norms.md 8).
 *
 * Mean and biased variance cover all valid rows of one sample and the d/G features of one group.
 * group_stats.c has formulas, shapes and kept values. For images a sample is an image. For text
 * each token is a sample: GroupNorm with one group is then LN. Padded rows are excluded.
 */
#include "norm/kernels/group_stats.h"
#include "norm/methods/methods.h"

enum { PARAM_GROUPS };

static int64_t groups_of(const norm_options *o) {
    return (int64_t)o->param[PARAM_GROUPS];
}

static sr_status check(int64_t features, const norm_options *o, sr_failure *why) {
    if (features % groups_of(o) == 0) return SR_OK;
    return sr_fail(why, SR_USAGE, "groupnorm: %lld features cannot be cut into %lld groups",
                   (long long)features, (long long)groups_of(o));
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    return group_stats_forward(c, groups_of(c->options), x, y);
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    return group_stats_backward(c, groups_of(c->options), x, dy, dx);
}

const norm_method norm_groupnorm = {
    .name = "groupnorm",
    .citation = "Wu and He, ECCV 2018",
    .axis = "sample",
    .family = NORM_FAMILY_ROW,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .summary = "group normalization: over a sample's rows and a group of features",
    .affine = true,
    .token_samples = true,
    .eps = 1e-5,
    .param = {{"groups", 1, 1, 1 << 20, NULL, "groups of features; must divide the width", true,
               .place = 3}},
    .vectors = NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx),
    .check = check,
    .kept_bytes = group_stats_kept_bytes,
    .forward = forward,
    .backward = backward,
};
