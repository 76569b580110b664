/* The rows of stat-gap --split: a row per group of replicates and evaluation, or its last third.
 *
 * Values are means over the pairs of a group. Intervals (95 %) are those of paired_interval
 * (bootstrap.h). The mean of one pair's last third has the interval over its evaluations, which
 * does not cover other seeds.
 */
#include "analysis/gap_split_table.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "analysis/columns/column_summary.h"
#include "analysis/evaluations.h"
#include "analysis/runs/run_config.h"
#include "analysis/runs/run_identity.h"
#include "analysis/runs/run_metrics.h"

static bool is_last_third(const char *rows) {
    return strcmp(rows, GAP_SPLIT_LAST_THIRD) == 0;
}

void gap_splits_columns(tsv *t, const char *rows) {
    const bool thirds = is_last_third(rows);
    static const char *const interval[GAP_PARTS][2] = {
        {"training_low", "training_high"},
        {"generalization_low", "generalization_high"},
        {"discrepancy_low", "discrepancy_high"},
        {"total_low", "total_high"}};
    tsv_column(t, "run", "first run of the group");
    tsv_column(t, "given", "its number among the runs given, from 1");
    tsv_column(t, "reference", "what this run is compared with");
    tsv_column(t, "norm", "the first normalization among its sites");
    tsv_column(t, "pairs",
               "runs of the group that have a reference, of their seed if there is one");
    tsv_column(t, "metric", "name below /evals");
    tsv_column(t, "unit", "its unit");
    tsv_column(t, "step",
               thirds ? "first step of the last third of the evaluations"
                      : "step after which the evaluation was made");
    tsv_column(t, "epoch", "passes over the training data at this step");
    for (int p = 0; p < GAP_PARTS; p++) {
        tsv_column(t, gap_part_texts[p].name, gap_part_texts[p].definition);
        tsv_column(t, interval[p][0],
                   thirds ? "95 % interval of the mean: over pairs, of one pair over evaluations"
                          : "95 % interval of the mean over pairs; NaN for one");
        tsv_column(t, interval[p][1], "its upper end");
    }
    if (thirds)
        tsv_column(t, "loses_from",
                   "step of the evaluation from which total stays above 0; NaN if it does not at "
                   "the end");
}

/* Among the runs that may be the reference of `run`: the one with its seed, else the first. */
static int of_its_seed(const run_set *set, int run, const bool *may) {
    int best = NO_REFERENCE;
    for (int k = set->count - 1; k >= 0; k--)
        if (may[k]) best = k;
    for (int k = set->count - 1; k >= 0; k--)
        if (may[k] && sr_run_get_info(set->run[k])->seed == sr_run_get_info(set->run[run])->seed)
            best = k;
    return best;
}

/* A model without a decoder has no normalization of it that could differ. */
static bool same_norm(const run_identity *a, const run_identity *b) {
    const bool decoders = a->decoder[0] && b->decoder[0];
    return strcmp(a->norm, b->norm) == 0 && (!decoders || strcmp(a->decoder, b->decoder) == 0);
}

/* Whether two runs differ in their normalization and seed alone. */
static bool same_otherwise(const run_identity *a, const run_identity *b) {
    return strcmp(a->info->model, b->info->model) == 0 &&
           strcmp(a->info->data, b->info->data) == 0 && strcmp(a->task, b->task) == 0 &&
           strcmp(a->placement, b->placement) == 0 && run_distance(a, b) == 0;
}

/* may [runs], scratch */
static void find_references(gap_splits *g, stat_table *t, const run_identity *run, bool by_settings,
                            bool *may) {
    const run_set *set = t->set;
    for (int i = 0; i < set->count; i++) {
        const bool own = by_settings ? same_norm(&run[i], &run[0]) : g->groups.of[i] == 0;
        g->reference[i] = NO_REFERENCE;
        if (own) continue;
        for (int k = 0; k < set->count; k++)
            may[k] = by_settings ? same_norm(&run[k], &run[0]) && same_otherwise(&run[k], &run[i])
                                 : g->groups.of[k] == 0;
        g->reference[i] = of_its_seed(set, i, may);
        if (g->reference[i] == NO_REFERENCE)
            tsv_note(&t->table, "alone", "%s: no run of %s has its task and settings", set->path[i],
                     run[0].norm);
    }
}

