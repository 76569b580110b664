/* reference_norms.c -- see reference_norms.h. One function per method, with its section of
 * docs/norms.md, computes forward and backward pass. No code is shared with src/norm. */
#include "reference_methods.h"

#include <math.h>
#include <string.h>

double reference_count(const reference_call *c) {
    double n = 0;
    EACH_VALID(c, i) n++;
    return n;
}

static bool is_running(const reference_call *c) {
    return c->mode == NORM_RUNNING;
}

static double clip(double v, double low, double high) {
    return fmin(fmax(v, low), high);
}

/* -- 18.1 ------------------------------------------------------------------------------------ */

/* Moments of column k over the valid rows, computed about one of its values and about 0. */
static moments moments_of(const reference_call *c, int64_t k) {
    double n = 0, first = NAN, sum = 0, squares = 0;
    EACH_VALID(c, i) {
        if (n++ == 0) first = c->u[i * c->d + k];
        sum += c->u[i * c->d + k] - first;
    }
    const double mean = first + sum / n;
    EACH_VALID(c, i) squares += square(c->u[i * c->d + k] - mean);
    return (moments){mean, squares / n, squares / n + mean * mean};
}

moments reference_moments(reference_call *c, int64_t k) {
    const moments m = moments_of(c, k);
    c->stat[NORM_mu_B][k] = m.mean;
    c->stat[NORM_sigma2_B][k] = m.variance;
    c->stat[NORM_psi2_B][k] = m.square;
    return m;
}

void reference_advance(const reference_call *c, double *running, double batch) {
    const double alpha = c->options->alpha;
    if (c->mode == NORM_TRAIN) *running = alpha * *running + (1 - alpha) * batch;
}

void reference_affine(reference_call *c, int64_t k, double center, double s, bool padded) {
    double sum_g = 0, sum_gx = 0;
    EACH(i, c->rows) {
        if (!reference_valid(c, i) && !padded) continue;
        const double xhat = (c->u[i * c->d + k] - center) / s, g = c->g[i * c->d + k];
        c->y[i * c->d + k] = c->gamma[k] * xhat + c->beta[k];
        sum_g += g;
        sum_gx += g * xhat;
    }
    c->stat[NORM_gamma][k] = c->gamma[k];
    c->stat[NORM_sum_g][k] = c->dbeta[k] = sum_g;
    c->stat[NORM_sum_gx][k] = c->dgamma[k] = sum_gx;
}

void reference_gradient(reference_call *c, int64_t k, double a, double b, double slope,
                        double center) {
    EACH_VALID(c, i) {
        c->du[i * c->d + k] = a * c->g[i * c->d + k] + b + slope * (c->u[i * c->d + k] - center);
    }
}

/* -- 1, 2, 10 -------------------------------------------------------------------------------- */

static void none(reference_call *c) {
    EACH_VALID(c, i) EACH(k, c->d) {
        c->y[i * c->d + k] = c->u[i * c->d + k];
        c->du[i * c->d + k] = c->g[i * c->d + k];
    }
}

static void bn(reference_call *c) {
    const double n = reference_count(c), eps = c->options->eps;
    const int unbiased = norm_param_find(c->method, "unbiased");
    const bool bessel = unbiased >= 0 && c->options->param[unbiased] != 0 && n > 1;
    EACH(k, c->d) {
        const moments m = reference_moments(c, k);
        double *mu = &c->state[0][k], *sigma2 = &c->state[1][k];
        const double center = is_running(c) ? *mu : m.mean;
        const double s = sqrt((is_running(c) ? *sigma2 : m.variance) + eps);
        c->stat[NORM_mu][k] = *mu;
        c->stat[NORM_sigma2][k] = *sigma2;
        reference_affine(c, k, center, s, false);
        const double direct = c->gamma[k] / s;
        if (is_running(c))
            reference_gradient(c, k, direct, 0, 0, 0);
        else
            reference_gradient(c, k, direct, -direct * c->dbeta[k] / n,
                               -direct * c->dgamma[k] / n / s, center);
        reference_advance(c, mu, m.mean);
        reference_advance(c, sigma2, m.variance * (bessel ? n / (n - 1) : 1));
    }
}

