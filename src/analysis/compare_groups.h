/* compare_groups.h -- groups of runs in stat-compare: quantiles of their series, and resamples. */
#ifndef ANALYSIS_COMPARE_GROUPS_H
#define ANALYSIS_COMPARE_GROUPS_H

#include "analysis/compare_sample.h"
#include "analysis/runs/replicates.h"

/* A statistic of a site of the first run. */
typedef struct compare_pair {
    const site_choice *first;
    int stat;
    int64_t row; /* its place in the table */
} compare_pair;

/* Pairs that are compared together: each run is read once for all of them. */
typedef struct compare_batch {
    const compare_pair *pair; /* [count] */
    int64_t count;
} compare_batch;

typedef struct compare_runs {
    const run_set *set;
    const choice *c;
    const step_window *window; /* [runs] */
    run_groups groups;
    compare_places places;
    sample_plan plan;
    uint64_t seed;
} compare_runs;

typedef struct group_sample {
    const site_choice *at; /* first run with it; NULL: no run has it */
    int runs;
    int64_t count, nonfinite, block; /* sums over the runs; the longest block */
    double *drawn;                   /* [BOOTSTRAP_TAILS, resamples]; NULL: too few steps */
    double exact[BOOTSTRAP_TAILS];
} group_sample;

/* Whether a run declares a custom scalar in the first run's unit. A ratio of numbers in different
 * units means nothing. */
bool compare_same_unit(const compare_runs *p, int run, int stat);
/* The site of a run that matches the pair's; NULL: none. */
const site_choice *compare_match(const compare_runs *p, const compare_pair *of, int run);
/* Reads each run of the group once, for all pairs. g [b->count], zeroed; free their `drawn` after a
 * failure too. Memory: values of a series for each pair, and resamples of them for each run. */
sr_status compare_read_group(const compare_runs *p, const compare_batch *b, int group,
                             group_sample *g, sr_failure *why);

/* Most threads for series of many rows; each thread has a copy of a series. */
enum { COMPARE_THREADS = 8 };
int compare_threads(int64_t rows);

#endif
