/* main() of the analyses whose numbers are statistics of one site at one step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"

typedef struct settings {
    option_text site, stat, from;
    bool per_step;
} settings;

enum { OPTIONS = 4 };

static void make_options(const analysis *a, option row[OPTIONS]) {
    const option rows[OPTIONS] = {
        {.group = "Choice",
         .key = "site",
         .type = OPTION_TEXT,
         .offset = offsetof(settings, site),
         .preset = a->site,
         .unit = "",
         .help = "sites: globs separated by commas, or first or last (of those with a statistic)"},
        {.group = "Choice",
         .key = "stat",
         .type = OPTION_TEXT,
         .offset = offsetof(settings, stat),
         .preset = a->preset,
         .unit = "",
         .help = "statistics separated by commas"},
        {.group = "Choice",
         .key = "from",
         .type = OPTION_CHOICE,
         .offset = offsetof(settings, from),
         .preset = a->source == FROM_SCALARS ? "scalars" : "vectors",
         .choices = "scalars|vectors",
         .unit = "",
         .help = "read /scalars (every step), or compute again from /vectors (recorded steps)"},
        {.group = "Output",
         .key = "per-step",
         .type = OPTION_FLAG,
         .offset = offsetof(settings, per_step),
         .preset = "no",
         .unit = "",
         .help = "one row per run, site and step instead of a summary"},
    };
    memcpy(row, rows, sizeof rows);
}

typedef struct statistics_program {
    const analysis *a;
    option_table options;
    settings settings;
} statistics_program;

static void print_help(const void *self) {
    const statistics_program *p = self;
    const analysis *a = p->a;
    printf("usage: %s RUN.h5... [--site GLOB] [--stat LIST] [--per-step] [--from vectors]\n\n",
           a->program);
    printf("%s\nWrites a tab-separated table with its definitions in `#` lines.\n\nStatistics:\n",
           a->does);
    for (int i = 0; i < a->statistics; i++)
        printf("  %-16s %s: %s\n", a->stat[i].word, a->stat[i].name,
               statistic_definition(&a->stat[i]));
    printf("\n");
    options_help(p->options, stdout);
}

/* -- tables ---------------------------------------------------------------------------------- */

typedef struct job {
    const run_set *set;
    const choice *chosen;
    series_source source;
    tsv *table;
} job;

static series job_series(const job *j, const site_choice *at, int stat) {
    return (series){j->set->run[at->run], at->site, j->chosen->wanted[stat], j->source};
}

static const char *site_name(const job *j, const site_choice *at) {
    return sr_run_get_site(j->set->run[at->run], at->site)->name;
}

static void site_columns(tsv *t) {
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "site", "normalization site");
    tsv_column(t, "norm", "its normalization");
    tsv_column(t, "statistic", "what the other columns summarise over the steps of the run");
    summary_columns(t);
}

static sr_status summary_row(const job *j, const site_choice *at, int stat, sr_failure *why) {
    const series s = job_series(j, at, stat);
    const int64_t length = series_length(&s);
    double *value = malloc((size_t)(length + 1) * sizeof *value);
    if (!value) return sr_fail(why, SR_MEMORY, "out of memory for %lld steps", (long long)length);
    sr_status status = series_read(&s, 0, length, value, NULL, why);
    if (status == SR_OK) {
        summary sum;
        summary_make(value, length, &sum);
        tsv_text(j->table, j->set->path[at->run]);
        tsv_text(j->table, site_name(j, at));
        tsv_text(j->table, sr_run_get_site(s.run, s.site)->norm);
        tsv_text(j->table, s.stat->name);
        summary_cells(j->table, &sum);
    }
    free(value);
    return status;
}

static sr_status print_summary(const job *j, sr_failure *why) {
    site_columns(j->table);
    tsv_header(j->table);
    for (int64_t k = 0; k < j->chosen->sites; k++) {
        for (int i = 0; i < j->chosen->statistics; i++) {
            if (!j->chosen->site[k].has[i]) continue;
            sr_status status = summary_row(j, &j->chosen->site[k], i, why);
            if (status != SR_OK) return status;
        }
    }
    return SR_OK;
}

enum { BLOCK = 8192 };

typedef struct step_block {
    int64_t step[BLOCK];
    double value[ANALYSIS_STATISTICS][BLOCK];
} step_block;

static sr_status block_fill(const job *j, const site_choice *at, int64_t first, int64_t count,
                            step_block *b, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < j->chosen->statistics && status == SR_OK; i++) {
        const series s = job_series(j, at, i);
        for (int64_t k = 0; k < count; k++) b->value[i][k] = NAN;
        if (at->has[i]) status = series_read(&s, first, count, b->value[i], b->step, why);
    }
    return status;
}