static void pnv(reference_call *c) {
    const double n = reference_count(c);
    EACH(k, c->d) {
        const moments m = reference_moments(c, k);
        double *psi2 = &c->state[0][k];
        const double s = sqrt((is_running(c) ? *psi2 : m.square) + c->options->eps);
        c->stat[NORM_psi2][k] = *psi2;
        reference_affine(c, k, 0, s, false);
        reference_gradient(c, k, c->gamma[k] / s, 0,
                           is_running(c) ? 0 : -c->gamma[k] * c->dgamma[k] / n / (s * s), 0);
        reference_advance(c, psi2, m.square);
    }
}

/* -- 11, 12 ---------------------------------------------------------------------------------- */

static void pn(reference_call *c) {
    const double n = reference_count(c), m_bwd = 1 - reference_option(c, "alpha_bwd");
    EACH(k, c->d) {
        const moments m = reference_moments(c, k);
        double *psi2 = &c->state[0][k], *nu = &c->state[1][k];
        const double psi = sqrt(*psi2 + c->options->eps), Gamma = m.square / (psi * psi);
        c->stat[NORM_psi2][k] = *psi2;
        c->stat[NORM_nu][k] = *nu;
        reference_affine(c, k, 0, psi, false);
        const double Lambda = c->gamma[k] * c->dgamma[k] / n;
        c->stat[NORM_Gamma_t][k] = Gamma;
        c->stat[NORM_Lambda_t][k] = Lambda;
        reference_gradient(c, k, c->gamma[k] / psi, 0, is_running(c) ? 0 : -*nu / (psi * psi), 0);
        reference_advance(c, psi2, m.square);
        if (c->mode == NORM_TRAIN) *nu = *nu * (1 - m_bwd * Gamma) + m_bwd * Lambda;
    }
}

/* The buffer e of the release is nu/(1 - alpha_bwd). */
static void pn_released(reference_call *c) {
    const double eps = c->options->eps, m_bwd = 1 - reference_option(c, "alpha_bwd"),
                 W = reference_option(c, "warmup");
    const double calls = (double)c->call, N = (double)c->rows, alpha = c->options->alpha;
    EACH(k, c->d) {
        const double v = reference_moments(c, k).square;
        double *psi2 = &c->state[0][k], *nu = &c->state[1][k], Gamma = 0;
        const double z = sqrt((!is_running(c) && calls <= W ? v : *psi2) + eps);
        const double back = is_running(c) ? z : sqrt(v + eps);
        c->stat[NORM_psi2][k] = *psi2;
        c->stat[NORM_nu][k] = *nu;
        reference_affine(c, k, 0, z, true);
        EACH(i, c->rows) {
            const double u = c->u[i * c->d + k], p = is_running(c) ? 0 : *nu * u / z;
            Gamma += u / z * (u / z) / N;
            c->du[i * c->d + k] = (c->gamma[k] * c->g[i * c->d + k] - p) / back;
        }
        const double Lambda = c->gamma[k] * c->dgamma[k] / N;
        c->stat[NORM_Gamma_t][k] = Gamma;
        c->stat[NORM_Lambda_t][k] = Lambda;
        if (c->mode != NORM_TRAIN) continue;
        if (calls < W) *psi2 = *psi2 * (calls - 1) / calls + v / calls;
        *psi2 = alpha * *psi2 + (1 - alpha) * v;
        const double e = *nu / m_bwd; /* e <- e + mean over A of p z, p = q - (1 - alpha_bwd) e z */
        *nu = m_bwd * (e + Lambda - m_bwd * e * Gamma);
    }
}

/* -- 2, as released -------------------------------------------------------------------------- */

