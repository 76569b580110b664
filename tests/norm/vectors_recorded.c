/* vectors_recorded.c -- the vector files' recorded quantities, computed from the statistics that a
 * layer passes to hooks (docs/norms.md 18). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

typedef struct context {
    const vector_case *c;
    const vector_setup *s;
    const vector_step *step;
    double eps, *out;
    vector_case *writable; /* for reading and memory */
} context;

static int64_t copy(const context *x, const double *from) {
    memcpy(x->out, from, (size_t)x->c->d * sizeof *from);
    return x->c->d;
}

/* The batch statistic in the divisor. */
static const double *scale_of(const context *x) {
    bool centred = !isnan(x->step->stat[NORM_mu][0]);
    return x->step->stat[centred ? NORM_sigma2_B : NORM_psi2_B];
}

static double norm_of(const double *a, int64_t d) {
    double sum = 0;
    for (int64_t k = 0; k < d; k++) sum += a[k] * a[k];
    return sqrt(sum);
}

/* gamma/s * sum/n. */
static int64_t coefficients(const context *x, norm_vector sum) {
    const vector_step *t = x->step;
    for (int64_t k = 0; k < x->c->d; k++)
        x->out[k] =
            t->stat[NORM_gamma][k] / sqrt(scale_of(x)[k] + x->eps) * t->stat[sum][k] / (double)t->n;
    return x->c->d;
}

static int64_t root_mean_squares(const context *x) {
    int64_t d = coefficients(x, NORM_sum_gx);
    for (int64_t k = 0; k < d; k++) {
        double v = scale_of(x)[k];
        x->out[k] = v > 0 ? fabs(x->out[k]) * sqrt(v / (v + x->eps)) : 0;
    }
    return d;
}

static int64_t norm_over_features(const context *x, int64_t width) {
    x->out[0] = norm_of(x->out, width);
    return 1;
}

static int64_t row_mean(const context *x, norm_scalar s) {
    x->out[0] = x->step->scalar[s] * (double)x->c->d;
    return 1;
}

/* -- distances --------------------------------------------------------------------------------- */

/* Returns ||f(batch) - f(running)||, f: square root or identity; running: before or after the
 * update. */
static double distance(const context *x, norm_vector batch, const double *running, bool root) {
    double sum = 0;
    for (int64_t k = 0; k < x->c->d; k++) {
        double a = x->step->stat[batch][k], b = running[k];
        double u = root ? sqrt(a) - sqrt(b) : a - b;
        sum += u * u;
    }
    return sqrt(sum);
}

static double root_norm(const double *a, int64_t d) {
    double sum = 0;
    for (int64_t k = 0; k < d; k++) sum += a[k];
    return sqrt(sum);
}

typedef struct distance_row {
    const char *name; /* without _pre or _post */
    norm_vector batch;
    const char *state;
    bool root, ratio;
} distance_row;

static const distance_row distances[] = {
    {"rec_dist_mu", NORM_mu_B, "mu", false, false},
    {"rec_dist_sigma2", NORM_sigma2_B, "sigma2", false, false},
    {"rec_dist_sigma", NORM_sigma2_B, "sigma2", true, false},
    {"rec_dist_psi2", NORM_psi2_B, "psi2", false, false},
    {"rec_dist_psi", NORM_psi2_B, "psi2", true, false},
    {"rec_tid_mean", NORM_mu_B, "mu", false, true},
    {"rec_tid_var", NORM_sigma2_B, "sigma2", true, true},
};

static const double *state_of(const context *x, const char *name, bool before) {
    for (int i = 0; i < NORM_STATE_MAX && x->s->method->state[i].name; i++)
        if (!strcmp(x->s->method->state[i].name, name))
            return before ? x->step->before[i] : x->step->after[i];
    return NULL;
}

static int64_t recorded_distance(const context *x, const char *name) {
    size_t length = strlen(name);
    bool before = length > 4 && !strcmp(name + length - 4, "_pre");
    if (!before && (length < 5 || strcmp(name + length - 5, "_post"))) return 0;
    length -= before ? 4 : 5;
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        const distance_row *r = &distances[i];
        if (strlen(r->name) != length || strncmp(r->name, name, length)) continue;
        const double *running = state_of(x, r->state, before);
        if (!running) return 0;
        const double *deviation = r->ratio ? state_of(x, "sigma2", before) : NULL;
        x->out[0] = distance(x, r->batch, running, r->root) /
                    (r->ratio ? root_norm(deviation, x->c->d) : (double)x->c->d);
        return 1;
    }
    return 0;
}

