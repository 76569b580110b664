/* run_cache.h -- opens run files, and keeps complete ones open for later callers. */
#ifndef ANALYSIS_RUNS_RUN_CACHE_H
#define ANALYSIS_RUNS_RUN_CACHE_H

#include "statrec/runfile.h"

/* From now on run_close keeps complete runs open. Later callers of run_open get them, in this
 * process and in its forks; one caller at a time. A file that was replaced is opened anew. */
void run_cache_enable(void);
/* sr_run_open_beside and sr_run_close, through the cache if it is enabled. */
sr_runfile *run_open(const char *path, const sr_runfile *beside, sr_failure *why);
void run_close(sr_runfile *run);

#endif
