/* main() of the analyses whose numbers are statistics of one site at one step. */

#include "analysis/frame/statistics_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "analysis/frame/stat_program.h"
#include "analysis/runs/run_config.h"
#include "analysis/series/series_summaries.h"

typedef struct settings {
    option_text site, stat, from, form, startup, phase, step, order, spacing;
    bool per_step, final, ranks, intervals, per_feature, quantiles;
    int64_t buckets, parts, bins;
} settings;

enum {
    CHOICE = 2,
    COMMON = 8,
    OWN = 4,
    FEATURES = 6,
    OPTIONS = COMMON + OWN + FEATURES,
    WORDS_SIZE = 128
};

#define AT(field) offsetof(settings, field)

/* Options of single features: --per-feature and its relatives. */
static int make_feature_options(option *row) {
    static const char group[] = "Single features";
    const option own[FEATURES] = {
        FLAG_OPTION(group, "per-feature", AT(per_feature), "no",
                    "print a row for each feature and recorded step; --buckets goes with it"),
        FLAG_OPTION(group, "quantiles", AT(quantiles), "no",
                    "print a row for each feature: quantiles of its values over the steps"),
        INT_OPTION(group, "histogram", AT(bins), "0", 1, 10000, "bins",
                   "print features in each of N bins at the steps of --step"),
        TEXT_OPTION(group, "step", AT(step), "",
                    "use these recorded steps: numbers, first, middle, last; default: those of "
                    "--phase, of a histogram last",
                    .value = "STEP,..."),
        CHOICE_OPTION(group, "order", AT(order), "feature", "feature|largest|outlier",
                      "with --per-feature: by number, largest absolute value, or outlier score"),
        CHOICE_OPTION(group, "spacing", AT(spacing), "auto", "auto|linear|log",
                      "bins of a histogram; auto: log for positive values over two decades"),
    };
    memcpy(row, own, sizeof own);
    return FEATURES;
}

static bool computes_from_vectors(const analysis *a) {
    for (int i = 0; i < a->statistics; i++)
        if (a->stat[i].recompute) return true;
    return false;
}

/* Fills row [OPTIONS]; returns how many this analysis has. */
static int make_options(const analysis *a, const char *words, option *row) {
    const option common[COMMON] = {
        TEXT_OPTION("Choice", "site", AT(site), a->site,
                    "use these sites: globs, first, middle, last, last-bn (of those with a "
                    "statistic)",
                    .value = "SITE,..."),
        TEXT_OPTION("Choice", "stat", AT(stat), a->default_stat, "print these statistics",
                    .value = "STAT,..."),
        WINDOW_OPTIONS(AT(startup), AT(phase)),
        FLAG_OPTION("Output", "per-step", AT(per_step), "no",
                    "print a row for each step; keeps the burn-in unless --burn-in gives N"),
        INT_OPTION("Output", "buckets", AT(buckets), "0", 1, 1000000, "",
                   "with --per-step: print smallest, median and largest value of N parts"),
        FLAG_OPTION("Output", "intervals", AT(intervals), "no",
                    "add a 95 % bootstrap confidence interval of every median"),
        PARTS_OPTION(AT(parts), "1"),
    };
    int count = CHOICE;
    memcpy(row, common, CHOICE * sizeof *common);
    if (computes_from_vectors(a))
        row[count++] = (option)CHOICE_OPTION(
            "Choice", "from", AT(from), a->source == FROM_SCALARS ? "scalars" : "vectors",
            "scalars|vectors", "read /scalars, every step, or compute from recorded /vectors");
    memcpy(row + count, common + CHOICE, (COMMON - CHOICE) * sizeof *common);
    count += COMMON - CHOICE;
    if (a->form_option)
        row[count++] = (option)CHOICE_OPTION("Definition", a->form_option, AT(form),
                                             a->form[0].word, words, a->form_help);
    if (a->print_final)
        row[count++] = (option)FLAG_OPTION("Definition", "final", AT(final), "no",
                                           "print a last pass after training (statrec train "
                                           "--final-tid)");
    if (a->print_shards)
        row[count++] = (option)FLAG_OPTION(
            "Definition", "ranks", AT(ranks), "no",
            "print the spread of batch statistics between shards (statrec train --record-shards)");
    if (a->print_features) count += make_feature_options(row + count);
    return count;
}

