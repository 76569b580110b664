/* Steps at which a statistic is far above its usual size.
 *
 * Outlier: value > factor * median, the exact median of the finite values of that run, site and
 * statistic. Steps with NaN or infinity are counted in `nonfinite` and are not outliers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"

typedef struct settings {
    option_text site, stat;
    double factor;
    bool list;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    TEXT_OPTION("Choice", "site", AT(site), "*",
                "sites: globs separated by commas, or first or last (of those with a statistic)"),
    TEXT_OPTION("Choice", "stat", AT(stat), "dist_mu,dist_sigma2,g_mu,g_sigma2",
                "statistics separated by commas: any name below /scalars"),
    REAL_OPTION("Choice", "factor", AT(factor), "10", 1, 1e30, "medians",
                "an outlier is above this many medians"),
    FLAG_OPTION("Output", "list", AT(list), "no",
                "one row per outlier instead of one per run, site and statistic"),
};
static const option_table options = {rows, sizeof rows / sizeof rows[0]};

#define SCALAR(name, definition) {#name, #name, NULL, 0, NULL, NULL},
static const statistic scalars[] = {SR_SCALARS(SCALAR)};
enum { SCALARS = sizeof scalars / sizeof scalars[0] };

static void print_help(const void *self) {
    (void)self;
    printf("usage: stat-outlier RUN.h5... [--factor K] [--site GLOB] [--stat LIST] [--list]\n\n"
           "Steps at which a statistic exceeds K times its median.\n"
           "Writes a tab-separated table with its definitions in `#` lines.\n\nStatistics:\n");
    for (int i = 0; i < SCALARS; i++)
        printf("  %-16s %s\n", scalars[i].name, statistic_definition(&scalars[i]));
    printf("\n");
    options_help(options, stdout);
}

typedef struct column {
    int64_t count;
    double *value, *sorted; /* [count] */
    int64_t *step;          /* [count] */
} column;

static void column_free(column *c) {
    free(c->value);
    free(c->sorted);
    free(c->step);
}

static sr_status column_read(column *c, const series *s, sr_failure *why) {
    *c = (column){.count = series_length(s)};
    const size_t room = (size_t)c->count + 1;
    c->value = malloc(room * sizeof *c->value);
    c->sorted = malloc(room * sizeof *c->sorted);
    c->step = malloc(room * sizeof *c->step);
    sr_status status =
        c->value && c->sorted && c->step ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = series_read(s, 0, c->count, c->value, c->step, why);
    if (status == SR_OK) memcpy(c->sorted, c->value, (size_t)c->count * sizeof *c->value);
    if (status != SR_OK) column_free(c);
    return status;
}

static void name_cells(tsv *t, const run_set *set, const site_choice *at, const statistic *stat) {
    tsv_text(t, set->path[at->run]);
    tsv_text(t, sr_run_get_site(set->run[at->run], at->site)->name);
    tsv_text(t, stat->name);
}

static bool is_outlier(double value, double limit) {
    return isfinite(value) && value > limit;
}

static void count_row(tsv *t, const column *c, const summary *sum, double limit) {
    int64_t outliers = 0, largest = 0;
    for (int64_t i = 0; i < c->count; i++) {
        outliers += is_outlier(c->value[i], limit);
        if (isfinite(c->value[i]) &&
            (!isfinite(c->value[largest]) || c->value[i] > c->value[largest]))
            largest = i;
    }
    tsv_int(t, sum->values);
    tsv_int(t, sum->nonfinite);
    tsv_real(t, sum->median);
    tsv_int(t, outliers);
    tsv_real(t, sum->max);
    tsv_real(t, sum->max / sum->median);
    tsv_int(t, c->step[largest]);
}

static void list_rows(tsv *t, const run_set *set, const site_choice *at, const statistic *stat,
                      const column *c, double median, double limit, int64_t last) {
    for (int64_t i = 0; i < c->count; i++) {
        if (!is_outlier(c->value[i], limit)) continue;
        name_cells(t, set, at, stat);
        tsv_int(t, c->step[i]);
        tsv_real(t, 100.0 * (double)c->step[i] / (double)last);
        tsv_real(t, c->value[i]);
        tsv_real(t, c->value[i] / median);
    }
}

static void declare_columns(tsv *t, bool list) {
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "site", "normalization site");
    tsv_column(t, "statistic", "name below /scalars");
    if (list) {
        tsv_column(t, "step", "forward and backward passes so far");
        tsv_column(t, "percent", "percent of training: 100 step / last step of the run");
        tsv_column(t, "value", "the statistic at this step");
        tsv_column(t, "ratio", "value / median");
    } else {
        tsv_column(t, "steps", "recorded steps");
        tsv_column(t, "nonfinite", "steps with NaN or infinity, in no other column");
        tsv_column(t, "median", "exact median");
        tsv_column(t, "outliers", "steps with value > factor * median");
        tsv_column(t, "max", "largest value");
        tsv_column(t, "ratio", "max / median");
        tsv_column(t, "max_step", "first step with the largest value");
    }
    tsv_header(t);
}

static sr_status print_column(const settings *s, const run_set *set, const site_choice *at,
                              const statistic *stat, tsv *t, sr_failure *why) {
    const series of = {set->run[at->run], at->site, stat, FROM_SCALARS};
    column c;
    summary sum;
    int64_t last;
    sr_status status = run_last_step(of.run, &last, why);
    if (status == SR_OK) status = column_read(&c, &of, why);
    if (status != SR_OK) return status;
    summary_make(c.sorted, c.count, &sum);
    const double limit = s->factor * sum.median;
    if (s->list) {
        list_rows(t, set, at, stat, &c, sum.median, limit, last);
    } else {
        name_cells(t, set, at, stat);
        count_row(t, &c, &sum, limit);
    }
    column_free(&c);
    return SR_OK;
}

static sr_status print_columns(const settings *s, const run_set *set, const choice *c, tsv *t,
                               sr_failure *why) {
    for (int64_t k = 0; k < c->sites; k++) {
        for (int i = 0; i < c->statistics; i++) {
            if (!c->site[k].has[i]) continue;
            sr_status status = print_column(s, set, &c->site[k], c->wanted[i], t, why);
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
    sr_status status = choice_set_statistics(&c, scalars, SCALARS, s->stat, why);
    if (status == SR_OK)
        status = table_head_begin(&head, &table, "stat-outlier", command, set, why);
    if (status != SR_OK) return status;
    tsv_note(&table, "factor", "%g", s->factor);
    status = choice_set_sites(&c, set, s->site, FROM_SCALARS, &table, why);
    if (status == SR_OK)
        status = table_head_print(&head, &table, why);
    else
        table_head_drop(&head);
    if (status == SR_OK) {
        declare_columns(&table, s->list);
        status = print_columns(s, set, &c, &table, why);
    }
    choice_free(&c);
    return status;
}

int main(int argc, char **argv) {
    settings s;
    const analysis_program p = {"stat-outlier", print_help, options, &s, &s, print_table};
    return analysis_program_main(&p, argc, argv);
}
