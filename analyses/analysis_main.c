/* main() of the analyses whose numbers are statistics of one site at one step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"

typedef struct settings {
    option_text site, stat, from, definition;
    bool per_step, final;
    int64_t buckets;
} settings;

enum { OPTIONS = 7, OPTIONS_COMMON = 5 }; /* the others: where there are `released` statistics */

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
        {.group = "Output",
         .key = "buckets",
         .type = OPTION_INT,
         .offset = offsetof(settings, buckets),
         .preset = "0",
         .low = 1,
         .high = 1000000,
         .unit = "",
         .help = "with --per-step: of each of so many parts of training only the smallest, the "
                 "median and the largest value; 0: every step"},
        {.group = "Definition",
         .key = "definition",
         .type = OPTION_CHOICE,
         .offset = offsetof(settings, definition),
         .preset = "paper",
         .choices = "paper|released",
         .unit = "",
         .help = "that of the paper, or of its released code (computed from /vectors)"},
        {.group = "Definition",
         .key = "final",
         .type = OPTION_FLAG,
         .offset = offsetof(settings, final),
         .preset = "no",
         .unit = "",
         .help = "what a last pass after training found (statrec train --final-tid)"},
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
    int64_t buckets;
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

static void summary_row(const job *j, const series *s, const char *path, double *value,
                        int64_t length) {
    summary sum;
    summary_make(value, length, &sum);
    tsv_text(j->table, path);
    tsv_text(j->table, sr_run_get_site(s->run, s->site)->name);
    tsv_text(j->table, sr_run_get_site(s->run, s->site)->norm);
    tsv_text(j->table, s->stat->name);
    summary_cells(j->table, &sum);
}

/* s[count]: statistics of one site, read together. */
static sr_status summary_rows(const job *j, const site_choice *at, const series *s, int count,
                              sr_failure *why) {
    const int64_t length = series_length(s);
    double *value[ANALYSIS_STATISTICS] = {NULL};
    sr_status status = SR_OK;
    for (int i = 0; i < count && status == SR_OK; i++) {
        value[i] = malloc((size_t)(length + 1) * sizeof *value[i]);
        if (!value[i])
            status = sr_fail(why, SR_MEMORY, "out of memory for %lld steps", (long long)length);
    }
    if (status == SR_OK) status = series_read_all(s, count, 0, length, value, NULL, why);
    for (int i = 0; i < count; i++) {
        if (status == SR_OK) summary_row(j, &s[i], j->set->path[at->run], value[i], length);
        free(value[i]);
    }
    return status;
}

/* Scalars one by one: nothing is gained by reading a long run's columns together. */
static sr_status summary_site(const job *j, const site_choice *at, sr_failure *why) {
    series s[ANALYSIS_STATISTICS];
    int count = 0;
    for (int i = 0; i < j->chosen->statistics; i++)
        if (at->has[i]) s[count++] = job_series(j, at, i);
    if (j->source == FROM_VECTORS) return summary_rows(j, at, s, count, why);
    sr_status status = SR_OK;
    for (int i = 0; i < count && status == SR_OK; i++) status = summary_rows(j, at, &s[i], 1, why);
    return status;
}

static sr_status print_summary(const job *j, sr_failure *why) {
    site_columns(j->table);
    tsv_header(j->table);
    sr_status status = SR_OK;
    for (int64_t k = 0; k < j->chosen->sites && status == SR_OK; k++)
        status = summary_site(j, &j->chosen->site[k], why);
    return status;
}

enum { BLOCK = 8192 };

typedef struct step_block {
    int64_t step[BLOCK];
    double value[ANALYSIS_STATISTICS][BLOCK];
} step_block;

