/* compare_sample.h -- one series of stat-compare: its values in a window, and resamples of them. */
#ifndef STATNET_COMPARE_SAMPLE_H
#define STATNET_COMPARE_SAMPLE_H

#include "statnet/analysis.h"

enum { LEAST_STEPS = 20 };

/* What the user asked for. */
typedef struct sample_plan {
    double after;             /* percent of training that is left out at the beginning */
    int64_t resamples, block; /* block: steps, 0 = from the autocorrelation */
} sample_plan;

typedef struct sample {
    int64_t count, nonfinite, block;
    double *value;                 /* [count] finite, in the order of steps */
    double *drawn;                 /* [BOOTSTRAP_TAILS, resamples]; NULL below LEAST_STEPS */
    double exact[BOOTSTRAP_TAILS]; /* of the series itself */
} sample;

/* To be freed after a failure too. */
sr_status sample_make(sample *x, const sample_plan *plan, const series *of, const step_window *w,
                      rng random, sr_failure *why);
void sample_free(sample *x);

#endif
