/* run_cache.h -- opens run files, or lends those that the caller's parent holds open. */
#ifndef ANALYSIS_RUNS_RUN_CACHE_H
#define ANALYSIS_RUNS_RUN_CACHE_H

#include "statrec/runfile.h"

/* From now on run_open lends these runs, in this process and in its forks; each to one caller at a
 * time. It does not lend unfinished runs. run [count] stays the caller's; count 0: lends none. */
void run_cache_offer(sr_runfile *const *run, int count);
/* sr_run_open_beside and sr_run_close, if no open run of this path is to be had. */
sr_runfile *run_open(const char *path, const sr_runfile *beside, sr_failure *why);
void run_close(sr_runfile *run);

#endif
