/* pn_released.c -- PowerNorm as its authors' code computes it (sIncerass/powernorm;
 * docs/norms.md 12).
 *
 * V = the n valid rows, A = all rows. u = layer scale of x in all rows (norm.c, option layer_scale:
 * groups = attention heads). c counts training calls from 1, W = warmup, g = dL/dy. nu =
 * (1-alpha_bwd) times the buffer that the code calls ema_gz:
 *
 *     forward   v = mean over V of u^2    den = v if c <= W, else psi2 from before this call
 *               z = u/sqrt(den + eps)    y = gamma z + beta    in A
 *     state     if c < W: psi2 <- psi2 (c-1)/c + v/c; then always: psi2 <- alpha psi2 + (1-alpha) v
 *     backward  p = gamma g - nu z    du = p/sqrt(v + eps)    in A
 *               Gamma = mean over A of z^2    Lambda = mean over A of gamma g z
 *               nu <- nu + (1-alpha_bwd) (Lambda - nu Gamma)
 *               dgamma = sum over A of g z    dbeta = sum over A of g
 *
 * Differences from pn.c: The warm-up applies its update twice. The backward pass divides by the
 * batch's statistic even after the warm-up. Padded rows are written, count in the backward averages
 * and receive gradient. g_psi2 = ||nu sqrt(v)/(sqrt(den + eps) sqrt(v + eps))||_2/d has both
 * divisors and is measured here. W is the module's default. The release's training scripts give all
 * layers but the last norm the learning rate's warm-up, here --norm-warmup. Inference: gamma
 * u/sqrt(psi2 + eps) + beta. Not synchronized. Kept: 1/sqrt(den + eps) and 1/sqrt(v + eps) [d].
 */
#include <math.h>

#include "norm/kernels/batch_stats.h"
#include "norm/methods/methods.h"

enum { STATE_PSI2, STATE_NU };
enum { PARAM_ALPHA_BWD, PARAM_WARMUP };

/* Gamma over all rows: adds the padded rows to psi2_B. */
static sr_status record_gamma(norm_call *c, const batch_kept *k, const real *x) {
    int64_t d = c->features;
    double *mean = k->scratch, *m2 = mean + d, most = -INFINITY;
    double rows = (double)c->rows->rows, valid = (double)c->rows->valid;
    column_passes padded;
    sr_status status = column_passes_padded(c, &padded);
    if (status == SR_OK) status = column_passes_moments(&padded, x, mean, m2);
    if (status != SR_OK) return status;
    for (int64_t j = 0; j < d; j++) {
        double square = valid * c->stat[NORM_psi2_B][j];
        square += m2[j] + (double)padded.rows * mean[j] * mean[j];
        double gamma = square / rows * k->inverse[j] * k->inverse[j];
        c->stat[NORM_Gamma_t][j] = gamma;
        if (gamma > most || isnan(gamma)) most = gamma; /* a NaN stays */
    }
    c->scalar[NORM_SCALAR_Gamma_max] = most;
    return SR_OK;
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    batch_kept *k = batch_kept_start(c);
    batch_divide(c, k, NULL, c->stat[NORM_psi2]);
    if (c->rows->mode != NORM_RUNNING) {
        sr_status status = batch_own_statistics(c, k, x);
        if (status != SR_OK) return status;
        if ((double)c->calls <= c->options->param[PARAM_WARMUP])
            batch_divide(c, k, NULL, c->stat[NORM_psi2_B]);
        status = record_gamma(c, k, x);
        if (status != SR_OK) return status;
        const double calls = (double)c->calls, alpha = c->options->alpha;
        for (int64_t j = 0; c->rows->mode == NORM_TRAIN && j < c->features; j++) {
            double *psi2 = &c->state[STATE_PSI2][j], v = c->stat[NORM_psi2_B][j];
            if (calls < c->options->param[PARAM_WARMUP])
                *psi2 = *psi2 * ((calls - 1) / calls) + v / calls;
            *psi2 = alpha * *psi2 + (1 - alpha) * v;
        }
    }
    const column_passes m = column_passes_all(c);
    batch_normalize_rows(c, k, &m, x, y);
    return SR_OK;
}

