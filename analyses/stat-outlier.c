/* How heavy the tails of a statistic are, over training.
 *
 * Of the finite values v of a run, site, statistic and part of training, by their exact median:
 *
 *     mad       = median of |v - median|                        (median absolute deviation)
 *     deviation = (v - median) / mad
 *     outlier:    |v - median| > k mad
 *
 * on both sides, so that signed statistics count too. Of normally distributed values
 * mad = 0.6745 sigma: beyond k = 10 lie 2e-11 of them, none among a million steps. Where mad is 0
 * (more than half of the values are equal) every other value is beyond, with a deviation of plus or
 * minus infinity; the deviation of the median itself is 0. Steps with NaN or infinity are counted
 * in `nonfinite` and are in nothing else.
 *
 * --parts N cuts the steps into N equal parts, each with a median and a mad of its own:
 * what is usual changes during training, and only what is unusual for its time is an outlier.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/column_summary.h"
#include "analysis/frame/comparability.h"
#include "analysis/frame/stat_program.h"
#include "analysis/frame/step_range.h"
#include "analysis/series/series.h"

typedef struct settings {
    option_text site, stat, startup, phase;
    double k;
    int64_t parts;
    bool list;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    TEXT_OPTION("Choice", "site", AT(site), "*",
                "sites: globs separated by commas, or first, middle, last or last-bn (no stack's "
                "final norm)",
                .value = "SITE,..."),
    TEXT_OPTION("Choice", "stat", AT(stat), "dist_mu,dist_sigma2,g_mu,g_sigma2",
                "statistics separated by commas: any name below /scalars, those that the "
                "runs declare too",
                .value = "STAT,..."),
    REAL_OPTION("Choice", "deviations", AT(k), "10", 0, 1e30, "",
                "an outlier is further from the median, on either side, than this many median "
                "absolute deviations"),
    WINDOW_OPTIONS(AT(startup), AT(phase)),
    INT_OPTION("Output", "parts", AT(parts), "1", 1, 1000000, "",
               "equal parts of the steps, a row for each"),
    FLAG_OPTION("Output", "list", AT(list), "no",
                "one row per outlier instead of one per run, site, statistic and part"),
};
static const option_table options = {rows, sizeof rows / sizeof rows[0]};

static void print_help(const void *self) {
    (void)self;
    printf("usage: stat-outlier RUN.h5... [--deviations K] [--parts N] [--site GLOB] [--stat LIST] "
           "[--list]\n\n"
           "How heavy the tails of a statistic are: quantiles, and the steps that are more than K\n"
           "median absolute deviations from its median.\n"
           "Writes a tab-separated table with its definitions in `#` lines.\n\nStatistics:\n");
    for (int i = 0; i < RECORDED_STATISTICS; i++)
        printf("  %-16s %s\n", recorded_statistics[i].name,
               statistic_definition(&recorded_statistics[i]));
    printf("  and the numbers per site that the runs declare: statrec info lists them\n");
    printf("\n");
    options_help(options, stdout);
}

/* -- one run, site and statistic ------------------------------------------------------------- */

/* As many of its rows as there is room for, those that were asked for last, are in memory. */
typedef struct column {
    series of;
    int64_t first, count; /* rows of the run that the window has */
    int64_t last;         /* step of the run */
    int64_t from, to;     /* steps of the window */
    int64_t held, end;    /* rows held .. end - 1 are in memory */
    int64_t capacity;
    double *value; /* [capacity] */
    int64_t *step; /* [capacity] */
    column_space summaries;
} column;

static void column_free(column *c) {
    free(c->value);
    free(c->step);
    column_space_free(&c->summaries);
}