static void block_print(const job *j, const site_choice *at, int64_t last, int64_t count,
                        const step_block *b) {
    for (int64_t k = 0; k < count; k++) {
        tsv_text(j->table, j->set->path[at->run]);
        tsv_text(j->table, site_name(j, at));
        tsv_int(j->table, b->step[k]);
        tsv_real(j->table, last ? 100.0 * (double)b->step[k] / (double)last : NAN);
        for (int i = 0; i < j->chosen->statistics; i++) tsv_real(j->table, b->value[i][k]);
    }
}

static sr_status print_site_steps(const job *j, const site_choice *at, step_block *b,
                                  sr_failure *why) {
    const series s = job_series(j, at, 0);
    const int64_t length = series_length(&s);
    int64_t last;
    sr_status status = run_last_step(s.run, &last, why);
    for (int64_t first = 0; first < length && status == SR_OK; first += BLOCK) {
        const int64_t count = length - first < BLOCK ? length - first : BLOCK;
        status = block_fill(j, at, first, count, b, why);
        if (status == SR_OK) block_print(j, at, last, count, b);
    }
    return status;
}

static sr_status print_steps(const job *j, sr_failure *why) {
    tsv_column(j->table, "run", "run file as given");
    tsv_column(j->table, "site", "normalization site");
    tsv_column(j->table, "step", "forward and backward passes so far");
    tsv_column(j->table, "percent", "percent of training: 100 step / last step of the run");
    for (int i = 0; i < j->chosen->statistics; i++)
        tsv_column(j->table, j->chosen->wanted[i]->name,
                   statistic_definition(j->chosen->wanted[i]));
    tsv_header(j->table);
    step_block *b = malloc(sizeof *b);
    if (!b) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = SR_OK;
    for (int64_t k = 0; k < j->chosen->sites && status == SR_OK; k++)
        status = print_site_steps(j, &j->chosen->site[k], b, why);
    free(b);
    return status;
}

/* -- program --------------------------------------------------------------------------------- */

/* The formulas belong into a summary too, where the statistic is a cell and not a column. */
static void note_definitions(const choice *c, tsv *table) {
    for (int i = 0; i < c->statistics; i++)
        tsv_note(table, "statistic", "%s: %s", c->wanted[i]->name,
                 statistic_definition(c->wanted[i]));
}

/* A file written by another version may define a dataset otherwise. */
static void note_other_definitions(const choice *c, const run_set *set, tsv *table) {
    for (int r = 0; r < set->count; r++) {
        for (int i = 0; i < c->statistics; i++) {
            char dataset[96];
            snprintf(dataset, sizeof dataset, "scalars/%s", c->wanted[i]->name);
            const char *theirs = sr_run_definition(set->run[r], dataset);
            if (!theirs[0] || strcmp(theirs, statistic_definition(c->wanted[i])) == 0) continue;
            tsv_note(table, "note", "%s defines %s as: %s", set->path[r], c->wanted[i]->name,
                     theirs);
        }
    }
}

static sr_status prepare(const statistics_program *p, job *j, choice *chosen, sr_failure *why) {
    if (j->source == FROM_SCALARS) note_other_definitions(chosen, j->set, j->table);
    tsv_note(j->table, "source", "/%s", p->settings.from);
    sr_status status = choice_set_sites(chosen, j->set, p->settings.site, j->source, j->table, why);
    if (status == SR_FORMAT && p->a->hint) sr_hint(why, "%s", p->a->hint);
    if (status == SR_OK && !p->settings.per_step) note_definitions(chosen, j->table);
    return status;
}

static sr_status print_table(const void *self, const run_set *set, const char *command,
                             sr_failure *why) {
    const statistics_program *p = self;
    const settings *s = &p->settings;
    tsv table;
    table_head head;
    choice chosen = {0};
    job j = {set, &chosen, strcmp(s->from, "vectors") == 0 ? FROM_VECTORS : FROM_SCALARS, &table};
    sr_status status = choice_set_statistics(&chosen, p->a->stat, p->a->statistics, s->stat, why);
    if (status != SR_OK) return status;
    status = table_head_begin(&head, &table, p->a->program, command, set, why);
    if (status != SR_OK) return status;
    status = prepare(p, &j, &chosen, why);
    if (status == SR_OK)
        status = table_head_print(&head, &table, why);
    else
        table_head_drop(&head);
    if (status == SR_OK) status = s->per_step ? print_steps(&j, why) : print_summary(&j, why);
    choice_free(&chosen);
    return status;
}

int analysis_main(const analysis *a, int argc, char **argv) {
    option row[OPTIONS];
    make_options(a, row);
    statistics_program self = {.a = a, .options = {row, OPTIONS}};
    const analysis_program p = {.name = a->program,
                                .help = print_help,
                                .options = self.options,
                                .settings = &self.settings,
                                .self = &self,
                                .print = print_table};
    return analysis_program_main(&p, argc, argv);
}
