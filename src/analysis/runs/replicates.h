/* replicates.h -- groups of runs that have one configuration and different seeds. */
#ifndef ANALYSIS_RUNS_REPLICATES_H
#define ANALYSIS_RUNS_REPLICATES_H

#include <stdbool.h>

#include "analysis/runs/run_set.h"

typedef struct run_groups {
    int count;
    int *of; /* [runs of the set] group of each run; groups in the order of their first runs */
} run_groups;

/* alone: every run is a group. Free it after a failure too. */
sr_status run_groups_make(run_groups *g, const run_set *set, bool alone, sr_failure *why);
int run_groups_size(const run_groups *g, const run_set *set, int group);
/* Writes a `# group:` line for each group of several runs. */
void run_groups_describe(const run_groups *g, const run_set *set, tsv *table);
void run_groups_free(run_groups *g);

#endif
