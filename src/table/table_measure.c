/* Measured values of a run, for a cell of a result table.
 *
 *     best   the metric at the evaluation with the smallest valid_loss among those with the metric;
 *            without valid_loss the metric's best by its direction, or the last
 *     last   the metric of the last evaluation with it
 *     bpc    valid_nll / ln 2
 *
 * A run has diverged if no valid_loss (best) or not the last one (last) is finite. TID is the mean
 * over the final pass, else over the last tenth of the recorded steps (at least one). A site that
 * was not recorded there has the TID of the last step at which it was. It is in percent, at the
 * last BN layer with a value (--site last-bn).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/evaluations.h"
#include "analysis/frame/site_selection.h"
#include "analysis/runs/run_metrics.h"
#include "base/globs.h"
#include "table/table.h"

/* -- metrics --------------------------------------------------------------------------------- */

static const char *dataset_of(const char *metric) {
    return strcmp(metric, "bpc") == 0 ? "valid_nll" : metric;
}

const sr_run_metric *table_run_find_metric(const run_identity *r, const char *metric) {
    return sr_run_find_metric(r->run, dataset_of(metric));
}

bool table_metric_agrees(const char *metric, const char *papers) {
    const bool valid = strncmp(metric, "valid_", 6) == 0, test = strncmp(metric, "test_", 5) == 0;
    const char *plain = metric + (valid ? 6 : test ? 5 : 0);
    return strcmp(papers, "metric") == 0 || strcmp(plain, papers) == 0;
}

/* A run may declare metrics without a finite value. */
static sr_status has_metric(const run_identity *r, const char *metric, bool *has, sr_failure *why) {
    double value;
    sr_status status = metric_read_last(r->run, dataset_of(metric), &value, why);
    *has = status == SR_OK && isfinite(value);
    return status;
}

sr_status table_run_leading_metric(const run_identity *r, run_word metric, sr_failure *why) {
    sr_status status = SR_OK;
    const sr_run_metric *m;
    for (int64_t i = 0; status == SR_OK && (m = sr_run_get_metric(r->run, i)); i++) {
        bool has;
        status = has_metric(r, m->name, &has, why);
        if (has) snprintf(metric, sizeof(run_word), "%s", m->name);
        if (has) return status;
    }
    metric[0] = 0;
    return status;
}

sr_status table_run_metric(const run_identity *r, const char *names, run_word metric,
                           sr_failure *why) {
    sr_status status = SR_OK;
    for (const char *at = names; *at && status == SR_OK;) {
        const size_t length = strcspn(at, ",");
        bool has;
        snprintf(metric, sizeof(run_word), "%.*s", (int)length, at);
        status = has_metric(r, metric, &has, why);
        if (has) return status;
        at += length + (at[length] == ',');
    }
    metric[0] = 0;
    return status;
}

/* The evaluation with the least `by`; the last one if `by` is NULL. -1: none has the metric. */
static int pick_evaluation(const double *by, const double *value, int evals) {
    int chosen = -1;
    for (int i = 0; i < evals; i++) {
        if (!isfinite(value[i]) || (by && isnan(by[i]))) continue;
        if (!by || chosen < 0 || by[i] < by[chosen]) chosen = i;
    }
    return chosen;
}

sr_status table_last_value(const sr_runfile *run, const char *name, double *value,
                           sr_failure *why) {
    double step = NAN, last = NAN;
    sr_status status = SR_OK;
    *value = NAN;
    if (!sr_run_has_eval(run, name)) return SR_OK;
    for (int64_t i = sr_run_get_info(run)->evals - 1; i >= 0 && !isfinite(*value); i--) {
        status = sr_run_eval(run, "step", i, 1, &step, why);
        if (status != SR_OK || (!isnan(last) && step != last)) break;
        last = step;
        status = sr_run_eval(run, name, i, 1, value, why);
        if (status != SR_OK) break;
    }
    return status;
}

/* by [evals] so that the least is the metric's own best; NULL without a direction. */
static const double *own_order(sr_better better, const double *value, int evals, double *by) {
    for (int i = 0; i < evals; i++) by[i] = better == SR_BETTER_LESS ? value[i] : -value[i];
    return better == SR_BETTER_NEITHER ? NULL : by;
}

