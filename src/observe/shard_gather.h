/* shard_gather.h -- what every share of a batch found, from all processes. */
#ifndef OBSERVE_SHARD_GATHER_H
#define OBSERVE_SHARD_GATHER_H

#include "observe/observe.h"

/* Of every batch, over all processes. */
int shard_gather_count(const run_exchange *x);
/* (all processes) own [this process's shares, each] -> *all [shares, each] in the order of shares,
 * whichever process has them; to be freed, NULL on failure. */
sr_status shard_gather_shares(const run_exchange *x, const double *own, int64_t each, double **all,
                              sr_failure *why);

#endif
