/* analysis_metric.c -- the metrics of /evals. */
#include <math.h>
#include <string.h>

#include "statnet/analysis.h"

#define EVAL(name, unit, definition) {#name, unit, definition},
static const eval_metric metrics[] = {SR_EVALS(EVAL)};
enum { METRICS = sizeof metrics / sizeof metrics[0] };

const eval_metric *metric_find(const char *word, size_t length) {
    for (int i = 0; i < METRICS; i++)
        if (strlen(metrics[i].name) == length && strncmp(metrics[i].name, word, length) == 0)
            return &metrics[i];
    return NULL;
}

void metrics_help(FILE *out) {
    fprintf(out, "Metrics:\n");
    for (int i = 0; i < METRICS; i++)
        fprintf(out, "  %-20s %s (%s)\n", metrics[i].name, metrics[i].definition, metrics[i].unit);
    fprintf(out, "\n");
}

sr_status metric_read_last(const sr_runfile *run, const char *name, double *value,
                           sr_failure *why) {
    sr_status status = SR_OK;
    *value = NAN;
    if (!sr_run_has_eval(run, name)) return SR_OK;
    for (int64_t i = sr_run_get_info(run)->evals - 1; i >= 0 && status == SR_OK; i--) {
        status = sr_run_eval(run, name, i, 1, value, why);
        if (isfinite(*value)) break;
    }
    return status;
}
