/* Values of single features. With sigma2, mu, psi2 the running values from before the update, eps
 * of the site:
 *
 *     X_difference = X_B - X                                  X = mu, sigma2, psi2
 *     mu_shift     = (mu_B - mu) / sqrt(sigma2 + eps)
 *     sigma_ratio  = sqrt((sigma2_B + eps) / (sigma2 + eps))
 *     psi_ratio    = sqrt((psi2_B + eps) / (psi2 + eps))
 *
 * mu_shift and sigma_ratio are d and r of Batch Renormalization (Ioffe, NeurIPS 2017). A layer that
 * normalizes with running values gives r xhat + d; with the batch's it gives xhat. 0 and 1: no
 * difference.
 *
 * Independent normal rows of deviation sigma have var mu_B = sigma^2/n, and the running mean adds
 * (1 - alpha)/(1 + alpha) of it. So mu_shift has the variance 2/((1 + alpha) n), sigma_ratio half
 * of that (docs/comparing-runs.md).
 */
#include "analysis/feature_values.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/series/series.h"

enum { MU_DIFFERENCE = SR_VECTOR_COUNT, SIGMA2_DIFFERENCE, PSI2_DIFFERENCE, MU_SHIFT, SIGMA_RATIO };

#define VECTOR(name, definition) {#name, #name, definition, NEEDS(name), first_values, NULL},
const statistic feature_values[FEATURE_VALUES] = {
    SR_VECTORS(VECTOR) /* in the order of sr_vector */
    {"mu_difference", "mu_difference", "mu_B - mu", NEEDS(mu_B) | NEEDS(mu), first_values, NULL},
    {"sigma2_difference", "sigma2_difference", "sigma2_B - sigma2", NEEDS(sigma2_B) | NEEDS(sigma2),
     first_values, NULL},
    {"psi2_difference", "psi2_difference", "psi2_B - psi2", NEEDS(psi2_B) | NEEDS(psi2),
     first_values, NULL},
    {"mu_shift", "mu_shift", "(mu_B - mu) / sqrt(sigma2 + eps): 0 without a difference",
     NEEDS(mu_B) | NEEDS(mu) | NEEDS(sigma2), first_values, NULL},
    {"sigma_ratio", "sigma_ratio",
     "sqrt((sigma2_B + eps) / (sigma2 + eps)): 1 without a difference",
     NEEDS(sigma2_B) | NEEDS(sigma2), first_values, NULL},
    {"psi_ratio", "psi_ratio", "sqrt((psi2_B + eps) / (psi2 + eps)): 1 without a difference",
     NEEDS(psi2_B) | NEEDS(psi2), first_values, NULL},
};

double feature_noise(const statistic *of, double rows, double alpha) {
    const int64_t which = of - feature_values;
    const double of_mean = 2 / ((1 + alpha) * rows);
    return which == MU_SHIFT ? sqrt(of_mean) : which == SIGMA_RATIO ? sqrt(of_mean / 2) : NAN;
}

/* Feature k of a row; v as in vector_row. */
static double value_of(int64_t which, const float *const *v, int64_t k, double eps) {
#define V(name) ((double)v[SR_##name][k])
    if (which < SR_VECTOR_COUNT) return (double)v[which][k];
    switch (which) {
    case MU_DIFFERENCE:
        return V(mu_B) - V(mu);
    case SIGMA2_DIFFERENCE:
        return V(sigma2_B) - V(sigma2);
    case PSI2_DIFFERENCE:
        return V(psi2_B) - V(psi2);
    case MU_SHIFT:
        return (V(mu_B) - V(mu)) / sqrt(V(sigma2) + eps);
    case SIGMA_RATIO:
        return sqrt((V(sigma2_B) + eps) / (V(sigma2) + eps));
    default:
        return sqrt((V(psi2_B) + eps) / (V(psi2) + eps));
    }
}

static unsigned needs_of(const feature_site *s) {
    unsigned needs = 0;
    for (int i = 0; i < s->statistics; i++) needs |= s->of[i]->needs;
    return needs;
}

sr_status feature_rows_together(const feature_site *s, int64_t *rows, sr_failure *why) {
    enum { BYTES = 4 << 20 };
    int64_t block = 1, columns;
    unsigned needs = needs_of(s);
    sr_status status = SR_OK;
    *rows = BYTES / (8 * s->width * s->statistics + 1);
    for (int v = 0; v < SR_VECTOR_COUNT && status == SR_OK && needs; v++, needs >>= 1)
        if (needs & 1) status = sr_run_vector_block(s->run, vector_names[v], &block, &columns, why);
    if (block < 1) block = 1;
    *rows = *rows < block ? block : *rows - *rows % block;
    return status;
}

sr_status feature_rows_read(const feature_site *s, int64_t first, int64_t count, double *value,
                            sr_failure *why) {
    const unsigned needs = needs_of(s);
    const double eps = sr_run_get_site(s->run, s->site)->eps;
    float *raw[SR_VECTOR_COUNT] = {NULL};
    sr_status status = SR_OK;
    for (int v = 0; v < SR_VECTOR_COUNT && status == SR_OK; v++) {
        if (!(needs >> v & 1)) continue;
        raw[v] = malloc((size_t)(count * s->width + 1) * sizeof *raw[v]);
        status = raw[v] ? sr_run_vector(s->run, vector_names[v], s->site, first, count, raw[v], why)
                        : sr_fail(why, SR_MEMORY, "out of memory");
    }
    for (int i = 0; i < s->statistics && status == SR_OK; i++)
        for (int64_t k = 0; k < count * s->width; k++)
            *value++ = value_of(s->of[i] - feature_values, (const float *const *)raw, k, eps);
    for (int v = 0; v < SR_VECTOR_COUNT; v++) free(raw[v]);
    return status;
}
