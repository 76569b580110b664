/* unified_norm.c -- Unified Normalization (Yang et al., ACM MM 2022, arXiv 2208.01313;
 * docs/norms.md 21).
 *
 * Per feature over the n valid rows. c counts calls from 1, M = window, W = warmup, g = dL/dy, z =
 * x/s. Omega is the window of M statistics, with this batch's:
 *
 *     forward   x2 = mean[x^2]      into slot c mod M of Omega
 *               v = x2 while c <= M or c < W, else the geometric mean of Omega
 *               s = sqrt(v + eps)   y = gamma z + beta
 *     state     psi2 <- alpha psi2 + (1-alpha) v
 *     backward  q = gamma g   gz = mean[q z]    into slot c mod M of the second window
 *               e <- alpha e + (1-alpha) (gz while v = x2, else the mean of the second window)
 *               dx = (q - z psi)/s, psi = gz while v = x2, else e
 *               dgamma = sum g z    dbeta = sum g
 *
 * Filtration (option filter), once averages are used: where in some feature
 *
 *     arithmetic mean(Omega) - geometric mean(Omega) > M V
 *
 * the layer treats the batch as an outlier: v = x2, psi = gz. The slots of both windows then take
 * the previous psi2 and e, not the batch's. V is the variance of the roots of the previous window,
 * over its slots and features.
 *
 * Inference: gamma x/sqrt(psi2 + eps) + beta. Calls outside NORM_TRAIN change nothing and use the
 * batch's values. dx is no derivative once averages are used. Several processes: sync.c. sum_gx =
 * sum g z. v and psi are not recorded, so this file measures the part of dx through the statistic:
 * g_psi2 = ||psi sqrt(x2)/s^2||_2/d. Kept: 1/s [d] and whether averages were used.
 */
#include <math.h>
#include <string.h>

#include "norm/kernels/batch_stats.h"
#include "norm/methods/methods.h"

enum { STATE_PSI2, STATE_WINDOW_X2, STATE_WINDOW_GZ, STATE_MEAN_GZ };
enum { PARAM_WINDOW, PARAM_WARMUP, PARAM_FILTER };

/* How this call goes. */
typedef enum { OWN_VALUES, AVERAGES, OUTLIER } way;

static size_t kept_bytes(const norm_call *c) {
    return batch_kept_bytes(c) + sizeof(way);
}

static way *kept_way(const norm_call *c) {
    return batch_kept_end(c);
}

static int64_t slots_of(const norm_call *c) {
    return (int64_t)c->options->param[PARAM_WINDOW];
}

static double *slot_now(const norm_call *c, double *window) {
    return window + c->calls % slots_of(c) * c->features;
}

static bool learns(const norm_call *c, const batch_kept *k) {
    return c->rows->mode == NORM_TRAIN && k->n > 0;
}

static double mean_of_slots(const norm_call *c, const double *window, int64_t j) {
    const int64_t slots = slots_of(c);
    double sum = 0;
    for (int64_t i = 0; i < slots; i++) sum += window[i * c->features + j];
    return sum / (double)slots;
}

/* By logarithms; a slot of 0 makes it 0. */
static double geometric_mean(const norm_call *c, const double *window, int64_t j) {
    const int64_t slots = slots_of(c);
    double sum = 0;
    for (int64_t i = 0; i < slots; i++) sum += log(window[i * c->features + j]);
    return exp(sum / (double)slots);
}

static double variance_of_roots(const double *window, int64_t count) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < count; i++) mean += sqrt(window[i]) / (double)count;
    for (int64_t i = 0; i < count; i++) {
        const double apart = sqrt(window[i]) - mean;
        square += apart * apart;
    }
    return square / (double)count;
}

