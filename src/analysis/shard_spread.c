/* Spread of batch statistics between the shards of a batch (statrec train --record-shards). The
 * processes of plain data-parallel training normalize with statistics that differ this much.
 *
 * For one site and step: R shards, n_r valid rows of shard r, mu_r and sigma_r = sqrt(sigma2_B) its
 * statistics, and bars for means over the shards:
 *
 *     spread_mean = sqrt(1/R sum_r ||mu_r - mubar||_2^2) / ||sigmabar||_2
 *     spread_std  = sqrt(1/R sum_r ||sigma_r - sigmabar||_2^2) / ||sigmabar||_2
 *
 * This is TID (stat-tid) with the mean over the shards in place of the running values.
 *
 * Independent rows with the deviation sigma have var mu_r = sigma^2 / n_r and var mubar =
 * sum_r sigma^2 / n_r / R^2. The mean square about the mean is the mean of the squares less the
 * square of the mean:
 *
 *     E 1/R sum_r (mu_r - mubar)^2 = 1/R sum_r var mu_r - var mubar = sigma^2/R sum_r (1 - 1/R)/n_r
 *     expected_mean = sqrt(1/R sum_r (1 - 1/R)/n_r),   ratio = spread_mean / expected_mean
 *
 * A step with an empty shard has no value. Shard K > 0 of site NAME is the site NAME@K (globs.h).
 * The program reads as many sites together as fit in memory.
 */

#include "analysis/shard_spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/downsample.h"
#include "analysis/frame/stat_program.h"
#include "analysis/shard_values.h"

/* Number of sites to read at once. */
static int64_t sites_together(const shared_run *r) {
    const int sites = columns_together(r->count, VALUES * r->sites) / VALUES;
    return sites < 1 ? 1 : sites;
}

/* -- a row for each site --------------------------------------------------------------------- */

#define OF_SPREAD_MEAN "sqrt(1/R sum_r ||mu_r - mubar||_2^2) / ||sigmabar||_2"
#define OF_SPREAD_STD  "sqrt(1/R sum_r ||sigma_r - sigmabar||_2^2) / ||sigmabar||_2"
#define OF_EXPECTED    "what independent rows would give: sqrt(1/R sum_r (1 - 1/R) / n_r)"
#define OF_RATIO       "spread_mean / expected_mean of the step"

static void declare_summary(tsv *t) {
    site_columns(t);
    tsv_column(t, "norm", "its normalization");
    tsv_column(t, "shares", "R: shares of each batch, with batch statistics of their own");
    tsv_column(t, "steps", "steps with vectors");
    tsv_column(t, "nonfinite", "steps at which a shard has no rows or a value is not finite");
    tsv_column(t, "rows", "median over the steps of the mean n_r");
    tsv_column(t, "spread_mean", "median over the steps of " OF_SPREAD_MEAN);
    tsv_column(t, "spread_mean_q25", "its 25 % quantile");
    tsv_column(t, "spread_mean_q75", "its 75 % quantile");
    tsv_column(t, "spread_std", "median over the steps of " OF_SPREAD_STD);
    tsv_column(t, "spread_std_q25", "its 25 % quantile");
    tsv_column(t, "spread_std_q75", "its 75 % quantile");
    tsv_column(t, "expected_mean", "median over the steps of " OF_EXPECTED);
    tsv_column(t, "ratio", "median over the steps of " OF_RATIO);
    tsv_header(t);
}

enum { Q25, MEDIAN, Q75, QUANTILES };
static const double quantile[QUANTILES] = {0.25, 0.5, 0.75};

/* Reads as many sites at once as fit in memory: /scalars/rows has the row counts of all. */
static sr_status print_summary(const shared_run *r, tsv *t, sr_failure *why) {
    const int64_t most = sites_together(r);
    column_block b = {0};
    sr_status status = columns_create(&b, VALUES * most, r->count, why);
    for (int64_t k = 0, n; k < r->sites && status == SR_OK; k += n) {
        n = r->sites - k < most ? r->sites - k : most;
        status = shared_measure(r, k, n, 0, r->count, b.value, why);
        for (int64_t i = 0; i < n && status == SR_OK; i++) {
            const shared_site *s = &r->site[k + i];
            column_quantiles of[VALUES];
            for (int v = 0; v < VALUES; v++)
                of[v] = quantiles_make(b.value[i * VALUES + v], r->count, quantile, QUANTILES);
            tsv_text(t, r->path);
            tsv_text(t, sr_run_get_site(r->run, s->number)->name);
            tsv_text(t, sr_run_get_site(r->run, s->number)->norm);
            tsv_int(t, s->shares);
            tsv_int(t, r->count);
            tsv_int(t, r->count - of[SPREAD_MEAN].finite);
            tsv_real(t, of[ROWS].at[MEDIAN]);
            for (int v = SPREAD_MEAN; v <= SPREAD_STD; v++) {
                tsv_real(t, of[v].at[MEDIAN]);
                tsv_real(t, of[v].at[Q25]);
                tsv_real(t, of[v].at[Q75]);
            }
            tsv_real(t, of[EXPECTED].at[MEDIAN]);
            tsv_real(t, of[RATIO].at[MEDIAN]);
        }
    }
    columns_free(&b);
    return status;
}