/* -- tables ---------------------------------------------------------------------------------- */

static void declare_summary(const step_table *j) {
    tsv *t = j->table;
    tsv_column(t, "run", "run file as given");
    if (j->parts > 1) window_part_columns(t);
    tsv_column(t, "site", "normalization site");
    tsv_column(t, "norm", "its normalization");
    tsv_column(t, "statistic", "what the other columns summarise over the steps of the run");
    summary_columns(t);
    if (!j->intervals) return;
    tsv_column(
        t, "median_low",
        "lower end of the median's 95 % bootstrap confidence interval over steps of this run");
    tsv_column(t, "median_high", "its upper end");
}

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

/* One part of training. */
static sr_status summary_part(const step_table *j, int run, int64_t part, const series *s,
                              int count, sr_failure *why) {
    const step_window window = window_part(&j->window[run], j->parts, part);
    int64_t first, rows;
    tsv *t = j->table;
    summary *sum = malloc((size_t)count * sizeof *sum);
    double *interval = malloc(2 * (size_t)count * sizeof *interval);
    sr_status status = sum && interval ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = window_rows(&window, s, &first, &rows, why);
    if (status == SR_OK) status = series_summaries(s, count, first, rows, false, sum, why);
    if (status == SR_OK && j->intervals)
        status = read_intervals(s, sum, count, first, rows, interval, why);
    for (int i = 0; i < count && status == SR_OK; i++) {
        tsv_text(t, j->set->path[run]);
        if (j->parts > 1) window_part_cells(t, j->parts, part);
        tsv_text(t, sr_run_get_site(s[i].run, s[i].site)->name);
        tsv_text(t, sr_run_get_site(s[i].run, s[i].site)->norm);
        tsv_text(t, s[i].stat->name);
        summary_cells(t, &sum[i]);
        if (j->intervals) tsv_real(t, interval[2 * i]), tsv_real(t, interval[2 * i + 1]);
    }
    free(sum);
    free(interval);
    return status;
}

static sr_status print_summary(const step_table *j, sr_failure *why) {
    const choice *c = j->chosen;
    series *s = malloc((size_t)(c->sites * c->statistics + 1) * sizeof *s);
    if (!s) return sr_fail(why, SR_MEMORY, "out of memory");
    declare_summary(j);
    tsv_header(j->table);
    sr_status status = SR_OK;
    for (int64_t k = 0, next; k < c->sites && status == SR_OK; k = next) {
        const int run = c->site[k].run;
        int count = 0;
        for (next = k; next < c->sites && c->site[next].run == run; next++)
            for (int i = 0; i < c->statistics; i++)
                if (c->site[next].has[i])
                    s[count++] =
                        (series){j->set->run[run], c->site[next].site, c->wanted[i], j->source};
        for (int64_t part = 0; part < j->parts && count && status == SR_OK; part++)
            status = summary_part(j, run, part, s, count, why);
    }
    free(s);
    return status;
}

/* -- program --------------------------------------------------------------------------------- */

/* A file written by another version may define a dataset otherwise. */
static void note_other_definitions(const choice *c, const run_set *set, tsv *table) {
    for (int r = 0; r < set->count; r++) {
        for (int i = 0; i < c->statistics; i++) {
            char dataset[96];
            if (c->own[i]) continue; /* declared_warn reports it */
            snprintf(dataset, sizeof dataset, "scalars/%s", c->wanted[i]->name);
            const char *theirs = sr_run_definition(set->run[r], dataset);
            sr_run_has_scalar(set->run[r], c->wanted[i]->name); /* kept for choice_set_sites */
            if (!theirs[0] || strcmp(theirs, statistic_definition(c->wanted[i])) == 0) continue;
            tsv_note(table, "note", "%s defines %s as: %s", set->path[r], c->wanted[i]->name,
                     theirs);
        }
    }
}

/* Keeps the burn-in: batch statistics do not depend on initial running values. */
static sr_status print_ranks(const analysis *a, const settings *s, bool other_form,
                             const run_set *set, const char *command, sr_failure *why) {
    const shards_request q = {.program = a->program,
                              .sites = s->site,
                              .startup = strcmp(s->startup, "auto") == 0 ? "0" : s->startup,
                              .phase = s->phase,
                              .per_step = s->per_step,
                              .buckets = s->buckets};
    if (other_form || strcmp(s->stat, a->default_stat) != 0 || strcmp(s->from, "vectors") == 0)
        return sr_fail(why, SR_USAGE, "--ranks has no other statistics, form or source");
    return a->print_shards(&q, set, command, why);
}

