/* Training-inference discrepancy (Regularized BN, NeurIPS 2022, section 3; docs/norms.md 18.3).
 *
 * Per step, with running values before their update and roots without eps:
 *
 *     tid_mean = ||mu_B - mu||_2 / ||sqrt(sigma2)||_2
 *     tid_var  = ||sqrt(sigma2_B) - sqrt(sigma2)||_2 / ||sqrt(sigma2)||_2
 *
 *     tid_total = tid_mean + tid_var
 *
 * Mean, Var and Total TID of the paper are expectations over training batches. The column `mean` of
 * the summary has them (times 100: percent). Its tables use the last BN layer (--site last-bn).
 * Here running values move during the run; the paper treats them as population values. --final
 * prints the average over the batches of a pass after training with frozen values.
 *
 * --definition released follows the code of the paper, which logs in each training pass the
 * following per feature. It uses running values AFTER the update (alpha old + (1 - alpha) batch, of
 * biased variances) and divides by the BATCH deviation:
 *
 *     tid_mean = mean over features of |mu - mu_B| / sigma_B
 *     tid_var  = mean over features of |sigma / sigma_B - 1|
 *
 * BRN averages deviations, not variances, and frozen statistics do not move: there it is this form
 * for an update that the run did not make. The code does not log their sum, tid_total. A feature
 * that is constant over the batch (sigma_B = 0) makes them infinite or NaN.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/stat_program.h"
#include "analysis/frame/statistics_table.h"
#include "statrec/moments.h"

#define V(row, name) ((row)->v[SR_##name])

static double tid_mean(const vector_row *r) {
    return sr_tid_mean(V(r, mu_B), V(r, mu), V(r, sigma2), r->width);
}

static double tid_var(const vector_row *r) {
    return sr_tid_var(V(r, sigma2_B), V(r, sigma2), r->width);
}

static double tid_total(const vector_row *r) {
    return tid_mean(r) + tid_var(r);
}

static double after(const vector_row *r, double old, double batch) {
    return r->alpha * old + (1 - r->alpha) * batch;
}

static double tid_mean_released(const vector_row *r) {
    double sum = 0;
    for (int64_t k = 0; k < r->width; k++) {
        const double mu = after(r, V(r, mu)[k], V(r, mu_B)[k]);
        sum += fabs(mu - V(r, mu_B)[k]) / sqrt(V(r, sigma2_B)[k]);
    }
    return sum / (double)r->width;
}

static double tid_var_released(const vector_row *r) {
    double sum = 0;
    for (int64_t k = 0; k < r->width; k++) {
        const double sigma2 = after(r, V(r, sigma2)[k], V(r, sigma2_B)[k]);
        sum += fabs(sqrt(sigma2) / sqrt(V(r, sigma2_B)[k]) - 1);
    }
    return sum / (double)r->width;
}

static double tid_total_released(const vector_row *r) {
    return tid_mean_released(r) + tid_var_released(r);
}

#define BOTH (NEEDS(mu_B) | NEEDS(mu) | NEEDS(sigma2_B) | NEEDS(sigma2))

static const statistic stats[] = {
    {"mean", "tid_mean",
     "||mu_B - mu||_2 / ||sqrt(sigma2)||_2, a fraction; stat-gap and figures: percent",
     NEEDS(mu_B) | NEEDS(mu) | NEEDS(sigma2), tid_mean, NULL},
    {"var", "tid_var",
     "||sqrt(sigma2_B) - sqrt(sigma2)||_2 / ||sqrt(sigma2)||_2, a fraction; stat-gap and figures: "
     "percent",
     NEEDS(sigma2_B) | NEEDS(sigma2), tid_var, NULL},
    {"total", "tid_total", "tid_mean + tid_var, a fraction", BOTH, tid_total, NULL},
};

static const statistic released[] = {
    {"mean", "tid_mean_released",
     "mean over features of |mu - mu_B| / sqrt(sigma2_B), mu from after the update",
     NEEDS(mu_B) | NEEDS(mu) | NEEDS(sigma2_B), tid_mean_released, NULL},
    {"var", "tid_var_released",
     "mean over features of |sqrt(sigma2) / sqrt(sigma2_B) - 1|, sigma2 from after the update",
     NEEDS(sigma2_B) | NEEDS(sigma2), tid_var_released, NULL},
    {"total", "tid_total_released", "tid_mean_released + tid_var_released", BOTH,
     tid_total_released, NULL},
};

/* -- the final pass -------------------------------------------------------------------------- */

