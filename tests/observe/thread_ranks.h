/* thread_ranks.h -- exchanges between the processes of a run, each a thread here, for tests that
 * have a record for each of them. */
#ifndef TESTS_OBSERVE_THREAD_RANKS_H
#define TESTS_OBSERVE_THREAD_RANKS_H

#include "observe/observe.h"

enum { THREAD_RANKS_MAX = 8 };

/* What an exchange does in the process that has this. */
typedef sr_status thread_ranks_fn(void *process, const run_exchange *x, sr_failure *why);

/* Calls it at the same time for process[ranks], shares first[k] .. first[k+1]-1 being those of
 * process k; all must succeed. */
void thread_ranks_call(int ranks, const int *first, thread_ranks_fn *call, void *const *process);

#endif
