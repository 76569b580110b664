/* Tails of a statistic over training.
 *
 * For the finite values v of a run, site, statistic and part of training, with their exact median:
 *
 *     mad       = median of |v - median|                        (median absolute deviation)
 *     deviation = (v - median) / mad
 *     outlier:    |v - median| > k mad
 *
 * on both sides, so signed statistics count too. For normally distributed values mad = 0.6745
 * sigma: a fraction of 2e-11 lies beyond k = 10, none among a million steps. mad is 0 if more than
 * half of the values are equal. Then every other value is an outlier, with an infinite deviation;
 * the deviation of the median is 0. `nonfinite` counts steps with NaN or infinity; nothing else
 * uses them.
 *
 * --parts N cuts the steps into N equal parts with a median and a mad each. Usual values change
 * during training, so an outlier is a value that is unusual for its time.
 */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/stat_program.h"

typedef struct settings {
    option_text site, stat, startup, phase;
    double k;
    int64_t parts;
    bool list;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    SITE_OPTION(AT(site)),
    TEXT_OPTION("Choice", "stat", AT(stat), "dist_mu,dist_sigma2,g_mu,g_sigma2",
                "print these statistics: names below /scalars, or custom scalars",
                .value = "STAT,..."),
    REAL_OPTION("Choice", "deviations", AT(k), "10", 0, 1e30, "",
                "count values more than X median absolute deviations from the median"),
    WINDOW_OPTIONS(AT(startup), AT(phase)),
    INT_OPTION("Output", "parts", AT(parts), "1", 1, 1000000, "",
               "print a row for each of N equal parts of the steps"),
    FLAG_OPTION("Output", "list", AT(list), "no", "print a row for each outlier"),
};

/* -- series of one run ----------------------------------------------------------------------- */

/* Scratch memory of the threads counts as memory of series; kept parts take a KEPT-th of it at
 * most. */
enum { THREADS_MOST = 8, KEPT = 16 };

/* A series, and its place among the rows of the table. */
typedef struct chosen {
    const site_choice *at;
    series of;
    int place;
} chosen;

/* The series of a run's rows, read and measured some at a time. `kept`: one statistic after the
 * other, since a dataset has all sites. The parts of all series are printed then. */
typedef struct batch {
    chosen *one;     /* [count] */
    series *of;      /* [count] the same series */
    int count, most; /* most: series in memory at once */
    bool kept;
    int threads;          /* each has a column of scratch */
    int64_t first, rows;  /* in the window */
    int64_t last;         /* step of the run */
    int64_t *step;        /* [rows] */
    column_block values;  /* [most] */
    column_block scratch; /* [threads] */
    struct segment *part; /* [most, parts], kept: [count, parts] by place */
} batch;

/* -- one part of it -------------------------------------------------------------------------- */

enum { MEDIAN = 2 }; /* of the quantiles */

/* Rows first .. end - 1 of a column. */
typedef struct segment {
    int64_t number, first, end;
    column_quantiles of;
    double mad;
    int64_t outliers;
    double farthest;       /* the first value of the largest deviation */
    int64_t farthest_step; /* -1: no finite value */
} segment;

static double deviation(const segment *p, double value) {
    const double from = value - p->of.at[MEDIAN];
    return from == 0 ? 0 : from / p->mad;
}

static bool is_outlier(const segment *p, double value, double k) {
    return isfinite(value) && fabs(value - p->of.at[MEDIAN]) > k * p->mad;
}

/* value [b->rows]; scratch: as many numbers. last: step */
static void part_measure(segment *p, const batch *b, const double *value, double *scratch,
                         int64_t last, double k) {
    for (p->end = p->first; p->end < b->rows && b->step[p->end] <= last;) p->end++;
    const int64_t count = p->end - p->first;
    static const double at[] = {0.01, 0.25, 0.5, 0.75, 0.99}, half = 0.5;
    for (int64_t i = 0; i < count; i++) scratch[i] = value[p->first + i];
    p->of = quantiles_make(scratch, count, at, 5);
    const double median = p->of.at[MEDIAN];
    for (int64_t i = 0; i < count; i++) scratch[i] = fabs(value[p->first + i] - median);
    p->mad = quantiles_make(scratch, count, &half, 1).at[0];
    double most = -1;
    p->farthest_step = -1;
    for (int64_t i = p->first; i < p->end; i++) {
        const double here = value[i], distance = fabs(here - p->of.at[MEDIAN]);
        if (!isfinite(here)) continue;
        if (distance > most) p->farthest = here, p->farthest_step = b->step[i];
        most = distance > most ? distance : most;
        p->outliers += is_outlier(p, here, k);
    }
}

/* The parts of column i, which is series at + i. */
static segment *parts_of(const batch *b, const settings *s, int at, int i) {
    return b->part + (b->kept ? b->one[at + i].place : i) * s->parts;
}