sr_status table_picked_value(const sr_runfile *run, const sr_run_metric *metric, table_pick pick,
                             double *value, sr_failure *why) {
    evaluations e;
    *value = NAN;
    const sr_status status =
        evaluations_read(&e, run, (const char *[]){"valid_loss", metric->name, NULL}, why);
    double *loss = e.value[0], *of = e.value[1];
    int at = -1;
    if (status == SR_OK) at = pick_evaluation(pick == PICK_LAST ? NULL : loss, of, e.count);
    if (status == SR_OK && at < 0) /* no validation loss at any evaluation of the metric */
        at = pick_evaluation(own_order(metric->better, of, e.count, loss), of, e.count);
    if (at >= 0) *value = of[at];
    evaluations_free(&e);
    return status;
}

/* No validation loss is finite; of PICK_LAST, the last one is not. loss [evals]: scratch */
static sr_status has_diverged(const sr_runfile *run, table_pick pick, double *loss, bool *diverged,
                              sr_failure *why) {
    const int64_t evals = sr_run_get_info(run)->evals;
    bool any = false;
    double last = 0;
    *diverged = false;
    if (!sr_run_has_eval(run, "valid_loss")) return SR_OK;
    sr_status status = sr_run_eval(run, "valid_loss", 0, evals, loss, why);
    for (int64_t i = 0; i < evals && status == SR_OK; i++) any = any || isfinite(loss[i]);
    if (status == SR_OK && pick == PICK_LAST)
        status = table_last_value(run, "valid_loss", &last, why);
    *diverged = !any || !isfinite(last);
    return status;
}

/* memory [evals] */
static sr_status measure_in(const run_identity *r, const char *metric, table_pick pick,
                            double *memory, measurement *m, sr_failure *why) {
    const sr_run_metric *declared = table_run_find_metric(r, metric);
    double value = NAN;
    bool diverged;
    sr_status status = has_diverged(r->run, pick, memory, &diverged, why);
    if (status == SR_OK && diverged) {
        m->state = MEASURED_DIVERGED;
        return SR_OK;
    }
    if (status != SR_OK || !declared || !sr_run_has_eval(r->run, declared->name)) return status;
    status = table_picked_value(r->run, declared, pick, &value, why);
    if (status != SR_OK || !isfinite(value)) return status;
    *m = (measurement){MEASURED_VALUE, strcmp(metric, "bpc") == 0 ? value / log(2) : value};
    return SR_OK;
}

sr_status table_run_measure(const run_identity *r, const char *metric, table_pick pick,
                            measurement *m, sr_failure *why) {
    const int64_t evals = r->info->evals;
    *m = (measurement){MEASURED_NONE, NAN};
    if (!evals || !metric[0]) return SR_OK;
    double *memory = malloc((size_t)evals * sizeof *memory);
    if (!memory) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = measure_in(r, metric, pick, memory, m, why);
    free(memory);
    return status;
}

/* -- discrepancy ----------------------------------------------------------------------------- */

static const statistic tid[] = {{"mean", "tid_mean", NULL, 0, NULL, NULL},
                                {"var", "tid_var", NULL, 0, NULL, NULL}};

int64_t table_last_tenth(int64_t steps) {
    return steps < 10 ? 1 : steps / 10;
}

bool table_has_startup(const sr_runfile *run) {
    const int64_t steps = sr_run_get_info(run)->steps;
    return steps - table_last_tenth(steps) < sr_run_startup(run);
}

sr_status table_tid_site(const sr_runfile *run, bool last_bn, int64_t *site, sr_failure *why) {
    const int64_t sites = sr_run_get_info(run)->sites;
    bool *recorded = calloc((size_t)sites + 1, sizeof *recorded);
    if (!recorded) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = series_recorded(run, &tid[0], FROM_SCALARS, recorded, why);
    *site = -1;
    const bool only_observes = choice_only_observes(run);
    for (int64_t i = 0; i < sites && status == SR_OK; i++)
        if (recorded[i] && !globs_is_replica(sr_run_get_site(run, i)->name) &&
            (!last_bn || choice_is_bn_layer(sr_run_get_site(run, i), only_observes)))
            *site = i;
    free(recorded);
    return status;
}

static sr_status tid_of_rows(const sr_runfile *run, int64_t site, int64_t first, int64_t count,
                             double value[2], sr_failure *why) {
    value[0] = value[1] = NAN;
    if (site < 0 || count < 1) return SR_OK;
    double *column = malloc((size_t)count * sizeof *column);
    sr_status status = column ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int k = 0; k < 2 && status == SR_OK; k++) {
        const series s = {run, site, &tid[k], FROM_SCALARS};
        summary mean;
        status = series_read(&s, first, count, column, NULL, why);
        if (status != SR_OK) break;
        summary_make(column, count, &mean);
        value[k] = 100 * mean.mean;
    }
    free(column);
    return status;
}