/* Moves nu in training; a, slope of du = a g + slope u. */
static void backward_terms(const norm_call *c, const batch_kept *k, double rows, batch_terms *t) {
    double m = 1 - c->options->param[PARAM_ALPHA_BWD], *state = c->state[STATE_NU];
    bool running = c->rows->mode == NORM_RUNNING;
    for (int64_t j = 0; j < c->features; j++) {
        double lambda = (double)c->gamma[j] * c->stat[NORM_sum_gx][j] / rows;
        double nu = running ? 0 : c->stat[NORM_nu][j], z = k->inverse[j];
        double inverse = running ? z : 1 / sqrt(c->stat[NORM_psi2_B][j] + c->options->eps);
        if (!running) c->stat[NORM_Lambda_t][j] = lambda;
        if (c->rows->mode == NORM_TRAIN)
            state[j] += m * (lambda - state[j] * c->stat[NORM_Gamma_t][j]);
        t->a[j] = (double)c->gamma[j] * inverse;
        t->b[j] = 0;
        t->slope[j] = -nu * z * inverse;
    }
}

/* Writes dx of padded rows, and adds them to its norms. */
static sr_status combine_padded(norm_call *c, const batch_kept *k, const batch_terms *t,
                                const real *x, const real *dy, real *dx) {
    const column_passes_line line = {k->center, t->a, t->b, t->slope};
    column_passes m;
    dx_norms norms = {0};
    sr_status status = column_passes_padded(c, &m);
    if (status == SR_OK)
        status = column_passes_combine(&m, x, dy, &line, dx, c->has_hook ? &norms : NULL);
    c->scalar[NORM_SCALAR_dx_norm] = hypot(c->scalar[NORM_SCALAR_dx_norm], sqrt(norms.dx2));
    c->scalar[NORM_SCALAR_direct_norm] =
        hypot(c->scalar[NORM_SCALAR_direct_norm], sqrt(norms.direct2));
    return status;
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    batch_kept *k = c->kept;
    column_passes m = column_passes_all(c);
    sr_status status = column_passes_gradient_sums(&m, x, dy, k->center, k->inverse,
                                                   c->stat[NORM_sum_g], c->stat[NORM_sum_gx]);
    if (status != SR_OK) return status;
    batch_terms t = batch_terms_start(c, k);
    backward_terms(c, k, (double)m.rows, &t);
    status = batch_combine(c, k, &t, NULL, x, dy, dx);
    c->scalar[NORM_SCALAR_g_psi2] = batch_part(c, t.slope, NORM_psi2_B);
    return status == SR_OK ? combine_padded(c, k, &t, x, dy, dx) : status;
}

const norm_method norm_pn_released = {
    .name = "pn-released",
    .citation = "Shen et al., ICML 2020, released code",
    .axis = "batch",
    .family = NORM_FAMILY_OWN,
    .uses = NORM_BIT(psi2),
    .summary = "PowerNorm as released: layer scale with a group a head, warm-up, padding counted",
    .affine = true,
    .padded = true,
    .fuses_scale = true,
    .eps = 1e-5,
    .alpha = 0.9,
    .layer_scale = 1,
    .scale_by_heads = true,
    .param = {{"alpha_bwd", 0.9, 0, 1, NULL, "weight of the OLD nu in the backward pass",
               .option = "pn-alpha-bkw"},
              {"warmup", 10000, 0, 1e12, NULL, "calls that divide by the batch's own statistic",
               true}},
    .state = {{"psi2", 1, NULL}, {"nu", 0, NULL}},
    .vectors = NORM_BIT(mu_B) | NORM_BIT(sigma2_B) | NORM_BIT(psi2_B) | NORM_BIT(psi2) |
               NORM_BIT(gamma) | NORM_BIT(sum_g) | NORM_BIT(sum_gx) | NORM_BIT(nu) |
               NORM_BIT(Gamma_t) | NORM_BIT(Lambda_t),
    .scalars =
        NORM_SCALAR_BIT(g_psi2) | NORM_SCALAR_BIT(g_psi2_rowmean) | NORM_SCALAR_BIT(Gamma_max),
    .kept_bytes = batch_kept_bytes,
    .forward = forward,
    .backward = backward,
};