/* -- a row for each step --------------------------------------------------------------------- */

static void declare_steps(tsv *t) {
    tsv_column(t, "run", "run file as given");
    tsv_column(
        t, "site",
        "normalization site; of several, in the end `(median)`: of each column over the sites");
    tsv_column(t, "step", "forward and backward passes so far");
    tsv_column(t, "percent", "percent of training: 100 step / last step of the run");
    tsv_column(t, "spread_mean", OF_SPREAD_MEAN);
    tsv_column(t, "spread_std", OF_SPREAD_STD);
    tsv_column(t, "expected_mean", OF_EXPECTED);
    tsv_column(t, "ratio", OF_RATIO);
    tsv_column(t, "rows", "mean n_r");
    tsv_header(t);
}

/* Every row, or the reduced ones. value [1 + VALUES]: steps, then the values of a site or their
   medians. */
static sr_status print_steps(const shared_run *r, const char *name, double *const *value,
                             int64_t buckets, tsv *t, sr_failure *why) {
    const bool reduced = buckets && r->count > 3 * buckets;
    parts p;
    parts_begin(&p, 1 + VALUES, reduced ? buckets : 0, reduced ? value[0][0] : 0,
                reduced ? value[0][r->count - 1] : 0);
    sr_status status = parts_add(&p, value[0], (const double *const *)value, r->count, why);
    if (status == SR_OK) status = parts_end(&p, why);
    for (int64_t i = 0; i < p.rows && status == SR_OK; i++) {
        const double *row = p.row + i * p.columns, step = floor(row[0]);
        tsv_text(t, r->path);
        tsv_text(t, name);
        tsv_int(t, (int64_t)step);
        tsv_real(t, r->last ? 100 * step / (double)r->last : NAN);
        for (int v = 1; v <= VALUES; v++) tsv_real(t, row[v]);
    }
    parts_free(&p);
    return status;
}

/* Medians over the sites that have a value: value [sites, VALUES][count], median [VALUES][count] */
static sr_status take_medians(int64_t sites, double *const *value, int64_t count,
                              double *const *median, sr_failure *why) {
    double *one = malloc((size_t)sites * sizeof *one);
    if (!one) return sr_fail(why, SR_MEMORY, "out of memory for %lld sites", (long long)sites);
    for (int v = 0; v < VALUES; v++) {
        for (int64_t i = 0; i < count; i++) {
            summary over;
            for (int64_t k = 0; k < sites; k++) one[k] = value[k * VALUES + v][i];
            summary_range(one, sites, &over);
            median[v][i] = over.median;
        }
    }
    free(one);
    return SR_OK;
}

/* median [VALUES]: of each row over all sites. Sites that do not fit in memory together are read
 * again, as many rows at once as fit. */
static sr_status read_medians(const shared_run *r, double *const *median, sr_failure *why) {
    const int64_t columns = VALUES * r->sites;
    const int64_t fit = column_memory_limit() / (columns * (int64_t)sizeof(double));
    const int64_t block = fit < 1 ? 1 : fit < r->count ? fit : r->count;
    column_block b = {0};
    sr_status status = columns_create(&b, columns, block, why);
    for (int64_t at = 0; at < r->count && status == SR_OK; at += block) {
        const int64_t m = r->count - at < block ? r->count - at : block;
        double *into[VALUES];
        for (int v = 0; v < VALUES; v++) into[v] = median[v] + at;
        status = shared_measure(r, 0, r->sites, at, m, b.value, why);
        if (status == SR_OK) status = take_medians(r->sites, b.value, m, into, why);
    }
    columns_free(&b);
    return status;
}

