/* vectors_kinds.c -- recorded.h5: recorded quantities from layers (hooks), statrec/moments.h and
 * svd.h, by the attribute `kind`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/svd.h"
#include "statrec/moments.h"
#include "vectors.h"

/* Statistics that hooks got in one pass of a layer over x, dy [rows, d]. */
typedef struct seen {
    double *stat[NORM_VECTOR_COUNT]; /* [d] */
    double scalar[NORM_SCALAR_COUNT];
    double *dx;       /* [rows, d] */
    double deviation; /* row methods: of the first row */
} seen;

static void take_forward(void *context, const norm_view *o) {
    seen *s = context;
    if (!strcmp(o->site->method->axis, "row")) s->deviation = ((const double *)o->call->kept)[1];
}

static void take_backward(void *context, const norm_view *o) {
    seen *s = context;
    for (int v = 0; v < NORM_VECTOR_COUNT; v++)
        memcpy(s->stat[v], o->call->stat[v], (size_t)o->call->features * sizeof(double));
    memcpy(s->scalar, o->call->scalar, sizeof s->scalar);
    for (int64_t i = 0; i < o->call->rows->rows * o->call->features; i++)
        s->dx[i] = (double)o->dx[i];
}

static seen make_seen(vector_case *c, int64_t rows, int64_t d) {
    seen s = {.dx = vector_zeros(c, rows * d)};
    for (int v = 0; v < NORM_VECTOR_COUNT; v++) s.stat[v] = vector_zeros(c, d);
    return s;
}

static bool pass(norm_site *site, tape *t, const double *x, const double *dy, int64_t rows) {
    int64_t d = site->features, dim[2] = {rows, d}, one = 1;
    norm_rows r;
    bool add;
    tape_reset(t, rng_create(1), true, true);
    if (norm_rows_init(&r, t, rows, NULL, NORM_TRAIN) != SR_OK) return false;
    tensor *in = tape_tensor(t, 2, dim), *loss = tape_tensor(t, 1, &one);
    if (!in || !loss) return false;
    in->wants_grad = loss->wants_grad = true;
    for (int64_t i = 0; i < rows * d; i++) in->value[i] = (real)x[i];
    real *g = tape_grad(t, norm_apply(site, t, in, &r), &add);
    for (int64_t i = 0; g && i < rows * d; i++) g[i] = (real)dy[i];
    tape_backward(t, loss, 1);
    return !tape_failure(t);
}

/* gamma [d] or NULL. */
static bool run_layer(vector_case *c, const char *method, const double *x, const double *dy,
                      int64_t rows, int64_t d, const double *gamma, seen *s) {
    const norm_method *m = norm_find(method);
    norm_options o = norm_options_default(m);
    sr_failure why = {0};
    params p;
    norm_site site;
    o.eps = vector_number(c, "eps", NAN);
    params_init(&p, 1);
    tape *t = tape_create(1, &why);
    bool good = t && norm_site_init(&site, &p, "site", "encoder", 0, d, m, &o, &why) == SR_OK;
    if (good) {
        for (int64_t k = 0; gamma && k < d; k++) site.gamma->value[k] = (real)gamma[k];
        site.forward_hook = take_forward;
        site.backward_hook = take_backward;
        site.hook_context = s;
        site.want_rows = true;
        good = pass(&site, t, x, dy, rows);
        norm_site_free(&site);
    }
    if (!good) c->broken = true;
    params_free(&p);
    tape_free(t);
    return good;
}

static double norm_of(const double *a, int64_t d) {
    double sum = 0;
    for (int64_t k = 0; k < d; k++) sum += a[k] * a[k];
    return sqrt(sum);
}

static void compare_number(vector_case *c, const char *name, double got) {
    vector_compare(c, name, 0, &got, 1);
}

/* -- tid --------------------------------------------------------------------------------------- */