static void bn_powernorm(reference_call *c) {
    const double n = reference_count(c), N = (double)c->rows;
    EACH(k, c->d) {
        const moments m = moments_of(c, k);
        double *mu = &c->state[0][k], *sigma2 = &c->state[1][k], arrived = 0;
        const double v = m.variance * n / N; /* over all rows, the padded ones at the mean */
        const double center = is_running(c) ? *mu : m.mean;
        const double s = sqrt((is_running(c) ? *sigma2 : v) + c->options->eps);
        c->stat[NORM_mu_B][k] = m.mean;
        c->stat[NORM_sigma2_B][k] = v;
        c->stat[NORM_psi2_B][k] = m.variance + m.mean * m.mean;
        c->stat[NORM_mu][k] = *mu;
        c->stat[NORM_sigma2][k] = *sigma2;
        EACH(i, c->rows) if (!reference_valid(c, i)) c->u[i * c->d + k] = m.mean;
        reference_affine(c, k, center, s, true);
        EACH(i, c->rows) {
            const double xhat = (c->u[i * c->d + k] - center) / s;
            double h = c->g[i * c->d + k];
            if (!is_running(c)) h -= c->dbeta[k] / N + xhat * c->dgamma[k] / N;
            c->du[i * c->d + k] = c->gamma[k] / s * h;
            if (!reference_valid(c, i)) arrived += c->gamma[k] / s * h;
        }
        EACH(i, c->rows) {
            c->du[i * c->d + k] = reference_valid(c, i) ? c->du[i * c->d + k] + arrived / n : 0;
        }
        reference_advance(c, mu, m.mean);
        reference_advance(c, sigma2, N > 1 ? v * N / (N - 1) : v);
    }
}

/* -- 14 -------------------------------------------------------------------------------------- */

/* BN plus a penalty, computed from the running statistics before or after their update. */
static void rbn(reference_call *c) {
    const double n = reference_count(c), scale = reference_option(c, "scale") != 0 ? c->tokens : 1;
    const double lambda = reference_option(c, "lambda") * scale,
                 nu = reference_option(c, "nu") * scale;
    const bool after = reference_option(c, "running") == 1;
    bn(c);
    if (c->mode != NORM_TRAIN) return;
    EACH(k, c->d) {
        const double mu = after ? c->state[0][k] : c->stat[NORM_mu][k];
        const double sigma = sqrt(after ? c->state[1][k] : c->stat[NORM_sigma2][k]);
        const double mu_B = c->stat[NORM_mu_B][k], sigma_B = sqrt(c->stat[NORM_sigma2_B][k]);
        c->penalty += lambda * square(mu_B - mu) + nu * square(sigma_B - sigma);
        EACH_VALID(c, i) {
            const double centred = c->u[i * c->d + k] - mu_B;
            double more = 2 * lambda * (mu_B - mu);
            if (sigma_B > 0) more += 2 * nu * (sigma_B - sigma) / sigma_B * centred;
            c->du[i * c->d + k] += more / n;
        }
    }
}

/* The penalty of one feature and its derivatives by mu_B and v. kinds: diff diff2 reldiff mag. */
static double penalty(const reference_call *c, double mu_B, double v, double mu, double sigma2,
                      double *by_mean, double *by_variance) {
    const double lambda = reference_option(c, "lambda"), nu = reference_option(c, "nu");
    const int kind = (int)reference_option(c, "penalty");
    const double of = kind == 2 ? sigma2 : 1, apart = sqrt(v) - sqrt(sigma2);
    if (kind == 3) {
        *by_mean = 2 * lambda * mu_B;
        *by_variance = nu;
        return lambda * mu_B * mu_B + nu * v;
    }
    *by_mean = 2 * lambda * (mu_B - mu) / of;
    if (kind == 0) {
        *by_variance = nu * (v > sigma2) - nu * (v < sigma2);
        return lambda * square(mu_B - mu) + nu * fabs(v - sigma2);
    }
    *by_variance = v > 0 ? nu * apart / sqrt(v) / of : 0;
    return (lambda * square(mu_B - mu) + nu * apart * apart) / of;
}