/* The rows of the last tenth; if the site was not recorded there, the last one at which it was. */
static sr_status last_tid_rows(const sr_runfile *run, int64_t site, int64_t *first, int64_t *count,
                               sr_failure *why) {
    const series s = {.run = run, .site = site, .source = FROM_SCALARS};
    const int64_t steps = series_length(&s);
    int64_t row = -1;
    *count = steps ? table_last_tenth(steps) : 0;
    *first = steps - *count;
    sr_status status = site < 0 ? SR_OK : series_recorded_row(&s, steps - 1, -1, &row, why);
    if (row >= 0 && row < *first) *first = row, *count = 1;
    return status;
}

sr_status table_tid_of_steps(const sr_runfile *run, int64_t site, double value[2],
                             sr_failure *why) {
    int64_t first, count;
    sr_status status = last_tid_rows(run, site, &first, &count, why);
    return status == SR_OK ? tid_of_rows(run, site, first, count, value, why) : status;
}

sr_status table_tid_of_window(const sr_runfile *run, int64_t site, const step_window *w,
                              double value[2], const char **from, sr_failure *why) {
    const series s = {run, site, &tid[0], FROM_SCALARS};
    int64_t first = 0, count = 0;
    sr_status status = site < 0 ? SR_OK : window_rows(w, &s, &first, &count, why);
    *from = site < 0 ? "-" : "steps";
    return status == SR_OK ? tid_of_rows(run, site, first, count, value, why) : status;
}

/* Whether the last site was not recorded in the last tenth of the steps. */
static bool lacks_last_tid(const sr_runfile *run) {
    int64_t site, first, count;
    sr_failure unread; /* the table reports it */
    const int64_t steps = sr_run_get_info(run)->steps;
    return table_tid_site(run, false, &site, &unread) == SR_OK && site >= 0 &&
           last_tid_rows(run, site, &first, &count, &unread) == SR_OK && first + count < steps;
}

void table_note_steps(const run_set *set, tsv *table) {
    for (int r = 0; r < set->count; r++) {
        const int64_t steps = sr_run_get_info(set->run[r])->steps, last = table_last_tenth(steps);
        if (steps == 0) continue;
        tsv_note(table, "steps",
                 "%s: losses and discrepancies over the last %lld of %lld steps%s%s", set->path[r],
                 (long long)last, (long long)steps,
                 table_has_startup(set->run[r]) ? "; includes the burn-in" : "",
                 lacks_last_tid(set->run[r])
                     ? "; a site without a discrepancy there: at its last step with one"
                     : "");
    }
}

/* NaN where the run made no final pass. */
static sr_status tid_of_final(const sr_runfile *run, int64_t site, double value[2],
                              sr_failure *why) {
    const int64_t sites = sr_run_get_info(run)->sites;
    int64_t batches;
    double *final[SR_FINAL_COUNT];
    value[0] = value[1] = NAN;
    double *all = malloc((size_t)(SR_FINAL_COUNT * sites + 1) * sizeof *all);
    if (!all) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < SR_FINAL_COUNT; i++) final[i] = all + i * sites;
    sr_status status = sr_run_final(run, &batches, final, why);
    if (status == SR_OK && batches >= 0) {
        value[0] = 100 * final[SR_FINAL_tid_mean][site];
        value[1] = 100 * final[SR_FINAL_tid_var][site];
    }
    free(all);
    return status;
}

sr_status table_tid(const sr_runfile *run, int64_t site, double value[2], const char **from,
                    sr_failure *why) {
    value[0] = value[1] = NAN;
    *from = "-";
    if (site < 0) return SR_OK;
    sr_status status = tid_of_final(run, site, value, why);
    *from = "final";
    if (status != SR_OK || !isnan(value[0])) return status;
    *from = "steps";
    return table_tid_of_steps(run, site, value, why);
}

sr_status table_run_tid(const run_identity *r, measurement m[2], sr_failure *why) {
    double value[2];
    int64_t site;
    const char *from;
    m[0] = m[1] = (measurement){MEASURED_NONE, NAN};
    sr_status status = table_tid_site(r->run, true, &site, why);
    if (status == SR_OK) status = table_tid(r->run, site, value, &from, why);
    if (status != SR_OK) return status;
    for (int k = 0; k < 2; k++)
        if (isfinite(value[k])) m[k] = (measurement){MEASURED_VALUE, value[k]};
    return SR_OK;
}
