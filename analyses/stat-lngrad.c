/* Gradients of layer normalization (Understanding and Improving LayerNorm, NeurIPS 2019, Theorem
 * 1), measured against the exact values.
 *
 * Per row, over its d features, with g = dL/dy and gain gamma; then averaged over the valid rows:
 *
 *     row_grad_mean, row_grad_var   = mean and biased variance of dx, as measured
 *     row_exact_mean, row_exact_var = the same by the closed form, from g, xhat and s of the row
 *     row_g_mean, row_g_var         = the same of gamma * g
 *     row_free_var                  = variance of dx if mean and deviation were constants: D/s^2
 *
 * The theorem has four cases, by what the backward pass takes for a constant. With q = gamma g,
 * qbar and D its mean and biased variance, m = mean[q xhat], Q = sigma^2/(sigma^2 + eps):
 *
 *     a  mean and deviation   qbar/s   D/s^2                     detach-both
 *     b  neither              0        (D - (2-Q) m^2)/s^2       ln-simple, ln, adanorm
 *     c  mean                 qbar/s   (D - (2-Q) m^2)/s^2       detach-mean
 *     d  deviation            0        D/s^2                     detach-std
 *
 * Per site: medians over the steps, and the largest distance between measured and exact values of
 * the steps where both are finite (the others are counted), which float32 in the file keeps above
 * about 1e-7. The row gradients themselves are not stored, so nothing can be computed again from
 * /vectors. docs/definitions.md has the released variants.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "statnet/analysis.h"

enum { GRAD_MEAN, GRAD_VAR, EXACT_MEAN, EXACT_VAR, G_MEAN, G_VAR, FREE_VAR, STATISTICS };

static const statistic stats[STATISTICS] = {
    {"grad_mean", "row_grad_mean", NULL, 0, NULL, NULL},
    {"grad_var", "row_grad_var", NULL, 0, NULL, NULL},
    {"exact_mean", "row_exact_mean", NULL, 0, NULL, NULL},
    {"exact_var", "row_exact_var", NULL, 0, NULL, NULL},
    {"g_mean", "row_g_mean", NULL, 0, NULL, NULL},
    {"g_var", "row_g_var", NULL, 0, NULL, NULL},
    {"free_var", "row_free_var", NULL, 0, NULL, NULL},
};

/* By what the method uses of a row, and what of it its backward pass takes for a constant. */
static const char *case_of(const sr_run_site *site) {
    const bool mean = sr_run_is_constant(site, "mu");
    const bool deviation = sr_run_is_constant(site, "sigma2");
    if (strcmp(site->axis, "row") != 0 || !sr_run_uses(site, "mu") || !sr_run_uses(site, "sigma2"))
        return "-";
    return mean ? deviation ? "a" : "c" : deviation ? "d" : "b";
}

static void declare_columns(tsv *t) {
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "site", "normalization site");
    tsv_column(t, "norm", "its normalization");
    tsv_column(t, "case",
               "of Theorem 1: a mean and deviation constant in the backward pass, b neither, c the "
               "mean, d the deviation; -: no statement");
    tsv_column(t, "steps", "recorded steps");
    tsv_column(
        t, "nonfinite",
        "steps at which a recorded statistic is NaN or infinite: such values are in no median "
        "and no difference");
    tsv_column(t, "grad_mean", "median over the steps of row_grad_mean");
    tsv_column(t, "exact_mean", "the same of row_exact_mean; nan: not recorded, or no statement");
    tsv_column(t, "mean_diff", "largest of the steps: |grad_mean - exact_mean| / sqrt(exact_var)");
    tsv_column(t, "grad_var", "median over the steps of row_grad_var");
    tsv_column(t, "exact_var", "the same of row_exact_var");
    tsv_column(t, "var_diff", "largest of the steps: |grad_var - exact_var| / exact_var");
    tsv_column(t, "g_mean", "median over the steps of row_g_mean");
    tsv_column(t, "g_var", "the same of row_g_var");
    tsv_column(t, "free_var",
               "the same of row_free_var, which bounds the variance of dx; nan: not recorded");
    tsv_header(t);
}

/* Of one site, [steps] each. */
typedef struct gradients {
    int64_t steps;
    double *value[STATISTICS];
} gradients;

static void gradients_free(gradients *g) {
    for (int k = 0; k < STATISTICS; k++) free(g->value[k]);
}