/* -- rows -------------------------------------------------------------------------------------- */

/* Mean and biased variance of every row of dx or of g, as recorded or written by the layer. */
static int64_t recorded_row_moments(const context *x, const char *name) {
    bool of_g = !strcmp(name, "rec_row_gbar") || !strcmp(name, "rec_row_Dg");
    bool mean_wanted = !strcmp(name, "rec_row_gbar") || !strcmp(name, "rec_row_gradmean");
    if (!of_g && !mean_wanted && strcmp(name, "rec_row_gradvar")) return 0;
    const double *a = of_g ? x->step->dy : x->step->dx;
    for (int64_t i = 0; i < x->c->B; i++, a += x->c->d) {
        double mean = 0, square = 0;
        for (int64_t k = 0; k < x->c->d; k++) mean += a[k] / (double)x->c->d;
        for (int64_t k = 0; k < x->c->d; k++) square += (a[k] - mean) * (a[k] - mean);
        x->out[i] = mean_wanted ? mean : square / (double)x->c->d;
    }
    return x->c->B;
}

static int64_t recorded_row(const context *x, const char *name) {
    char mode[16];
    bool outside = !strcmp(vector_text(x->c, "eps_mode", mode, sizeof mode), "std");
    if (!strcmp(name, "rec_row_mu")) {
        memcpy(x->out, x->step->row_mean, (size_t)x->c->B * sizeof(double));
        return x->c->B;
    }
    if (strcmp(name, "rec_row_s")) return recorded_row_moments(x, name);
    for (int64_t i = 0; i < x->c->B; i++) {
        double s = x->step->row_deviation[i];
        x->out[i] = outside ? s + x->eps : sqrt(s * s + x->eps);
    }
    return x->c->B;
}

/* -- the names --------------------------------------------------------------------------------- */

static int64_t recorded_vector(const context *x, const char *name) {
    const vector_step *t = x->step;
    if (!strcmp(name, "rec_mu_B")) return copy(x, t->stat[NORM_mu_B]);
    if (!strcmp(name, "rec_sigma2_B")) return copy(x, t->stat[NORM_sigma2_B]);
    if (!strcmp(name, "rec_psi2_B")) return copy(x, t->stat[NORM_psi2_B]);
    if (!strcmp(name, "rec_g_mu")) return coefficients(x, NORM_sum_g);
    if (!strcmp(name, "rec_g_sigma2_coef")) return coefficients(x, NORM_sum_gx);
    if (!strcmp(name, "rec_g_psi2_coef")) return coefficients(x, NORM_sum_gx);
    if (!strcmp(name, "rec_g_sigma2_rms")) return root_mean_squares(x);
    if (!strcmp(name, "rec_g_psi2_rms")) return root_mean_squares(x);
    if (strcmp(name, "rec_gamma_over_s")) return 0;
    for (int64_t k = 0; k < x->c->d; k++)
        x->out[k] = t->stat[NORM_gamma][k] / sqrt(scale_of(x)[k] + x->eps);
    return x->c->d;
}

static int64_t recorded_norm(const context *x, const char *name) {
    if (!strcmp(name, "rec_gnorm_mu")) return norm_over_features(x, coefficients(x, NORM_sum_g));
    if (!strcmp(name, "rec_gnorm_sigma2_rms") || !strcmp(name, "rec_gnorm_psi2_rms"))
        return norm_over_features(x, root_mean_squares(x));
    if (!strcmp(name, "rec_gnorm_sigma2_rowmean")) return row_mean(x, NORM_SCALAR_g_sigma2_rowmean);
    if (!strcmp(name, "rec_gnorm_psi2_rowmean")) return row_mean(x, NORM_SCALAR_g_psi2_rowmean);
    return 0;
}

/* -- pn ---------------------------------------------------------------------------------------- */

/* nu/psi, with psi from pn's divisor. */
static int64_t nu_coefficients(const context *x, bool rms) {
    for (int64_t k = 0; k < x->c->d; k++) {
        double psi = sqrt(x->step->stat[NORM_psi2][k] + x->eps);
        double coefficient = x->step->stat[NORM_nu][k] / psi;
        x->out[k] = rms ? fabs(coefficient) * sqrt(x->step->stat[NORM_Gamma_t][k]) : coefficient;
    }
    return x->c->d;
}