static void column_measure(const batch *b, const settings *s, const step_window *w, int at, int i) {
    segment *part = parts_of(b, s, at, i);
    double *scratch = b->scratch.value[omp_get_thread_num()];
    for (int64_t k = 0; k < s->parts; k++) {
        part[k] = (segment){.number = k + 1, .first = k ? part[k - 1].end : 0};
        part_measure(&part[k], b, b->values.value[i], scratch, window_part(w, s->parts, k).last,
                     s->k);
    }
}

/* -- rows of the table ----------------------------------------------------------------------- */

/* One statistic at one site. */
typedef struct row_key {
    stat_table *t;
    const site_choice *at;
    const char *statistic;
} row_key;

static void begin_row(const row_key *key, const segment *p) {
    site_cells(key->t, key->at);
    tsv_text(&key->t->table, key->statistic);
    tsv_int(&key->t->table, p->number);
}

static void part_row(const row_key *key, const segment *p, int64_t cuts) {
    tsv *t = &key->t->table;
    const double *at = p->of.at;
    const int64_t finite = p->of.finite, steps = p->end - p->first;
    const double real[] = {at[MEDIAN], p->mad, finite ? p->of.least : NAN,  at[0], at[1],
                           at[3],      at[4],  finite ? p->of.largest : NAN};
    begin_row(key, p);
    tsv_real(t, 100.0 * (double)p->number / (double)cuts);
    tsv_int(t, steps);
    tsv_int(t, steps - finite);
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) tsv_real(t, real[i]);
    tsv_int(t, p->outliers);
    tsv_real(t, finite ? (double)p->outliers / (double)finite : NAN);
    tsv_real(t, finite ? deviation(p, p->farthest) : NAN);
    tsv_int(t, p->farthest_step);
}

static void declare_parts(tsv *t) {
    tsv_column(t, "to", "percent of these steps at which the part ends");
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
    tsv_column(t, "largest",
               "largest |value - median| / mad with its sign; infinite if mad is 0, 0 if all "
               "values are equal");
    tsv_column(t, "largest_step", "first step with it; -1: no finite value");
}

static void declare_columns(stat_table *table) {
    tsv *t = &table->table;
    site_columns(t);
    tsv_column(t, "statistic", "name below /scalars");
    tsv_column(t, "part", "part of training, from 1; each has its own median and mad");
    if (!((const settings *)table->settings)->list) {
        declare_parts(t);
        return;
    }
    tsv_column(t, "step", "forward and backward passes so far");
    tsv_column(t, "percent", "percent of training: 100 step / last step of the run");
    tsv_column(t, "value", "the statistic at this step");
    tsv_column(t, "deviation", "(value - median) / mad of its part; infinite where mad is 0");
}

/* value: its column, for a list of outliers. */
static void print_column(const row_key *key, const batch *b, const segment *p,
                         const double *value) {
    const settings *s = key->t->settings;
    tsv *t = &key->t->table;
    for (const segment *end = p + s->parts; p < end; p++) {
        if (!s->list) part_row(key, p, s->parts);
        for (int64_t k = p->first; k < p->end && s->list; k++) {
            if (!is_outlier(p, value[k], s->k)) continue;
            begin_row(key, p);
            tsv_int(t, b->step[k]);
            tsv_real(t, 100.0 * (double)b->step[k] / (double)b->last);
            tsv_real(t, value[k]);
            tsv_real(t, deviation(p, value[k]));
        }
    }
}

static void batch_free(batch *b) {
    columns_free(&b->values);
    columns_free(&b->scratch);
    free(b->one), free(b->of), free(b->step), free(b->part);
}

static int by_statistic(const void *a, const void *b) {
    const chosen *x = a, *y = b;
    const uintptr_t first = (uintptr_t)x->of.stat, second = (uintptr_t)y->of.stat;
    if (first != second) return first < second ? -1 : 1;
    return x->place - y->place;
}

static int by_place(const void *a, const void *b) {
    return ((const chosen *)a)->place - ((const chosen *)b)->place;
}

/* The series of sites begin .. end - 1 of the choice, all in one run. */
static sr_status batch_choose(batch *b, const stat_table *t, int64_t begin, int64_t end,
                              sr_failure *why) {
    const choice *c = &t->chosen;
    const settings *s = t->settings;
    const size_t most = (size_t)((end - begin) * c->statistics + 1);
    *b = (batch){.one = malloc(most * sizeof *b->one), .of = malloc(most * sizeof *b->of)};
    if (!b->one || !b->of) return sr_fail(why, SR_MEMORY, "out of memory");
    for (const site_choice *at = c->site + begin; at < c->site + end; at++)
        for (int i = 0; i < c->statistics; i++) {
            if (!at->has[i]) continue;
            const series of = {t->set->run[at->run], at->site, c->wanted[i], FROM_SCALARS};
            b->one[b->count] = (chosen){at, of, b->count};
            b->count++;
        }
    const int64_t parts = b->count * s->parts * (int64_t)sizeof(segment);
    b->kept = !s->list && parts <= column_memory_limit() / KEPT;
    if (b->kept) qsort(b->one, (size_t)b->count, sizeof *b->one, by_statistic);
    for (int i = 0; i < b->count; i++) b->of[i] = b->one[i].of;
    return SR_OK;
}

