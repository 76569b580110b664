/* Gradients of layer normalization (Understanding and Improving LayerNorm, NeurIPS 2019, Theorem
 * 1), measured against the exact values.
 *
 * For each row, over its d features, with g = dL/dy and gain gamma; then averaged over valid rows:
 *
 *     row_grad_mean, row_grad_var   = mean and biased variance of dx, as measured
 *     row_exact_mean, row_exact_var = mean and variance by the closed form, from g, xhat and s of
 *                                     the row
 *     row_g_mean, row_g_var         = mean and variance of gamma * g
 *     row_free_var                  = variance of dx with constant mean and deviation: D/s^2
 *
 * The theorem has four cases, by the constants of the backward pass. With q = gamma g, qbar and D
 * its mean and biased variance, m = mean[q xhat], Q = sigma^2/(sigma^2 + eps):
 *
 *     a  mean and deviation   qbar/s   D/s^2                     detach-both
 *     b  neither              0        (D - (2-Q) m^2)/s^2       ln-simple, ln, adanorm
 *     c  mean                 qbar/s   (D - (2-Q) m^2)/s^2       detach-mean
 *     d  deviation            0        D/s^2                     detach-std
 *
 * For each site: medians over the steps, and the largest distance between measured and exact
 * values. Distances use steps with finite values and count the others. float32 in the file keeps
 * them above about 1e-7. Files do not store row gradients, so /vectors do not suffice.
 * docs/definitions.md has the released variants.
 *
 * Equation 7 and Theorem 2 have a row per site and statistic: --stat y_outside,z_mean,z_exact,
 * custom scalars of statrec train --theorems-every (src/observe/theorem_scalars.c).
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/stat_program.h"
#include "analysis/frame/statistics_table.h"
#include "analysis/series/series_summaries.h"

enum { GRAD_MEAN, GRAD_VAR, EXACT_MEAN, EXACT_VAR, G_MEAN, G_VAR, FREE_VAR, STATISTICS };
enum { BLOCK = 1024, SITES = 512 }; /* steps and sites at once */

static const statistic stats[STATISTICS] = {
    {"grad_mean", "row_grad_mean", NULL, 0, NULL, NULL},
    {"grad_var", "row_grad_var", NULL, 0, NULL, NULL},
    {"exact_mean", "row_exact_mean", NULL, 0, NULL, NULL},
    {"exact_var", "row_exact_var", NULL, 0, NULL, NULL},
    {"g_mean", "row_g_mean", NULL, 0, NULL, NULL},
    {"g_var", "row_g_var", NULL, 0, NULL, NULL},
    {"free_var", "row_free_var", NULL, 0, NULL, NULL},
};

/* The case follows from the statistics that the method uses, and those that its backward pass keeps
 * constant. */
static const char *case_of(const sr_run_site *site) {
    const bool mean = sr_run_is_constant(site, "mu");
    const bool deviation = sr_run_is_constant(site, "sigma2");
    if (strcmp(site->axis, "row") != 0 || !sr_run_uses(site, "mu") || !sr_run_uses(site, "sigma2"))
        return "-";
    return mean ? deviation ? "a" : "c" : deviation ? "d" : "b";
}

