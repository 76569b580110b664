/* Power of a site's input, feature by feature: outlier features, mean direction, power and
 * variance, dead features.
 *
 * d is the width of the site; mu_B, sigma2_B, psi2_B are the batch's over its valid rows. s_j =
 * sqrt(psi2_B[j]) is the root mean square of feature ("neuron") j:
 *
 *     kurtosis   = mean_j s_j^4 / (mean_j s_j^2)^2 = d sum_j psi2_B[j]^2 / (sum_j psi2_B[j])^2
 *     mean_share = sum_j mu_B[j]^2 / sum_j psi2_B[j]
 *     power      = mean_j psi2_B[j]
 *     variance   = mean_j sigma2_B[j]
 *     largest    = max_j sigma2_B[j]
 *     dead       = fraction of the features with sigma2_B[j] < eps of the site
 *
 * kurtosis: He et al., Understanding and Minimising Outlier Features in Transformer Training,
 * NeurIPS 2024 (arXiv 2405.19279), section 2. Its moments are about 0, not about the mean of s. It
 * is 1 if all features have one size, and d if one feature has all of the power. The released code
 * computes another number (docs/definitions.md).
 *
 * power and variance by depth: Kim et al., Peri-LN, ICML 2025 (arXiv 2502.02732); Sun et al., The
 * Curse of Depth (arXiv 2502.05795). mean_share is the part of the power that all rows share;
 * 1 - mean_share of it is variance. At a site whose rows are all zero, kurtosis and mean_share are
 * 0/0, NaN. `statrec diagnose` computes its own dead and growth (diagnose_features.c): from psi2_B
 * at sites that divide by psi, without values that are not finite.
 */
#include <math.h>

#include "analysis/series/statistic.h"

static double sum_of(const double *x, int64_t d) {
    double sum = 0;
    for (int64_t j = 0; j < d; j++) sum += x[j];
    return sum;
}

static double sum_of_squares(const double *x, int64_t d) {
    double sum = 0;
    for (int64_t j = 0; j < d; j++) sum += x[j] * x[j];
    return sum;
}

static double kurtosis(const vector_row *r) {
    const double sum = sum_of(r->v[SR_psi2_B], r->width);
    return (double)r->width * sum_of_squares(r->v[SR_psi2_B], r->width) / (sum * sum);
}

static double mean_share(const vector_row *r) {
    const double power = sum_of(r->v[SR_psi2_B], r->width);
    return isinf(power) ? NAN : sum_of_squares(r->v[SR_mu_B], r->width) / power;
}

static double power(const vector_row *r) {
    return sum_of(r->v[SR_psi2_B], r->width) / (double)r->width;
}

static double variance(const vector_row *r) {
    return sum_of(r->v[SR_sigma2_B], r->width) / (double)r->width;
}

/* NaN where any is not finite, as in a sum. */
static double largest(const vector_row *r) {
    const double *v = r->v[SR_sigma2_B];
    double most = v[0];
    for (int64_t j = 0; j < r->width; j++) {
        if (!isfinite(v[j])) return NAN;
        if (v[j] > most) most = v[j];
    }
    return most;
}

static double dead(const vector_row *r) {
    int64_t under = 0;
    for (int64_t j = 0; j < r->width; j++) {
        if (!isfinite(r->v[SR_sigma2_B][j])) return NAN;
        under += r->v[SR_sigma2_B][j] < r->eps;
    }
    return (double)under / (double)r->width;
}

const statistic feature_statistics[FEATURE_STATISTICS] = {
    {"kurtosis", "kurtosis",
     "outlier features: mean psi2_B^2 / (mean psi2_B)^2 over features, from 1 to their number",
     NEEDS(psi2_B), kurtosis, NULL},
    {"mean_share", "mean_share", "share of the mean direction: sum mu_B^2 / sum psi2_B",
     NEEDS(mu_B) | NEEDS(psi2_B), mean_share, NULL},
    {"power", "power", "mean over features of psi2_B", NEEDS(psi2_B), power, NULL},
    {"variance", "variance", "mean over features of sigma2_B", NEEDS(sigma2_B), variance, NULL},
    {"largest", "largest", "largest sigma2_B of a feature", NEEDS(sigma2_B), largest, NULL},
    {"dead", "dead", "share of the features with sigma2_B < eps", NEEDS(sigma2_B), dead, NULL},
};