/* The coefficients that PN-V would subtract on this batch, with xhat by the batch's psi_B. */
static int64_t psi_coefficients(const context *x) {
    const vector_step *t = x->step;
    for (int64_t k = 0; k < x->c->d; k++) {
        double psi = sqrt(t->stat[NORM_psi2][k] + x->eps),
               s = sqrt(t->stat[NORM_psi2_B][k] + x->eps);
        x->out[k] = t->stat[NORM_gamma][k] / s * (t->stat[NORM_sum_gx][k] * psi / s) / (double)t->n;
    }
    return x->c->d;
}

static int64_t recorded_pn(const context *x, const char *name) {
    const vector_step *t = x->step;
    if (isnan(t->stat[NORM_nu][0])) return 0;
    if (!strcmp(name, "rec_Gamma")) return copy(x, t->stat[NORM_Gamma_t]);
    if (!strcmp(name, "rec_Lambda")) return copy(x, t->stat[NORM_Lambda_t]);
    if (!strcmp(name, "rec_nu_pre")) return copy(x, t->stat[NORM_nu]);
    if (!strcmp(name, "rec_nu_post")) return copy(x, t->after[1]);
    if (!strcmp(name, "rec_g_nu_coef")) return nu_coefficients(x, false);
    if (!strcmp(name, "rec_g_nu_rms")) return nu_coefficients(x, true);
    if (!strcmp(name, "rec_gnorm_nu_rms")) return norm_over_features(x, nu_coefficients(x, true));
    if (!strcmp(name, "rec_g_psi2_coef")) return psi_coefficients(x);
    return 0;
}

/* -- brn, mabn --------------------------------------------------------------------------------- */

static double clip(double x, double low, double high) {
    return fmin(fmax(x, low), high);
}

static double brn_correction(const context *x, int64_t k, bool ratio) {
    const vector_step *t = x->step;
    vector_case *c = x->writable;
    double sigma = t->before[1][k], sigma_B = sqrt(t->stat[NORM_sigma2_B][k] + x->eps);
    const double *limit = vector_read(c, ratio ? "in/rmax" : "in/dmax", NULL);
    double most = limit ? limit[t->step] : NAN;
    free(c->pool[--c->pooled]);
    return ratio ? clip(sigma_B / sigma, 1 / most, most)
                 : clip((t->stat[NORM_mu_B][k] - t->before[0][k]) / sigma, -most, most);
}

/* Mean over the slots of a buffer [K, d], or the batch's own value while it fills. */
static double buffered(const context *x, const double *buffer, const double *own, int64_t k) {
    int64_t slots = (int64_t)vector_number(x->c, "buffer", 1);
    double sum = 0, calls = (double)x->step->calls;
    if (calls <= (double)slots || calls < vector_number(x->c, "warmup", 0)) return own[k];
    for (int64_t i = 0; i < slots; i++) sum += buffer[i * x->c->d + k];
    return sum / (double)slots;
}

static double mabn_correction(const context *x, int64_t k) {
    const vector_step *t = x->step;
    double var = buffered(x, t->after[1], t->stat[NORM_psi2_B], k);
    double most = t->calls <= 1000 ? 1 : 5; /* no file has a longer warm-up */
    return clip(sqrt(var + x->eps) / sqrt(t->before[0][k] + x->eps), 1 / most, most);
}

static int64_t recorded_correction(const context *x, const char *name) {
    bool brn = !strcmp(x->s->method->name, "brn");
    bool r = !strcmp(name, "rec_r"), shift = !strcmp(name, "rec_d");
    if (!strcmp(name, "rec_mean_gz")) {
        double *own = vector_zeros(x->writable, x->c->d);
        for (int64_t k = 0; k < x->c->d; k++)
            own[k] =
                x->step->stat[NORM_gamma][k] * x->step->stat[NORM_sum_gx][k] / (double)x->step->n;
        for (int64_t k = 0; k < x->c->d; k++) x->out[k] = buffered(x, x->step->after[2], own, k);
        return x->c->d;
    }
    if (!r && !(shift && brn)) return 0;
    for (int64_t k = 0; k < x->c->d; k++)
        x->out[k] = brn ? brn_correction(x, k, r) : mabn_correction(x, k);
    return x->c->d;
}

