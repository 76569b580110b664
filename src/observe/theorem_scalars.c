/* theorem_scalars.c -- conditions and conclusions of theorems, measured on the rows of a site
 * (docs/definitions.md, "--theorems-every N").
 *
 * Rows: Xu et al., NeurIPS 2019 (docs/norms.md 6, 18.6). At methods that subtract the mean of a row
 * of d features and divide by s, y = (x - mean)/s, in double from x:
 *
 *     y_outside  share of the entries with |y| >= 10; the paper expects 0.01 at most  equation 7
 *     z_mean     largest of the rows: |mean over k of z_k| / |C k|, z as written; the
 *                theorem has at most 1                                                Theorem 2
 *     z_exact    the same by the closed form, mean over k of y_k^2
 *
 * Features: Shen et al., ICML 2020 (docs/norms.md 10, 11, 18.5). x_k, g_k, dx_k are the columns of
 * feature k, r_k = gamma_k/s_k, q = gamma g, xhat = x/s:
 *
 *     lemma2_max    largest of the features: ||dx_k||^2 / ||g_k||^2                    Lemma 2
 *     lemma2_above  share of the features where it is above 1
 *     lemma2_diff   PN-V, largest of the features: | ||dx_k||^2 - e | / (r_k^2 ||g_k||^2),
 *                   e = r_k^2 (||g_k||^2 - (2 - Q_k) <g_k, xhat_k>^2/n)
 *     row_xhat_max, row_q_max   PN, largest of the rows: ||xhat_i||, ||q_i||   Theorem 4's C1, C2
 *     Gamma_min                 PN: smallest of the features
 *     row_dxhat_max             PN, largest of the rows: ||q_i - nu xhat_i||        its conclusion
 *
 * A feature without gradient is in no ratio. One thread, rows in their order.
 */
#include "observe/theorem_scalars.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "norm/norm_options.h"

typedef enum {
    Y_OUTSIDE,
    Z_MEAN,
    Z_EXACT,
    LEMMA2_MAX,
    LEMMA2_ABOVE,
    LEMMA2_DIFF,
    ROW_XHAT_MAX,
    ROW_Q_MAX,
    GAMMA_MIN,
    ROW_DXHAT_MAX,
    NUMBERS
} number;

static const char *const names[NUMBERS][2] = {
    {"y_outside", "share of the entries of valid rows with |y| >= 10, y = (x - mean)/s of the row; "
                  "AdaNorm's paper expects less than 0.01 (equation 7)"},
    {"z_mean", "AdaNorm: largest over rows of |mean over features of z| / |C k|; Theorem 2 has at "
               "most 1"},
    {"z_exact", "AdaNorm: z_mean by the closed form, largest over rows of mean[y^2]"},
    {"lemma2_max", "PN, PN-V: largest over features of ||dx_k||^2 / ||g_k||^2; Lemma 2 has at most "
                   "1"},
    {"lemma2_above", "PN, PN-V: share of the features with ||dx_k|| > ||g_k||"},
    {"lemma2_diff", "PN-V: largest over features of the difference between ||dx_k||^2 and Lemma "
                    "2's, over (gamma_k/s_k)^2 ||g_k||^2"},
    {"row_xhat_max", "PN: largest over valid rows of ||xhat_i||_2"},
    {"row_q_max", "PN: largest over valid rows of ||gamma g_i||_2"},
    {"Gamma_min", "PN: smallest Gamma_t"},
    {"row_dxhat_max", "PN: largest over valid rows of ||gamma g_i - nu xhat_i||_2"},
};

struct theorem_scalars {
    sr_recorder *recorder;
    hooks *hooks;
    bool features;
    int id[NUMBERS]; /* in the recorder */
};

static const real *row_at(const norm_view *o, const real *x, int64_t i) {
    return x + norm_row_number(o->call->rows, i) * o->call->features;
}

/* Raises *most to `value` if that is larger; a NaN stays. */
static void keep_largest(double *most, double value) {
    if (value > *most || isnan(value)) *most = value;
}

static double param_or(const norm_view *o, const char *name, double absent) {
    const int i = norm_param_find(o->site->method, name);
    return i < 0 ? absent : o->call->options->param[i];
}