static void rbn_released(reference_call *c) {
    const double n = reference_count(c), eps = c->options->eps;
    EACH(i, c->rows)
    if (!reference_valid(c, i)) memset(c->u + i * c->d, 0, (size_t)c->d * sizeof *c->u);
    EACH(k, c->d) {
        const moments m = reference_moments(c, k);
        double *mu = &c->state[0][k], *sigma2 = &c->state[1][k], by_mean = 0, by_variance = 0;
        const double center = is_running(c) ? *mu : m.mean;
        const double s = sqrt(fmax(is_running(c) ? *sigma2 : m.variance, eps));
        c->stat[NORM_mu][k] = *mu;
        c->stat[NORM_sigma2][k] = *sigma2;
        reference_affine(c, k, center, s, true);
        reference_advance(c, mu, m.mean);
        reference_advance(c, sigma2, m.variance);
        const double direct = c->gamma[k] / s;
        if (is_running(c)) {
            reference_gradient(c, k, direct, 0, 0, 0);
            continue;
        }
        if (c->mode == NORM_TRAIN)
            c->penalty += penalty(c, m.mean, m.variance, *mu, *sigma2, &by_mean, &by_variance);
        const double kept = m.variance >= eps ? direct * c->dgamma[k] / n / s : 0;
        reference_gradient(c, k, direct, (by_mean - direct * c->dbeta[k]) / n,
                           2 * by_variance / n - kept, center);
    }
}

/* -- 15, 16 ---------------------------------------------------------------------------------- */

/* A limit that stays at `from` during the warm-up and rises linearly to `to` at call `last`. */
static double risen(const reference_call *c, double from, double to, double last) {
    const double calls = (double)c->call, warmup = reference_option(c, "warmup");
    if (calls <= warmup) return from;
    return calls >= last ? to : from + (to - from) * (calls - warmup) / (last - warmup);
}

static void brn(reference_call *c) {
    const double n = reference_count(c),
                 r_max = risen(c, 1, reference_option(c, "r_max"), reference_option(c, "r_calls"));
    const double d_max = risen(c, 0, reference_option(c, "d_max"), reference_option(c, "d_calls"));
    EACH(k, c->d) {
        const moments m = reference_moments(c, k);
        double *mu = &c->state[0][k], *sigma = &c->state[1][k];
        const double s = sqrt(m.variance + c->options->eps), gamma = c->gamma[k];
        const double r = clip(s / *sigma, 1 / r_max, r_max);
        const double D = clip((m.mean - *mu) / *sigma, -d_max, d_max);
        c->stat[NORM_mu][k] = *mu;
        c->stat[NORM_sigma2][k] = *sigma * *sigma;
        if (is_running(c)) {
            reference_affine(c, k, *mu, *sigma, false);
            reference_gradient(c, k, gamma / *sigma, 0, 0, 0);
            continue;
        }
        reference_affine(c, k, m.mean, s, false); /* its sums use xn */
        EACH_VALID(c, i) {
            const double xn = (c->u[i * c->d + k] - m.mean) / s;
            c->y[i * c->d + k] = gamma * (r * xn + D) + c->beta[k];
        }
        const double sum_g = c->dbeta[k], sum_gx = c->dgamma[k];
        c->stat[NORM_gamma][k] = gamma * r;
        c->dgamma[k] = r * sum_gx + D * sum_g;
        reference_gradient(c, k, gamma * r / s, -gamma * r / s * sum_g / n,
                           -gamma * r / (s * s) * sum_gx / n, m.mean);
        reference_advance(c, mu, m.mean);
        reference_advance(c, sigma, s);
    }
}

/* Writes slot c mod K; returns the value itself or the mean of the slots. */
static double averaged(const reference_call *c, double *slots, int64_t k, double now) {
    const int64_t K = (int64_t)reference_option(c, "buffer");
    double mean = 0;
    if (c->mode != NORM_TRAIN) return now;
    slots[c->call % K * c->d + k] = now;
    EACH(i, K) mean += slots[i * c->d + k] / (double)K;
    return c->call <= K || (double)c->call < reference_option(c, "warmup") ? now : mean;
}