/* -- rbn --------------------------------------------------------------------------------------- */

/* Running statistic in the penalty. */
static const double *penalty_state(const context *x, const char *name) {
    char when[8];
    return state_of(x, name, !strcmp(vector_text(x->c, "penalty_running", when, 8), "pre"));
}

/* Computes one part of the penalty; NaN unless both parts add up to the layer's sum. */
static int64_t penalty_part(const context *x, bool mean_part) {
    double mean = distance(x, NORM_mu_B, penalty_state(x, "mu"), false);
    double deviation = distance(x, NORM_sigma2_B, penalty_state(x, "sigma2"), true);
    mean *= mean * vector_number(x->c, "lam", NAN);
    deviation *= deviation * vector_number(x->c, "nu", NAN);
    bool same = fabs(x->step->penalty - (mean + deviation)) <= 1e-13 * (mean + deviation);
    x->out[0] = !same ? (double)NAN : mean_part ? mean : deviation;
    return 1;
}

/* (1/n) (2 lambda (mu_B - mu) + 2 nu (sigma_B - sigma)/sigma_B (x - mu_B)) in valid rows. */
static int64_t penalty_gradient(const context *x) {
    const double *mu = penalty_state(x, "mu"), *sigma2 = penalty_state(x, "sigma2");
    double lambda = vector_number(x->c, "lam", NAN), nu = vector_number(x->c, "nu", NAN);
    for (int64_t i = 0; i < x->c->B * x->c->d; i++) {
        int64_t k = i % x->c->d;
        double mu_B = x->step->stat[NORM_mu_B][k], sigma_B = sqrt(x->step->stat[NORM_sigma2_B][k]);
        double slope = sigma_B > 0 ? nu * (sigma_B - sqrt(sigma2[k])) / sigma_B : 0;
        x->out[i] =
            2 * (lambda * (mu_B - mu[k]) + slope * (x->step->x[i] - mu_B)) / (double)x->step->n;
    }
    return x->c->B * x->c->d;
}

/* The values that the RBN module logs, after the update. */
static int64_t recorded_code(const context *x, const char *name) {
    bool mean = !strcmp(name, "rec_tidcode_mean");
    if (!strcmp(name, "rec_norm_diff_mean"))
        return x->out[0] = distance(x, NORM_mu_B, x->step->after[0], false), 1;
    if (!strcmp(name, "rec_norm_diff_sigma"))
        return x->out[0] = distance(x, NORM_sigma2_B, x->step->after[1], true), 1;
    if (!strcmp(name, "rec_norm_running_sigma"))
        return x->out[0] = root_norm(x->step->after[1], x->c->d), 1;
    if (!mean && strcmp(name, "rec_tidcode_var")) return 0;
    x->out[0] = 0;
    for (int64_t k = 0; k < x->c->d; k++) {
        double sigma_B = sqrt(x->step->stat[NORM_sigma2_B][k]);
        double u = mean ? (x->step->after[0][k] - x->step->stat[NORM_mu_B][k]) / sigma_B
                        : sqrt(x->step->after[1][k]) / sigma_B - 1;
        x->out[0] += fabs(u) / (double)x->c->d;
    }
    return 1;
}

static int64_t recorded_penalty(const context *x, const char *name) {
    if (!strcmp(name, "rec_pen_mean")) return penalty_part(x, true);
    if (!strcmp(name, "rec_pen_var")) return penalty_part(x, false);
    if (!strcmp(name, "dx_pen")) return penalty_gradient(x);
    if (strcmp(name, "rec_penalty")) return recorded_code(x, name);
    x->out[0] = x->step->penalty;
    return 1;
}

int64_t vector_recorded(vector_case *c, const vector_setup *s, const vector_step *step,
                        const char *name, double *out) {
    context x = {c, s, step, s->options.eps, out, c};
    int64_t width = recorded_pn(&x, name);
    if (!width) width = recorded_vector(&x, name);
    if (!width) width = recorded_norm(&x, name);
    if (!width) width = recorded_distance(&x, name);
    if (!width) width = recorded_row(&x, name);
    if (!width) width = recorded_correction(&x, name);
    if (!width) width = recorded_penalty(&x, name);
    return width;
}
