/* Runs against the reference of their task: gap of a validation metric, discrepancy of the last
 * batch-normalized site, and number of sites with statistics over the batch. Regularized BN
 * (NeurIPS 2022) shows discrepancy against gap across tasks, and gap against the number of replaced
 * layers.
 *
 *     gap = value - reference, or reference - value if less is better:
 *           positive if the run is better than its reference; NaN if the metric has no direction
 *
 * A task: runs of one model and one data set (data, data-dir, source and target of the
 * configuration). References are the runs with the fewest batch sites (an LN run has none). A run
 * uses the reference whose configuration differs in the fewest lines. Among several it is the one
 * with its seed, then the first given one. So pre-norm goes with pre-norm and seed with seed. The
 * value is at the evaluation with the smallest valid_loss, as in stat-table (--pick last: the last
 * finite one). The discrepancy is measured at the last BN layer (--site last-bn of the other
 * analyses). It comes from the final pass, else it is the mean over the last tenth of the steps.
 * --phase takes the mean over the steps of a phase or half of training instead, without the
 * burn-in.
 *
 * Intervals cover replicates, runs that differ only in the seed (replicates.c): Student's interval
 * for the mean of the group. Gaps are paired by the references of the runs; runs that share some
 * have that of Cochran and Cox (paired_interval). A single run has no interval: its file does not
 * show the variation between runs.
 *
 * --split prints where runs lose (gap_split.c): training, generalization and discrepancy, whose sum
 * is the difference of the metric. The first run and its replicates are the references; each other
 * run is paired with the reference of its seed. With --same-settings, for runs of several tasks or
 * settings, the references are all runs with the first run's normalization. A run uses the one that
 * differs in normalization and seed alone. Groups of replicates have one row per evaluation, or one
 * for the last third of the evaluations.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "analysis/frame/stat_program.h"
#include "analysis/gap_split_table.h"
#include "analysis/runs/replicates.h"
#include "analysis/runs/run_config.h"
#include "analysis/runs/run_metrics.h"
#include "base/globs.h"
#include "table/table.h"

typedef struct settings {
    option_text metric, phase, startup, split, pick;
    bool same_settings;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    TEXT_OPTION("Choice", "metric", AT(metric), METRIC_USUAL,
                "use the first of these metrics that a run has", .value = "METRIC"),
    CHOICE_OPTION(
        "Choice", "pick", AT(pick), "best", "best|last",
        "take the metric at the evaluation with the smallest valid_loss, or at the last one"),
    TEXT_OPTION("Output", "split", AT(split), "",
                "print where runs lose against the first: training, generalization, discrepancy; "
                "for each of the evaluations or the mean of their last third",
                .value = "evaluations|last-third"),
    FLAG_OPTION("Output", "same-settings", AT(same_settings), "no",
                "with --split: compare each run with the one that has the first run's "
                "normalization and otherwise its own task and settings"),
    TEXT_OPTION(
        "Steps", "phase", AT(phase), "auto",
        "auto: discrepancies of the final pass, else of the last tenth of the steps; or use these "
        "steps: all, first-half, second-half, FROM:TO, or learning-rate phase N or last",
        .value = "PHASE"),
    TEXT_OPTION("Steps", "burn-in", AT(startup), "auto", "with a phase: " WINDOW_STARTUP_HELP,
                .value = "STEPS"),
};

/* -- configurations -------------------------------------------------------------------------- */

static size_t length_of_line(const char *line) {
    const size_t length = strcspn(line, "\n");
    return length + (line[length] == '\n');
}

/* Lines of a that b has not. Most are alike and in one order, where statrec wrote both. */
static int64_t count_other_lines(const char *a, const char *b) {
    int64_t other = 0;
    for (const char *there = b; options_skip_equal(&a, &there), *a; a += length_of_line(a)) {
        const size_t length = strcspn(a, "\n");
        const char *at = b;
        while (*at && (strncmp(at, a, length) != 0 || (at[length] && at[length] != '\n')))
            at += length_of_line(at);
        other += !*at && length;
        there += length_of_line(there);
    }
    return other;
}

/* -- one run --------------------------------------------------------------------------------- */

typedef struct result {
    const sr_run_info *info;
    const sr_run_metric *metric; /* NULL: the run declares none of those that were asked for */
    const char *norm, *tid_from;
    double value, tid[2]; /* tid: mean and variance, percent */
    double gap;
    int64_t sites, batch_sites, tid_site;
    int task, reference; /* numbers of a task, from 1; run, from 0 */
} result;

