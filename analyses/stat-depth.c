/* Power, variance, kurtosis and mean direction of the sites' inputs by depth, in parts of training.
 *
 * Prints medians of the statistics of feature_statistics.c over the recorded steps of a part. A row
 * per run, part and site. The rows of a part are neighbours in forward order, for figures against
 * depth (Peri-LN, arXiv 2502.02732; The Curse of Depth, arXiv 2502.05795). `nonfinite` counts steps
 * with a value that is NaN or infinite; no median includes them. Batch statistics do not depend on
 * initial running values, so no burn-in is skipped.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/frame/stat_program.h"

typedef struct settings {
    option_text site, phase;
    int64_t parts;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    SITE_OPTION(AT(site)),
    PHASE_OPTION(AT(phase)),
    PARTS_OPTION(AT(parts), "4"),
};

/* -- one site -------------------------------------------------------------------------------- */

/* A site's numbers in one part of training. */
typedef struct cell {
    int64_t steps, nonfinite;
    double median[FEATURE_STATISTICS];
} cell;

/* part: of the window. A step counts as not finite when any statistic of the site is not. */
static sr_status measure_part(const sr_runfile *run, const site_choice *at, const step_window *part,
                              cell *of, sr_failure *why) {
    series s[FEATURE_STATISTICS];
    summary found[FEATURE_STATISTICS];
    column_block b = {0};
    int64_t first = 0;
    int have = 0;
    *of = (cell){0};
    for (int i = 0; i < FEATURE_STATISTICS; i++)
        if (at->has[i]) s[have++] = (series){run, at->site, &feature_statistics[i], FROM_VECTORS};
    sr_status status = window_rows(part, s, &first, &of->steps, why);
    if (status == SR_OK) status = columns_create(&b, have, of->steps, why);
    if (status == SR_OK) status = series_read_all(s, have, first, of->steps, b.value, NULL, why);
    for (int64_t row = 0; row < of->steps && status == SR_OK; row++) {
        bool finite = true;
        for (int i = 0; i < have; i++) finite = finite && isfinite(b.value[i][row]);
        of->nonfinite += !finite;
    }
    if (status == SR_OK) columns_summarise(&b, have, of->steps, true, found);
    for (int i = 0, k = 0; i < FEATURE_STATISTICS; i++)
        of->median[i] = at->has[i] && status == SR_OK ? found[k++].median : NAN;
    columns_free(&b);
    return status;
}

/* -- rows of the table ----------------------------------------------------------------------- */

static void declare_columns(stat_table *table) {
    tsv *t = &table->table;
    tsv_column(t, "run", "run file as given");
    window_part_columns(t);
    tsv_column(t, "site", "normalization site");
    tsv_column(t, "depth", "place in the order of the forward pass, from 0");
    tsv_column(t, "norm", "its normalization");
    tsv_column(t, "steps", "recorded steps of the part; below: medians over them");
    tsv_column(t, "nonfinite", "of them with NaN or infinity, which are in no median");
    for (int i = 0; i < FEATURE_STATISTICS; i++)
        tsv_column(t, feature_statistics[i].name, statistic_definition(&feature_statistics[i]));
}

/* at[sites] of one run. */
static sr_status print_run(stat_table *t, const site_choice *at, int64_t sites, sr_failure *why) {
    const int64_t parts = ((const settings *)t->settings)->parts;
    cell *all = calloc((size_t)(sites * parts), sizeof *all); /* [sites, parts] */
    if (!all) return sr_fail(why, SR_MEMORY, "out of memory for %lld sites", (long long)sites);
    sr_status status = SR_OK;
    for (int64_t k = 0; k < sites; k++)
        for (int64_t p = 0; p < parts && status == SR_OK; p++) {
            const step_window here = window_part(&t->window[at->run], parts, p);
            status = measure_part(t->set->run[at->run], &at[k], &here, &all[k * parts + p], why);
        }
    for (int64_t p = 0; p < parts && status == SR_OK; p++)
        for (int64_t k = 0; k < sites; k++) {
            const sr_run_site *site = sr_run_get_site(t->set->run[at->run], at[k].site);
            const cell *c = &all[k * parts + p];
            tsv_text(&t->table, t->set->path[at->run]);
            window_part_cells(&t->table, parts, p);
            tsv_text(&t->table, site->name);
            tsv_int(&t->table, site->depth);
            tsv_text(&t->table, site->norm);
            tsv_int(&t->table, c->steps);
            tsv_int(&t->table, c->nonfinite);
            for (int i = 0; i < FEATURE_STATISTICS; i++) tsv_real(&t->table, c->median[i]);
        }
    free(all);
    return status;
}

static sr_status print_runs(stat_table *t, sr_failure *why) {
    const choice *c = &t->chosen;
    sr_status status = SR_OK;
    for (int64_t first = 0, end; first < c->sites && status == SR_OK; first = end) {
        for (end = first; end < c->sites && c->site[end].run == c->site[first].run;) end++;
        status = print_run(t, &c->site[first], end - first, why);
    }
    return status;
}

static sr_status choose(stat_table *t, sr_failure *why) {
    const settings *s = t->settings;
    const table_choice c = {.source = FROM_VECTORS,
                            .site = s->site,
                            .startup = "0",
                            .phase = s->phase,
                            .hint = "without batch statistics, add `statrec train --observe "
                                    "batch`; vectors need --record all",
                            .compares = true};
    t->chosen.statistics = FEATURE_STATISTICS;
    for (int i = 0; i < FEATURE_STATISTICS; i++) t->chosen.wanted[i] = &feature_statistics[i];
    return table_choose(t, &c, why);
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-depth",
        .usage = "RUN.h5... [--parts N] [--site GLOB] [--phase PHASE]",
        .does = "Power, variance, kurtosis over features and mean direction of the sites' inputs, "
                "from the\n"
                "first site to the last, in equal parts of training.",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .stat = feature_statistics,
        .statistics = FEATURE_STATISTICS,
        .head = choose,
        .columns = declare_columns,
        .rows = print_runs,
    };
    return stat_program_main(&p, argc, argv);
}
