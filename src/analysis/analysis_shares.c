/* Scatter of batch statistics between the shares of a batch (statrec train --record-ranks): how far apart
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
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "statnet/analysis.h"
#include "statnet/globs.h"

enum { SPREAD_MEAN, SPREAD_STD, EXPECTED, RATIO, ROWS, VALUES };
enum { PIECE_BYTES = 4 << 20 };

typedef struct shared_site {
    int64_t number, *of; /* its number; [shares] those of its shares, from 0 */
    int shares;
    double *value[VALUES]; /* [count of the run] */
} shared_site;

typedef struct shared_run {
    const sr_runfile *run;
    const char *path;
    int64_t first, count, last; /* rows of /vectors; last step of the run */
    int64_t *step;              /* [count] */
    bool *recorded;             /* [sites of the run] */
    shared_site *site;          /* [sites] */
    int64_t sites, replicas;    /* chosen; all that the file has */
} shared_run;

/* -- which sites ----------------------------------------------------------------------------- */

/* A site has batch statistics where this has a value. */
static double any_value(const vector_row *r) {
    return r->v[SR_mu_B][0] + r->v[SR_sigma2_B][0];
}

static const statistic batch_statistics = {"mu_B",    "mu_B", "", NEEDS(mu_B) | NEEDS(sigma2_B),
                                           any_value, NULL};

/* The number of share k of the site; -1 when there is none. */
static int64_t share_of(const sr_runfile *run, int64_t site, int k) {
    char name[SR_NAME_SIZE + 16];
    snprintf(name, sizeof name, "%s@%d", sr_run_get_site(run, site)->name, k);
    return k ? sr_run_find_site(run, name) : site;
}

static const char *name_of_site(const void *context, int64_t i) {
    return sr_run_get_site(((const shared_run *)context)->run, i)->name;
}

static bool may_be_meant(const void *context, int64_t i, bool bn) {
    const shared_run *r = context;
    return r->recorded[i] && share_of(r->run, i, 1) >= 0 &&
           (!bn || choice_is_bn_layer(sr_run_get_site(r->run, i)));
}

static sr_status add_site(shared_run *r, int64_t number, sr_failure *why) {
    shared_site *s = &r->site[r->sites++];
    const int64_t width = sr_run_get_site(r->run, number)->width;
    *s = (shared_site){.number = number};
    while (share_of(r->run, number, s->shares) >= 0) s->shares++;
    s->of = malloc((size_t)s->shares * sizeof *s->of);
    if (!s->of) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int k = 0; k < s->shares; k++) {
        s->of[k] = share_of(r->run, number, k);
        const sr_run_site *share = sr_run_get_site(r->run, s->of[k]);
        if (share->width != width)
            return sr_fail(why, SR_FORMAT, "%s: site %s has %lld features, not %lld as %s", r->path,
                           share->name, (long long)share->width, (long long)width,
                           sr_run_get_site(r->run, number)->name);
    }
    return SR_OK;
}

static sr_status choose_sites(shared_run *r, const char *list, sr_failure *why) {
    const int64_t count = sr_run_get_info(r->run)->sites;
    const globs_sites sites = {count, r, name_of_site, may_be_meant};
    char unused[GLOBS_WORD]; /* a run without any is told as such */
    bool *chosen = calloc((size_t)count + 1, sizeof *chosen);
    r->recorded = calloc((size_t)count + 1, sizeof *r->recorded);
    r->site = calloc((size_t)count + 1, sizeof *r->site);
    sr_status status =
        chosen && r->recorded && r->site
            ? series_recorded(r->run, &batch_statistics, FROM_VECTORS, r->recorded, why)
            : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) globs_choose(list, &sites, chosen, unused);
    for (int64_t i = 0; i < count && status == SR_OK; i++) {
        r->replicas += globs_is_replica(name_of_site(r, i));
        if (chosen[i] && may_be_meant(r, i, false)) status = add_site(r, i, why);
    }
    free(chosen);
    return status;
}

static void shared_free(shared_run *r) {
    for (int64_t i = 0; i < r->sites; i++) {
        free(r->site[i].of);
        free(r->site[i].value[0]);
    }
    free(r->site);
    free(r->recorded);
    free(r->step);
}

