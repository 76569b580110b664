/* thread_ranks.h -- exchanges between processes that are threads here, for tests with a record for
 * each process. */
#ifndef TESTS_OBSERVE_THREAD_RANKS_H
#define TESTS_OBSERVE_THREAD_RANKS_H

#include "observe/observe.h"

enum { THREAD_RANKS_MAX = 8 };

/* Runs in each process; `process` is its own context. */
typedef sr_status thread_ranks_fn(void *process, const run_exchange *x, sr_failure *why);

/* Calls `call` concurrently for process[ranks]; process k has shards first[k] .. first[k+1]-1. All
 * calls must succeed. */
void thread_ranks_call(int ranks, const int *first, thread_ranks_fn *call, void *const *process);

#endif