static int series_alike(const batch *b, int at) {
    int n = 1;
    while (at + n < b->count && b->of[at + n].stat == b->of[at].stat) n++;
    return n;
}

/* Series that are read together: whole statistics, or an equal part of one that does not fit. */
static int batch_next(const batch *b, int at) {
    const int left = b->count - at;
    if (!b->kept) return left < b->most ? left : b->most;
    int n = series_alike(b, at);
    const int turns = (n + b->most - 1) / b->most;
    if (turns > 1) return (n + turns - 1) / turns;
    while (n < left && n + series_alike(b, at + n) <= b->most) n += series_alike(b, at + n);
    return n;
}

/* The rows of the window, their steps, and memory for as many columns as may be kept. */
static sr_status batch_size(batch *b, const settings *s, const step_window *w, sr_failure *why) {
    const int64_t of_parts = b->kept ? 0 : s->parts * (int64_t)(sizeof *b->part / sizeof(double));
    sr_status status = window_rows(w, b->of, &b->first, &b->rows, why);
    if (status == SR_OK) status = run_last_step(b->of->run, &b->last, why);
    if (status != SR_OK) return status;
    const int columns = columns_together(b->rows + of_parts, b->count + THREADS_MOST);
    b->threads = omp_get_max_threads() < THREADS_MOST ? omp_get_max_threads() : THREADS_MOST;
    b->most = columns > b->threads ? columns - b->threads : 1;
    b->step = malloc((size_t)(b->rows + 1) * sizeof *b->step);
    b->part = malloc((size_t)((b->kept ? b->count : b->most) * s->parts) * sizeof *b->part);
    if (!b->step || !b->part)
        return sr_fail(why, SR_MEMORY, "out of memory for %lld steps", (long long)b->rows);
    status = columns_create(&b->values, b->most, b->rows, why);
    if (status == SR_OK) status = columns_create(&b->scratch, b->threads, b->rows, why);
    if (status == SR_OK) status = series_read_steps(b->of, b->first, b->rows, b->step, why);
    return status;
}

static void print_one(stat_table *t, const batch *b, const chosen *of, const segment *part,
                      const double *value) {
    print_column(&(row_key){t, of->at, of->of.stat->name}, b, part, value);
}

static sr_status print_run(stat_table *t, int64_t begin, int64_t end, sr_failure *why) {
    const settings *s = t->settings;
    const step_window *w = &t->window[t->chosen.site[begin].run];
    batch b;
    sr_status status = batch_choose(&b, t, begin, end, why);
    if (status == SR_OK && b.count) status = batch_size(&b, s, w, why);
    for (int at = 0, n; at < b.count && status == SR_OK; at += n) {
        n = batch_next(&b, at);
        status = series_read_all(b.of + at, n, b.first, b.rows, b.values.value, NULL, why);
        if (status != SR_OK) break;
#pragma omp parallel for schedule(dynamic) num_threads(b.threads)
        for (int i = 0; i < n; i++) column_measure(&b, s, w, at, i);
        for (int i = 0; i < n && !b.kept; i++)
            print_one(t, &b, &b.one[at + i], parts_of(&b, s, at, i), b.values.value[i]);
    }
    if (b.kept && status == SR_OK) {
        qsort(b.one, (size_t)b.count, sizeof *b.one, by_place);
        for (int i = 0; i < b.count; i++) print_one(t, &b, &b.one[i], parts_of(&b, s, i, 0), NULL);
    }
    batch_free(&b);
    return status;
}

static sr_status print_rows(stat_table *t, sr_failure *why) {
    const choice *c = &t->chosen;
    sr_status status = SR_OK;
    for (int64_t begin = 0, end; begin < c->sites && status == SR_OK; begin = end) {
        for (end = begin; end < c->sites && c->site[end].run == c->site[begin].run;) end++;
        status = print_run(t, begin, end, why);
    }
    return status;
}

static sr_status choose(stat_table *t, sr_failure *why) {
    const settings *s = t->settings;
    const table_choice c = {.source = FROM_SCALARS,
                            .site = s->site,
                            .startup = s->startup,
                            .phase = s->phase,
                            .compares = true};
    tsv_note(&t->table, "k", "%g median absolute deviations, on either side of the median", s->k);
    if (s->parts > 1)
        tsv_note(&t->table, "parts", "%lld equal parts of the steps below", (long long)s->parts);
    sr_status status = choice_set_statistics(&t->chosen, recorded_statistics, RECORDED_STATISTICS,
                                             t->set, s->stat, why);
    return status == SR_OK ? table_choose(t, &c, why) : status;
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-outlier",
        .usage = "RUN.h5... [--deviations K] [--parts N] [--site GLOB] [--stat LIST] [--list]",
        .does = "How heavy the tails of a statistic are: quantiles, and the steps that are more "
                "than K\n"
                "median absolute deviations from its median.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .stat = recorded_statistics,
        .statistics = RECORDED_STATISTICS,
        .custom = true,
        .head = choose,
        .columns = declare_columns,
        .rows = print_rows,
    };
    return stat_program_main(&p, argc, argv);
}
