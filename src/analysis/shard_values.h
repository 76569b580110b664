/* shard_values.h -- spread of batch statistics between shards (shard_spread.c): sites with several
 * shards, and their values as columns of any length.
 */
#ifndef ANALYSIS_SHARD_VALUES_H
#define ANALYSIS_SHARD_VALUES_H

#include "analysis/frame/step_range.h"

enum { SPREAD_MEAN, SPREAD_STD, EXPECTED, RATIO, ROWS, VALUES };

typedef struct shared_site {
    int64_t number, *of; /* its number; [shares] numbers of its shards, from 0 */
    int shares;
} shared_site;

typedef struct shared_run {
    const sr_runfile *run;
    const char *path;
    int64_t first, count, last; /* rows of /vectors; last step of the run */
    shared_site *site;          /* [sites] */
    int64_t sites, replicas;    /* chosen; all that the file has */
} shared_run;

/* Chooses sites of r->run by a list; shared_free after a failure too. */
sr_status shared_choose_sites(shared_run *r, const char *list, sr_failure *why);
void shared_free(shared_run *r);
/* Rows of /vectors in the window. */
sr_status shared_find_rows(shared_run *r, const step_window *w, sr_failure *why);

/* Rows first .. first + count - 1 of the chosen sites from number `site` on, into value [sites,
 * VALUES][count]; NaN if undefined. */
sr_status shared_measure(const shared_run *r, int64_t site, int64_t sites, int64_t first,
                         int64_t count, double *const *value, sr_failure *why);

#endif