/* -- rows ------------------------------------------------------------------------------------ */

/* rows [sites of the run] of the step of row i. */
static void take_rows(const shared_site *s, int64_t i, const float *rows) {
    const double shares = s->shares;
    double sum = 0, inverse = 0;
    for (int k = 0; k < s->shares; k++) {
        const double n = (double)rows[s->of[k]];
        sum += n > 0 ? n : NAN;
        inverse += 1 / n;
    }
    if (isnan(sum)) return;
    s->value[ROWS][i] = sum / shares;
    s->value[EXPECTED][i] = sqrt((1 - 1 / shares) * inverse / shares);
}

/* /scalars/rows has a row for each step, /vectors fewer. */
static sr_status read_rows(const shared_run *r, sr_failure *why) {
    const sr_run_info *info = sr_run_get_info(r->run);
    const int64_t block = 1 + PIECE_BYTES / (4 * info->sites);
    if (!sr_run_has_scalar(r->run, "rows")) return SR_OK;
    int64_t *step = malloc((size_t)block * sizeof *step), at = 0;
    float *rows = malloc((size_t)(block * info->sites) * sizeof *rows);
    sr_status status = step && rows ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t first = 0; first < info->steps && at < r->count && status == SR_OK;
         first += block) {
        const int64_t m = info->steps - first < block ? info->steps - first : block;
        status = sr_run_step_ints(r->run, "step", first, m, step, why);
        if (status == SR_OK) status = sr_run_scalar(r->run, "rows", -1, first, m, rows, why);
        for (int64_t i = 0; i < m && status == SR_OK; i++) {
            while (at < r->count && r->step[at] < step[i]) at++;
            if (at == r->count || r->step[at] != step[i]) continue;
            for (int64_t k = 0; k < r->sites; k++)
                take_rows(&r->site[k], at, rows + i * info->sites);
        }
    }
    free(step);
    free(rows);
    return status;
}

/* -- scatter --------------------------------------------------------------------------------- */

/* About their mean: sum of the squares of the deviations. */
static double scatter(const double *value, int shares, double mean) {
    double sum = 0;
    for (int k = 0; k < shares; k++) sum += (value[k] - mean) * (value[k] - mean);
    return sum;
}

static double mean_of(const double *value, int shares) {
    double sum = 0;
    for (int k = 0; k < shares; k++) sum += value[k];
    return sum / shares;
}

/* raw [mu_B, sigma2_B][share]: from + 0 .. width - 1 of each is one row; one [shares]. */
static void measure_row(const shared_site *s, float *const *raw, int64_t from, int64_t width,
                        double *one, int64_t i) {
    double means = 0, deviations = 0, length = 0;
    for (int64_t j = from; j < from + width; j++) {
        for (int k = 0; k < s->shares; k++) one[k] = (double)raw[k][j];
        means += scatter(one, s->shares, mean_of(one, s->shares));
        for (int k = 0; k < s->shares; k++) one[k] = sqrt((double)raw[s->shares + k][j]);
        const double bar = mean_of(one, s->shares);
        deviations += scatter(one, s->shares, bar);
        length += bar * bar;
    }
    s->value[SPREAD_MEAN][i] = sqrt(means / s->shares) / sqrt(length);
    s->value[SPREAD_STD][i] = sqrt(deviations / s->shares) / sqrt(length);
    s->value[RATIO][i] = s->value[SPREAD_MEAN][i] / s->value[EXPECTED][i];
}

/* Rows at .. at + m - 1 of both vectors of all shares into raw. */
static sr_status read_piece(const shared_run *r, const shared_site *s, int64_t at, int64_t m,
                            float *const *raw, sr_failure *why) {
    sr_status status = SR_OK;
    for (int k = 0; k < 2 * s->shares && status == SR_OK; k++)
        status = sr_run_vector(r->run, k < s->shares ? "mu_B" : "sigma2_B", s->of[k % s->shares],
                               r->first + at, m, raw[k], why);
    return status;
}