/* The first of the words with a finite value, else the last that the run declares. */
static sr_status read_metric(const settings *s, const sr_runfile *run, result *r, sr_failure *why) {
    const table_pick pick = strcmp(s->pick, "last") == 0 ? PICK_LAST : PICK_BEST;
    r->value = NAN;
    for (const char *at = s->metric; *at && !isfinite(r->value);) {
        const size_t length = strcspn(at, ",");
        const sr_run_metric *m = metric_named(run, at, length);
        at += length + (at[length] == ',');
        if (!m) continue;
        sr_status status = table_picked_value(run, m, pick, &r->value, why);
        if (status != SR_OK) return status;
        r->metric = m;
    }
    return SR_OK;
}

/* window: NULL for --phase auto. */
static sr_status read_result(const settings *s, const sr_runfile *run, const step_window *window,
                             result *r, sr_failure *why) {
    const sr_run_site *site;
    r->info = sr_run_get_info(run);
    r->norm = sr_run_main_norm(run);
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++) {
        if (globs_is_replica(site->name)) continue;
        r->sites++;
        r->batch_sites += sr_run_over_batch(site);
    }
    sr_status status = read_metric(s, run, r, why);
    /* PN has none */
    if (status == SR_OK) status = table_tid_site(run, true, &r->tid_site, why);
    if (status != SR_OK) return status;
    if (window) return table_tid_of_window(run, r->tid_site, window, r->tid, &r->tid_from, why);
    return table_tid(run, r->tid_site, r->tid, &r->tid_from, why);
}

/* -- tasks and references -------------------------------------------------------------------- */

static bool same_task(const sr_run_info *a, const sr_run_info *b) {
    static const char *const key[] = {"data-dir", "source", "target"};
    if (strcmp(a->model, b->model) != 0 || strcmp(a->data, b->data) != 0) return false;
    const bool trained = run_is_trained(a) && run_is_trained(b);
    for (int i = 0; i < 3 && trained; i++) {
        char one[512], other[512];
        options_line_value(a->config, key[i], one, sizeof one);
        options_line_value(b->config, key[i], other, sizeof other);
        if (strcmp(one, other) != 0) return false;
    }
    return true;
}

/* A run with the fewest batch sites is its own reference. */
static int find_reference(const result *r, int count, int of) {
    int best = of;
    int64_t fewest = r[of].batch_sites, least = INT64_MAX;
    for (int k = 0; k < count; k++)
        if (r[k].task == r[of].task && r[k].batch_sites < fewest) fewest = r[k].batch_sites;
    for (int k = 0; k < count && r[of].batch_sites > fewest; k++) {
        if (r[k].task != r[of].task || r[k].batch_sites != fewest) continue;
        const bool other_seed = r[k].info->seed != r[of].info->seed;
        const int64_t other =
            2 * count_other_lines(r[k].info->config, r[of].info->config) + other_seed;
        if (other >= least) continue;
        best = k;
        least = other;
    }
    return best;
}

/* -- intervals over replicates ---------------------------------------------------------------- */

typedef enum { OF_TID, OF_VALUE, OF_GAP, INTERVALS } interval_of;

/* Group g: each quantity's interval, and the number of runs. */
typedef struct replicates {
    int runs;
    double low[INTERVALS], high[INTERVALS];
} replicates;

/* A reference's gap to itself is 0 by definition, not by measurement. */
static double measured_gap(const result *all, int i) {
    return all[i].reference == i ? NAN : all[i].gap;
}

/* As the gap counts it: more is better. */
static double signed_value(const result *r) {
    return r->metric && r->metric->better == SR_BETTER_LESS ? -r->value : r->value;
}

/* scratch: of all runs */
static replicates replicates_of(const run_groups *groups, const run_set *set, const result *all,
                                int group, const pairs_values *scratch) {
    replicates found = {0};
    for (int q = 0; q < INTERVALS; q++) {
        found.runs = 0;
        for (int i = 0; i < set->count; i++) {
            const result *r = &all[i];
            if (groups->of[i] != group) continue;
            const int at = found.runs++;
            scratch->difference[at] = q == OF_GAP   ? measured_gap(all, i)
                                      : q == OF_TID ? r->tid[0] + r->tid[1]
                                                    : r->value;
            scratch->of_reference[at] = signed_value(&all[r->reference]);
            scratch->reference[at] = r->reference;
        }
        if (q == OF_GAP)
            paired_interval(scratch, found.runs, &found.low[q], &found.high[q]);
        else
            student_interval(scratch->difference, found.runs, &found.low[q], &found.high[q]);
    }
    return found;
}