static void run_tid(vector_case *c) {
    static const struct {
        const char *name;
        sr_scalar scalar;
    } row[] = {{"dist_mu", SR_SCALAR_dist_mu},
               {"dist_sigma", SR_SCALAR_dist_sigma},
               {"dist_sigma2", SR_SCALAR_dist_sigma2},
               {"tid_mean_step", SR_SCALAR_tid_mean},
               {"tid_var_step", SR_SCALAR_tid_var}};
    const double *mu_B = vector_read(c, "in/mu_B", NULL);
    const double *sigma2_B = vector_read(c, "in/sigma2_B", NULL);
    const double *mu = vector_read(c, "in/mu", NULL), *sigma2 = vector_read(c, "in/sigma2", NULL);
    double *all = vector_zeros(c, 5 * c->S), mean[5] = {0};
    for (int64_t t = 0; t < c->S && !c->broken; t++) {
        double scalar[SR_SCALAR_COUNT];
        const double *vector[SR_VECTOR_COUNT] = {NULL};
        vector[SR_mu_B] = mu_B + t * c->d;
        vector[SR_sigma2_B] = sigma2_B + t * c->d;
        vector[SR_mu] = mu;
        vector[SR_sigma2] = sigma2;
        for (int i = 0; i < SR_SCALAR_COUNT; i++) scalar[i] = NAN;
        sr_derive_scalars(SR_FAMILY_SIGMA, c->d, 1e-5, 2, vector, scalar);
        for (int i = 0; i < 5; i++) {
            all[i * c->S + t] = scalar[row[i].scalar];
            mean[i] += scalar[row[i].scalar] / (double)c->S;
        }
    }
    for (int i = 0; i < 5 && !c->broken; i++)
        vector_compare(c, row[i].name, 0, all + i * c->S, c->S);
    compare_number(c, "tid_mean", mean[3]);
    compare_number(c, "tid_var", mean[4]);
    /* tid_*_batchscale and tid_var_of_variances are other programs' definitions, not recorded
     * here. */
}

/* -- singular values --------------------------------------------------------------------------- */

/* Singular values of in/NAME, descending. */
static double *singular_values(vector_case *c, const char *name, int64_t rows) {
    sr_failure why = {0};
    const double *from = vector_read(c, name, NULL);
    double *values = vector_zeros(c, c->d);
    float *a = malloc((size_t)(rows * c->d) * sizeof *a);
    for (int64_t i = 0; a && from && i < rows * c->d; i++) a[i] = (float)from[i];
    if (!a || !from || !values || svd_singular_values(a, rows, c->d, values, &why) != SR_OK) {
        c->broken = true;
        values = NULL;
    }
    free(a);
    return values;
}

/* lambda_1/lambda_m of X^T X/N with m = ceil(p d). */
static double squared_ratio(const vector_case *c, const double *values, double p) {
    double r = values[0] / values[(int64_t)ceil(p * (double)c->d) - 1];
    return r * r;
}

static void run_condition(vector_case *c) {
    int64_t rows = (int64_t)vector_number(c, "N", 0), count = 0;
    double *values = singular_values(c, "in/X", rows);
    const double *p = vector_read(c, "in/p", &count);
    double *ratio = vector_zeros(c, count), *eigen = vector_zeros(c, c->d);
    if (c->broken) return;
    for (int64_t i = 0; i < count; i++)
        ratio[i] = values[0] / values[(int64_t)ceil(p[i] * (double)c->d) - 1];
    for (int64_t k = 0; k < c->d; k++) eigen[k] = values[k] * values[k] / (double)rows;
    vector_compare(c, "singular_values", 0, values, c->d);
    vector_compare(c, "C_p", 0, ratio, count);
    vector_compare(c, "cov_eigenvalues", 0, eigen, c->d);
    compare_number(c, "C_max", values[0]);
    compare_number(c, "cov_c_max", eigen[0]);
    compare_number(c, "cov_c_20", squared_ratio(c, values, 0.2));
    compare_number(c, "cov_c_50", squared_ratio(c, values, 0.5));
    compare_number(c, "cov_c_80", squared_ratio(c, values, 0.8));
}

static void run_embedding(vector_case *c) {
    double *values = singular_values(c, "in/E", (int64_t)vector_number(c, "V", 0));
    double *scaled = vector_zeros(c, c->d);
    if (c->broken) return;
    for (int64_t k = 0; k < c->d; k++) scaled[k] = values[k] / values[0];
    vector_compare(c, "singular_values", 0, values, c->d);
    vector_compare(c, "normalised", 0, scaled, c->d);
}

/* -- Theorem 1 --------------------------------------------------------------------------------- */

/* Compares means that are zero by analysis. The file allows 1e-37, but a measured mean has the
 * rounding of its d terms. No term is above sqrt(d * variance). */
static void compare_zero(vector_case *c, const char *name, const double *got,
                         const double *variance, int64_t count, int64_t d) {
    const double ulp = sizeof(real) == 8 ? 1e-15 : 1e-7;
    c->compared++;
    for (int64_t i = 0; i < count; i++) {
        if (fabs(got[i]) <= ulp * sqrt((double)d * variance[i])) continue;
        fprintf(stderr, "%s: %s [%lld]: %g is not 0\n", c->where, name, (long long)i, got[i]);
        c->wrong++;
        return;
    }
}

