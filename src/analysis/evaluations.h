/* evaluations.h -- metrics of a run at its evaluations, and the loss from running statistics
 * there. */
#ifndef ANALYSIS_EVALUATIONS_H
#define ANALYSIS_EVALUATIONS_H

#include "statrec/runfile.h"

enum { EVALUATION_METRICS = 3 };

typedef struct evaluations {
    int count;
    double *step, *epoch;              /* [count] steps increase */
    double *value[EVALUATION_METRICS]; /* [count] NaN: not recorded */
} evaluations;

/* Reads up to EVALUATION_METRICS metrics; a name that is NULL or that the run lacks gives NaN. Rows
 * of one step become one, since a host may write the metrics of a step one after another. Free it
 * after a failure too. */
sr_status evaluations_read(evaluations *e, const sr_runfile *run,
                           const char *const name[EVALUATION_METRICS], sr_failure *why);
/* Drops evaluations where one of the first `metrics` metrics is not finite. */
void evaluations_keep_finite(evaluations *e, int metrics);
void evaluations_free(evaluations *e);
/* How many of `count` evaluations are their first or last third: rounded up, so one at least. */
int evaluations_third(int count);

/* Name of the metric with batch statistics: NAME_batch. */
enum { BATCH_NAME = SR_NAME_SIZE + 8 };
void evaluations_batch_name(const char *name, char batch[BATCH_NAME]);

/* A metric that a run validated with running and with batch statistics:
 *
 *     gap = NAME - NAME_batch, its sign turned where more is better: above 0, running statistics
 *           are worse */
typedef struct running_gap {
    evaluations at; /* that have both; value: NAME, NAME_batch, gap */
    int half;       /* the first one in the second half of training (second_half_from) */
    /* Over those evaluations: the mean gap and Student's 95 % interval, NaN for fewer than 3.
     * Neighbouring evaluations belong to one run, so the interval is about this run. */
    double mean, low, high;
} running_gap;
sr_status running_gap_read(running_gap *g, const sr_runfile *run, const char *name,
                           sr_better better, sr_failure *why);

#endif