/* Results of the runs, their groups of replicates, and what --split needs. */
typedef struct comparison {
    result *result; /* [runs] */
    run_groups groups;
    gap_splits splits;
} comparison;

/* Notes groups whose runs share references. scratch: of all runs */
static void note_shared(const comparison *c, stat_table *t, const pairs_values *scratch) {
    for (int group = 0; group < c->groups.count; group++) {
        int pairs = 0, first = 0;
        double low, high;
        for (int i = 0; i < t->set->count; i++) {
            if (c->groups.of[i] != group || isnan(measured_gap(c->result, i))) continue;
            if (!pairs) first = i;
            scratch->difference[pairs] = scratch->of_reference[pairs] = 0;
            scratch->reference[pairs++] = c->result[i].reference;
        }
        const int references = paired_interval(scratch, pairs, &low, &high);
        gap_note_shared(&t->table, t->set->path[first], t->set->path[c->result[first].reference],
                        pairs, references);
    }
}

/* -- the table ------------------------------------------------------------------------------- */

static void declare_columns(stat_table *table) {
    tsv *t = &table->table;
    const settings *s = table->settings;
    if (s->split[0]) {
        gap_splits_columns(t, s->split);
        return;
    }
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "task", "number of its task: model, data set, data-dir, source and target");
    tsv_column(t, "model", "model");
    tsv_column(t, "data", "data set");
    tsv_column(t, "norm", "the first normalization among its sites");
    tsv_column(t, "sites", "recorded sites");
    tsv_column(t, "batch_sites",
               "recorded sites whose normalization has statistics over the batch");
    tsv_column(t, "tid_site",
               "last of them with a discrepancy, without final norms of stacks (as --site "
               "last-bn); -: none");
    tsv_column(t, "tid_from",
               "final: mean over the final pass; steps: over the last tenth of them");
    tsv_column(t, "tid_mean", "its ||mu_B - mu||_2 / ||sqrt(sigma2)||_2, percent");
    tsv_column(t, "tid_var",
               "its ||sqrt(sigma2_B) - sqrt(sigma2)||_2 / ||sqrt(sigma2)||_2, percent");
    tsv_column(t, "tid_total", "tid_mean + tid_var, percent");
    tsv_column(t, "metric", "name below /evals; - where the run has none of those asked for");
    tsv_column(t, "unit", "its unit");
    tsv_column(t, "better", "which of two values is better: less, more, - for neither");
    tsv_column(t, "value",
               strcmp(s->pick, "last") == 0
                   ? "at the last evaluation with a finite value"
                   : "at the evaluation with the smallest valid_loss; without one, the best value");
    tsv_column(t, "reference",
               "run of this task with the fewest batch sites and the nearest configuration");
    tsv_column(
        t, "gap",
        "metric less that of the reference, in `unit`; positive where the run is better, the "
        "opposite of --split");
    tsv_column(t, "replicates", "runs that differ from this one in their seed alone, and itself");
    tsv_column(t, "tid_low",
               "95 % interval of the mean tid_total of the replicates, percent; NaN for one");
    tsv_column(t, "tid_high", "its upper end");
    tsv_column(t, "value_low", "95 % interval of the mean of the metric");
    tsv_column(t, "value_high", "its upper end");
    tsv_column(t, "gap_low", "95 % interval of the mean gap");
    tsv_column(t, "gap_high", "its upper end");
}

static void print_row(tsv *t, const run_set *set, const result *all, int i,
                      const replicates *group) {
    const result *r = &all[i];
    tsv_text(t, set->path[i]);
    tsv_int(t, r->task);
    tsv_text(t, r->info->model);
    tsv_text(t, r->info->data);
    tsv_text(t, r->norm);
    tsv_int(t, r->sites);
    tsv_int(t, r->batch_sites);
    tsv_text(t, r->tid_site < 0 ? "-" : sr_run_get_site(set->run[i], r->tid_site)->name);
    tsv_text(t, r->tid_from);
    tsv_real(t, r->tid[0]);
    tsv_real(t, r->tid[1]);
    tsv_real(t, r->tid[0] + r->tid[1]);
    tsv_text(t, r->metric ? r->metric->name : "-");
    tsv_text(t, r->metric ? r->metric->unit : "");
    tsv_text(t, r->metric ? metric_better(r->metric) : "-");
    tsv_real(t, r->value);
    tsv_text(t, set->path[r->reference]);
    tsv_real(t, r->gap);
    tsv_int(t, group->runs);
    for (int q = 0; q < INTERVALS; q++) {
        tsv_real(t, group->low[q]);
        tsv_real(t, group->high[q]);
    }
}