static void declare_columns(tsv *t) {
    site_columns(t);
    tsv_column(t, "norm", "its normalization");
    tsv_column(t, "case",
               "case of Theorem 1. Constants in the backward pass: a mean and deviation, b none, c "
               "mean, d deviation. -: no statement");
    tsv_column(t, "steps", "recorded steps");
    tsv_column(
        t, "nonfinite",
        "steps with a statistic that is NaN or infinite; no median or difference includes it");
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

/* Results of one site, step by step. */
typedef struct distances {
    double mean, var; /* largest ones; NaN: none */
    int64_t nonfinite;
} distances;

/* Sites of one run that go through the file together. */
typedef struct gradients {
    const step_table *j;
    const site_choice *at; /* [sites] */
    int64_t sites, first, rows;
    int have;            /* series that there are, the statistics of a site side by side */
    series *s;           /* [have] */
    int *place;          /* [have] site * STATISTICS + statistic */
    distances *distance; /* [sites] */
    double *median;      /* [sites, STATISTICS] NaN: not recorded */
    bool *look;          /* [sites, STATISTICS] at every step, for the distances */
} gradients;

/* To be freed after a failure too. */
static sr_status gradients_create(gradients *g, sr_failure *why) {
    const size_t columns = (size_t)(g->sites * STATISTICS);
    g->s = malloc(columns * sizeof *g->s);
    g->place = malloc(columns * sizeof *g->place);
    g->distance = malloc((size_t)g->sites * sizeof *g->distance);
    g->median = malloc(columns * sizeof *g->median);
    g->look = calloc(columns, sizeof *g->look);
    if (!g->s || !g->place || !g->distance || !g->median || !g->look)
        return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < g->sites; i++) g->distance[i] = (distances){NAN, NAN, 0};
    for (int k = 0; k < (int)columns; k++) {
        const site_choice *at = &g->at[k / STATISTICS];
        const statistic *stat = &stats[k % STATISTICS];
        g->median[k] = NAN;
        if (!at->has[k % STATISTICS]) continue;
        g->s[g->have] = (series){g->j->set->run[at->run], at->site, stat, FROM_SCALARS};
        g->place[g->have++] = k;
    }
    return SR_OK;
}

/* Keeps the series that the distances need, and those with steps to count. */
static sr_status read_medians(gradients *g, sr_failure *why) {
    int kept = 0;
    summary *sum = malloc((size_t)(g->have + 1) * sizeof *sum);
    if (!sum) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = series_summaries(g->s, g->have, g->first, g->rows, true, sum, why);
    for (int i = 0; i < g->have && status == SR_OK; i++) {
        g->median[g->place[i]] = sum[i].median;
        if (g->place[i] % STATISTICS > EXACT_VAR && !sum[i].nonfinite) continue;
        g->look[g->place[i]] = true;
        g->s[kept] = g->s[i];
        g->place[kept++] = g->place[i];
    }
    g->have = kept;
    free(sum);
    return status;
}

/* The largest finite |a - b| / unit, or / sqrt(square); `most` if that is larger. */
static double largest_difference(double most, const double *a, const double *b,
                                 const double *square, const double *unit, int64_t count) {
    double largest = -1;
    if (unit) {
#pragma omp simd reduction(max : largest)
        for (int64_t i = 0; i < count; i++) {
            const double difference = fabs(a[i] - b[i]) / unit[i];
            const double finite = difference <= DBL_MAX ? difference : -1;
            largest = finite > largest ? finite : largest;
        }
    } else {
#pragma omp simd reduction(max : largest)
        for (int64_t i = 0; i < count; i++) {
            const double difference = fabs(a[i] - b[i]) / sqrt(square[i]);
            const double finite = difference <= DBL_MAX ? difference : -1;
            largest = finite > largest ? finite : largest;
        }
    }
    return largest < 0 || most >= largest ? most : largest;
}

/* Rows where a statistic is not finite. v [STATISTICS][count]; look: the statistics to check */
static int64_t count_nonfinite(double *const *v, const bool *look, int64_t count) {
    double odd[BLOCK] = {0}; /* x - x is NaN of NaN and of infinities */
    int64_t rows = 0;
    for (int k = 0; k < STATISTICS; k++) {
        const double *of = v[k];
        if (!look[k]) continue;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) odd[i] += of[i] - of[i];
    }
    for (int64_t i = 0; i < count; i++) rows += isnan(odd[i]);
    return rows;
}

