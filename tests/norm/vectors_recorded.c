/* vectors_recorded.c -- the recorded quantities of the vector files from the statistics that a
 * layer hands to observers (norms.md section 18). */
#include <math.h>
#include <string.h>

#include "vectors.h"

typedef struct context {
    const vector_case *c;
    const vector_setup *s;
    const vector_step *step;
    double eps, *out;
} context;

static int64_t copy(const context *x, const double *from) {
    memcpy(x->out, from, (size_t)x->c->d * sizeof *from);
    return x->c->d;
}

/* The batch statistic that divides. */
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

/* -- distances
 * --------------------------------------------------------------------------------------- */

/* ||f(batch) - f(running)||, f the root or nothing; running before or after the update. */
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

/* -- rows
 * --------------------------------------------------------------------------------------------- */

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

/* -- the names
 * ------------------------------------------------------------------------------------------ */

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

int64_t vector_recorded(vector_case *c, const vector_setup *s, const vector_step *step,
                        const char *name, double *out) {
    context x = {c, s, step, s->options.eps, out};
    int64_t width = recorded_vector(&x, name);
    if (!width) width = recorded_norm(&x, name);
    if (!width) width = recorded_distance(&x, name);
    if (!width) width = recorded_row(&x, name);
    return width;
}