static sr_status column_make(column *c, const series *s, const step_window *w, sr_failure *why) {
    const int64_t fit = column_memory_limit() / (int64_t)(sizeof *c->value + sizeof *c->step);
    *c = (column){.of = *s, .from = w->first > 1 ? w->first : 1, .to = w->last};
    sr_status status = window_rows(w, s, &c->first, &c->count, why);
    if (status == SR_OK) status = run_last_step(s->run, &c->last, why);
    if (status != SR_OK) return status;
    c->capacity = fit < 1 ? 1 : fit < c->count ? fit : c->count;
    c->value = malloc((size_t)(c->capacity + 1) * sizeof *c->value);
    c->step = malloc((size_t)(c->capacity + 1) * sizeof *c->step);
    return c->value && c->step ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

/* This row and those behind it, unless it is there. */
static sr_status column_hold(column *c, int64_t row, sr_failure *why) {
    if (row >= c->held && row < c->end) return SR_OK;
    const int64_t left = c->count - row, count = left < c->capacity ? left : c->capacity;
    c->held = c->end = row;
    sr_status status = series_read(&c->of, c->first + row, count, c->value, c->step, why);
    if (status == SR_OK) c->end = row + count;
    return status;
}

/* -- one part of it -------------------------------------------------------------------------- */

/* Rows first .. end - 1 of a column. */
typedef struct segment {
    int64_t number, first, end;
    summary of;
    double mad;
    int64_t outliers;
    double farthest;       /* the first value of the largest deviation */
    int64_t farthest_step; /* -1: no finite value */
} segment;

static double deviation(const segment *p, double value) {
    const double from = value - p->of.median;
    return from == 0 ? 0 : from / p->mad;
}

static bool is_outlier(const segment *p, double value, double k) {
    return isfinite(value) && fabs(value - p->of.median) > k * p->mad;
}

/* What the summaries of a part read. */
typedef struct part_source {
    column *c;
    const segment *p;
} part_source;

static sr_status read_values(void *context, int64_t first, int64_t count, double *const *value,
                             sr_failure *why) {
    const part_source *s = context;
    column *c = s->c;
    sr_status status = SR_OK;
    for (int64_t done = 0, n; done < count && status == SR_OK; done += n) {
        const int64_t row = s->p->first + first + done, left = count - done;
        status = column_hold(c, row, why);
        n = c->end - row < left ? c->end - row : left;
        memcpy(value[0] + done, c->value + (row - c->held), (size_t)n * sizeof **value);
    }
    return status;
}

/* From the median; of what is not finite none is. */
static sr_status read_distances(void *context, int64_t first, int64_t count, double *const *value,
                                sr_failure *why) {
    const part_source *s = context;
    sr_status status = read_values(context, first, count, value, why);
    for (int64_t i = 0; i < count && status == SR_OK; i++)
        value[0][i] = fabs(value[0][i] - s->p->of.median);
    return status;
}

static sr_status part_summarise(segment *p, column *c, sr_failure *why) {
    part_source s = {c, p};
    const int64_t count = p->end - p->first;
    const column_source values = {1, count, false, read_values, &s};
    const column_source distances = {1, count, true, read_distances, &s};
    summary from = {0};
    sr_status status = summary_read(&values, &c->summaries, &p->of, why);
    if (status == SR_OK) status = summary_read(&distances, &c->summaries, &from, why);
    p->mad = from.median;
    return status;
}

static sr_status part_search(segment *p, column *c, double k, sr_failure *why) {
    double most = -1;
    sr_status status = SR_OK;
    p->farthest_step = -1;
    p->outliers = 0;
    for (int64_t i = p->first; i < p->end && status == SR_OK; i++) {
        status = column_hold(c, i, why);
        if (status != SR_OK) break;
        const double value = c->value[i - c->held], from = fabs(value - p->of.median);
        if (!isfinite(value)) continue;
        if (from > most) p->farthest = value, p->farthest_step = c->step[i - c->held];
        most = from > most ? from : most;
        p->outliers += is_outlier(p, value, k);
    }
    return status;
}

/* The first step of the window is in part 1, the last one in the last part. */
static int64_t part_of_step(const column *c, int64_t step, int64_t cuts) {
    const double length = (double)(c->to - c->from + 1);
    return step > c->from ? 1 + (int64_t)((double)(step - c->from) * (double)cuts / length) : 1;
}

/* Behind the last row of the part that begins at p->first. */
static sr_status part_set_end(segment *p, column *c, int64_t cuts, sr_failure *why) {
    sr_status status = SR_OK;
    for (p->end = p->first; p->end < c->count; p->end++) {
        status = column_hold(c, p->end, why);
        if (status != SR_OK || part_of_step(c, c->step[p->end - c->held], cuts) > p->number) break;
    }
    return status;
}

static sr_status part_measure(segment *p, column *c, const settings *s, sr_failure *why) {
    sr_status status = part_set_end(p, c, s->parts, why);
    if (status == SR_OK) status = part_summarise(p, c, why);
    return status == SR_OK ? part_search(p, c, s->k, why) : status;
}

/* -- rows of the table ----------------------------------------------------------------------- */

typedef struct row_key {
    const char *run, *site, *statistic;
} row_key;

static void begin_row(tsv *t, const row_key *at, const segment *p) {
    tsv_text(t, at->run);
    tsv_text(t, at->site);
    tsv_text(t, at->statistic);
    tsv_int(t, p->number);
}

static void part_row(tsv *t, const row_key *at, const segment *p, int64_t cuts) {
    const summary *of = &p->of;
    const double real[] = {of->median, p->mad,  of->min, of->q01,
                           of->q25,    of->q75, of->q99, of->max};
    const bool any = of->values > of->nonfinite;
    begin_row(t, at, p);
    tsv_real(t, 100.0 * (double)p->number / (double)cuts);
    tsv_int(t, of->values);
    tsv_int(t, of->nonfinite);
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) tsv_real(t, real[i]);
    tsv_int(t, p->outliers);
    tsv_real(t, any ? (double)p->outliers / (double)(of->values - of->nonfinite) : NAN);
    tsv_real(t, any ? deviation(p, p->farthest) : NAN);
    tsv_int(t, p->farthest_step);
}

