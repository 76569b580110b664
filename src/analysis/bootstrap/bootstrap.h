/* bootstrap.h -- 95 % bootstrap confidence intervals of autocorrelated series. */
#ifndef ANALYSIS_BOOTSTRAP_BOOTSTRAP_H
#define ANALYSIS_BOOTSTRAP_BOOTSTRAP_H

#include <stdint.h>

#include "base/rng.h"
#include "statrec/base.h"

enum { BOOTSTRAP_TAILS = 3 }; /* median, 99 % quantile, maximum */

/* value [n] is finite and in the order of steps, n >= 1. */
/* Length of blocks that keep the dependence of neighbouring values; 0 and *why on failure. */
int64_t bootstrap_block(const double *value, int64_t n, double median, sr_failure *why);
/* Median, 99 % quantile and maximum of each resample: result [BOOTSTRAP_TAILS, resamples]. The same
 * for any number of threads. */
sr_status bootstrap_tails(const double *value, int64_t n, int64_t block, rng random,
                          int64_t resamples, double *result, sr_failure *why);
/* One of them, for less: result [resamples] is its row of bootstrap_tails. tail: 0 .. 2. */
sr_status bootstrap_tail(const double *value, int64_t n, int64_t block, int tail, rng random,
                         int64_t resamples, double *result, sr_failure *why);
/* Percentile interval (95 %) of the median of the finite values in value [count], from a block
 * bootstrap. NaN for fewer than 20. */
sr_status bootstrap_median(const double *value, int64_t count, double median, double *low,
                           double *high, sr_failure *why);
/* Two levels: each resample draws `runs` runs with replacement, and one resample of each. result
 * [BOOTSTRAP_TAILS, resamples] are their means; drawn[r] [BOOTSTRAP_TAILS, resamples]. */
void bootstrap_runs(double *const *drawn, int runs, rng random, int64_t resamples, double *result);
/* Factor that widens an interval from few runs; 1 for one run, which has no spread. */
double bootstrap_widening(int runs, double level);
/* Student's 95 % interval of the mean: mean -+ t_{n-1} s / sqrt(n). NaN for n < 2 or a value that
 * is not finite. */
void student_interval(const double *value, int n, double *low, double *high);

/* Pairs of a run and a reference. difference: run less reference; of_reference: the reference's own
 * value; reference: its number. [n] each */
typedef struct pairs_values {
    double *difference, *of_reference;
    int *reference;
} pairs_values;
/* Free it after a failure too. */
sr_status pairs_values_make(pairs_values *p, int n, sr_failure *why);
void pairs_values_free(pairs_values *p);
/* 95 % interval of the mean difference. Student's over the pairs if each has a reference of its
 * own. Pairs that share references are not independent: Cochran and Cox's then, over n runs and the
 * distinct references, each with its fraction of the pairs. NaN for one reference of several pairs:
 * its error does not average out. Returns the number of references. */
int paired_interval(const pairs_values *p, int n, double *low, double *high);

#endif
