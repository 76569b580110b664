/* reference_later.c -- reference_norms.h's methods published after 2022, from docs/norms.md 19 to
 * 22. */
#include "reference_methods.h"

#include <math.h>
#include <string.h>

/* -- 19, 20 ---------------------------------------------------------------------------------- */

/* f and f' at z. */
static void pointwise(reference_call *c, double shift, void (*at)(double z, double f[2])) {
    const double alpha = c->own[0][0];
    EACH(k, c->d) c->stat[NORM_gamma][k] = c->gamma[k];
    EACH_VALID(c, i) EACH(k, c->d) {
        const double u = c->u[i * c->d + k], g = c->g[i * c->d + k];
        double f[2];
        at(alpha * u + shift, f);
        c->y[i * c->d + k] = c->gamma[k] * f[0] + c->beta[k];
        c->du[i * c->d + k] = c->gamma[k] * g * f[1] * alpha;
        c->dgamma[k] += g * f[0];
        c->dbeta[k] += g;
        c->own_grad[0][0] += c->gamma[k] * g * f[1] * u;
        if (c->own[1]) c->own_grad[1][0] += c->gamma[k] * g * f[1];
    }
}

/* Uses exponentials of negative numbers only. */
static void tanh_at(double z, double f[2]) {
    const double e = exp(-2 * fabs(z));
    f[0] = copysign((1 - e) / (1 + e), z);
    f[1] = 4 * e / ((1 + e) * (1 + e));
}

static void erf_at(double z, double f[2]) {
    f[0] = z < 0 ? erfc(-z) - 1 : 1 - erfc(z);
    f[1] = exp(-z * z) / sqrt(atan(1));
}

void reference_dyt(reference_call *c) {
    pointwise(c, 0, tanh_at);
}

void reference_derf(reference_call *c) {
    pointwise(c, c->own[1][0], erf_at);
}

/* -- 21 -------------------------------------------------------------------------------------- */

/* Windows are slots x d. */
static double geometric(const double *window, int64_t slots, int64_t d) {
    double product = 1;
    EACH(i, slots) product *= pow(window[i * d], 1 / (double)slots);
    return product;
}

static double arithmetic(const double *window, int64_t slots, int64_t d) {
    double sum = 0;
    EACH(i, slots) sum += window[i * d];
    return sum / (double)slots;
}

/* Returns half the mean squared difference of the roots of all pairs. */
static double spread(const double *window, int64_t count) {
    double sum = 0;
    EACH(i, count) EACH(j, i) sum += square(sqrt(window[i]) - sqrt(window[j]));
    return sum / square((double)count);
}

static bool is_outlier(const reference_call *c, double limit) {
    const int64_t M = (int64_t)reference_option(c, "window");
    bool found = false;
    EACH(k, c->d)
    found =
        found || arithmetic(c->state[1] + k, M, c->d) - geometric(c->state[1] + k, M, c->d) > limit;
    return found;
}

void reference_un(reference_call *c) {
    const int64_t M = (int64_t)reference_option(c, "window"), d = c->d, slot = c->call % M * d;
    const double n = reference_count(c), alpha = c->options->alpha, eps = c->options->eps;
    const double limit = (double)M * spread(c->state[1], M * d);
    const bool train = c->mode == NORM_TRAIN;
    bool smooth = train && c->call > M && (double)c->call >= reference_option(c, "warmup");
    bool outlier = false;
    EACH(k, d) {
        const double x2 = reference_moments(c, k).square;
        if (train) c->state[1][slot + k] = x2;
        c->stat[NORM_psi2][k] = c->state[0][k];
    }
    if (smooth && reference_option(c, "filter") != 0) outlier = is_outlier(c, limit);
    smooth = smooth && !outlier;
    EACH(k, d) {
        double *psi2 = &c->state[0][k], *e = &c->state[3][k], v = c->stat[NORM_psi2_B][k];
        if (c->mode == NORM_RUNNING) v = *psi2;
        if (smooth) v = geometric(c->state[1] + k, M, d);
        if (outlier) c->state[1][slot + k] = *psi2;
        const double s = sqrt(v + eps);
        reference_affine(c, k, 0, s, false);
        double psi = c->gamma[k] * c->dgamma[k] / n;
        if (train) {
            c->state[2][slot + k] = outlier ? *e : psi;
            *e = alpha * *e + (1 - alpha) * (smooth ? arithmetic(c->state[2] + k, M, d) : psi);
        }
        if (smooth) psi = *e;
        reference_gradient(c, k, c->gamma[k] / s, 0, c->mode == NORM_RUNNING ? 0 : -psi / (s * s),
                           0);
        reference_advance(c, psi2, v);
    }
}

/* -- 22 -------------------------------------------------------------------------------------- */

/* Adds lambda LN(x) of row i, and its part of the gradient. */
static void add_ln(reference_call *c, int64_t i, double lambda) {
    const double *u = c->u + i * c->d, *g = c->g + i * c->d, d = (double)c->d;
    double mean = 0, variance = 0, q_sum = 0, qx_sum = 0;
    EACH(k, c->d) mean += (u[k] - u[0]) / d;
    mean += u[0];
    EACH(k, c->d) variance += square(u[k] - mean) / d;
    const double r = sqrt(variance + c->options->eps);
    EACH(k, c->d) {
        const double x1 = (u[k] - mean) / r, q = lambda * g[k] * c->own[1][k];
        c->y[i * c->d + k] += lambda * (c->own[1][k] * x1 + c->own[2][k]);
        c->own_grad[1][k] += lambda * g[k] * x1;
        c->own_grad[2][k] += lambda * g[k];
        q_sum += q;
        qx_sum += q * x1;
    }
    EACH(k, c->d) {
        const double x1 = (u[k] - mean) / r, q = lambda * g[k] * c->own[1][k];
        c->du[i * c->d + k] += (q - q_sum / d - x1 * qx_sum / d) / r;
    }
}

void reference_repbn(reference_call *c) {
    const double n = reference_count(c), t0 = reference_option(c, "t0"), eta = c->own[0][0];
    const double lambda = t0 > 0 ? fmax(0, (t0 - (double)c->call + 1) / t0) : 0, rest = 1 - lambda;
    const bool running = c->mode == NORM_RUNNING;
    EACH(k, c->d) {
        const moments m = reference_moments(c, k);
        double *mu = &c->state[0][k], *sigma2 = &c->state[1][k];
        const double center = running ? *mu : m.mean;
        const double s = sqrt((running ? *sigma2 : m.variance) + c->options->eps);
        c->stat[NORM_mu][k] = *mu;
        c->stat[NORM_sigma2][k] = *sigma2;
        reference_affine(c, k, center, s, false);
        const double a = rest * c->gamma[k] / s;
        reference_gradient(c, k, a + rest * eta, running ? 0 : -a * c->dbeta[k] / n,
                           running ? 0 : -a * c->dgamma[k] / n / s, center);
        EACH_VALID(c, i) {
            double *y = &c->y[i * c->d + k];
            *y = rest * (*y + eta * c->u[i * c->d + k]);
            c->own_grad[0][0] += rest * c->g[i * c->d + k] * c->u[i * c->d + k];
        }
        c->stat[NORM_gamma][k] = rest * c->gamma[k];
        c->dgamma[k] *= rest;
        c->dbeta[k] *= rest;
        reference_advance(c, mu, m.mean);
        reference_advance(c, sigma2, m.variance);
    }
    EACH(k, c->d) if (c->mode == NORM_TRAIN) c->state[2][k] = lambda;
    if (lambda > 0) EACH_VALID(c, i) add_ln(c, i, lambda);
}