/* Runs one row at a time through the layer, so that each scalar belongs to one row. */
static void run_theorem_case(vector_case *c, const char *method, char letter, const double *x,
                             const double *g, int64_t rows, int64_t d) {
    char name[16];
    double *mean = vector_zeros(c, rows), *variance = vector_zeros(c, rows);
    double *exact_mean = vector_zeros(c, rows), *exact_variance = vector_zeros(c, rows);
    double *other = vector_zeros(c, 4 * rows), eps = vector_number(c, "eps", NAN);
    seen s = make_seen(c, 1, d);
    for (int64_t i = 0; i < rows && !c->broken; i++) {
        if (!run_layer(c, method, x + i * d, g + i * d, 1, d, NULL, &s)) return;
        mean[i] = s.scalar[NORM_SCALAR_row_grad_mean];
        variance[i] = s.scalar[NORM_SCALAR_row_grad_var];
        exact_mean[i] = s.scalar[NORM_SCALAR_row_exact_mean];
        exact_variance[i] = s.scalar[NORM_SCALAR_row_exact_var];
        other[i] = s.scalar[NORM_SCALAR_row_g_mean];
        other[rows + i] = s.scalar[NORM_SCALAR_row_g_var];
        other[2 * rows + i] = sqrt(s.deviation * s.deviation + eps);
        for (int64_t k = 0; k < d; k++) other[3 * rows + i] += s.stat[NORM_sum_gx][k] / (double)d;
    }
    snprintf(name, sizeof name, "mean_%c", letter);
    if (letter == 'b' || letter == 'd')
        compare_zero(c, name, mean, variance, rows, d);
    else
        vector_compare(c, name, 0, mean, rows);
    vector_compare(c, name, 0, exact_mean, rows);
    snprintf(name, sizeof name, "var_%c", letter);
    vector_compare(c, name, 0, variance, rows);
    vector_compare(c, name, 0, exact_variance, rows);
    if (letter != 'b') return;
    vector_compare(c, "gbar", 0, other, rows);
    vector_compare(c, "D_g", 0, other + rows, rows);
    vector_compare(c, "s", 0, other + 2 * rows, rows);
    vector_compare(c, "g_dot_y", 0, other + 3 * rows, rows);
}

static void run_theorem1(vector_case *c) {
    int64_t d = (int64_t)vector_number(c, "H", 0);
    const double *x = vector_read(c, "in/x", NULL), *g = vector_read(c, "in/g", NULL);
    if (c->broken) return;
    run_theorem_case(c, "detach-both", 'a', x, g, c->B, d);
    run_theorem_case(c, "ln-simple", 'b', x, g, c->B, d);
    run_theorem_case(c, "detach-mean", 'c', x, g, c->B, d);
    run_theorem_case(c, "detach-std", 'd', x, g, c->B, d);
}

/* -- gradient norms ---------------------------------------------------------------------------- */

static void derive(const vector_case *c, const seen *s, sr_family family, double *scalar) {
    const double *vector[SR_VECTOR_COUNT] = {NULL};
    vector[SR_mu_B] = s->stat[NORM_mu_B];
    vector[SR_sigma2_B] = s->stat[NORM_sigma2_B];
    vector[SR_psi2_B] = s->stat[NORM_psi2_B];
    vector[SR_gamma] = s->stat[NORM_gamma];
    vector[SR_sum_g] = s->stat[NORM_sum_g];
    vector[SR_sum_gx] = s->stat[NORM_sum_gx];
    for (int i = 0; i < SR_SCALAR_COUNT; i++) scalar[i] = NAN;
    sr_derive_scalars(family, c->d, vector_number(c, "eps", NAN), c->B, vector, scalar);
}

/* Names PREFIX_coef, PREFIX_rms ...: all values that follow from sum_gx and the statistic. */
static void compare_scale_part(vector_case *c, const char *prefix, const seen *s,
                               const double *statistic, double norm_over_d, double rowmean) {
    char name[48];
    int64_t d = c->d;
    double *coef = vector_zeros(c, d), *rms = vector_zeros(c, d), *partial = vector_zeros(c, d);
    double *scaled = vector_zeros(c, d), eps = vector_number(c, "eps", NAN), n = (double)c->B;
    for (int64_t k = 0; k < d && !c->broken; k++) {
        double square = statistic[k] + eps, sum = s->stat[NORM_gamma][k] * s->stat[NORM_sum_gx][k];
        coef[k] = sum / sqrt(square) / n;
        rms[k] = fabs(coef[k]) * sqrt(statistic[k] / square);
        partial[k] = -sum / (2 * square);
        scaled[k] = sum / n;
    }
    const struct {
        const char *suffix;
        const double *vector;
        double number;
    } row[] = {{"coef", coef, 0},
               {"rms", rms, 0},
               {"partial", partial, 0},
               {"norm_rms", NULL, norm_over_d * (double)d},
               {"norm_rms_over_d", NULL, norm_over_d},
               {"norm_rowmean", NULL, rowmean * (double)d},
               {"frobenius", NULL, sqrt(n) * norm_over_d * (double)d},
               {"xhatgrad_rootn", NULL, sqrt(n) * norm_of(scaled, d)}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        snprintf(name, sizeof name, "%s_%s", prefix, row[i].suffix);
        if (row[i].vector)
            vector_compare(c, name, 0, row[i].vector, d);
        else
            compare_number(c, name, row[i].number);
    }
}

