/* mabn.c -- moving average batch normalization as released (Yan et al., ICLR 2020;
 * docs/norms.md 16).
 *
 * Per feature over the n valid rows, c counts calls from 1, K = buffer, W = warmup, g = dL/dy:
 *
 *     forward   x2 = mean[x^2]    buf_x2[c mod K] = x2    early = c <= K or c < W
 *               var = x2 if early, else mean of buf_x2
 *               z = x/sqrt(var + eps)
 *               r = sqrt(var + eps)/sqrt(run + eps), a constant, run from before the update;
 *                   clipped to 1 while c <= max(clip_calls, W) and to [1/5, 5] afterwards
 *               y = gamma r z + beta
 *     state     run <- alpha run + (1-alpha) var
 *     backward  q = gamma r g    gz = mean[q z]    buf_gz[c mod K] = gz
 *               mgz = gz if early, else mean of buf_gz
 *               dx = (q - z mgz)/sqrt(var + eps)
 *               dgamma = sum g r z    dbeta = sum g
 *
 * Inference: gamma x/sqrt(run + eps) + beta. The mean is removed from the weights before the layer,
 * not from activations (norm_weight.c). ResNet20 has such convolutions. In a Transformer a residual
 * sum comes before every site, so no weight is centralized. Slot c mod K: slot 0 is first filled at
 * c = K.
 *
 * Recorded so that PN-V's formulas hold while early: gamma contains gamma r, sum_gx contains sum g
 * z. Afterwards var and mgz are averages, which are not recorded. So this file measures the part of
 * dx through the statistic: g_psi2 = ||mgz sqrt(x2)/(var + eps)||_2/d. Calls outside NORM_TRAIN
 * change no buffer and take the batch's own values. Kept: 1/sqrt(var + eps), r, dgamma [d].
 */
#include <math.h>
#include <string.h>

#include "norm/kernels/batch_stats.h"
#include "norm/methods/methods.h"

enum { STATE_RUN, STATE_BUF_X2, STATE_BUF_GZ };
enum { PARAM_BUFFER, PARAM_WARMUP, PARAM_CLIP_CALLS };

static const double clip_ratio = 5;

/* Puts now [d] into its slot; average [d] = now while early, else the mean over the slots. */
static void use_buffer(const norm_call *c, const batch_kept *k, double *buffer, const double *now,
                       double *average) {
    int64_t d = c->features, slots = (int64_t)c->options->param[PARAM_BUFFER];
    double calls = (double)c->calls;
    bool early = c->rows->mode != NORM_TRAIN || calls <= c->options->param[PARAM_BUFFER] ||
                 calls < c->options->param[PARAM_WARMUP];
    if (c->rows->mode == NORM_TRAIN && k->n > 0)
        memcpy(buffer + c->calls % slots * d, now, (size_t)d * sizeof *now);
    for (int64_t j = 0; j < d; j++) {
        double sum = 0;
        for (int64_t i = 0; i < slots; i++) sum += buffer[i * d + j];
        average[j] = early ? now[j] : sum / (double)slots;
    }
}

static void find_ratio(norm_call *c, const batch_kept *k, double *r) {
    const double *run = c->state[STATE_RUN];
    double last = c->options->param[PARAM_CLIP_CALLS];
    if (last < c->options->param[PARAM_WARMUP]) last = c->options->param[PARAM_WARMUP];
    double limit = (double)c->calls <= last ? 1 : clip_ratio;
    for (int64_t j = 0; j < c->features; j++) {
        double ratio = 1 / k->inverse[j] / sqrt(run[j] + c->options->eps);
        if (ratio > limit) ratio = limit;
        if (ratio < 1 / limit) ratio = 1 / limit;
        r[j] = ratio;
        c->stat[NORM_gamma][j] = (double)c->gamma[j] * ratio;
    }
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    batch_kept *k = batch_kept_start(c);
    double *run = c->state[STATE_RUN], *var = k->scratch + 2 * c->features;
    if (c->rows->mode == NORM_RUNNING) {
        batch_divide(c, k, NULL, run);
    } else {
        sr_status status = batch_statistics(c, k, x);
        if (status != SR_OK) return status;
        use_buffer(c, k, c->state[STATE_BUF_X2], c->stat[NORM_psi2_B], var);
        batch_divide(c, k, NULL, var);
        find_ratio(c, k, k->own);
        batch_advance(c, k, run, var, 1);
    }
    batch_normalize(c, k, x, y);
    return SR_OK;
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    batch_kept *k = c->kept;
    int64_t d = c->features;
    const double *r = k->own;
    double *dgamma = k->own + d, *gz = k->scratch + 3 * d;
    sr_status status = batch_gradient_sums(c, k, x, dy);
    if (status != SR_OK) return status;
    if (c->rows->mode == NORM_RUNNING) return batch_backward_constant(c, k, dy, dx);
    for (int64_t j = 0; j < d; j++) {
        dgamma[j] = r[j] * c->dgamma[j];
        gz[j] = c->stat[NORM_gamma][j] * c->stat[NORM_sum_gx][j] / k->n;
    }
    c->dgamma = dgamma;
    batch_terms t = batch_terms_start(c, k);
    use_buffer(c, k, c->state[STATE_BUF_GZ], gz, t.slope);
    for (int64_t j = 0; j < d; j++) {
        t.a[j] *= r[j];
        t.slope[j] *= -k->inverse[j] * k->inverse[j];
    }
    c->scalar[NORM_SCALAR_g_psi2] = batch_part(c, t.slope, NORM_psi2_B);
    return batch_combine(c, k, &t, NULL, x, dy, dx);
}

const norm_method norm_mabn = {
    .name = "mabn",
    .citation = "Yan et al., ICLR 2020",
    .axis = "batch",
    .family = NORM_FAMILY_OWN,
    .uses = NORM_BIT(psi2),
    .summary = "moving average BN: statistics averaged over the last calls, both passes",
    .affine = true,
    .fuses_scale = true,
    .centralize = true,
    .eps = 1e-5,
    .alpha = 0.98,
    .param = {{"buffer", 16, 1, 4096, NULL, "calls that statistics are averaged over", true,
               .option = "mabn-buffer", .place = 17},
              {"warmup", 100, 0, 1e12, NULL, "calls before averages are used", true},
              {"clip_calls", 1000, 0, 1e12, NULL, "calls with r = 1", true,
               .option = "mabn-clip-calls", .place = 18}},
    .state = {{"psi2", 1, NULL}, {"buf_x2", 0, "buffer"}, {"buf_gz", 0, "buffer"}},
    .vectors = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B) | NORM_BIT(psi2) |
               NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx),
    .scalars = NORM_SCALAR_BIT(g_psi2) | NORM_SCALAR_BIT(g_psi2_rowmean),
    .kept_bytes = batch_kept_bytes,
    .kept_arrays = 2, /* r, dgamma */
    .forward = forward,
    .backward = backward,
};
