/* plot_table_cache.h -- tables of an earlier analysis with the same words of the same files. */
#ifndef PLOT_PLOT_TABLE_CACHE_H
#define PLOT_PLOT_TABLE_CACHE_H

#include "plot/labels/plot_runs.h"
#include "plot/plot_process.h"

#define PLOT_TABLE_PREFIX ".table-" /* prefix of its file names */

/* Folders of the report that is being made, and of the one before, which need not exist. */
typedef struct plot_table_cache {
    const char *folder, *earlier;
    const plot_run *run; /* [runs] whose paths the words of a process borrow */
    int runs;
} plot_table_cache;

/* As plot_process_run_all, with each[count]. If an earlier process had the same program, words and
 * run files, its output comes from the cache. Else the output is kept. A run file is the same if
 * its size, its time of change and the checksum of its trailer are the same. A file without a valid
 * trailer is never the same. c NULL: runs them all. */
sr_status plot_table_cache_run(const plot_table_cache *c, const plot_process *p, int count,
                               sr_failure *each, sr_failure *why);

#endif