/* Results of one run; value[SR_FINAL_COUNT] are [S]. */
typedef struct final_pass {
    int64_t batches, sites;
    double *value[SR_FINAL_COUNT];
} final_pass;

static void declare_final(tsv *t) {
    site_columns(t);
    tsv_column(t, "norm", "its normalization");
    tsv_column(t, "batches",
               "training batches of the pass, running values frozen (of an observed site: the "
               "observer's)");
    tsv_column(t, "tid_mean",
               "mean over batches of ||mu_B - mu||_2 / ||sqrt(sigma2)||_2, a fraction");
    tsv_column(t, "tid_var",
               "mean over batches of ||sqrt(sigma2_B) - sqrt(sigma2)||_2 / ||sqrt(sigma2)||_2, a "
               "fraction");
    tsv_column(t, "tid_total", "tid_mean + tid_var, a fraction");
    tsv_header(t);
}

/* Rows of one run; t NULL: only counts them. */
static sr_status final_run(const run_set *set, int r, const char *sites, tsv *t, int64_t *count,
                           sr_failure *why) {
    final_pass p = {0};
    p.sites = sr_run_get_info(set->run[r])->sites;
    p.value[0] = malloc((size_t)(SR_FINAL_COUNT * p.sites + 1) * sizeof(double));
    if (!p.value[0]) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 1; i < SR_FINAL_COUNT; i++) p.value[i] = p.value[i - 1] + p.sites;
    sr_status status = sr_run_final(set->run[r], &p.batches, p.value, why);
    char unused[GLOBS_WORD]; /* print_final reports a run without any */
    bool *chosen = calloc(2 * (size_t)p.sites + 1, sizeof *chosen), *measured = chosen + p.sites;
    if (!chosen) status = sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < p.sites && status == SR_OK; i++)
        measured[i] = p.batches >= 0 && !isnan(p.value[SR_FINAL_tid_mean][i]);
    if (status == SR_OK) choice_match(set->run[r], measured, sites, chosen, unused);
    for (int64_t i = 0; i < p.sites && status == SR_OK; i++) {
        if (!chosen[i] || !measured[i]) continue;
        ++*count;
        if (!t) continue;
        const double mean = p.value[SR_FINAL_tid_mean][i], var = p.value[SR_FINAL_tid_var][i];
        tsv_text(t, set->path[r]);
        tsv_text(t, sr_run_get_site(set->run[r], i)->name);
        tsv_text(t, sr_run_get_site(set->run[r], i)->norm);
        tsv_int(t, p.batches);
        tsv_real(t, mean);
        tsv_real(t, var);
        tsv_real(t, mean + var);
    }
    free(chosen);
    free(p.value[0]);
    return status;
}

static sr_status print_final(const run_set *set, const char *sites, const char *command,
                             sr_failure *why) {
    tsv table;
    table_head head;
    int64_t total = 0;
    sr_status status = table_head_begin(&head, &table, "stat-tid", command, set, why);
    if (status != SR_OK) return status;
    for (int r = 0; r < set->count && status == SR_OK; r++) {
        int64_t here = 0;
        status = final_run(set, r, sites, NULL, &here, why);
        if (!here) tsv_note(&table, "note", "%s: no final pass at these sites", set->path[r]);
        total += here;
    }
    if (status == SR_OK && !total) {
        status = sr_fail(why, SR_FORMAT, "%s%s has no final pass at a site '%s'", set->path[0],
                         set->count > 1 ? " (and no other run)" : "", sites);
        sr_hint(
            why,
            "`statrec train --final-tid` makes one; without batch statistics also --observe batch");
    }
    status = table_head_end(&head, &table, status, why);
    if (status == SR_OK) declare_final(&table);
    for (int r = 0; r < set->count && status == SR_OK; r++)
        status = final_run(set, r, sites, &table, &total, why);
    return status;
}

int main(int argc, char **argv) {
    const analysis a = {
        .program = "stat-tid",
        .does = "Training-inference discrepancy of batch normalization, per site.",
        .stat = stats,
        .statistics = sizeof stats / sizeof stats[0],
        .default_stat = "mean,var,total",
        .site = "*",
        .source = FROM_SCALARS,
        .hint = "without batch statistics, add `statrec train --observe batch`",
        .form_option = "definition",
        .form_help = "that of the paper, or of its released code (computed from /vectors)",
        .form = {{"paper", stats, false}, {"released", released, true}},
        .print_final = print_final,
    };
    return analysis_main(&a, argc, argv);
}