static bool of_rows(const norm_method *m) {
    const uint32_t both = NORM_BIT(mu) | NORM_BIT(sigma2);
    return strcmp(m->axis, "row") == 0 && (m->uses & both) == both;
}

static bool of_features(const norm_method *m) {
    return m->family == NORM_FAMILY_PN || m->family == NORM_FAMILY_PSI;
}

bool theorem_scalars_apply(const norm_method *m) {
    return of_rows(m) || of_features(m);
}

/* -- rows ------------------------------------------------------------------------------------ */

/* Accumulators over rows: outside is a count, the others are maxima. */
typedef struct row_numbers {
    double outside, z, exact;
} row_numbers;

typedef struct row_rule {
    double ddof, C, k; /* k 0: no phi */
    bool outside;      /* s = sqrt(v) + eps */
} row_rule;

static void take_row(const norm_view *o, const row_rule *rule, int64_t i, row_numbers *to) {
    const int64_t d = o->call->features;
    const real *x = row_at(o, o->x, i), *z = row_at(o, o->y, i);
    const double eps = o->call->options->eps;
    double mean = 0, squares = 0, sum_z = 0;
    for (int64_t k = 0; k < d; k++) mean += (double)x[k] / (double)d;
    for (int64_t k = 0; k < d; k++) squares += ((double)x[k] - mean) * ((double)x[k] - mean);
    const double v = squares / ((double)d - rule->ddof);
    const double s = rule->outside ? sqrt(v) + eps : sqrt(v + eps);
    for (int64_t k = 0; k < d; k++) {
        const double y = ((double)x[k] - mean) / s;
        to->outside += !(fabs(y) < 10);
        sum_z += (double)z[k];
    }
    keep_largest(&to->z, fabs(sum_z / (double)d) / fabs(rule->C * rule->k));
    keep_largest(&to->exact, squares / (s * s) / (double)d);
}

static void look_at_rows(void *of, int site, const norm_view *o, sr_failure *why) {
    const theorem_scalars *t = of;
    const norm_method *m = o->site->method;
    const row_rule rule = {param_or(o, "unbiased", 0), param_or(o, "C", 1), param_or(o, "k", 0),
                           param_or(o, "placement", 0) != 0};
    const int64_t n = o->call->rows->valid;
    row_numbers found = {0, 0, 0};
    (void)why;
    if (!of_rows(m) || !o->x || !o->y || n == 0) return;
    for (int64_t i = 0; i < n; i++) take_row(o, &rule, i, &found);
    const double value[] = {found.outside / (double)(n * o->call->features), found.z, found.exact};
    const int count = rule.C != 0 && rule.k != 0 ? 3 : 1;
    for (int i = 0; i < count; i++)
        sr_put_scalar(t->recorder, hooks_site(t->hooks, site), t->id[Y_OUTSIDE + i], value[i]);
}

/* -- features -------------------------------------------------------------------------------- */

/* Sums over the valid rows of a feature. */
typedef struct column_sums {
    double g2, dx2;
} column_sums;

/* s of the call. PN divides by a running value, found from Gamma = mean[xhat^2]. */
static double divisor_of(const norm_view *o, int64_t k) {
    const double psi2_B = o->call->stat[NORM_psi2_B][k], Gamma = o->call->stat[NORM_Gamma_t][k];
    if (o->site->method->family == NORM_FAMILY_PSI) return sqrt(psi2_B + o->call->options->eps);
    return Gamma > 0 ? sqrt(psi2_B / Gamma) : 1;
}

static void sum_columns(const norm_view *o, column_sums *sum) {
    const int64_t d = o->call->features;
    for (int64_t i = 0; i < o->call->rows->valid; i++) {
        const real *g = row_at(o, o->dy, i), *dx = row_at(o, o->dx, i);
        for (int64_t k = 0; k < d; k++) {
            sum[k].g2 += (double)g[k] * (double)g[k];
            sum[k].dx2 += (double)dx[k] * (double)dx[k];
        }
    }
}

