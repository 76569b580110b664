/* gap_split.h -- the difference of two runs in a metric, cut into three parts that add up. */
#ifndef ANALYSIS_GAP_SPLIT_H
#define ANALYSIS_GAP_SPLIT_H

#include "statrec/runfile.h"

typedef enum { GAP_TRAINING, GAP_GENERALIZATION, GAP_DISCREPANCY, GAP_TOTAL, GAP_PARTS } gap_part;

/* Name and definition of a part, as a column of a table. */
typedef struct gap_part_text {
    const char *name, *definition;
} gap_part_text;
extern const gap_part_text gap_part_texts[GAP_PARTS];

/* The evaluations that two runs made after the same steps. */
typedef struct gap_split {
    int count;
    int of_runs;             /* steps after which at least one of them evaluated */
    double last;             /* the last of these steps; NaN: none */
    double *step, *epoch;    /* [count] */
    double *part[GAP_PARTS]; /* [count], positive where `run` is worse; NaN where not recorded */
    double
        *of_reference[GAP_PARTS]; /* [count], the reference's own: the run's is the sum of both */
} gap_split;

/* metric: a validation metric that both runs declare, with a direction. Free it after a failure
 * too. Returns SR_MEMORY, or the status of a read that failed. */
sr_status gap_split_read(gap_split *split, const sr_runfile *run, const sr_runfile *reference,
                         const sr_run_metric *metric, sr_failure *why);
void gap_split_free(gap_split *split);

#endif