static void list_row(tsv *t, const row_key *at, const column *c, const segment *p, int64_t i) {
    const double value = c->value[i - c->held];
    const int64_t step = c->step[i - c->held];
    begin_row(t, at, p);
    tsv_int(t, step);
    tsv_real(t, 100.0 * (double)step / (double)c->last);
    tsv_real(t, value);
    tsv_real(t, deviation(p, value));
}

static sr_status list_rows(tsv *t, const row_key *at, column *c, const segment *p, double k,
                           sr_failure *why) {
    sr_status status = SR_OK;
    for (int64_t i = p->first; i < p->end && status == SR_OK; i++) {
        status = column_hold(c, i, why);
        if (status == SR_OK && is_outlier(p, c->value[i - c->held], k)) list_row(t, at, c, p, i);
    }
    return status;
}

static void declare_list(tsv *t) {
    tsv_column(t, "step", "forward and backward passes so far");
    tsv_column(t, "percent", "percent of training: 100 step / last step of the run");
    tsv_column(t, "value", "the statistic at this step");
    tsv_column(t, "deviation", "(value - median) / mad of its part; infinite where mad is 0");
}

static void declare_parts(tsv *t) {
    tsv_column(t, "to", "percent of training at which the part ends");
    tsv_column(t, "steps", "recorded steps");
    tsv_column(t, "nonfinite", "steps with NaN or infinity, in no other column");
    tsv_column(t, "median", "exact median");
    tsv_column(t, "mad", "median absolute deviation: median of |value - median|, not scaled");
    tsv_column(t, "min", "smallest value");
    tsv_column(t, "q01", "1 % quantile, linear between order statistics");
    tsv_column(t, "q25", "25 % quantile");
    tsv_column(t, "q75", "75 % quantile");
    tsv_column(t, "q99", "99 % quantile");
    tsv_column(t, "max", "largest value");
    tsv_column(t, "outliers", "steps with |value - median| > k mad");
    tsv_column(t, "share", "outliers / (steps - nonfinite)");
    tsv_column(
        t, "largest",
        "(value - median) / mad of the value farthest from the median; infinite where mad is "
        "0, 0 where all values are equal");
    tsv_column(t, "largest_step", "first step with it; -1: no finite value");
}

