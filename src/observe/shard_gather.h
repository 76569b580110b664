/* shard_gather.h -- gathers the statistics of every shard of a batch from all processes. */
#ifndef OBSERVE_SHARD_GATHER_H
#define OBSERVE_SHARD_GATHER_H

#include "observe/observe.h"

/* Number of shards of a batch, over all processes. */
int shard_gather_count(const run_exchange *x);
/* (all processes) own [this process's shards, each] -> *all [shards, each] in the order of shards;
 * malloc'd, NULL on failure. */
sr_status shard_gather_shares(const run_exchange *x, const double *own, int64_t each, double **all,
                              sr_failure *why);

#endif
