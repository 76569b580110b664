/* run_set.h -- the run files of one table: opens them and describes them in its head. */
#ifndef ANALYSIS_RUNS_RUN_SET_H
#define ANALYSIS_RUNS_RUN_SET_H

#include <stdint.h>

#include "base/program/tool.h"
#include "base/tsv.h"
#include "statrec/runfile.h"

typedef struct run_set {
    int count;
    sr_runfile **run; /* [count] */
    char **path;      /* [count], as the user gave them; borrowed from argv */
} run_set;

/* Opens paths[count]; reads RUN.h5.part where RUN.h5 does not exist. */
sr_status run_set_open(run_set *set, int count, char **paths, sr_failure *why);
/* The same; calls `opened`, unless NULL, for each run while it is open. Only a few of many runs
 * stay open: reading one later opens its file again. */
typedef void run_opened_fn(void *context, int i, const sr_runfile *run);
sr_status run_set_open_each(run_set *set, int count, char **paths, run_opened_fn *opened,
                            void *context, sr_failure *why);
void run_set_close(run_set *set);

/* Warns on standard error of damage that opening the run found. If a backup copy replaced the
 * damaged part, the numbers are right, but the file may soon be lost. Elsewhere a text is "" and a
 * number NaN, 0 or -1 (sr_run_open). */
void run_warn_damage(const tool *t, const sr_runfile *run);
/* The same for files that are not open; skips files that do not open. */
void run_warn_damage_paths(const tool *t, int count, char **paths);

/* Writes `# run:` lines, and a `# note:` line for each run that is not complete. */
void run_set_describe(const run_set *set, tsv *table);

/* Writes a `# note:` line for each run with vectors at some of its steps only; what: counts those
 * steps. */
void run_set_note_vectors(const run_set *set, const char *what, tsv *table);

/* Number of the n-th recorded step, from 1. For n = 0 the number before the first; past the end one
 * more for each. A host may leave gaps in its numbers, or count tokens. */
sr_status run_nth_step(const sr_runfile *run, int64_t n, int64_t *step, sr_failure *why);
/* Last step of a burn-in of that many passes. `statrec train` numbers passes, also in a copy of
 * later steps alone. In runs of other programs recorded steps are passes, however numbered. */
sr_status run_burn_in_end(const sr_runfile *run, int64_t passes, int64_t *step, sr_failure *why);
/* Last step of the run, 0 for an empty run. Percent of training is 100 * step / last step. */
sr_status run_last_step(const sr_runfile *run, int64_t *last, sr_failure *why);

#endif
