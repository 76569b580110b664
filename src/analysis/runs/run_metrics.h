/* run_metrics.h -- the metrics that runs declare below /evals. */
#ifndef ANALYSIS_RUNS_RUN_METRICS_H
#define ANALYSIS_RUNS_RUN_METRICS_H

#include <stddef.h>

#include "analysis/runs/run_set.h"

/* The word for the metric that a run declares first among those with values: its task's metric. */
#define METRIC_LEADING "leading"
/* The default of --metric where two runs are compared. */
#define METRIC_USUAL "valid_loss"
/* The metric that a word names in a run; NULL if the run does not declare it. */
const sr_run_metric *metric_named(const sr_runfile *run, const char *word, size_t length);
/* As the first run that declares it does; NULL if none does. */
const sr_run_metric *metric_find(const run_set *set, const char *word, size_t length);
/* "less is better", "more is better" or ""; and the word alone, - for neither. */
const char *metric_direction(const sr_run_metric *m);
const char *metric_better(const sr_run_metric *m);
/* words: names separated by commas; usual: the option's default. Fails if the runs declare none of
 * them, notes the others; calls metric_warn for each. */
sr_status metric_check(const run_set *set, const char *words, const char *usual, tsv *table,
                       sr_failure *why);
/* Writes a `# warning:` line if runs declare one name with different units or directions. */
void metric_warn(const run_set *set, const char *word, size_t length, tsv *table);
/* The last finite value; NaN if the run has none. */
sr_status metric_read_last(const sr_runfile *run, const char *name, double *value, sr_failure *why);

#endif