static sr_status measure_site(const shared_run *r, const shared_site *s, sr_failure *why) {
    const int64_t width = sr_run_get_site(r->run, s->number)->width;
    const int64_t fit = PIECE_BYTES / (8 * s->shares * width), block = fit < 1 ? 1 : fit;
    float *memory = malloc((size_t)(2 * s->shares * block * width) * sizeof *memory);
    float **raw = malloc(2 * (size_t)s->shares * sizeof *raw);
    double *one = malloc((size_t)s->shares * sizeof *one);
    sr_status status = memory && raw && one ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int k = 0; k < 2 * s->shares && status == SR_OK; k++) raw[k] = memory + k * block * width;
    for (int64_t at = 0; at < r->count && status == SR_OK; at += block) {
        const int64_t m = r->count - at < block ? r->count - at : block;
        status = read_piece(r, s, at, m, raw, why);
        for (int64_t i = 0; i < m && status == SR_OK; i++)
            measure_row(s, raw, i * width, width, one, at + i);
    }
    free(memory);
    free(raw);
    free(one);
    return status;
}

/* Room for the values, all NaN. */
static sr_status make_room(const shared_run *r, shared_site *s, sr_failure *why) {
    s->value[0] = malloc((size_t)(VALUES * r->count + 1) * sizeof(double));
    if (!s->value[0])
        return sr_fail(why, SR_MEMORY, "out of memory for %lld steps", (long long)r->count);
    for (int v = 1; v < VALUES; v++) s->value[v] = s->value[0] + v * r->count;
    for (int64_t i = 0; i < VALUES * r->count; i++) s->value[0][i] = NAN;
    return SR_OK;
}

static sr_status measure(shared_run *r, const step_window *w, sr_failure *why) {
    const series all = {r->run, 0, &batch_statistics, FROM_VECTORS};
    sr_status status = run_last_step(r->run, &r->last, why);
    if (status == SR_OK) status = window_rows(w, &all, &r->first, &r->count, why);
    r->step = malloc((size_t)(r->count + 1) * sizeof *r->step);
    if (!r->step) return sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = sr_run_vector_steps(r->run, r->first, r->count, r->step, why);
    for (int64_t k = 0; k < r->sites && status == SR_OK; k++)
        status = make_room(r, &r->site[k], why);
    if (status == SR_OK) status = read_rows(r, why);
    for (int64_t k = 0; k < r->sites && status == SR_OK; k++)
        status = measure_site(r, &r->site[k], why);
    return status;
}

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

static void print_summary(const shared_run *r, tsv *t) {
    for (int64_t k = 0; k < r->sites; k++) {
        const shared_site *s = &r->site[k];
        summary of[VALUES];
        for (int v = 0; v < VALUES; v++) summary_make(s->value[v], r->count, &of[v]);
        tsv_text(t, r->path);
        tsv_text(t, sr_run_get_site(r->run, s->number)->name);
        tsv_text(t, sr_run_get_site(r->run, s->number)->norm);
        tsv_int(t, s->shares);
        tsv_int(t, r->count);
        tsv_int(t, of[SPREAD_MEAN].nonfinite);
        tsv_real(t, of[ROWS].median);
        for (int v = SPREAD_MEAN; v <= SPREAD_STD; v++) {
            tsv_real(t, of[v].median);
            tsv_real(t, of[v].q25);
            tsv_real(t, of[v].q75);
        }
        tsv_real(t, of[EXPECTED].median);
        tsv_real(t, of[RATIO].median);
    }
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

static void print_every_step(const shared_run *r, const shared_site *s, const char *name, tsv *t) {
    for (int64_t i = 0; i < r->count; i++) {
        double row[1 + VALUES] = {(double)r->step[i]};
        for (int v = 0; v < VALUES; v++) row[1 + v] = s->value[v][i];
        print_step(r, name, row, t);
    }
}

/* context: the columns. */
static sr_status read_columns(void *context, int64_t first, int64_t count, double *const *value,
                              sr_failure *why) {
    const double *const *column = context;
    (void)why;
    for (int v = 0; v < 1 + VALUES; v++)
        memcpy(value[v], column[v] + first, (size_t)count * sizeof *value[v]);
    return SR_OK;
}

static sr_status print_parts(const shared_run *r, const shared_site *s, const char *name,
                             int64_t buckets, tsv *t, sr_failure *why) {
    parts p;
    double *x = malloc((size_t)r->count * sizeof *x);
    const double *column[1 + VALUES] = {x};
    if (!x) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < r->count; i++) x[i] = (double)r->step[i];
    for (int v = 0; v < VALUES; v++) column[1 + v] = s->value[v];
    const column_source all = {1 + VALUES, r->count, true, read_columns, column};
    parts_begin(&p, &all, column_room(), buckets, x[0], x[r->count - 1]);
    sr_status status = parts_add(&p, x, column, r->count, why);
    if (status == SR_OK) status = parts_end(&p, why);
    for (int64_t i = 0; i < p.rows && status == SR_OK; i++)
        print_step(r, name, p.row + i * p.columns, t);
    parts_free(&p);
    free(x);
    return status;
}