static sr_status gradients_read(gradients *g, const step_table *j, const site_choice *at,
                                sr_failure *why) {
    const sr_runfile *run = j->set->run[at->run];
    const series any = {run, at->site, &stats[0], FROM_SCALARS};
    int64_t first;
    sr_status status = window_rows(&j->window[at->run], &any, &first, &g->steps, why);
    for (int k = 0; k < STATISTICS && status == SR_OK; k++) {
        const series s = {run, at->site, &stats[k], FROM_SCALARS};
        g->value[k] = malloc((size_t)(g->steps + 1) * sizeof *g->value[k]);
        if (!g->value[k]) return sr_fail(why, SR_MEMORY, "out of memory");
        for (int64_t i = 0; i < g->steps; i++) g->value[k][i] = NAN;
        if (at->has[k]) status = series_read(&s, first, g->steps, g->value[k], NULL, why);
    }
    return status;
}

/* Largest finite |a - b| / unit; NaN without any. */
static double largest_difference(const double *a, const double *b, const double *square,
                                 const double *unit, int64_t steps) {
    double most = NAN;
    for (int64_t i = 0; i < steps; i++) {
        const double difference = fabs(a[i] - b[i]) / (unit ? unit[i] : sqrt(square[i]));
        if (isfinite(difference) && !(difference <= most)) most = difference;
    }
    return most;
}

static int64_t count_nonfinite(const gradients *g, const bool *recorded) {
    int64_t count = 0;
    for (int64_t i = 0; i < g->steps; i++) {
        bool finite = true;
        for (int k = 0; k < STATISTICS; k++)
            finite = finite && (!recorded[k] || isfinite(g->value[k][i]));
        count += !finite;
    }
    return count;
}

/* Sorts the values. */
static double median_of(double *value, int64_t steps) {
    summary s;
    summary_make(value, steps, &s);
    return s.median;
}

static void print_site(const run_set *set, const site_choice *at, gradients *g, tsv *t) {
    const sr_run_site *site = sr_run_get_site(set->run[at->run], at->site);
    double **v = g->value;
    const double mean_diff =
        largest_difference(v[GRAD_MEAN], v[EXACT_MEAN], v[EXACT_VAR], NULL, g->steps);
    const double var_diff =
        largest_difference(v[GRAD_VAR], v[EXACT_VAR], NULL, v[EXACT_VAR], g->steps);
    const int64_t nonfinite = count_nonfinite(g, at->has);
    double median[STATISTICS];
    for (int k = 0; k < STATISTICS; k++) median[k] = median_of(v[k], g->steps);
    tsv_text(t, set->path[at->run]);
    tsv_text(t, site->name);
    tsv_text(t, site->norm);
    tsv_text(t, case_of(site));
    tsv_int(t, g->steps);
    tsv_int(t, nonfinite);
    const double cell[] = {median[GRAD_MEAN], median[EXACT_MEAN], mean_diff,
                           median[GRAD_VAR],  median[EXACT_VAR],  var_diff,
                           median[G_MEAN],    median[G_VAR],      median[FREE_VAR]};
    for (size_t i = 0; i < sizeof cell / sizeof cell[0]; i++) tsv_real(t, cell[i]);
}

static sr_status print_sites(const step_table *j, sr_failure *why) {
    sr_status status = SR_OK;
    declare_columns(j->table);
    for (int64_t i = 0; i < j->chosen->sites && status == SR_OK; i++) {
        const site_choice *at = &j->chosen->site[i];
        gradients g = {0};
        status = gradients_read(&g, j, at, why);
        if (status == SR_OK) print_site(j->set, at, &g, j->table);
        gradients_free(&g);
    }
    return status;
}

int main(int argc, char **argv) {
    const analysis a = {
        .program = "stat-lngrad",
        .does =
            "Mean and variance over features of the gradients at layer normalization, per site,\n"
            "against the exact values of Theorem 1 (Understanding and Improving LayerNorm).\n"
            "With another --stat: a summary of those statistics, as in the other analyses.",
        .stat = stats,
        .statistics = STATISTICS,
        .default_stat = "grad_mean,grad_var,exact_mean,exact_var,g_mean,g_var,free_var",
        .site = "*",
        .source = FROM_SCALARS,
        .hint = "only the methods of the LN family record it",
        .print_sites = print_sites,
    };
    return analysis_main(&a, argc, argv);
}