static void compare_columns(const norm_view *o, const column_sums *sum, double value[NUMBERS]) {
    const int64_t d = o->call->features;
    const double n = (double)o->call->rows->valid;
    double most = -INFINITY, diff = -INFINITY, above = 0, count = 0;
    for (int64_t k = 0; k < d; k++) {
        if (sum[k].g2 == 0) continue;
        const double s = divisor_of(o, k), r2 = pow((double)o->call->gamma[k] / s, 2);
        const double Q = o->call->stat[NORM_psi2_B][k] / (s * s);
        const double along = o->call->dgamma[k]; /* sum_gx may be the observer's */
        const double exact = r2 * (sum[k].g2 - (2 - Q) * along * along / n);
        keep_largest(&most, sum[k].dx2 / sum[k].g2);
        if (r2 > 0) keep_largest(&diff, fabs(sum[k].dx2 - exact) / (r2 * sum[k].g2));
        above += sum[k].dx2 > sum[k].g2;
        count++;
    }
    if (count == 0) return;
    value[LEMMA2_MAX] = most;
    value[LEMMA2_ABOVE] = above / count;
    if (o->site->method->family == NORM_FAMILY_PSI && isfinite(diff)) value[LEMMA2_DIFF] = diff;
}

static void measure_rows(const norm_view *o, double value[NUMBERS]) {
    const int64_t d = o->call->features;
    const double *nu = o->call->stat[NORM_nu];
    double most[3] = {0, 0, 0}, least = INFINITY;
    for (int64_t i = 0; i < o->call->rows->valid; i++) {
        const real *x = row_at(o, o->x, i), *g = row_at(o, o->dy, i);
        double sum[3] = {0, 0, 0};
        for (int64_t k = 0; k < d; k++) {
            const double xhat = (double)x[k] / divisor_of(o, k);
            const double q = (double)o->call->gamma[k] * (double)g[k], dq = q - nu[k] * xhat;
            sum[0] += xhat * xhat, sum[1] += q * q, sum[2] += dq * dq;
        }
        for (int j = 0; j < 3; j++) keep_largest(&most[j], sqrt(sum[j]));
    }
    for (int64_t k = 0; k < d; k++) least = fmin(least, o->call->stat[NORM_Gamma_t][k]);
    value[ROW_XHAT_MAX] = most[0];
    value[ROW_Q_MAX] = most[1];
    value[ROW_DXHAT_MAX] = most[2];
    value[GAMMA_MIN] = least;
}

static void look_at_features(void *of, int site, const norm_view *o, sr_failure *why) {
    const theorem_scalars *t = of;
    const norm_method *m = o->site->method;
    const bool pn = m->family == NORM_FAMILY_PN;
    double value[NUMBERS];
    if (!of_features(m) || !o->x || !o->dx || o->call->rows->valid == 0) return;
    column_sums *sum = calloc((size_t)o->call->features, sizeof *sum);
    if (!sum) {
        sr_fail(why, SR_MEMORY, "out of memory for the features of %s", o->site->name);
        return;
    }
    for (int i = 0; i < NUMBERS; i++) value[i] = NAN;
    sum_columns(o, sum);
    compare_columns(o, sum, value);
    if (pn) measure_rows(o, value);
    for (int i = LEMMA2_MAX; i < NUMBERS; i++)
        sr_put_scalar(t->recorder, hooks_site(t->hooks, site), t->id[i], value[i]);
    free(sum);
}

/* -- every site ------------------------------------------------------------------------------ */

theorem_scalars *theorem_scalars_create(sr_recorder *r, hooks *h, bool features, sr_failure *why) {
    theorem_scalars *t = malloc(sizeof *t);
    if (!t) {
        sr_fail(why, SR_MEMORY, "out of memory for the scalars of theorems");
        return NULL;
    }
    *t = (theorem_scalars){.recorder = r, .hooks = h, .features = features};
    for (int i = 0; i < NUMBERS; i++)
        t->id[i] = sr_declare_scalar(r, names[i][0], "1", names[i][1], SR_PER_SITE);
    const sr_failure *f = sr_failed(r);
    if (!f) return t;
    sr_fail(why, f->status, "%s", f->text);
    free(t);
    return NULL;
}

void theorem_scalars_free(theorem_scalars *t) {
    free(t);
}

void theorem_scalars_begin_step(theorem_scalars *t, bool wanted) {
    if (!t) return;
    hooks_on_passes(t->hooks,
                    &(hooks_looks){.forward = wanted ? look_at_rows : NULL,
                                   .backward = wanted && t->features ? look_at_features : NULL,
                                   .context = t});
}