static sr_status read_distances(gradients *g, sr_failure *why) {
    const int64_t columns = g->sites * STATISTICS;
    double *memory = malloc((size_t)(columns * BLOCK) * sizeof *memory);
    double **value = malloc((size_t)(2 * columns) * sizeof *value), **into = value + columns;
    sr_status status = memory && value ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < columns * BLOCK && memory; i++) memory[i] = NAN;
    for (int64_t k = 0; k < columns && value; k++) value[k] = memory + k * BLOCK;
    for (int i = 0; i < g->have && value; i++) into[i] = value[g->place[i]];
    for (int64_t at = 0; at < g->rows && status == SR_OK; at += BLOCK) {
        const int64_t count = g->rows - at < BLOCK ? g->rows - at : BLOCK;
        status = series_read_all(g->s, g->have, g->first + at, count, into, NULL, why);
        for (int64_t i = 0; i < g->sites && status == SR_OK; i++) {
            distances *d = &g->distance[i];
            double *const *v = value + i * STATISTICS; /* [STATISTICS][count] */
            const double *mean = v[EXACT_MEAN], *var = v[EXACT_VAR];
            d->mean = largest_difference(d->mean, v[GRAD_MEAN], mean, var, NULL, count);
            d->var = largest_difference(d->var, v[GRAD_VAR], var, NULL, var, count);
            d->nonfinite += count_nonfinite(v, g->look + i * STATISTICS, count);
        }
    }
    free(memory);
    free(value);
    return status;
}

static void print_site(const gradients *g, int64_t i) {
    const sr_run_site *site = sr_run_get_site(g->j->set->run[g->at->run], g->at[i].site);
    const distances *d = &g->distance[i];
    const double *median = g->median + i * STATISTICS;
    tsv *t = g->j->table;
    tsv_text(t, g->j->set->path[g->at->run]);
    tsv_text(t, site->name);
    tsv_text(t, site->norm);
    tsv_text(t, case_of(site));
    tsv_int(t, g->rows);
    tsv_int(t, d->nonfinite);
    const double cell[] = {median[GRAD_MEAN], median[EXACT_MEAN], d->mean,
                           median[GRAD_VAR],  median[EXACT_VAR],  d->var,
                           median[G_MEAN],    median[G_VAR],      median[FREE_VAR]};
    for (size_t k = 0; k < sizeof cell / sizeof cell[0]; k++) tsv_real(t, cell[k]);
}

static sr_status print_together(gradients *g, sr_failure *why) {
    const series any = {g->j->set->run[g->at->run], g->at->site, &stats[0], FROM_SCALARS};
    sr_status status = window_rows(&g->j->window[g->at->run], &any, &g->first, &g->rows, why);
    if (status == SR_OK) status = gradients_create(g, why);
    if (status == SR_OK) status = read_medians(g, why);
    if (status == SR_OK) status = read_distances(g, why);
    for (int64_t i = 0; i < g->sites && status == SR_OK; i++) print_site(g, i);
    free(g->s);
    free(g->place);
    free(g->distance);
    free(g->median);
    free(g->look);
    return status;
}

static sr_status print_sites(const step_table *j, sr_failure *why) {
    const choice *c = j->chosen;
    sr_status status = SR_OK;
    declare_columns(j->table);
    for (int64_t k = 0, n; k < c->sites && status == SR_OK; k += n) {
        const site_choice *at = &c->site[k];
        for (n = 1; k + n < c->sites && n < SITES && at[n].run == at->run;) n++;
        gradients g = {.j = j, .at = at, .sites = n};
        status = print_together(&g, why);
    }
    return status;
}

int main(int argc, char **argv) {
    const analysis a = {
        .program = "stat-lngrad",
        .does =
            "Mean and variance over features of the gradients at layer normalization, per site,\n"
            "against the exact values of Theorem 1 (Understanding and Improving LayerNorm).\n"
            "With another --stat: a summary of those statistics, as in the other analyses;\n"
            "y_outside,z_mean,z_exact after statrec train --theorems-every: equation 7, Theorem 2.",
        .stat = stats,
        .statistics = STATISTICS,
        .custom = true,
        .default_stat = "grad_mean,grad_var,exact_mean,exact_var,g_mean,g_var,free_var",
        .site = "*",
        .source = FROM_SCALARS,
        .hint = "methods of the LN family record it in `statrec train`; `statrec.watch` records "
                "no row_*",
        .print_sites = print_sites,
    };
    return analysis_main(&a, argc, argv);
}
