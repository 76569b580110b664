/* bootstrap.h -- 95 % bootstrap confidence intervals of autocorrelated series. */
#ifndef ANALYSIS_BOOTSTRAP_BOOTSTRAP_H
#define ANALYSIS_BOOTSTRAP_BOOTSTRAP_H

#include "analysis/columns/column_summary.h"
#include "base/rng.h"

enum { BOOTSTRAP_TAILS = 3 }; /* median, 99 % quantile, maximum */

/* Both are about the finite values of the one column of c, in the order of steps, n >= 1 of them. They read c
 * several times and keep little more than a byte for each value. */
/* Length of blocks that keep the dependence of neighbouring values; 0 and *why on failure. */
int64_t bootstrap_block(const column_source *c, int64_t n, double median, sr_failure *why);
/* result [BOOTSTRAP_TAILS, resamples] */
sr_status bootstrap_tails(const column_source *c, int64_t n, int64_t block, rng random,
                          int64_t resamples, double *result, sr_failure *why);
/* Percentile interval (95 %) of the median from a block bootstrap; NaN below 20 finite values. `finite` and `median`
 * describe the one column of c. */
sr_status summary_interval(const column_source *c, int64_t finite, double median, double *low,
                           double *high, sr_failure *why);
/* Two levels: result [BOOTSTRAP_TAILS, resamples] are means over as many runs as there are, drawn
 * with replacement, each with one of its resamples, drawn[r] [BOOTSTRAP_TAILS, resamples]. */
void bootstrap_runs(double *const *drawn, int runs, rng random, int64_t resamples, double *result);
/* Factor by which to widen an interval from few runs; 1 for one run, which has no spread. */
double bootstrap_widening(int runs, double level);
/* Student's 95 % interval of the mean: mean -+ t_{n-1} s / sqrt(n). NaN for n < 2 or a value that is
 * not finite. */
void student_interval(const double *value, int n, double *low, double *high);

#endif
