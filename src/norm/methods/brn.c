/* brn.c -- batch renormalization (Ioffe, NeurIPS 2017; docs/norms.md 15).
 *
 * Per feature over the n valid rows, mu and sigma running values from before this call, g = dL/dy:
 *
 *     forward   mu_B = mean[x]    sigma_B = sqrt(mean[(x - mu_B)^2] + eps)
 *               xn = (x - mu_B)/sigma_B
 *               r = clip(sigma_B/sigma, 1/r_max, r_max)
 *               D = clip((mu_B - mu)/sigma, -d_max, d_max)
 *               xhat = r xn + D    y = gamma xhat + beta
 *     state     mu <- alpha mu + (1-alpha) mu_B    sigma <- alpha sigma + (1-alpha) sigma_B
 *     backward  r and D are constants
 *               dx = gamma r/sigma_B (g - mean[g] - xn mean[g xn])
 *               dgamma = sum g xhat    dbeta = sum g
 *
 * The running quantity is the deviation sigma, eps included. Inference: gamma (x - mu)/sigma +
 * beta, dx = gamma/sigma g. c counts calls, W is the warm-up. While c <= W the limits are 1 and 0.
 * Then they grow linearly to r_max at call r_calls and to d_max at call d_calls.
 *
 * Recorded so that BN's formulas hold: gamma contains gamma r, sum_gx contains sum g xn, sigma2
 * contains sigma^2. Kept: mu_B and 1/sigma_B [d]; r, D and dgamma [d].
 */

#include "norm/kernels/batch_stats.h"
#include "norm/methods/methods.h"

enum { STATE_MU, STATE_SIGMA };
enum { PARAM_R_MAX, PARAM_D_MAX, PARAM_WARMUP, PARAM_R_CALLS, PARAM_D_CALLS };

/* From `from` at the end of the warm-up to `to` at call `last`. */
static double schedule(const norm_call *c, double from, double to, double last) {
    double calls = (double)c->calls, warmup = c->options->param[PARAM_WARMUP];
    if (calls <= warmup) return from;
    if (calls >= last) return to;
    return from + (to - from) * (calls - warmup) / (last - warmup);
}

static double clip(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

/* r, D; mean and deviation that normalize. */
static void find_limits(const norm_call *c, const batch_kept *k, double *sigma_B) {
    const double *p = c->options->param, *mu = c->state[STATE_MU], *sigma = c->state[STATE_SIGMA];
    double *r = k->own, *shift = r + c->features;
    double r_max = schedule(c, 1, p[PARAM_R_MAX], p[PARAM_R_CALLS]);
    double d_max = schedule(c, 0, p[PARAM_D_MAX], p[PARAM_D_CALLS]);
    for (int64_t j = 0; j < c->features; j++) {
        sigma_B[j] = 1 / k->inverse[j];
        r[j] = clip(sigma_B[j] / sigma[j], 1 / r_max, r_max);
        shift[j] = clip((c->stat[NORM_mu_B][j] - mu[j]) / sigma[j], -d_max, d_max);
        c->stat[NORM_gamma][j] = (double)c->gamma[j] * r[j];
    }
}

static sr_status forward_batch(norm_call *c, batch_kept *k, const real *x, real *y) {
    double *sigma_B = k->scratch + 2 * c->features;
    sr_status status = batch_statistics(c, k, x);
    if (status != SR_OK) return status;
    batch_divide(c, k, c->stat[NORM_mu_B], c->stat[NORM_sigma2_B]);
    find_limits(c, k, sigma_B);
    batch_advance(c, k, c->state[STATE_MU], c->stat[NORM_mu_B], 1);
    batch_advance(c, k, c->state[STATE_SIGMA], sigma_B, 1);
    const double *r = k->own, *shift = r + c->features;
    double *a = k->scratch, *b = a + c->features;
    for (int64_t j = 0; j < c->features; j++) {
        a[j] = (double)c->gamma[j] * r[j] * k->inverse[j];
        b[j] = (double)c->gamma[j] * shift[j] + (double)c->beta[j];
    }
    column_passes m = column_passes_valid(c);
    column_passes_scale(&m, x, k->center, a, b, y);
    return SR_OK;
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    batch_kept *k = batch_kept_start(c);
    const double *mu = c->state[STATE_MU], *sigma = c->state[STATE_SIGMA];
    for (int64_t j = 0; j < c->features; j++) c->stat[NORM_sigma2][j] = sigma[j] * sigma[j];
    if (c->rows->mode != NORM_RUNNING) return forward_batch(c, k, x, y);
    for (int64_t j = 0; j < c->features; j++) {
        k->center[j] = mu[j];
        k->inverse[j] = 1 / sigma[j];
    }
    batch_normalize(c, k, x, y);
    return SR_OK;
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    batch_kept *k = c->kept;
    const double *r = k->own, *shift = r + c->features;
    double *dgamma = k->own + 2 * c->features;
    sr_status status = batch_gradient_sums(c, k, x, dy);
    if (status != SR_OK) return status;
    if (c->rows->mode == NORM_RUNNING) return batch_backward_constant(c, k, dy, dx);
    for (int64_t j = 0; j < c->features; j++)
        dgamma[j] = r[j] * c->dgamma[j] + shift[j] * c->dbeta[j];
    c->dgamma = dgamma;
    batch_terms t = batch_statistic_terms(c, k);
    for (int64_t j = 0; j < c->features; j++) {
        t.a[j] *= r[j];
        t.b[j] *= r[j];
        t.slope[j] *= r[j];
    }
    return batch_combine(c, k, &t, NULL, x, dy, dx);
}

const norm_method norm_brn = {
    .name = "brn",
    .citation = "Ioffe, NeurIPS 2017",
    .axis = "batch",
    .family = NORM_FAMILY_SIGMA,
    .uses = NORM_BIT(mu) | NORM_BIT(sigma2),
    .summary = "batch renormalization: BN corrected towards its running statistics",
    .affine = true,
    .fuses_scale = true,
    .eps = 1e-3,
    .alpha = 0.99,
    .param = {{"r_max", 3, 1, 1e9, NULL, "limit of the scale correction r", .option = "brn-r-max",
               .place = 13},
              {"d_max", 5, 0, 1e9, NULL, "limit of the shift correction D", .option = "brn-d-max",
               .place = 14},
              {"warmup", 5000, 0, 1e12, NULL, "calls with r = 1 and D = 0", true, .place = 2},
              {"r_calls", 40000, 0, 1e12, NULL, "call from which r_max holds", true,
               .option = "brn-r-calls", .place = 15},
              {"d_calls", 25000, 0, 1e12, NULL, "call from which d_max holds", true,
               .option = "brn-d-calls", .place = 16}},
    .state = {{"mu", 0, NULL}, {"sigma", 1, NULL}},
    .vectors = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B) | NORM_BIT(mu) |
               NORM_BIT(sigma2) | NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx),
    .scalars = NORM_SCALAR_BIT(g_sigma2_rowmean),
    .kept_bytes = batch_kept_bytes,
    .kept_arrays = 3, /* r, D, dgamma */
    .forward = forward,
    .backward = backward,
};
