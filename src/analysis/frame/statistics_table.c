/* main() of the analyses whose numbers are statistics of one site at one step. */

#include "analysis/frame/statistics_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "analysis/frame/comparability.h"
#include "analysis/frame/stat_program.h"
#include "analysis/series/series_summaries.h"

typedef struct settings {
    option_text site, stat, from, form, startup, phase;
    bool per_step, final, ranks, intervals;
    int64_t buckets, parts;
} settings;

enum { OPTIONS = 12, WORDS_SIZE = 128 };

#define AT(field) offsetof(settings, field)

/* "paper|per-root|relative" */
static void form_words(const analysis *a, char words[WORDS_SIZE]) {
    words[0] = 0;
    for (int i = 0; i < ANALYSIS_FORMS && a->form[i].word; i++) {
        const size_t used = strlen(words);
        snprintf(words + used, WORDS_SIZE - used, "%s%s", i ? "|" : "", a->form[i].word);
    }
}

/* Fills row [OPTIONS]; returns how many this analysis has. */
static int make_options(const analysis *a, const char *words, option *row) {
    const option common[] = {
        TEXT_OPTION("Choice", "site", AT(site), a->site,
                    "use these sites: globs, first, middle, last, last-bn (of those with a "
                    "statistic)",
                    .value = "SITE,..."),
        TEXT_OPTION("Choice", "stat", AT(stat), a->default_stat, "print these statistics",
                    .value = "STAT,..."),
        CHOICE_OPTION("Choice", "from", AT(from), a->source == FROM_SCALARS ? "scalars" : "vectors",
                      "scalars|vectors",
                      "read /scalars, every step, or compute from recorded /vectors"),
        WINDOW_OPTIONS(AT(startup), AT(phase)),
        FLAG_OPTION("Output", "per-step", AT(per_step), "no",
                    "print a row for each step; keeps the burn-in unless --burn-in gives N"),
        INT_OPTION("Output", "buckets", AT(buckets), "0", 1, 1000000, "",
                   "with --per-step: print smallest, median and largest value of N parts"),
        FLAG_OPTION("Output", "intervals", AT(intervals), "no",
                    "add a 95 % bootstrap confidence interval of every median"),
        PARTS_OPTION(AT(parts), "1"),
    };
    int count = sizeof common / sizeof common[0];
    memcpy(row, common, sizeof common);
    if (a->form_option)
        row[count++] = (option)CHOICE_OPTION("Definition", a->form_option, AT(form),
                                             a->form[0].word, words, a->form_help);
    if (a->print_final)
        row[count++] = (option)FLAG_OPTION("Definition", "final", AT(final), "no",
                                           "print a last pass after training (statrec train "
                                           "--final-tid)");
    if (a->print_shards)
        row[count++] = (option)FLAG_OPTION("Definition", "ranks", AT(ranks), "no",
                                           "how far the batch statistics of the shares of a batch "
                                           "are apart (statrec train --record-shards)");
    return count;
}

typedef struct statistics_program {
    const analysis *a;
    settings settings;
} statistics_program;

/* -- tables ---------------------------------------------------------------------------------- */

static series job_series(const step_table *j, const site_choice *at, int stat) {
    return (series){j->set->run[at->run], at->site, j->chosen->wanted[stat], j->source};
}

static void site_columns(const step_table *j) {
    tsv *t = j->table;
    tsv_column(t, "run", "run file as given");
    if (j->parts > 1) window_part_columns(t);
    tsv_column(t, "site", "normalization site");
    tsv_column(t, "norm", "its normalization");
    tsv_column(t, "statistic", "what the other columns summarise over the steps of the run");
    summary_columns(t);
    if (!j->intervals) return;
    tsv_column(t, "median_low",
               "lower end of a 95 % interval of the median over other steps of "
               "this run: circular block bootstrap, 1000 resamples");
    tsv_column(t, "median_high", "its upper end");
}

/* A row, or several, of one part of training. */
typedef struct stretch {
    const char *path;
    step_window window;
    int64_t part;
} stretch;

/* Intervals of the medians of rows first .. first + rows - 1, series read together. */
static sr_status read_intervals(const series *s, const summary *of, int count, int64_t first,
                                int64_t rows, double *interval, sr_failure *why) {
    const int most = columns_together(rows, count);
    column_block b = {0};
    sr_status status = columns_create(&b, most, rows, why);
    for (int at = 0; at < count && status == SR_OK; at += most) {
        const int n = count - at < most ? count - at : most;
        status = series_read_all(s + at, n, first, rows, b.value, NULL, why);
        for (int i = at; i < at + n && status == SR_OK; i++)
            status = bootstrap_median(b.value[i - at], rows, of[i].median, &interval[2 * i],
                                      &interval[2 * i + 1], why);
    }
    columns_free(&b);
    return status;
}

