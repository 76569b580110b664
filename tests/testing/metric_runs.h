/* metric_runs.h -- run files with metrics of their own, for tests of the recorder and of files that
   were altered. */
#ifndef TESTS_RECORD_METRIC_RUNS_H
#define TESTS_RECORD_METRIC_RUNS_H

#include "statrec/record.h"
#include "statrec/runfile.h"

/* sample_path(name), replaced; a step of it; and its complete end. */
sr_recorder *metrics_create(const char *name);
void metrics_put_step(sr_recorder *r, int64_t step);
void metrics_finish(sr_recorder *r);
extern const sr_finish metrics_complete;
/* Two evaluations of "wer" (less), "f1" (more) and "size" (neither), declared in this order, which
 * is not that of their names. */
void metrics_write(const char *name);

/* Of a column of the evaluations. */
double metrics_value(const sr_runfile *f, const char *name, int64_t row);

#endif