static sr_status block_fill(const job *j, const site_choice *at, int64_t first, int64_t count,
                            step_block *b, sr_failure *why) {
    series s[ANALYSIS_STATISTICS];
    double *value[ANALYSIS_STATISTICS];
    int have = 0;
    for (int i = 0; i < j->chosen->statistics; i++) {
        for (int64_t k = 0; k < count; k++) b->value[i][k] = NAN;
        if (!at->has[i]) continue;
        s[have] = job_series(j, at, i);
        value[have++] = b->value[i];
    }
    return series_read_all(s, have, first, count, value, b->step, why);
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

/* -- the same, reduced ----------------------------------------------------------------------- */

/* The rows of one site that fall into one part of training. */
typedef struct part {
    int64_t count, room, first, last; /* rows; steps of the first and last one */
    double *value[ANALYSIS_STATISTICS];
} part;

static void part_free(part *p) {
    for (int i = 0; i < ANALYSIS_STATISTICS; i++) free(p->value[i]);
}

static sr_status part_add(part *p, const job *j, const step_block *b, int64_t k, sr_failure *why) {
    const int64_t room = p->count < p->room ? p->room : 2 * p->room + 64;
    for (int i = 0; i < j->chosen->statistics; i++) {
        if (room != p->room) {
            double *grown = realloc(p->value[i], (size_t)room * sizeof *grown);
            if (!grown) return sr_fail(why, SR_MEMORY, "out of memory");
            p->value[i] = grown;
        }
        p->value[i][p->count] = b->value[i][k];
    }
    if (!p->count) p->first = b->step[k];
    p->last = b->step[k];
    p->room = room;
    p->count++;
    return SR_OK;
}

/* Three rows, at the first step, in the middle and at the last step: who cuts them into the same
 * parts again finds the same three values in each. */
static void part_print(part *p, const job *j, const site_choice *at, int64_t last) {
    double row[3][ANALYSIS_STATISTICS];
    const int64_t step[3] = {p->first, p->first + (p->last - p->first) / 2, p->last};
    if (!p->count) return;
    for (int i = 0; i < j->chosen->statistics; i++) {
        summary s;
        summary_make(p->value[i], p->count, &s);
        row[0][i] = s.min;
        row[1][i] = s.median;
        row[2][i] = s.max;
    }
    for (int k = 0; k < 3; k++) {
        tsv_text(j->table, j->set->path[at->run]);
        tsv_text(j->table, site_name(j, at));
        tsv_int(j->table, step[k]);
        tsv_real(j->table, last ? 100.0 * (double)step[k] / (double)last : NAN);
        for (int i = 0; i < j->chosen->statistics; i++) tsv_real(j->table, row[k][i]);
    }
    p->count = 0;
}

/* Where training begins for a site: its first row, as in the figures. */
typedef struct extent {
    int64_t first, last, number; /* steps; part that is being filled */
} extent;

static int64_t part_of(const extent *e, int64_t step, int64_t buckets) {
    if (e->last <= e->first) return 0;
    const double at = (double)(step - e->first) / (double)(e->last - e->first) * (double)buckets;
    return at < (double)buckets ? (int64_t)at : buckets - 1;
}

static sr_status reduce_block(const job *j, const site_choice *at, extent *e, int64_t count,
                              const step_block *b, part *p, sr_failure *why) {
    for (int64_t k = 0; k < count; k++) {
        const int64_t number = part_of(e, b->step[k], j->buckets);
        if (number != e->number) part_print(p, j, at, e->last);
        e->number = number;
        sr_status status = part_add(p, j, b, k, why);
        if (status != SR_OK) return status;
    }
    return SR_OK;
}

static sr_status print_site_parts(const job *j, const site_choice *at, step_block *b, int64_t last,
                                  sr_failure *why) {
    const series s = job_series(j, at, 0);
    const int64_t length = series_length(&s);
    extent e = {.last = last};
    part p = {0};
    sr_status status = SR_OK;
    for (int64_t first = 0; first < length && status == SR_OK; first += BLOCK) {
        const int64_t count = length - first < BLOCK ? length - first : BLOCK;
        status = block_fill(j, at, first, count, b, why);
        if (first == 0) e.first = b->step[0];
        if (status == SR_OK) status = reduce_block(j, at, &e, count, b, &p, why);
    }
    if (status == SR_OK) part_print(&p, j, at, last);
    part_free(&p);
    return status;
}

static sr_status print_site_steps(const job *j, const site_choice *at, step_block *b,
                                  sr_failure *why) {
    const series s = job_series(j, at, 0);
    const int64_t length = series_length(&s);
    int64_t last;
    sr_status status = run_last_step(s.run, &last, why);
    if (status == SR_OK && j->buckets && length > 3 * j->buckets)
        return print_site_parts(j, at, b, last, why);
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
    tsv_note(j->table, "source", "/%s", j->source == FROM_VECTORS ? "vectors" : "scalars");
    sr_status status = choice_set_sites(chosen, j->set, p->settings.site, j->source, j->table, why);
    if (status == SR_FORMAT && p->a->hint) sr_hint(why, "%s", p->a->hint);
    if (p->settings.per_step && j->buckets)
        tsv_note(j->table, "note",
                 "three rows for each 1/%lld of training where there are more: smallest, median "
                 "and largest value",
                 (long long)j->buckets);
    if (status == SR_OK && !p->settings.per_step) note_definitions(chosen, j->table);
    return status;
}

static sr_status print_rows(const statistics_program *p, const job *j, sr_failure *why) {
    if (p->settings.per_step) return print_steps(j, why);
    if (p->a->print_sites && strcmp(p->settings.stat, p->a->preset) == 0)
        return p->a->print_sites(j->set, j->chosen, j->table, why);
    return print_summary(j, why);
}

static sr_status print_final(const statistics_program *p, bool released, const run_set *set,
                             const char *command, sr_failure *why) {
    if (released || p->settings.per_step)
        return sr_fail(why, SR_USAGE, "--final has neither steps nor another definition");
    return p->a->print_final(set, p->settings.site, command, why);
}

static sr_status print_table(const void *self, const run_set *set, const char *command,
                             sr_failure *why) {
    const statistics_program *p = self;
    const settings *s = &p->settings;
    tsv table;
    table_head head;
    choice chosen = {0};
    job j = {set, &chosen, strcmp(s->from, "vectors") == 0 ? FROM_VECTORS : FROM_SCALARS, &table,
             s->buckets};
    const bool released = p->a->released && strcmp(s->definition, "released") == 0;
    if (released) j.source = FROM_VECTORS;
    if (p->a->released && s->final) return print_final(p, released, set, command, why);
    sr_status status = choice_set_statistics(&chosen, released ? p->a->released : p->a->stat,
                                             p->a->statistics, s->stat, why);
    if (status != SR_OK) return status;
    status = table_head_begin(&head, &table, p->a->program, command, set, why);
    if (status != SR_OK) return status;
    status = prepare(p, &j, &chosen, why);
    if (status == SR_OK)
        status = table_head_print(&head, &table, why);
    else
        table_head_drop(&head);
    if (status == SR_OK) status = print_rows(p, &j, why);
    choice_free(&chosen);
    return status;
}

int analysis_main(const analysis *a, int argc, char **argv) {
    option row[OPTIONS];
    make_options(a, row);
    statistics_program self = {.a = a, .options = {row, a->released ? OPTIONS : OPTIONS_COMMON}};
    const analysis_program p = {.name = a->program,
                                .help = print_help,
                                .options = self.options,
                                .settings = &self.settings,
                                .self = &self,
                                .print = print_table};
    return analysis_program_main(&p, argc, argv);
}