static void compare_mean_part(vector_case *c, const seen *s, double norm_over_d) {
    int64_t d = c->d;
    double *part = vector_zeros(c, d), *partial = vector_zeros(c, d), *scaled = vector_zeros(c, d);
    double *plain = vector_zeros(c, d), eps = vector_number(c, "eps", NAN), n = (double)c->B;
    for (int64_t k = 0; k < d && !c->broken; k++) {
        double sum = s->stat[NORM_sum_g][k], gamma = s->stat[NORM_gamma][k];
        double divisor = sqrt(s->stat[NORM_sigma2_B][k] + eps);
        part[k] = gamma * sum / divisor / n;
        partial[k] = -gamma * sum / divisor;
        scaled[k] = gamma * sum / n;
        plain[k] = sum / n;
    }
    vector_compare(c, "g_mu", 0, part, d);
    vector_compare(c, "mu_partial", 0, partial, d);
    compare_number(c, "mu_norm", norm_over_d * (double)d);
    compare_number(c, "mu_norm_over_d", norm_over_d);
    compare_number(c, "mu_frobenius", sqrt(n) * norm_over_d * (double)d);
    compare_number(c, "mu_noscale_norm", norm_of(plain, d));
    compare_number(c, "mu_xhatgrad_rootn", sqrt(n) * norm_of(scaled, d));
}

static void run_gnorm(vector_case *c) {
    const double *x = vector_read(c, "in/x", NULL), *dy = vector_read(c, "in/dy", NULL);
    const double *gamma = vector_read(c, "in/gamma", NULL);
    double scalar[SR_SCALAR_COUNT];
    seen s = make_seen(c, c->B, c->d);
    if (c->broken || !run_layer(c, "bn", x, dy, c->B, c->d, gamma, &s)) return;
    derive(c, &s, SR_FAMILY_SIGMA, scalar);
    compare_mean_part(c, &s, scalar[SR_SCALAR_g_mu]);
    compare_scale_part(c, "sigma2", &s, s.stat[NORM_sigma2_B], scalar[SR_SCALAR_g_sigma2],
                       s.scalar[NORM_SCALAR_g_sigma2_rowmean]);
    if (c->broken || !run_layer(c, "pnv", x, dy, c->B, c->d, gamma, &s)) return;
    derive(c, &s, SR_FAMILY_PSI, scalar);
    compare_scale_part(c, "psi2", &s, s.stat[NORM_psi2_B], scalar[SR_SCALAR_g_psi2],
                       s.scalar[NORM_SCALAR_g_psi2_rowmean]);
}

/* -- Lemma 2 ----------------------------------------------------------------------------------- */

static void run_lemma2(vector_case *c) {
    const double *x = vector_read(c, "in/x", NULL), *dy = vector_read(c, "in/dy", NULL);
    const double *gamma = vector_read(c, "in/gamma", NULL);
    int64_t d = c->d;
    double *out[5], eps = vector_number(c, "eps", NAN);
    seen s = make_seen(c, c->B, d);
    for (int i = 0; i < 5; i++) out[i] = vector_zeros(c, d);
    if (c->broken || !run_layer(c, "pnv", x, dy, c->B, d, gamma, &s)) return;
    for (int64_t k = 0; k < d; k++) {
        double square = s.stat[NORM_psi2_B][k];
        out[0][k] = s.stat[NORM_gamma][k] / sqrt(square + eps);
        out[1][k] = s.stat[NORM_gamma][k] / sqrt(square);
        out[4][k] = s.stat[NORM_sum_gx][k] / sqrt((double)c->B);
        for (int64_t i = 0; i < c->B; i++) {
            out[2][k] += s.dx[i * d + k] * s.dx[i * d + k];
            out[3][k] += dy[i * d + k] * dy[i * d + k];
        }
    }
    vector_compare(c, "ratio", 0, out[0], d);
    vector_compare(c, "ratio_no_eps", 0, out[1], d);
    vector_compare(c, "grad_norm2", 0, out[2], d);
    vector_compare(c, "unnormalised_norm2", 0, out[3], d);
    vector_compare(c, "inner_over_rootB", 0, out[4], d);
}

bool vector_run_kind(vector_case *c) {
    static const struct {
        const char *kind;
        void (*run)(vector_case *);
    } row[] = {
        {"tid", run_tid},           {"condition", run_condition}, {"embedding", run_embedding},
        {"theorem1", run_theorem1}, {"gnorm", run_gnorm},         {"lemma2", run_lemma2}};
    char kind[32];
    vector_text(c, "kind", kind, sizeof kind);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        if (strcmp(row[i].kind, kind)) continue;
        row[i].run(c);
        return true;
    }
    return false;
}