/* Sites of one group after the other; at the end, for several sites, the medians over all. */
static sr_status print_run_steps(const shared_run *r, int64_t buckets, tsv *t, sr_failure *why) {
    const int64_t most = sites_together(r);
    column_block b = {0}, one = {0};
    sr_status status = columns_create(&b, VALUES * most, r->count, why);
    if (status == SR_OK) status = columns_create(&one, 1 + VALUES, r->count, why);
    int64_t *step = malloc((size_t)(r->count + 1) * sizeof *step);
    if (!step) status = sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK && r->count)
        status = sr_run_vector_steps(r->run, r->first, r->count, step, why);
    for (int64_t i = 0; i < r->count && status == SR_OK; i++) one.value[0][i] = (double)step[i];
    for (int64_t k = 0, n; k < r->sites && status == SR_OK; k += n) {
        n = r->sites - k < most ? r->sites - k : most;
        status = shared_measure(r, k, n, 0, r->count, b.value, why);
        for (int64_t i = 0; i < n && status == SR_OK; i++) {
            const char *name = sr_run_get_site(r->run, r->site[k + i].number)->name;
            double *value[1 + VALUES] = {one.value[0]};
            memcpy(value + 1, b.value + i * VALUES, VALUES * sizeof *value);
            status = print_steps(r, name, value, buckets, t, why);
        }
    }
    if (status == SR_OK && r->sites > 1)
        status = most < r->sites ? read_medians(r, one.value + 1, why)
                                 : take_medians(r->sites, b.value, r->count, one.value + 1, why);
    if (status == SR_OK && r->sites > 1)
        status = print_steps(r, "(median)", one.value, buckets, t, why);
    free(step);
    columns_free(&b);
    columns_free(&one);
    return status;
}

/* -- the table ------------------------------------------------------------------------------- */

static sr_status find_sites(const shards_request *q, const run_set *set, shared_run *runs, tsv *t,
                            sr_failure *why) {
    int64_t total = 0, replicas = 0, vectors = 0;
    for (int r = 0; r < set->count; r++) {
        runs[r] = (shared_run){.run = set->run[r], .path = set->path[r]};
        sr_status status = shared_choose_sites(&runs[r], q->sites, why);
        if (status != SR_OK) return status;
        if (!runs[r].sites)
            tsv_note(t, "note", "%s: skipped: no statistics of several shards", set->path[r]);
        total += runs[r].sites;
        replicas += runs[r].replicas;
        vectors += sr_run_get_info(set->run[r])->vectors;
    }
    if (total) return SR_OK;
    const char *more = set->count > 1 ? " (and no other run)" : "";
    if (!replicas) {
        sr_fail(why, SR_FORMAT, "%s%s has statistics of one shard alone", set->path[0], more);
        sr_hint(why, "`statrec train --shards R --record-shards` records those of all");
        return SR_FORMAT;
    }
    sr_fail(why, SR_FORMAT, "%s%s lacks mu_B and sigma2_B of several shards at '%s'", set->path[0],
            more, q->sites);
    sr_hint(why, vectors ? "without batch statistics, add `statrec train --observe batch`"
                         : "`statrec train --vectors-every N` records vectors");
    return SR_FORMAT;
}

/* Run after run, each forgotten when it is printed. */
static sr_status print_runs(const shards_request *q, const run_set *set, shared_run *runs,
                            const step_window *windows, tsv *t, sr_failure *why) {
    sr_status status = SR_OK;
    if (q->per_step)
        declare_steps(t);
    else
        declare_summary(t);
    for (int r = 0; r < set->count && status == SR_OK; r++) {
        if (!runs[r].sites) continue;
        status = shared_find_rows(&runs[r], &windows[r], why);
        if (status != SR_OK) return status;
        status = q->per_step ? print_run_steps(&runs[r], q->buckets, t, why)
                             : print_summary(&runs[r], t, why);
        shared_free(&runs[r]);
        runs[r] = (shared_run){0};
    }
    return status;
}

sr_status shards_print(const shards_request *q, const run_set *set, const char *command,
                       sr_failure *why) {
    tsv table;
    table_head head;
    step_window *windows = NULL;
    shared_run *runs = calloc((size_t)set->count + 1, sizeof *runs);
    if (!runs) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = table_head_begin(&head, &table, q->program, command, set, why);
    if (status != SR_OK) {
        free(runs);
        return status;
    }
    status = find_sites(q, set, runs, &table, why);
    if (status == SR_OK) status = windows_make(&windows, set, q->startup, q->phase, &table, why);
    tsv_note(&table, "shares",
             "shard 0 is the site itself, shard K is NAME@K. mu_r, sigma_r = sqrt(sigma2_B): of "
             "shard r. n_r: its valid rows. Bars: means over the R shards");
    status = table_head_end(&head, &table, status, why);
    if (status == SR_OK) status = print_runs(q, set, runs, windows, &table, why);
    for (int r = 0; r < set->count; r++) shared_free(&runs[r]);
    free(runs);
    free(windows);
    return status;
}
