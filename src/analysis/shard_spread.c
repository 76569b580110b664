/* Scatter of batch statistics between the shares of a batch (statrec train --record-shards): how far apart
 * are what the processes of plain data parallel training normalise with.
 *
 * Of one site and step, with R shares, n_r the valid rows of share r, mu_r and sigma_r = sqrt(sigma2_B) its
 * statistics, and bars for means over the shares:
 *
 *     spread_mean = sqrt(1/R sum_r ||mu_r - mubar||_2^2) / ||sigmabar||_2
 *     spread_std  = sqrt(1/R sum_r ||sigma_r - sigmabar||_2^2) / ||sigmabar||_2
 *
 * TID (stat-tid) with the mean over the shares in the place of the running values.
 *
 * Of independent rows with the deviation sigma, var mu_r = sigma^2 / n_r and var mubar =
 * sum_r sigma^2 / n_r / R^2, and the mean square about the mean is the mean of the squares less the square
 * of the mean:
 *
 *     E 1/R sum_r (mu_r - mubar)^2 = 1/R sum_r var mu_r - var mubar = sigma^2/R sum_r (1 - 1/R)/n_r
 *     expected_mean = sqrt(1/R sum_r (1 - 1/R)/n_r),   ratio = spread_mean / expected_mean
 *
 * A step at which a share has no rows has no value. Share K > 0 of site NAME is the site NAME@K (globs.h).
 *
 * Values are columns of any length (column_source): those of as many sites as fit are kept, others are
 * measured again whenever they are asked for.
 */
#include "analysis/shard_spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/downsample.h"
#include "analysis/frame/stat_program.h"
#include "analysis/shard_values.h"

enum { BLOCK = 8192 };

/* -- a row for each site --------------------------------------------------------------------- */

#define OF_SPREAD_MEAN "sqrt(1/R sum_r ||mu_r - mubar||_2^2) / ||sigmabar||_2"
#define OF_SPREAD_STD  "sqrt(1/R sum_r ||sigma_r - sigmabar||_2^2) / ||sigmabar||_2"
#define OF_EXPECTED    "what independent rows would give: sqrt(1/R sum_r (1 - 1/R) / n_r)"
#define OF_RATIO       "spread_mean / expected_mean of the step"

static void declare_summary(tsv *t) {
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "site", "normalization site");
    tsv_column(t, "norm", "its normalization");
    tsv_column(t, "shares", "R: shares of each batch, with batch statistics of their own");
    tsv_column(t, "steps", "steps with vectors");
    tsv_column(t, "nonfinite",
               "those where a share has no rows or a value is not finite, not part of the spreads");
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

/* of [VALUES] */
static void summary_row(const shared_run *r, const shared_site *s, const column_quantiles *of,
                        tsv *t) {
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

static sr_status summarise_group(site_group *g, column_space *space, tsv *t, sr_failure *why) {
    const int columns = (int)(VALUES * g->sites);
    const column_source all = {columns, g->r->count, false, group_read, g};
    column_quantiles *of = malloc((size_t)columns * sizeof *of);
    sr_status status = of ? quantiles_read(&all, space, quantile, QUANTILES, of, why)
                          : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t k = 0; k < g->sites && status == SR_OK; k++)
        summary_row(g->r, &g->site[k], of + k * VALUES, t);
    free(of);
    return status;
}