static void summary_row(const step_table *j, const stretch *of, const series *s, const summary *sum,
                        const double *interval) {
    tsv_text(j->table, of->path);
    if (j->parts > 1) window_part_cells(j->table, j->parts, of->part);
    tsv_text(j->table, sr_run_get_site(s->run, s->site)->name);
    tsv_text(j->table, sr_run_get_site(s->run, s->site)->norm);
    tsv_text(j->table, s->stat->name);
    summary_cells(j->table, sum);
    if (j->intervals) tsv_real(j->table, interval[0]), tsv_real(j->table, interval[1]);
}

static sr_status summary_part(const step_table *j, const stretch *of, const series *s, int count,
                              sr_failure *why) {
    int64_t first, rows;
    summary *sum = malloc((size_t)count * sizeof *sum);
    double *interval = malloc(2 * (size_t)count * sizeof *interval);
    sr_status status = sum && interval ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = window_rows(&of->window, s, &first, &rows, why);
    if (status == SR_OK) status = series_summaries(s, count, first, rows, false, sum, why);
    if (status == SR_OK && j->intervals)
        status = read_intervals(s, sum, count, first, rows, interval, why);
    for (int i = 0; i < count && status == SR_OK; i++)
        summary_row(j, of, &s[i], &sum[i], &interval[2 * i]);
    free(sum);
    free(interval);
    return status;
}

static sr_status summary_run(const step_table *j, int run, const series *s, int count,
                             sr_failure *why) {
    sr_status status = SR_OK;
    for (int64_t k = 0; k < j->parts && status == SR_OK; k++) {
        const stretch of = {j->set->path[run], window_part(&j->window[run], j->parts, k), k};
        status = summary_part(j, &of, s, count, why);
    }
    return status;
}

static sr_status print_summary(const step_table *j, sr_failure *why) {
    const choice *c = j->chosen;
    series *s = malloc((size_t)(c->sites * c->statistics + 1) * sizeof *s);
    if (!s) return sr_fail(why, SR_MEMORY, "out of memory");
    site_columns(j);
    tsv_header(j->table);
    sr_status status = SR_OK;
    for (int64_t k = 0, next; k < c->sites && status == SR_OK; k = next) {
        const int run = c->site[k].run;
        int count = 0;
        for (next = k; next < c->sites && c->site[next].run == run; next++)
            for (int i = 0; i < c->statistics; i++)
                if (c->site[next].has[i]) s[count++] = job_series(j, &c->site[next], i);
        if (count) status = summary_run(j, run, s, count, why);
    }
    free(s);
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
            if (c->own[i]) continue; /* declared_warn tells */
            snprintf(dataset, sizeof dataset, "scalars/%s", c->wanted[i]->name);
            const char *theirs = sr_run_definition(set->run[r], dataset);
            if (!theirs[0] || strcmp(theirs, statistic_definition(c->wanted[i])) == 0) continue;
            tsv_note(table, "note", "%s defines %s as: %s", set->path[r], c->wanted[i]->name,
                     theirs);
        }
    }
}

/* Steps alone are no summary: what running values began with stays, unless a number was given. */
static const char *startup_wanted(const settings *s) {
    return s->per_step && strcmp(s->startup, "auto") == 0 ? "0" : s->startup;
}

static sr_status prepare(const statistics_program *p, step_table *j, choice *chosen,
                         step_window **windows, sr_failure *why) {
    if (j->source == FROM_SCALARS) note_other_definitions(chosen, j->set, j->table);
    choice_note_own(chosen, j->set, false, j->table);
    tsv_note(j->table, "source", "/%s", j->source == FROM_VECTORS ? "vectors" : "scalars");
    sr_status status = choice_set_sites(chosen, j->set, p->settings.site, j->source, j->table, why);
    if (status == SR_FORMAT && j->source == FROM_VECTORS && form_find(chosen->wanted[0]->name))
        sr_hint(why, "/vectors have no tokens and no ||dx||: this form is computed from /scalars");
    else if (status == SR_FORMAT && p->a->hint)
        sr_hint(why, "%s", p->a->hint);
    if (p->settings.per_step && j->buckets)
        tsv_note(j->table, "note",
                 "three rows for each 1/%lld of training where there are more: smallest, median "
                 "and largest value",
                 (long long)j->buckets);
    if (status == SR_OK && !p->settings.per_step) note_definitions(chosen, j->table);
    if (status == SR_OK)
        status = windows_make(windows, j->set, startup_wanted(&p->settings), p->settings.phase,
                              j->table, why);
    if (status == SR_OK) comparable_warn(chosen, j->set, j->table);
    j->window = *windows;
    return status;
}

