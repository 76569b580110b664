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

/* -- one run, site and statistic ------------------------------------------------------------- */

typedef struct column {
    int64_t first, count; /* rows in the window */
    int64_t last;         /* step of the run */
    column_block block;   /* values, and as many numbers of scratch */
    double *value, *scratch;
    int64_t *step; /* [count] */
} column;

static sr_status column_read(column *c, const series *s, const step_window *w, sr_failure *why) {
    *c = (column){.first = 0};
    sr_status status = window_rows(w, s, &c->first, &c->count, why);
    if (status == SR_OK) status = run_last_step(s->run, &c->last, why);
    if (status == SR_OK) status = columns_create(&c->block, 2, c->count, why);
    if (status != SR_OK) return status;
    c->value = c->block.value[0], c->scratch = c->block.value[1];
    c->step = malloc((size_t)(c->count + 1) * sizeof *c->step);
    if (!c->step)
        return sr_fail(why, SR_MEMORY, "out of memory for %lld steps", (long long)c->count);
    return series_read(s, c->first, c->count, c->value, c->step, why);
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

/* last: step */
static void part_measure(segment *p, const column *c, int64_t last, double k) {
    for (p->end = p->first; p->end < c->count && c->step[p->end] <= last;) p->end++;
    const int64_t count = p->end - p->first;
    const double *value = c->value + p->first;
    summary from;
    for (int64_t i = 0; i < count; i++) c->scratch[i] = value[i];
    summary_make(c->scratch, count, &p->of);
    for (int64_t i = 0; i < count; i++) c->scratch[i] = fabs(value[i] - p->of.median);
    summary_range(c->scratch, count, &from);
    p->mad = from.median;
    double most = -1;
    p->farthest_step = -1;
    for (int64_t i = p->first; i < p->end; i++) {
        const double here = c->value[i], distance = fabs(here - p->of.median);
        if (!isfinite(here)) continue;
        if (distance > most) p->farthest = here, p->farthest_step = c->step[i];
        most = distance > most ? distance : most;
        p->outliers += is_outlier(p, here, k);
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
    const summary *of = &p->of;
    const double real[] = {of->median, p->mad,  of->min, of->q01,
                           of->q25,    of->q75, of->q99, of->max};
    const bool any = of->values > of->nonfinite;
    begin_row(key, p);
    tsv_real(t, 100.0 * (double)p->number / (double)cuts);
    tsv_int(t, of->values);
    tsv_int(t, of->nonfinite);
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) tsv_real(t, real[i]);
    tsv_int(t, p->outliers);
    tsv_real(t, any ? (double)p->outliers / (double)(of->values - of->nonfinite) : NAN);
    tsv_real(t, any ? deviation(p, p->farthest) : NAN);
    tsv_int(t, p->farthest_step);
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

static sr_status print_column(const row_key *key, const statistic *stat, sr_failure *why) {
    const site_choice *at = key->at;
    const settings *s = key->t->settings;
    const series of = {key->t->set->run[at->run], at->site, stat, FROM_SCALARS};
    const step_window *window = &key->t->window[at->run];
    tsv *t = &key->t->table;
    column c;
    const sr_status status = column_read(&c, &of, window, why);
    segment p = {0};
    for (int64_t k = 1; k <= s->parts && status == SR_OK; k++) {
        p = (segment){.number = k, .first = p.end};
        part_measure(&p, &c, window_part(window, s->parts, k - 1).last, s->k);
        if (!s->list) part_row(key, &p, s->parts);
        for (int64_t i = p.first; i < p.end && s->list; i++) {
            if (!is_outlier(&p, c.value[i], s->k)) continue;
            begin_row(key, &p);
            tsv_int(t, c.step[i]);
            tsv_real(t, 100.0 * (double)c.step[i] / (double)c.last);
            tsv_real(t, c.value[i]);
            tsv_real(t, deviation(&p, c.value[i]));
        }
    }
    columns_free(&c.block);
    free(c.step);
    return status;
}

static sr_status print_site(stat_table *t, const site_choice *at, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < t->chosen.statistics && status == SR_OK; i++) {
        const row_key key = {t, at, t->chosen.wanted[i]->name};
        if (at->has[i]) status = print_column(&key, t->chosen.wanted[i], why);
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
        .site = print_site,
    };
    return stat_program_main(&p, argc, argv);
}
