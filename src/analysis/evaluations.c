/* evaluations.c -- see evaluations.h. One reader for statrec diagnose, stat-curve --gap and
 * stat-gap --split. */
#include "analysis/evaluations.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "analysis/columns/column_summary.h"
#include "analysis/frame/step_range.h"
#include "analysis/runs/run_set.h"

enum { COLUMNS = 2 + EVALUATION_METRICS };

static double *column_at(const evaluations *e, int i) {
    return i == 0 ? e->step : i == 1 ? e->epoch : e->value[i - 2];
}

int evaluations_third(int count) {
    return (count + 2) / 3;
}

static sr_status read_column(const sr_runfile *run, const char *name, int64_t count, double *value,
                             sr_failure *why) {
    if (name && (strcmp(name, "step") == 0 || sr_run_has_eval(run, name)))
        return sr_run_eval(run, name, 0, count, value, why);
    for (int64_t i = 0; i < count; i++) value[i] = NAN;
    return SR_OK;
}

static void join_rows_of_a_step(evaluations *e) {
    int kept = 0;
    for (int i = 0; i < e->count; i++) {
        const bool again = kept && e->step[kept - 1] == e->step[i];
        const int at = again ? kept - 1 : kept++;
        for (int c = 0; c < COLUMNS; c++) {
            double *column = column_at(e, c);
            if (!again || isfinite(column[i])) column[at] = column[i];
        }
    }
    e->count = kept;
}

sr_status evaluations_read(evaluations *e, const sr_runfile *run,
                           const char *const name[EVALUATION_METRICS], sr_failure *why) {
    const char *const column[COLUMNS] = {"step", "epoch", name[0], name[1], name[2]};
    const int64_t n = sr_run_get_info(run)->evals;
    double *memory = malloc(COLUMNS * (size_t)(n + 1) * sizeof *memory);
    *e = (evaluations){.count = (int)n, .step = memory};
    if (!memory) return sr_fail(why, SR_MEMORY, "out of memory");
    e->epoch = memory + n;
    for (int m = 0; m < EVALUATION_METRICS; m++) e->value[m] = memory + (2 + m) * n;
    sr_status status = SR_OK;
    for (int c = 0; c < COLUMNS && status == SR_OK; c++)
        status = read_column(run, column[c], n, column_at(e, c), why);
    if (status == SR_OK) join_rows_of_a_step(e);
    return status;
}

void evaluations_keep_finite(evaluations *e, int metrics) {
    int kept = 0;
    for (int i = 0; i < e->count; i++) {
        bool finite = true;
        for (int m = 0; m < metrics; m++) finite = finite && isfinite(e->value[m][i]);
        if (!finite) continue;
        for (int c = 0; c < COLUMNS; c++) column_at(e, c)[kept] = column_at(e, c)[i];
        kept++;
    }
    e->count = kept;
}

void evaluations_free(evaluations *e) {
    free(e->step);
    *e = (evaluations){0};
}

void evaluations_batch_name(const char *name, char batch[BATCH_NAME]) {
    snprintf(batch, BATCH_NAME, "%s_batch", name);
}

sr_status running_gap_read(running_gap *g, const sr_runfile *run, const char *name,
                           sr_better better, sr_failure *why) {
    char batch[BATCH_NAME];
    int64_t last = 0;
    evaluations_batch_name(name, batch);
    *g = (running_gap){.mean = NAN, .low = NAN, .high = NAN};
    sr_status status = evaluations_read(&g->at, run, (const char *[]){name, batch, NULL}, why);
    if (status == SR_OK) status = run_last_step(run, &last, why);
    if (status != SR_OK) return status;
    evaluations_keep_finite(&g->at, 2);
    double *const *value = g->at.value;
    for (int i = 0; i < g->at.count; i++)
        value[2][i] =
            better == SR_BETTER_MORE ? value[1][i] - value[0][i] : value[0][i] - value[1][i];
    while (g->half < g->at.count && g->at.step[g->half] < (double)second_half_from(last)) g->half++;
    const int n = g->at.count - g->half;
    g->mean = column_mean(value[2] + g->half, n);
    if (n > 2) student_interval(value[2] + g->half, n, &g->low, &g->high);
    return SR_OK;
}