/* The option that asks for a table of single features; NULL: none. */
static const char *features_asked(const settings *s) {
    return s->per_feature ? "--per-feature"
           : s->quantiles ? "--quantiles"
           : s->bins      ? "--histogram"
                          : NULL;
}

/* Options that go with some of these tables alone. */
static sr_status check_features(const settings *s, sr_failure *why) {
    const char *asked = features_asked(s);
    const struct {
        bool given, fits;
        const char *what, *with;
    } rule[] = {
        {s->per_step, !asked, "--per-step", "without --per-feature, --quantiles and --histogram"},
        {strcmp(s->from, "vectors") != 0, !asked, "--from scalars", "statistics of a site"},
        {s->per_feature && s->quantiles, false, "--quantiles", "no --per-feature"},
        {s->bins > 0, !s->per_feature && !s->quantiles, "--histogram",
         "no --per-feature and no --quantiles"},
        {s->step[0] != 0, s->per_feature || s->bins, "--step", "--per-feature or --histogram"},
        {strcmp(s->order, "feature") != 0, s->per_feature, "--order", "--per-feature"},
        {strcmp(s->spacing, "auto") != 0, s->bins > 0, "--spacing", "--histogram"},
        {s->step[0] && strcmp(s->phase, "all") != 0, false, "--phase", "no --step"},
        {s->bins && strcmp(s->phase, "all") != 0, false, "--phase",
         "no --histogram: --step chooses"},
    };
    for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++)
        if (rule[i].given && !rule[i].fits)
            return sr_fail(why, SR_USAGE, "%s goes with %s", rule[i].what, rule[i].with);
    return SR_OK;
}

/* Values of features at a step do not depend on initial running values. Quantiles over steps of
 * comparisons with running values do. */
static sr_status print_features(const analysis *a, const settings *s, const run_set *set,
                                const char *command, sr_failure *why) {
    const bool keep = !s->quantiles && strcmp(s->startup, "auto") == 0;
    const features_request q = {.program = a->program,
                                .hint = a->hint,
                                .sites = s->site,
                                .startup = keep ? "0" : s->startup,
                                .phase = s->phase,
                                .stat = strcmp(s->stat, a->default_stat) == 0 ? "" : s->stat,
                                .step = s->bins && !s->step[0] ? "last" : s->step,
                                .order = s->order,
                                .spacing = s->spacing,
                                .quantiles = s->quantiles,
                                .bins = s->bins,
                                .buckets = s->buckets};
    return a->print_features(&q, set, command, why);
}

/* The form that the user chose; without forms the only one. */
static analysis_form form_chosen(const analysis *a, const char *word) {
    for (int i = 1; i < ANALYSIS_FORMS && a->form[i].word; i++)
        if (strcmp(a->form[i].word, word) == 0) return a->form[i];
    return (analysis_form){a->form[0].word, a->stat, false};
}

/* Options of a summary exclude all others; --buckets needs many rows. */
static sr_status check_summary(const analysis *a, const settings *s, sr_failure *why) {
    const char *other = s->per_step         ? "--per-step"
                        : s->final          ? "--final"
                        : s->ranks          ? "--ranks"
                        : features_asked(s) ? features_asked(s)
                        : a->print_sites    ? a->program
                                            : NULL;
    if (other && s->intervals)
        return sr_fail(why, SR_USAGE, "--intervals need a summary: not with %s", other);
    if (other && s->parts > 1)
        return sr_fail(why, SR_USAGE, "--parts are summaries: not with %s", other);
    if (s->buckets && !s->per_step && !s->per_feature)
        return sr_fail(why, SR_USAGE, "--buckets goes with --per-step%s",
                       a->print_features ? " or --per-feature" : "");
    return SR_OK;
}