static sr_status print_rows(stat_table *t, sr_failure *why) {
    const settings *s = t->settings;
    const comparison *c = t->state;
    if (s->split[0]) return gap_splits_rows(&c->splits, t, s->split, why);
    pairs_values scratch;
    sr_status status = pairs_values_make(&scratch, t->set->count, why);
    for (int i = 0; i < t->set->count && status == SR_OK; i++) {
        const replicates group =
            replicates_of(&c->groups, t->set, c->result, c->groups.of[i], &scratch);
        print_row(&t->table, t->set, c->result, i, &group);
    }
    pairs_values_free(&scratch);
    return status;
}

/* -- the program ------------------------------------------------------------------------------ */

static sr_status compare_runs(stat_table *t, sr_failure *why) {
    const settings *s = t->settings;
    const run_set *set = t->set;
    comparison *c = t->state;
    bool any = false;
    if (s->same_settings && !s->split[0])
        return sr_fail(why, SR_USAGE, "--same-settings goes with --split");
    if (s->split[0])
        return gap_splits_make(&c->splits, t, s->metric, s->split, s->same_settings, why);
    result *r = c->result = calloc((size_t)set->count, sizeof *r);
    sr_status status = r ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK && strcmp(s->phase, "auto") != 0)
        status = windows_make(&t->window, set, s->startup, s->phase, NULL, why);
    for (int i = 0; i < set->count && status == SR_OK; i++) {
        status = read_result(s, set->run[i], t->window ? &t->window[i] : NULL, &r[i], why);
        any = any || isfinite(r[i].value);
    }
    if (status == SR_OK) status = metric_check(set, s->metric, METRIC_USUAL, &t->table, why);
    if (status != SR_OK) return status;
    if (!any)
        return sr_fail(why, SR_FORMAT, "%s%s has no finite value of %s", set->path[0],
                       set->count > 1 ? " (and no other run)" : "", s->metric);
    if (!t->window) table_note_steps(set, &t->table);
    for (int i = 0; t->window && i < set->count; i++)
        window_describe(&t->window[i], set->path[i], &t->table);
    for (int i = 0, tasks = 0; i < set->count; i++) {
        for (int k = 0; k < i && !r[i].task; k++)
            if (same_task(r[k].info, r[i].info)) r[i].task = r[k].task;
        if (!r[i].task) r[i].task = ++tasks;
    }
    for (int i = 0; i < set->count; i++) r[i].reference = find_reference(r, set->count, i);
    for (int i = 0; i < set->count; i++) {
        const result *from = &r[r[i].reference];
        const sr_run_metric *m = r[i].metric, *of = from->metric;
        const double more = r[i].value - from->value;
        r[i].gap = NAN;
        if (!m || !of || strcmp(m->name, of->name) != 0 || m->better != of->better) continue;
        if (m->better == SR_BETTER_LESS) r[i].gap = 0 - more;
        if (m->better == SR_BETTER_MORE) r[i].gap = more;
    }
    status = run_groups_make(&c->groups, set, false, why);
    if (status != SR_OK) return status;
    run_groups_describe(&c->groups, set, &t->table);
    pairs_values scratch;
    status = pairs_values_make(&scratch, set->count, why);
    if (status == SR_OK) note_shared(c, t, &scratch);
    pairs_values_free(&scratch);
    return status;
}

static void release(stat_table *t) {
    comparison *c = t->state;
    gap_splits_free(&c->splits, t->set->count);
    run_groups_free(&c->groups);
    free(c->result);
}

int main(int argc, char **argv) {
    static const stat_program p = {
        .name = "stat-gap",
        .usage = "RUN.h5... [--metric NAME[,NAME...]] [--phase PHASE]\n"
                 "REFERENCE.h5 RUN.h5... --split evaluations|last-third [--same-settings] "
                 "[--metric NAME]",
        .does = "A validation metric of each run against the reference run of its task, with the\n"
                "training-inference discrepancy of the last BN layer (tid_site). A batch site is "
                "one whose\n"
                "method takes statistics over the batch (/sites/axis).",
        .options = {rows, sizeof rows / sizeof rows[0]},
        .settings = sizeof(settings),
        .metrics = true,
        .state = sizeof(comparison),
        .head = compare_runs,
        .columns = declare_columns,
        .rows = print_rows,
        .release = release,
    };
    return stat_program_main(&p, argc, argv);
}
