/* shard_spread.h -- spread of batch statistics between the shards of a batch: `stat-distance
   --ranks`. */
#ifndef ANALYSIS_SHARD_SPREAD_H
#define ANALYSIS_SHARD_SPREAD_H

#include "analysis/frame/statistics_table.h"

/* Prints a whole table: a row for each run and site, or for each of their steps. */
sr_status shards_print(const shards_request *q, const run_set *set, const char *command,
                       sr_failure *why);

#endif