static sr_status print_rows(const statistics_program *p, const step_table *j, sr_failure *why) {
    if (p->settings.per_step) return step_table_print(j, why);
    if (p->a->print_sites && strcmp(p->settings.stat, p->a->default_stat) == 0)
        return p->a->print_sites(j, why);
    return print_summary(j, why);
}

static sr_status print_final(const statistics_program *p, bool other_form, const run_set *set,
                             const char *command, sr_failure *why) {
    const settings *s = &p->settings;
    if (other_form || s->per_step || strcmp(s->phase, "all") || strcmp(s->startup, "auto"))
        return sr_fail(why, SR_USAGE, "--final has neither steps nor another definition");
    return p->a->print_final(set, p->settings.site, command, why);
}

/* Batch statistics do not know what running values began with: no start-up is left out. */
static sr_status print_ranks(const statistics_program *p, bool other_form, const run_set *set,
                             const char *command, sr_failure *why) {
    const settings *s = &p->settings;
    const shards_request q = {.program = p->a->program,
                              .sites = s->site,
                              .startup = strcmp(s->startup, "auto") == 0 ? "0" : s->startup,
                              .phase = s->phase,
                              .per_step = s->per_step,
                              .buckets = s->buckets};
    if (other_form || strcmp(s->stat, p->a->default_stat) != 0 || strcmp(s->from, "scalars") != 0)
        return sr_fail(why, SR_USAGE, "--ranks has no other statistics, form or source");
    return p->a->print_shards(&q, set, command, why);
}

/* The form that the user chose; without forms the only one. */
static analysis_form form_chosen(const analysis *a, const char *word) {
    for (int i = 1; i < ANALYSIS_FORMS && a->form[i].word; i++)
        if (strcmp(a->form[i].word, word) == 0) return a->form[i];
    return (analysis_form){a->form[0].word, a->stat, false};
}

/* What only a summary has goes with nothing else. */
static sr_status check_summary(const statistics_program *p, sr_failure *why) {
    const settings *s = &p->settings;
    const char *other = s->per_step         ? "--per-step"
                        : s->final          ? "--final"
                        : s->ranks          ? "--ranks"
                        : p->a->print_sites ? p->a->program
                                            : NULL;
    if (other && s->intervals)
        return sr_fail(why, SR_USAGE, "--intervals are of the medians of a summary: not with %s",
                       other);
    if (other && s->parts > 1)
        return sr_fail(why, SR_USAGE, "--parts are summaries: not with %s", other);
    return SR_OK;
}

static sr_status print_table(const void *self, const void *settings_of, const run_set *set,
                             const char *command, sr_failure *why) {
    const statistics_program both = {self, *(const settings *)settings_of}, *p = &both;
    const settings *s = &p->settings;
    tsv table;
    table_head head;
    choice chosen = {0};
    step_window *windows = NULL;
    const analysis_form form = form_chosen(p->a, s->form);
    const bool vectors = form.from_vectors || strcmp(s->from, "vectors") == 0;
    step_table j = {.set = set,
                    .chosen = &chosen,
                    .source = vectors ? FROM_VECTORS : FROM_SCALARS,
                    .table = &table,
                    .buckets = s->buckets,
                    .intervals = s->intervals,
                    .parts = s->parts};
    if (check_summary(p, why) != SR_OK) return why->status;
    if (s->final) return print_final(p, form.stat != p->a->stat, set, command, why);
    if (s->ranks) return print_ranks(p, form.stat != p->a->stat, set, command, why);
    const run_set *own = form.stat == recorded_statistics ? set : NULL;
    sr_status status =
        choice_set_statistics(&chosen, form.stat, p->a->statistics, own, s->stat, why);
    if (status != SR_OK) return status;
    status = table_head_begin(&head, &table, p->a->program, command, set, why);
    if (status != SR_OK) {
        choice_free(&chosen);
        return status;
    }
    status = prepare(p, &j, &chosen, &windows, why);
    status = table_head_end(&head, &table, status, why);
    if (status == SR_OK) status = print_rows(p, &j, why);
    choice_free(&chosen);
    free(windows);
    return status;
}

int analysis_main(const analysis *a, int argc, char **argv) {
    option row[OPTIONS];
    char words[WORDS_SIZE];
    form_words(a, words);
    const int options = make_options(a, words, row);
    const stat_program p = {
        .name = a->program,
        .usage = "RUN.h5... [--site GLOB] [--stat LIST] [--per-step] [--from vectors]",
        .does = a->does,
        .options = {row, options},
        .settings = sizeof(settings),
        .stat = a->stat,
        .statistics = a->statistics,
        .self = a,
        .print = print_table};
    return stat_program_main(&p, argc, argv);
}