static void mabn(reference_call *c) {
    const double n = reference_count(c), eps = c->options->eps;
    const bool fixed =
        (double)c->call <= fmax(reference_option(c, "clip_calls"), reference_option(c, "warmup"));
    EACH(k, c->d) {
        const double x2 = reference_moments(c, k).square, gamma = c->gamma[k];
        double *run = &c->state[0][k];
        c->stat[NORM_psi2][k] = *run;
        if (is_running(c)) {
            reference_affine(c, k, 0, sqrt(*run + eps), false);
            reference_gradient(c, k, gamma / sqrt(*run + eps), 0, 0, 0);
            continue;
        }
        const double v = averaged(c, c->state[1], k, x2), s = sqrt(v + eps);
        const double r = fixed ? 1 : clip(s / sqrt(*run + eps), 1.0 / 5, 5);
        reference_affine(c, k, 0, s, false); /* its sums use z */
        EACH_VALID(c, i) {
            c->y[i * c->d + k] = gamma * r * c->u[i * c->d + k] / s + c->beta[k];
        }
        const double gz = averaged(c, c->state[2], k, gamma * r * c->dgamma[k] / n);
        c->stat[NORM_gamma][k] = gamma * r;
        c->dgamma[k] *= r;
        reference_gradient(c, k, gamma * r / s, 0, -gz / (s * s), 0);
        reference_advance(c, run, v);
    }
}

/* -- 13 and the table ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    void (*run)(reference_call *c);
} references[] = {
    {"none", none},
    {"bn", bn},
    {"rbn", rbn},
    {"brn", brn},
    {"mabn", mabn},
    {"pnv", pnv},
    {"pn", pn},
    {"ln", reference_ln},
    {"ln-simple", reference_ln_simple},
    {"detach-mean", reference_detach_mean},
    {"detach-std", reference_detach_std},
    {"detach-both", reference_detach_both},
    {"adanorm", reference_adanorm},
    {"rmsnorm", reference_rmsnorm},
    {"groupnorm", reference_groupnorm},
    {"instancenorm", reference_instancenorm},
    {"pn-released", pn_released},
    {"bn-powernorm", bn_powernorm},
    {"rbn-released", rbn_released},
    {"un", reference_un},
    {"repbn", reference_repbn},
    {"unit", reference_unit},
    {"dyt", reference_dyt},
    {"derf", reference_derf},
};

/* Computes u from x; back: dx from du. width features make a group. */
static void scale_rows(reference_call *c, int64_t width, bool back) {
    EACH(i, c->rows * c->d / width) {
        const double *x = c->x + i * width;
        double square = 0, along = 0;
        EACH(k, width) square += x[k] * x[k] / (double)width;
        const double s = sqrt(square + c->options->eps);
        EACH(k, width) along += c->du[i * width + k] * x[k] / s / (double)width;
        EACH(k, width) {
            if (back)
                c->dx[i * width + k] = (c->du[i * width + k] - x[k] / s * along) / s;
            else
                c->u[i * width + k] = x[k] / s;
        }
    }
}

double reference_option(const reference_call *c, const char *name) {
    return c->options->param[norm_param_find(c->method, name)];
}

bool reference_norm(reference_call *c) {
    const size_t count = sizeof references / sizeof *references,
                 row = (size_t)c->d * sizeof(double);
    const int64_t groups = c->options->layer_scale;
    size_t at = 0;
    while (at < count && strcmp(references[at].name, c->method->name)) at++;
    if (at == count) return false;
    c->penalty = 0;
    EACH(v, NORM_VECTOR_COUNT) EACH(k, c->d) c->stat[v][k] = NAN;
    memset(c->y, 0, (size_t)c->rows * row);
    memset(c->du, 0, (size_t)c->rows * row);
    memset(c->dgamma, 0, row);
    memset(c->dbeta, 0, row);
    EACH(i, NORM_OWN_MAX)
    if (c->own[i]) memset(c->own_grad[i], 0, c->method->own[i].wide ? row : sizeof(double));
    memcpy(c->u, c->x, (size_t)c->rows * row);
    if (groups) scale_rows(c, c->d / groups, false);
    references[at].run(c);
    memcpy(c->dx, c->du, (size_t)c->rows * row);
    if (groups) scale_rows(c, c->d / groups, true);
    return true;
}