static sr_status make_references(gap_splits *g, stat_table *t, bool by_settings, sr_failure *why) {
    const run_set *set = t->set;
    run_identity *run = malloc((size_t)set->count * sizeof *run);
    bool *may = malloc((size_t)set->count * sizeof *may);
    g->reference = malloc((size_t)set->count * sizeof *g->reference);
    const bool ok = run && may && g->reference;
    for (int i = 0; ok && i < set->count; i++) run_identify(&run[i], set->run[i], set->path[i]);
    if (ok) find_references(g, t, run, by_settings, may);
    free(may);
    free(run);
    return ok ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

/* Running text alone validates in batches of another size. Its parts by batch statistics then use
 * other numbers of rows than training. */
static void note_batches(stat_table *t, int run, const gap_split *split) {
    const sr_runfile *f = t->set->run[run];
    const double window = run_option_number(f, "tgt-len"),
                 own = run_option_number(f, "eval-tgt-len"),
                 rows = run_option_number(f, "eval-batch-size") * (own > 0 ? own : window),
                 training = run_option_number(f, "batch-size") * window;
    bool differs = false; /* from validation with running statistics */
    for (int e = 0; e < split->count; e++)
        differs |= isfinite(split->part[GAP_DISCREPANCY][e]) && split->part[GAP_DISCREPANCY][e];
    if (differs && isfinite(rows) && isfinite(training) && rows != training)
        tsv_note(&t->table, "batches",
                 "%s: statistics of a validation batch are of %.0f rows, of a training batch of "
                 "%.0f: generalization and discrepancy depend on that",
                 t->set->path[run], rows, training);
}

static bool is_pair_of(const gap_splits *g, int run, int group) {
    return g->groups.of[run] == group && g->reference[run] != NO_REFERENCE;
}

/* Keeps the evaluations at steps that `of` has too. Returns how many. */
static int keep_steps(gap_split *s, const gap_split *of) {
    int kept = 0;
    for (int e = 0, k = 0; e < s->count; e++) {
        while (k < of->count && of->step[k] < s->step[e]) k++;
        if (k == of->count || of->step[k] != s->step[e]) continue;
        s->step[kept] = s->step[e];
        s->epoch[kept] = s->epoch[e];
        for (int p = 0; p < GAP_PARTS; p++) {
            s->part[p][kept] = s->part[p][e];
            s->of_reference[p][kept] = s->of_reference[p][e];
        }
        kept++;
    }
    return s->count = kept;
}

/* Keeps, in each pair of a group, the evaluations that all of them have: the mean at each step is
 * over the same pairs. Returns their number. */
static int keep_common(gap_splits *g, stat_table *t, int group) {
    gap_split *first = NULL;
    for (int i = 0; i < t->set->count; i++) {
        if (!is_pair_of(g, i, group)) continue;
        if (!first) first = &g->split[i];
        keep_steps(first, &g->split[i]);
    }
    for (int i = 0; i < t->set->count; i++) {
        if (!is_pair_of(g, i, group)) continue;
        gap_split *pair = &g->split[i];
        const int of_runs = pair->of_runs, common = keep_steps(pair, first);
        if (common < of_runs)
            tsv_note(
                &t->table, "evaluations",
                "%s: %d of %d steps are used: those after which all pairs and their references "
                "evaluated; the last step is %.15g, the last that is used %.15g",
                t->set->path[i], common, of_runs, pair->last,
                common ? pair->step[common - 1] : NAN);
    }
    return first ? first->count : 0;
}

void gap_note_shared(tsv *table, const char *first, const char *reference, int pairs,
                     int references) {
    if (references == pairs) return;
    if (references > 1)
        tsv_note(table, "intervals",
                 "%s: its %d pairs share %d references: intervals of Cochran and Cox over the runs "
                 "and the "
                 "distinct references",
                 first, pairs, references);
    else
        tsv_note(table, "intervals",
                 "%s: its %d pairs share one reference, %s, whose seed does not average out: no "
                 "intervals. Give references of other seeds",
                 first, pairs, reference);
}

static void note_shared(const gap_splits *g, stat_table *t, int group) {
    int pairs = 0, references = 0, first = NO_REFERENCE;
    for (int i = 0; i < t->set->count; i++) {
        if (!is_pair_of(g, i, group)) continue;
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen = seen || (is_pair_of(g, k, group) && g->reference[k] == g->reference[i]);
        if (!pairs++) first = i;
        references += !seen;
    }
    if (pairs)
        gap_note_shared(&t->table, t->set->path[first], t->set->path[g->reference[first]], pairs,
                        references);
}

/* Reads the pairs; fails without a pair or without an evaluation in common. */
static sr_status read_pairs(gap_splits *g, stat_table *t, bool by_settings, sr_failure *why) {
    const run_set *set = t->set;
    int pairs = 0;
    sr_status status = make_references(g, t, by_settings, why);
    for (int i = 0; i < set->count && status == SR_OK; i++) {
        const int reference = g->reference[i];
        if (reference == NO_REFERENCE) continue;
        pairs++;
        tsv_note(&t->table, "pair", "%s against %s", set->path[i], set->path[reference]);
        status = gap_split_read(&g->split[i], set->run[i], set->run[reference], g->metric, why);
        if (status == SR_OK) note_batches(t, i, &g->split[i]);
    }
    int common = 0;
    for (int group = 0; group < g->groups.count && status == SR_OK; group++) {
        common += keep_common(g, t, group);
        note_shared(g, t, group);
    }
    if (status != SR_OK || common) return status;
    if (pairs)
        return sr_fail(why, SR_FORMAT,
                       "%s: no step after which all runs that are compared evaluated %s",
                       set->path[0], g->metric->name);
    return sr_fail(why, SR_USAGE,
                   by_settings ? "--same-settings: no run has the settings of another with the "
                                 "normalization of the first run"
                               : "--split compares other runs with the first one and its "
                                 "replicates: no other run is given");
}

sr_status gap_splits_make(gap_splits *g, stat_table *t, const char *metric, const char *rows,
                          bool by_settings, sr_failure *why) {
    const run_set *set = t->set;
    if (!is_last_third(rows) && strcmp(rows, GAP_SPLIT_EVALUATIONS) != 0)
        return sr_fail(why, SR_USAGE, "--split: %s or %s, not '%s'", GAP_SPLIT_EVALUATIONS,
                       GAP_SPLIT_LAST_THIRD, rows);
    g->split = calloc((size_t)set->count, sizeof *g->split);
    if (!g->split) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = metric_check(set, metric, METRIC_USUAL, &t->table, why);
    if (status == SR_OK) status = run_groups_make(&g->groups, set, false, why);
    if (status != SR_OK) return status;
    for (const char *at = metric; *at && !g->metric; at += at[strcspn(at, ",")] == ',') {
        g->metric = metric_named(set->run[0], at, strcspn(at, ","));
        at += strcspn(at, ",");
    }
    if (!g->metric || g->metric->better == SR_BETTER_NEITHER)
        return sr_fail(why, SR_FORMAT, "%s declares no metric of --metric %s with a direction",
                       set->path[0], metric);
    tsv_note(&t->table, "metric", "%s (%s, %s)", g->metric->name, g->metric->unit,
             metric_direction(g->metric));
    run_groups_describe(&g->groups, set, &t->table);
    return read_pairs(g, t, by_settings, why);
}

/* A group's mean over the pairs' own evaluations, with an interval. */
typedef struct split_row {
    int pairs;
    double step, epoch, mean[GAP_PARTS], low[GAP_PARTS], high[GAP_PARTS];
} split_row;

/* Mean of evaluations first to end - 1 of each pair. scratch: of all runs */
static split_row split_row_of(const gap_splits *g, const stat_table *t, int group, int first,
                              int end, const pairs_values *scratch) {
    const gap_split *only = NULL;
    split_row row = {0};
    for (int p = 0; p < GAP_PARTS; p++) {
        row.pairs = 0;
        for (int i = 0; i < t->set->count; i++) {
            if (!is_pair_of(g, i, group)) continue;
            const gap_split *split = &g->split[i];
            if (!only) only = split;
            const int at = row.pairs++;
            scratch->difference[at] = column_mean(split->part[p] + first, end - first);
            scratch->of_reference[at] = column_mean(split->of_reference[p] + first, end - first);
            scratch->reference[at] = g->reference[i];
        }
        row.mean[p] = column_mean(scratch->difference, row.pairs);
        if (row.pairs > 1)
            paired_interval(scratch, row.pairs, &row.low[p], &row.high[p]);
        else
            student_interval(only->part[p] + first, end - first, &row.low[p], &row.high[p]);
    }
    row.step = only->step[first];
    row.epoch = only->epoch[first];
    return row;
}

static int common_evaluations(const gap_splits *g, const stat_table *t, int group) {
    for (int i = 0; i < t->set->count; i++)
        if (is_pair_of(g, i, group)) return g->split[i].count;
    return 0;
}

/* The first step from which on the mean total stays above 0, by its interval if it has one. */
static double loses_from(const gap_splits *g, const stat_table *t, int group, int count,
                         const pairs_values *scratch) {
    double from = NAN;
    for (int e = count - 1; e >= 0; e--) {
        const split_row row = split_row_of(g, t, group, e, e + 1, scratch);
        if (!((isnan(row.low[GAP_TOTAL]) ? row.mean : row.low)[GAP_TOTAL] > 0)) break;
        from = row.step;
    }
    return from;
}

static void print_split_row(const gap_splits *g, stat_table *t, int group, const split_row *row) {
    int run = 0;
    while (!is_pair_of(g, run, group)) run++;
    const sr_run_metric *of_run =
        metric_named(t->set->run[run], g->metric->name, strlen(g->metric->name));
    tsv_text(&t->table, t->set->path[run]);
    tsv_int(&t->table, run + 1);
    tsv_text(&t->table, t->set->path[g->reference[run]]);
    tsv_text(&t->table, sr_run_main_norm(t->set->run[run]));
    tsv_int(&t->table, row->pairs);
    tsv_text(&t->table, g->metric->name);
    tsv_text(&t->table, of_run ? of_run->unit : g->metric->unit);
    tsv_real(&t->table, row->step);
    tsv_real(&t->table, row->epoch);
    for (int p = 0; p < GAP_PARTS; p++) {
        tsv_real(&t->table, row->mean[p]);
        tsv_real(&t->table, row->low[p]);
        tsv_real(&t->table, row->high[p]);
    }
}

static void print_group(const gap_splits *g, stat_table *t, int group, bool thirds,
                        const pairs_values *scratch) {
    const int count = common_evaluations(g, t, group);
    const int third = evaluations_third(count);
    for (int e = 0; e < count && !thirds; e++) {
        const split_row row = split_row_of(g, t, group, e, e + 1, scratch);
        print_split_row(g, t, group, &row);
    }
    if (!thirds || !count) return;
    const split_row row = split_row_of(g, t, group, count - third, count, scratch);
    print_split_row(g, t, group, &row);
    tsv_real(&t->table, loses_from(g, t, group, count, scratch));
}

sr_status gap_splits_rows(const gap_splits *g, stat_table *t, const char *rows, sr_failure *why) {
    pairs_values scratch;
    sr_status status = pairs_values_make(&scratch, t->set->count, why);
    for (int group = 0; group < g->groups.count && status == SR_OK; group++)
        print_group(g, t, group, is_last_third(rows), &scratch);
    pairs_values_free(&scratch);
    return status;
}

void gap_splits_free(gap_splits *g, int runs) {
    for (int i = 0; g->split && i < runs; i++) gap_split_free(&g->split[i]);
    free(g->split);
    free(g->reference);
    run_groups_free(&g->groups);
}
