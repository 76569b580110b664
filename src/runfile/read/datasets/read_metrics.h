/* read_metrics.h -- the metrics that a run file declares. */
#ifndef RUNFILE_READ_DATASETS_READ_METRICS_H
#define RUNFILE_READ_DATASETS_READ_METRICS_H

#include "runfile/read/file/reader.h"

typedef struct reader_metric {
    char name[SR_NAME_SIZE], unit[SR_NAME_SIZE], definition[SR_DEFINITION_SIZE];
    sr_better better;
    int64_t place; /* in the order of declaration */
    run_column column;
    sr_run_metric shown;
} reader_metric;

/* Fills f->metric. */
sr_status reader_list_metrics(sr_runfile *f, sr_failure *why);
/* Fails when a declared metric is missing. */
sr_status reader_check_metrics(const sr_runfile *f, sr_failure *why);
/* The column of /evals with this name, or NULL. */
const run_column *reader_eval_column(const sr_runfile *f, const char *name);

#endif