/* --final, --ranks and the options of single features print other tables. */
static sr_status print_other(stat_table *t, const char *command, bool *done, sr_failure *why) {
    const analysis *a = t->program->self;
    const settings *s = t->settings;
    const bool other_form = form_chosen(a, s->form).stat != a->stat;
    *done = s->final || s->ranks || features_asked(s);
    sr_status status = check_summary(a, s, why);
    if (status == SR_OK && a->print_features) status = check_features(s, why);
    if (status != SR_OK || !*done) return status;
    if (features_asked(s)) return print_features(a, s, t->set, command, why);
    if (!s->final) return print_ranks(a, s, other_form, t->set, command, why);
    if (other_form || s->per_step || strcmp(s->phase, "all") || strcmp(s->startup, "auto"))
        return sr_fail(why, SR_USAGE, "--final has neither steps nor another definition");
    return a->print_final(t->set, s->site, command, why);
}

static sr_status choose(stat_table *t, sr_failure *why) {
    const analysis *a = t->program->self;
    const settings *s = t->settings;
    const analysis_form form = form_chosen(a, s->form);
    const bool vectors = form.from_vectors || strcmp(s->from, "vectors") == 0;
    /* every step is printed: the burn-in stays, unless a number was given */
    const bool keep = s->per_step && strcmp(s->startup, "auto") == 0;
    const run_set *own = a->custom || form.stat == recorded_statistics ? t->set : NULL;
    choice *c = &t->chosen;
    step_table *j = t->state;
    *j = (step_table){.set = t->set,
                      .chosen = c,
                      .source = vectors ? FROM_VECTORS : FROM_SCALARS,
                      .table = &t->table,
                      .buckets = s->buckets,
                      .intervals = s->intervals,
                      .parts = s->parts};
    sr_status status = choice_set_statistics(c, form.stat, a->statistics, own, s->stat, why);
    if (status != SR_OK) return status;
    if (!vectors) note_other_definitions(c, t->set, j->table);
    choice_note_own(c, t->set, false, j->table);
    tsv_note(j->table, "source", "/%s", vectors ? "vectors" : "scalars");
    status = choice_set_sites(c, t->set, s->site, j->source, j->table, why);
    if (status == SR_FORMAT && vectors && form_find(c->wanted[0]->name))
        sr_hint(why, "/vectors lack tokens and ||dx||: this form needs /scalars");
    else if (status == SR_FORMAT && a->hint)
        sr_hint(why, "%s", a->hint);
    if (s->per_step && j->buckets)
        tsv_note(j->table, "note",
                 "three rows for each 1/%lld of these steps: smallest, median, largest; of at most "
                 "%lld steps every row",
                 (long long)j->buckets, 3 * (long long)j->buckets);
    /* a summary has a cell for the statistic and no column with its definition */
    for (int i = 0; i < c->statistics && status == SR_OK && !s->per_step; i++)
        tsv_note(j->table, "statistic", "%s: %s", c->wanted[i]->name,
                 statistic_definition(c->wanted[i]));
    if (status == SR_OK)
        status = windows_make(&t->window, t->set, keep ? "0" : s->startup, s->phase, j->table, why);
    if (status == SR_OK) comparable_warn(c, j->table);
    j->window = t->window;
    return status;
}

static sr_status print_rows(stat_table *t, sr_failure *why) {
    const analysis *a = t->program->self;
    const settings *s = t->settings;
    if (s->per_step) return step_table_print(t->state, why);
    if (a->print_sites && strcmp(s->stat, a->default_stat) == 0)
        return a->print_sites(t->state, why);
    return print_summary(t->state, why);
}

int analysis_main(const analysis *a, int argc, char **argv) {
    option row[OPTIONS];
    char words[WORDS_SIZE] = ""; /* "paper|per-root|relative" */
    for (int i = 0; i < ANALYSIS_FORMS && a->form[i].word; i++)
        text_append(words, sizeof words, "|", a->form[i].word);
    const int options = make_options(a, words, row);
    const stat_program p = {.name = a->program,
                            .usage = "RUN.h5... [--site GLOB] [--stat LIST] [--per-step]",
                            .does = a->does,
                            .options = {row, options},
                            .settings = sizeof(settings),
                            .stat = a->stat,
                            .statistics = a->statistics,
                            .more_help = a->features_help,
                            .self = a,
                            .state = sizeof(step_table),
                            .other = print_other,
                            .head = choose,
                            .rows = print_rows};
    return stat_program_main(&p, argc, argv);
}
