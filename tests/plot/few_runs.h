/* few_runs.h -- runs of few steps for the figures of tests: a bucket holds one step at most, so
 * each curve shows every value that an analysis prints. */
#ifndef TESTS_PLOT_FEW_RUNS_H
#define TESTS_PLOT_FEW_RUNS_H

#include <stdbool.h>

enum { FEW_STEPS = 20 };

/* Sites in the order of the forward pass: `stem` and `body` with batch statistics, `head` with
 * those of rows. norm "bn" or "pnv"; alpha: weight of the old running value; scale: of all
 * statistics; seed: of the noise; one_site: `stem` alone; no_gradient: without gradient norms. */
typedef struct few_run {
    const char *name, *norm;
    double alpha, scale;
    int seed;
    bool one_site, no_gradient;
} few_run;
void write_few_run(const few_run *run);

#endif