static sr_status print_steps(const shared_run *r, const shared_site *s, const char *name,
                             int64_t buckets, tsv *t, sr_failure *why) {
    if (buckets && r->count > 3 * buckets) return print_parts(r, s, name, buckets, t, why);
    print_every_step(r, s, name, t);
    return SR_OK;
}

/* Of every column and step the median over the sites that have a value. */
static sr_status median_of_sites(const shared_run *r, shared_site *median, sr_failure *why) {
    double *one = malloc((size_t)(r->sites + 1) * sizeof *one);
    sr_status status = one ? make_room(r, median, why) : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < VALUES * r->count && status == SR_OK; i++) {
        summary over;
        for (int64_t k = 0; k < r->sites; k++) one[k] = r->site[k].value[0][i];
        summary_range(one, r->sites, &over);
        median->value[0][i] = over.median;
    }
    free(one);
    return status;
}

static sr_status print_run_steps(const shared_run *r, int64_t buckets, tsv *t, sr_failure *why) {
    shared_site median = {0};
    sr_status status = SR_OK;
    for (int64_t k = 0; k < r->sites && status == SR_OK; k++)
        status = print_steps(r, &r->site[k], sr_run_get_site(r->run, r->site[k].number)->name,
                             buckets, t, why);
    if (status == SR_OK && r->sites > 1) {
        status = median_of_sites(r, &median, why);
        if (status == SR_OK) status = print_steps(r, &median, "(median)", buckets, t, why);
    }
    free(median.value[0]);
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
        sr_hint(why, "`statrec train --shares R --record-ranks` records those of all");
        return SR_FORMAT;
    }
    sr_fail(why, SR_FORMAT, "%s%s has no mu_B and sigma2_B of several shares at a site '%s'",
            set->path[0], more, sites);
    sr_hint(why, vectors ? "methods without batch statistics have them only with `statrec train "
                           "--observe batch`"
                         : "`statrec train --vectors-every N` records vectors");
    return SR_FORMAT;
}

static sr_status find_sites(const shares_request *q, const run_set *set, shared_run *runs, tsv *t,
                            sr_failure *why) {
    int64_t total = 0;
    for (int r = 0; r < set->count; r++) {
        runs[r] = (shared_run){.run = set->run[r], .path = set->path[r]};
        sr_status status = choose_sites(&runs[r], q->sites, why);
        if (status != SR_OK) return status;
        if (!runs[r].sites)
            tsv_note(t, "note", "%s: no statistics of several shares at these sites: left out",
                     set->path[r]);
        total += runs[r].sites;
    }
    return total ? SR_OK : nothing_left(set, runs, q->sites, why);
}

/* Run after run, each forgotten when it is printed. */
static sr_status print_runs(const shares_request *q, const run_set *set, shared_run *runs,
                            const step_window *windows, tsv *t, sr_failure *why) {
    sr_status status = SR_OK;
    if (q->per_step)
        declare_steps(t);
    else
        declare_summary(t);
    for (int r = 0; r < set->count && status == SR_OK; r++) {
        if (!runs[r].sites) continue;
        status = measure(&runs[r], &windows[r], why);
        if (status != SR_OK) return status;
        if (q->per_step)
            status = print_run_steps(&runs[r], q->buckets, t, why);
        else
            print_summary(&runs[r], t);
        shared_free(&runs[r]);
        runs[r] = (shared_run){0};
    }
    return status;
}

sr_status shares_print(const shares_request *q, const run_set *set, const char *command,
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
