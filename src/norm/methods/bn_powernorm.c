/* bn_powernorm.c -- the BN baseline of the PowerNorm release, its option "batch"
 * (sIncerass/powernorm; docs/norms.md 2).
 *
 * V = the n valid rows, A = all rows, N = |A|. u = layer scale of x with one group in all rows
 * (norm.c, option layer_scale); g = dL/dy:
 *
 *     forward   mu_B = mean over V of u    padded rows of u are overwritten by mu_B
 *               v = mean over A of (u - mu_B)^2    s = sqrt(v + eps)    xhat = (u - mu_B)/s
 *               y = gamma xhat + beta in A, that is beta in padded rows
 *     state     mu <- alpha mu + (1-alpha) mu_B    sigma2 <- alpha sigma2 + (1-alpha) v N/(N-1)
 *     backward  h_i = gamma/s (g_i - sum_A(g)/N - xhat_i sum_A(g xhat)/N) in A
 *               du_i = h_i + sum over padded rows of h / n for valid rows, 0 for padded ones
 *               dgamma = sum over A of g xhat    dbeta = sum over A of g
 *
 * The variance is too small by n/N and gradient at padded rows reaches the valid ones: as released.
 * In valid rows du = gamma/s (g - sum_V(g)/n - xhat sum_A(g xhat)/N). Inference: padded rows are
 * overwritten in the same way, then gamma (u - mu)/sqrt(sigma2 + eps) + beta. Not synchronized.
 *
 * Recorded: sigma2_B is v, whose average sigma2 is; psi2_B is over V; g_mu and g_sigma2 are
 * measured here. Kept: center, 1/s and the imputed xhat of padded rows [d].
 */
#include <math.h>

#include "norm/kernels/batch_stats.h"
#include "norm/methods/methods.h"

enum { STATE_MU, STATE_SIGMA2 };

static sr_status forward(norm_call *c, const real *x, real *y) {
    batch_kept *k = batch_kept_start(c);
    double *mu = c->state[STATE_MU], *sigma2 = c->state[STATE_SIGMA2], *imputed = k->own;
    const double valid = (double)c->rows->valid;
    sr_status status = batch_own_statistics(c, k, x);
    if (status != SR_OK) return status;
    k->n = (double)c->rows->rows;
    /* sigma2_B over all rows: the imputed ones deviate by 0. */
    for (int64_t j = 0; j < c->features; j++) c->stat[NORM_sigma2_B][j] *= valid / k->n;
    if (c->rows->mode == NORM_RUNNING) {
        batch_divide(c, k, mu, sigma2);
    } else {
        batch_divide(c, k, c->stat[NORM_mu_B], c->stat[NORM_sigma2_B]);
        batch_advance(c, k, mu, c->stat[NORM_mu_B], 1);
        batch_advance(c, k, sigma2, c->stat[NORM_sigma2_B], k->n > 1 ? k->n / (k->n - 1) : 1);
    }
    for (int64_t j = 0; j < c->features; j++)
        imputed[j] = (c->stat[NORM_mu_B][j] - k->center[j]) * k->inverse[j];
    /* Valid rows, and the same value in all padded ones. */
    double *value = k->scratch + 3 * c->features;
    batch_normalize(c, k, x, y);
    for (int64_t j = 0; j < c->features; j++)
        value[j] = (double)c->gamma[j] * imputed[j] + (double)c->beta[j];
    return batch_fill_padded(c, value, y);
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    batch_kept *k = c->kept;
    int64_t d = c->features;
    double *part = k->scratch + 3 * d, *zero = k->part_g, valid = (double)c->rows->valid;
    column_passes padded, m = column_passes_valid(c);
    sr_status status = column_passes_gradient_sums(&m, x, dy, k->center, k->inverse,
                                                   c->stat[NORM_sum_g], c->stat[NORM_sum_gx]);
    if (status == SR_OK) status = column_passes_padded(c, &padded);
    if (status == SR_OK) /* k->scratch is not used */
        status =
            column_passes_gradient_sums(&padded, dy, dy, k->center, k->inverse, part, k->scratch);
    if (status != SR_OK) return status;
    for (int64_t j = 0; j < d; j++) {
        c->stat[NORM_sum_g][j] += part[j];
        c->stat[NORM_sum_gx][j] += part[j] * k->own[j];
    }
    bool running = c->rows->mode == NORM_RUNNING;
    batch_terms t = running ? batch_terms_start(c, k) : batch_statistic_terms(c, k);
    for (int64_t j = 0; j < d; j++) { /* xhat = 0 in padded rows unless statistics are running */
        t.b[j] += (t.a[j] * part[j] + (double)padded.rows * t.b[j]) / valid;
        zero[j] = 0;
    }
    if (!running) batch_record_parts(c, &t);
    c->scalar[NORM_SCALAR_g_sigma2] *= sqrt(k->n / valid); /* over V, where v is too small */
    status = batch_fill_padded(c, zero, dx);
    if (status != SR_OK) return status;
    return batch_combine(c, k, &t, NULL, x, dy, dx);
}

const norm_method norm_bn_powernorm = {
    .name = "bn-powernorm",
    .citation = "Shen et al., ICML 2020, released code",
    .axis = "batch",
    .family = NORM_FAMILY_OWN,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .summary = "the BN baseline of the PowerNorm release: padded rows imputed by the mean",
    .affine = true,
    .padded = true,
    .fuses_scale = true,
    .eps = 1e-5,
    .alpha = 0.95,
    .layer_scale = 1,
    .state = {{"mu", 0, NULL}, {"sigma2", 1, NULL}},
    .vectors = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B) | NORM_BIT(mu) |
               NORM_BIT(sigma2) | NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx),
    .scalars =
        NORM_SCALAR_BIT(g_mu) | NORM_SCALAR_BIT(g_sigma2) | NORM_SCALAR_BIT(g_sigma2_rowmean),
    .kept_bytes = batch_kept_bytes,
    .kept_arrays = 1, /* xhat of the padded rows */
    .forward = forward,
    .backward = backward,
};