/* Puts the batch into the window. */
static way take_batch(const norm_call *c, const batch_kept *k) {
    const size_t bytes = (size_t)c->features * sizeof(double);
    const int64_t slots = slots_of(c);
    double *window = c->state[STATE_WINDOW_X2], limit = INFINITY;
    if (!learns(c, k)) return OWN_VALUES;
    if (c->options->param[PARAM_FILTER] != 0)
        limit = (double)slots * variance_of_roots(window, slots * c->features);
    memcpy(slot_now(c, window), c->stat[NORM_psi2_B], bytes);
    double calls = (double)c->calls;
    if (calls <= c->options->param[PARAM_WINDOW] || calls < c->options->param[PARAM_WARMUP])
        return OWN_VALUES;
    for (int64_t j = 0; j < c->features; j++)
        if (mean_of_slots(c, window, j) - geometric_mean(c, window, j) > limit) {
            memcpy(slot_now(c, window), c->state[STATE_PSI2], bytes);
            return OUTLIER;
        }
    return AVERAGES;
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    batch_kept *k = batch_kept_start(c);
    double *psi2 = c->state[STATE_PSI2], *v = k->scratch;
    if (c->rows->mode == NORM_RUNNING) {
        batch_divide(c, k, NULL, psi2);
    } else {
        sr_status status = batch_statistics(c, k, x);
        if (status != SR_OK) return status;
        *kept_way(c) = take_batch(c, k);
        for (int64_t j = 0; j < c->features; j++)
            v[j] = *kept_way(c) == AVERAGES ? geometric_mean(c, c->state[STATE_WINDOW_X2], j)
                                            : c->stat[NORM_psi2_B][j];
        batch_divide(c, k, NULL, v);
        batch_advance(c, k, psi2, v, 1);
    }
    batch_normalize(c, k, x, y);
    return SR_OK;
}

/* gz [d] becomes psi. */
static void average_gradient(const norm_call *c, const batch_kept *k, double *gz) {
    const way how = *kept_way(c);
    double *window = c->state[STATE_WINDOW_GZ], *mean_gz = c->state[STATE_MEAN_GZ];
    if (!learns(c, k)) return;
    memcpy(slot_now(c, window), how == OUTLIER ? mean_gz : gz,
           (size_t)c->features * sizeof *window);
    for (int64_t j = 0; j < c->features; j++) {
        const double now = how == AVERAGES ? mean_of_slots(c, window, j) : gz[j];
        mean_gz[j] = c->options->alpha * mean_gz[j] + (1 - c->options->alpha) * now;
        if (how == AVERAGES) gz[j] = mean_gz[j];
    }
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    batch_kept *k = c->kept;
    double *psi = k->scratch + 3 * c->features;
    sr_status status = batch_gradient_sums(c, k, x, dy);
    if (status != SR_OK) return status;
    if (c->rows->mode == NORM_RUNNING) return batch_backward_constant(c, k, dy, dx);
    for (int64_t j = 0; j < c->features; j++)
        psi[j] = (double)c->gamma[j] * c->stat[NORM_sum_gx][j] / k->n;
    average_gradient(c, k, psi);
    batch_terms t = batch_terms_start(c, k);
    for (int64_t j = 0; j < c->features; j++) t.slope[j] = -psi[j] * k->inverse[j] * k->inverse[j];
    c->scalar[NORM_SCALAR_g_psi2] = batch_part(c, t.slope, NORM_psi2_B);
    return batch_combine(c, k, &t, NULL, x, dy, dx);
}

const norm_method norm_un = {
    .name = "un",
    .citation = "Yang et al., ACM MM 2022",
    .axis = "batch",
    .family = NORM_FAMILY_OWN,
    .uses = NORM_BIT(psi2),
    .summary = "Unified Normalization: geometric mean of the last quadratic means, outliers apart",
    .affine = true,
    .fuses_scale = true,
    .synchronises = true,
    .eps = 1e-5,
    .alpha = 0.9,
    .param = {{"window", 4, 2, 4096, NULL, "calls that statistics are averaged over", true},
              {"warmup", 4000, 0, 1e12, NULL, "calls before averages are used", true, .place = 2},
              {"filter", 1, 0, 1, "off on",
               "whether batches far from the window are normalized by their own statistic"}},
    .state = {{"psi2", 1, NULL},
              {"window_x2", 0, "window"},
              {"window_gz", 0, "window"},
              {"mean_gz", 0, NULL}},
    .vectors = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B) | NORM_BIT(psi2) |
               NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx),
    .scalars = NORM_SCALAR_BIT(g_psi2) | NORM_SCALAR_BIT(g_psi2_rowmean),
    .kept_bytes = kept_bytes,
    .forward = forward,
    .backward = backward,
};