static void declare_columns(tsv *t, bool list) {
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "site", "normalization site");
    tsv_column(t, "statistic", "name below /scalars");
    tsv_column(t, "part", "part of training, from 1; each has its own median and mad");
    if (list)
        declare_list(t);
    else
        declare_parts(t);
    tsv_header(t);
}

static sr_status print_parts(const settings *s, const row_key *here, column *c, tsv *t,
                             sr_failure *why) {
    segment p = {0};
    sr_status status = SR_OK;
    for (p.number = 1; p.number <= s->parts && status == SR_OK; p.number++) {
        p.first = p.end;
        status = part_measure(&p, c, s, why);
        if (status == SR_OK && s->list)
            status = list_rows(t, here, c, &p, s->k, why);
        else if (status == SR_OK)
            part_row(t, here, &p, s->parts);
    }
    return status;
}

static sr_status print_column(const settings *s, const run_set *set, const site_choice *at,
                              const step_window *w, const statistic *stat, tsv *t,
                              sr_failure *why) {
    const series of = {set->run[at->run], at->site, stat, FROM_SCALARS};
    const row_key here = {set->path[at->run], sr_run_get_site(of.run, at->site)->name, stat->name};
    column c;
    sr_status status = column_make(&c, &of, w, why);
    if (status == SR_OK) status = print_parts(s, &here, &c, t, why);
    column_free(&c);
    return status;
}

static sr_status print_columns(const settings *s, const run_set *set, const step_window *windows,
                               const choice *c, tsv *t, sr_failure *why) {
    for (int64_t k = 0; k < c->sites; k++) {
        for (int i = 0; i < c->statistics; i++) {
            if (!c->site[k].has[i]) continue;
            sr_status status =
                print_column(s, set, &c->site[k], &windows[c->site[k].run], c->wanted[i], t, why);
            if (status != SR_OK) return status;
        }
    }
    return SR_OK;
}

static sr_status print_table(const void *self, const run_set *set, const char *command,
                             sr_failure *why) {
    const settings *s = self;
    tsv table;
    table_head head;
    choice c = {0};
    step_window *windows = NULL;
    sr_status status =
        choice_set_statistics(&c, recorded_statistics, RECORDED_STATISTICS, set, s->stat, why);
    if (status == SR_OK)
        status = table_head_begin(&head, &table, "stat-outlier", command, set, why);
    if (status != SR_OK) {
        choice_free(&c);
        return status;
    }
    tsv_note(&table, "k", "%g median absolute deviations, on either side of the median", s->k);
    if (s->parts > 1)
        tsv_note(&table, "parts", "%lld equal parts of the steps below", (long long)s->parts);
    status = choice_set_sites(&c, set, s->site, FROM_SCALARS, &table, why);
    if (status == SR_OK) choice_note_own(&c, set, true, &table);
    if (status == SR_OK) comparable_warn(&c, set, &table);
    if (status == SR_OK) status = windows_make(&windows, set, s->startup, s->phase, &table, why);
    if (status == SR_OK)
        status = table_head_print(&head, &table, why);
    else
        table_head_drop(&head);
    if (status == SR_OK) {
        declare_columns(&table, s->list);
        status = print_columns(s, set, windows, &c, &table, why);
    }
    choice_free(&c);
    free(windows);
    return status;
}

int main(int argc, char **argv) {
    settings s;
    const analysis_program p = {"stat-outlier", print_help, options, &s, &s, print_table};
    return analysis_program_main(&p, argc, argv);
}
