/* Power, variance, kurtosis and mean direction of the sites' inputs by depth, in parts of training.
 *
 * The statistics of feature_statistics.c, each as its median over the recorded steps of a part, a
 * row per run, part and site: rows of a part stand together in the order of the forward pass, as
 * figures against depth want them (Peri-LN, arXiv 2502.02732; The Curse of Depth, arXiv
 * 2502.05795). Steps whose value is NaN or infinite are counted in `nonfinite` and are in no
 * median. Batch statistics do not know what running values began with: no start-up is left out.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/frame/site_table.h"
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

/* The rows of one part at one site, those of the statistics that it has. */
typedef struct part_source {
    series s[FEATURE_STATISTICS];
    int have;
} part_source;

/* A step counts as not finite when any of the statistics that the site has is not. */
static bool row_is_finite(const part_source *p, double *const *value, int64_t row) {
    for (int i = 0; i < p->have; i++)
        if (!isfinite(value[i][row])) return false;
    return true;
}

static void part_choose(part_source *p, const sr_runfile *run, const site_choice *at) {
    *p = (part_source){0};
    for (int i = 0; i < FEATURE_STATISTICS; i++)
        if (at->has[i])
            p->s[p->have++] = (series){run, at->site, &feature_statistics[i], FROM_VECTORS};
}

/* part: of the window. */
static sr_status measure_part(const part_source *p, const site_choice *at, const step_window *part,
                              cell *of, sr_failure *why) {
    summary found[FEATURE_STATISTICS];
    column_block b = {0};
    int64_t first = 0;
    *of = (cell){0};
    sr_status status = window_rows(part, p->s, &first, &of->steps, why);
    if (status == SR_OK) status = columns_create(&b, p->have, of->steps, why);
    if (status == SR_OK)
        status = series_read_all(p->s, p->have, first, of->steps, b.value, NULL, why);
    if (status == SR_OK) {
        for (int64_t row = 0; row < of->steps; row++)
            of->nonfinite += !row_is_finite(p, b.value, row);
        columns_summarise(&b, p->have, of->steps, true, found);
    }
    for (int i = 0, k = 0; i < FEATURE_STATISTICS; i++)
        of->median[i] = at->has[i] && status == SR_OK ? found[k++].median : NAN;
    columns_free(&b);
    return status;
}

/* part [parts] */
static sr_status measure_site(const sr_runfile *run, const site_choice *at, const step_window *w,
                              int64_t cuts, cell *part, sr_failure *why) {
    part_source p;
    sr_status status = SR_OK;
    part_choose(&p, run, at);
    for (int64_t k = 0; k < cuts && status == SR_OK; k++) {
        const step_window here = window_part(w, cuts, k);
        status = measure_part(&p, at, &here, &part[k], why);
    }
    return status;
}

/* -- rows of the table ----------------------------------------------------------------------- */

static void declare_columns(tsv *t) {
    tsv_column(t, "run", "run file as given");
    window_part_columns(t);
    tsv_column(t, "site", "normalization site");
    tsv_column(t, "depth", "place in the order of the forward pass, from 0");
    tsv_column(t, "norm", "its normalization");
    tsv_column(t, "steps", "recorded steps of the part; below: medians over them");
    tsv_column(t, "nonfinite", "of them with NaN or infinity, which are in no median");
    for (int i = 0; i < FEATURE_STATISTICS; i++)
        tsv_column(t, feature_statistics[i].name, statistic_definition(&feature_statistics[i]));
    tsv_header(t);
}

static void print_cell(tsv *t, const run_set *set, const site_choice *at, int64_t number,
                       int64_t cuts, const cell *c) {
    const sr_run_site *site = sr_run_get_site(set->run[at->run], at->site);
    tsv_text(t, set->path[at->run]);
    window_part_cells(t, cuts, number);
    tsv_text(t, site->name);
    tsv_int(t, site->depth);
    tsv_text(t, site->norm);
    tsv_int(t, c->steps);
    tsv_int(t, c->nonfinite);
    for (int i = 0; i < FEATURE_STATISTICS; i++) tsv_real(t, c->median[i]);
}

/* at[sites] of one run. */
static sr_status print_run(const settings *s, const run_set *set, const site_choice *at,
                           int64_t sites, const step_window *w, tsv *t, sr_failure *why) {
    cell *all = calloc((size_t)(sites * s->parts), sizeof *all); /* [sites, parts] */
    if (!all) return sr_fail(why, SR_MEMORY, "out of memory for %lld sites", (long long)sites);
    sr_status status = SR_OK;
    for (int64_t k = 0; k < sites && status == SR_OK; k++)
        status = measure_site(set->run[at->run], &at[k], w, s->parts, all + k * s->parts, why);
    for (int64_t p = 0; p < s->parts && status == SR_OK; p++)
        for (int64_t k = 0; k < sites; k++)
            print_cell(t, set, &at[k], p, s->parts, &all[k * s->parts + p]);
    free(all);
    return status;
}

static sr_status print_runs(site_table *t, sr_failure *why) {
    const choice *c = &t->chosen;
    sr_status status = SR_OK;
    declare_columns(&t->table);
    for (int64_t first = 0, end; first < c->sites && status == SR_OK; first = end) {
        const int run = c->site[first].run;
        for (end = first; end < c->sites && c->site[end].run == run;) end++;
        status = print_run(t->settings, t->set, &c->site[first], end - first, &t->window[run],
                           &t->table, why);
    }
    return status;
}

static sr_status print_table(const void *self, const void *settings_of, const run_set *set,
                             const char *command, sr_failure *why) {
    (void)self;
    const settings *s = settings_of;
    site_table t = {.program = "stat-depth",
                    .settings = s,
                    .set = set,
                    .chosen = {.statistics = FEATURE_STATISTICS},
                    .source = FROM_VECTORS,
                    .site = s->site,
                    .startup = "0",
                    .phase = s->phase,
                    .hint = "methods without batch statistics have them only with `statrec train "
                            "--observe batch`, vectors only with --record all",
                    .compares = true,
                    .rows = print_runs};
    for (int i = 0; i < FEATURE_STATISTICS; i++) t.chosen.wanted[i] = &feature_statistics[i];
    return site_table_print(&t, command, why);
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
        .print = print_table,
    };
    return stat_program_main(&p, argc, argv);
}