/* Sites go through the file together as far as their columns fit: /scalars/rows has those of all. */
static sr_status print_summary(const shared_run *r, tsv *t, sr_failure *why) {
    column_space space = {0};
    sr_status status = SR_OK;
    for (int64_t k = 0, n; k < r->sites && status == SR_OK; k += n) {
        n = columns_together(r->count, (int)(VALUES * (r->sites - k)), false) / VALUES;
        if (n < 1) n = 1;
        site_group g = {r, &r->site[k], n, NULL};
        status = summarise_group(&g, &space, t, why);
    }
    column_space_free(&space);
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

static void print_step(const shared_run *r, const char *name, const double *row, tsv *t) {
    const double step = floor(row[0]);
    tsv_text(t, r->path);
    tsv_text(t, name);
    tsv_int(t, (int64_t)step);
    tsv_real(t, r->last ? 100 * step / (double)r->last : NAN);
    for (int v = 0; v < VALUES; v++) tsv_real(t, row[1 + v]);
}

/* value [sites, VALUES][count], of which those of the first site become the medians over the sites that
 * have a value; one [sites]. */
static void take_medians(const site_group *g, double *const *value, int64_t count, double *one) {
    for (int v = 0; v < VALUES; v++) {
        for (int64_t i = 0; i < count; i++) {
            summary over;
            for (int64_t k = 0; k < g->sites; k++) one[k] = value[k * VALUES + v][i];
            summary_range(one, g->sites, &over);
            value[v][i] = over.median;
        }
    }
}

/* Of every column and step; value [VALUES]. */
static sr_status read_medians(site_group *g, int64_t first, int64_t count, double *const *value,
                              sr_failure *why) {
    const int64_t columns = VALUES * g->sites, fit = column_memory_limit() / (32 * columns);
    const int64_t block = fit < 1 ? 1 : fit < count ? fit : count;
    double *memory = malloc((size_t)(columns * block + g->sites) * sizeof *memory);
    double **all = malloc((size_t)columns * sizeof *all);
    sr_status status = memory && all ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t c = 0; c < columns && status == SR_OK; c++) all[c] = memory + c * block;
    for (int64_t at = 0; at < count && status == SR_OK; at += block) {
        const int64_t m = count - at < block ? count - at : block;
        status = group_read(g, first + at, m, all, why);
        if (status == SR_OK) take_medians(g, all, m, memory + columns * block);
        for (int v = 0; v < VALUES && status == SR_OK; v++)
            memcpy(value[v] + at, all[v], (size_t)m * sizeof *value[v]);
    }
    free(memory);
    free(all);
    return status;
}

static sr_status read_steps(const shared_run *r, int64_t first, int64_t count, double *value,
                            sr_failure *why) {
    int64_t *step = malloc((size_t)count * sizeof *step);
    sr_status status = step ? sr_run_vector_steps(r->run, r->first + first, count, step, why)
                            : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < count && status == SR_OK; i++) value[i] = (double)step[i];
    free(step);
    return status;
}

/* Of a column_source: the step, and the values of the only site of a group or their medians. */
static sr_status read_table(void *context, int64_t first, int64_t count, double *const *value,
                            sr_failure *why) {
    site_group *g = context;
    sr_status status = read_steps(g->r, first, count, value[0], why);
    if (status != SR_OK) return status;
    return g->sites > 1 ? read_medians(g, first, count, value + 1, why)
                        : group_read(g, first, count, value + 1, why);
}

/* Row after row, printed or into p (NULL: printed). */
static sr_status pass_rows(site_group *g, const char *name, parts *p, tsv *t, sr_failure *why) {
    double *memory = malloc((1 + VALUES) * BLOCK * sizeof *memory), *value[1 + VALUES];
    const double *column[1 + VALUES];
    sr_status status = memory ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int v = 0; v <= VALUES && memory; v++) column[v] = value[v] = memory + v * BLOCK;
    for (int64_t first = 0; first < g->r->count && status == SR_OK; first += BLOCK) {
        const int64_t m = g->r->count - first < BLOCK ? g->r->count - first : BLOCK;
        status = read_table(g, first, m, value, why);
        if (status == SR_OK && p) status = parts_add(p, value[0], column, m, why);
        for (int64_t i = 0; i < m && status == SR_OK && !p; i++) {
            double row[1 + VALUES];
            for (int v = 0; v <= VALUES; v++) row[v] = value[v][i];
            print_step(g->r, name, row, t);
        }
    }
    free(memory);
    return status;
}

static sr_status print_parts(site_group *g, const char *name, int64_t buckets, tsv *t,
                             sr_failure *why) {
    parts p;
    double low = NAN, high = NAN;
    const column_source all = {1 + VALUES, g->r->count, true, read_table, g};
    sr_status status = read_steps(g->r, 0, 1, &low, why);
    if (status == SR_OK) status = read_steps(g->r, g->r->count - 1, 1, &high, why);
    parts_begin(&p, &all, column_memory_limit(), buckets, low, high);
    if (status == SR_OK) status = pass_rows(g, name, &p, t, why);
    if (status == SR_OK) status = parts_end(&p, why);
    for (int64_t i = 0; i < p.rows && status == SR_OK; i++)
        print_step(g->r, name, p.row + i * p.columns, t);
    parts_free(&p);
    return status;
}

