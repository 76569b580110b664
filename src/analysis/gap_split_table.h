/* gap_split_table.h -- the rows of stat-gap --split: groups of runs against the first group. */
#ifndef ANALYSIS_GAP_SPLIT_TABLE_H
#define ANALYSIS_GAP_SPLIT_TABLE_H

#include "analysis/frame/stat_program.h"
#include "analysis/gap_split.h"
#include "analysis/runs/replicates.h"

#define GAP_SPLIT_EVALUATIONS "evaluations"
#define GAP_SPLIT_LAST_THIRD  "last-third"
enum { NO_REFERENCE = -1 };

typedef struct gap_splits {
    run_groups groups;
    const sr_run_metric *metric; /* metric of the first run */
    int *reference;              /* [runs]; NO_REFERENCE of references and of runs without one */
    gap_split *split;            /* [runs], against the reference; empty without one */
} gap_splits;

/* metric: names; the first one that the first run declares is used. rows: one of the two words
 * above. References are the first run and its replicates, by the seed. by_settings: references are
 * all runs with the normalization of the first run. Each other run has the reference with its task,
 * placement and settings, by the seed. A `#` line names runs without one. Free it after a failure
 * too. */
sr_status gap_splits_make(gap_splits *g, stat_table *t, const char *metric, const char *rows,
                          bool by_settings, sr_failure *why);
void gap_splits_columns(tsv *t, const char *rows);
sr_status gap_splits_rows(const gap_splits *g, stat_table *t, const char *rows, sr_failure *why);
/* Writes a `# intervals` line where pairs of a group share references. first: its first run. */
void gap_note_shared(tsv *table, const char *first, const char *reference, int pairs,
                     int references);
void gap_splits_free(gap_splits *g, int runs);

#endif
