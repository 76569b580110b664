/* few_runs.h -- runs of few steps for the figures of tests. A bucket contains at most one step, so
 * each curve shows every value of its analysis. */
#ifndef TESTS_PLOT_FEW_RUNS_H
#define TESTS_PLOT_FEW_RUNS_H

#include <stdbool.h>

enum { FEW_STEPS = 20 };

/* Sites in forward order: `stem` and `body` with batch statistics, `head` with row statistics. norm
 * "bn" or "pnv"; alpha: weight of the old running value; scale: of all statistics. seed: noise
 * seed; one_site: only `stem`; no_gradient: without gradient norms. */
typedef struct few_run {
    const char *name, *norm;
    double alpha, scale;
    int seed;
    bool one_site, no_gradient;
} few_run;
void write_few_run(const few_run *run);

#endif