static sr_status print_steps(site_group *g, const char *name, int64_t buckets, tsv *t,
                             sr_failure *why) {
    if (buckets && g->r->count > 3 * buckets) return print_parts(g, name, buckets, t, why);
    return pass_rows(g, name, NULL, t, why);
}

/* The sites from number k on whose values can be kept, in memory that is his who calls; of longer columns one
 * site, of which nothing is. */
static sr_status keep_group(const shared_run *r, int64_t k, site_group *g, double **memory,
                            sr_failure *why) {
    const int64_t fit = column_memory_limit() / (16 * VALUES * (r->count + 1)), left = r->sites - k;
    const int64_t n = fit < 1 ? 1 : fit < left ? fit : left;
    *g = (site_group){r, &r->site[k], n, NULL};
    *memory = NULL;
    if (fit < 1 || !r->count) return SR_OK;
    *memory = malloc((size_t)(n * VALUES * r->count) * sizeof **memory);
    double **value = malloc((size_t)(n * VALUES) * sizeof *value);
    sr_status status = *memory && value ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t c = 0; c < n * VALUES && status == SR_OK; c++) value[c] = *memory + c * r->count;
    if (status == SR_OK) status = group_measure(g, 0, r->count, value, why);
    g->kept = *memory;
    free(value);
    return status;
}

/* Group after group; in the end, of several sites, the medians over all. */
static sr_status print_run_steps(const shared_run *r, int64_t buckets, tsv *t, sr_failure *why) {
    sr_status status = SR_OK;
    for (int64_t k = 0, n; k < r->sites && status == SR_OK; k += n) {
        site_group g;
        double *memory;
        status = keep_group(r, k, &g, &memory, why);
        n = g.sites;
        for (int64_t i = 0; i < n && status == SR_OK; i++) {
            site_group one = group_site(&g, i);
            const char *name = sr_run_get_site(r->run, one.site->number)->name;
            status = print_steps(&one, name, buckets, t, why);
        }
        site_group all = n == r->sites ? g : (site_group){r, r->site, r->sites, NULL};
        if (status == SR_OK && k + n == r->sites && r->sites > 1)
            status = print_steps(&all, "(median)", buckets, t, why);
        free(memory);
    }
    return status;
}

/* -- the table ------------------------------------------------------------------------------- */

static sr_status nothing_left(const run_set *set, const shared_run *runs, const char *sites,
                              sr_failure *why) {
    int64_t replicas = 0, vectors = 0;
    for (int r = 0; r < set->count; r++) {
        replicas += runs[r].replicas;
        vectors += sr_run_get_info(set->run[r])->vectors;
    }
    const char *more = set->count > 1 ? " (and no other run)" : "";
    if (!replicas) {
        sr_fail(why, SR_FORMAT, "%s%s has statistics of one share alone", set->path[0], more);
        sr_hint(why, "`statrec train --shards R --record-shards` records those of all");
        return SR_FORMAT;
    }
    sr_fail(why, SR_FORMAT, "%s%s has no mu_B and sigma2_B of several shares at a site '%s'",
            set->path[0], more, sites);
    sr_hint(why, vectors ? "methods without batch statistics have them only with `statrec train "
                           "--observe batch`"
                         : "`statrec train --vectors-every N` records vectors");
    return SR_FORMAT;
}

static sr_status find_sites(const shards_request *q, const run_set *set, shared_run *runs, tsv *t,
                            sr_failure *why) {
    int64_t total = 0;
    for (int r = 0; r < set->count; r++) {
        runs[r] = (shared_run){.run = set->run[r], .path = set->path[r]};
        sr_status status = shared_choose_sites(&runs[r], q->sites, why);
        if (status != SR_OK) return status;
        if (!runs[r].sites)
            tsv_note(t, "note", "%s: no statistics of several shares at these sites: left out",
                     set->path[r]);
        total += runs[r].sites;
    }
    return total ? SR_OK : nothing_left(set, runs, q->sites, why);
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
    tsv_note(
        &table, "shares",
        "share 0 is the site itself, share K NAME@K; mu_r and sigma_r = sqrt(sigma2_B) of share "
        "r, n_r its valid rows, bars: means over the R shares");
    if (status == SR_OK)
        status = table_head_print(&head, &table, why);
    else
        table_head_drop(&head);
    if (status == SR_OK) status = print_runs(q, set, runs, windows, &table, why);
    for (int r = 0; r < set->count; r++) shared_free(&runs[r]);
    free(runs);
    free(windows);
    return status;
}
