/* ranks.h -- the processes of one run, as MPI numbers them: 0 is the first, which writes the files.
 *
 * With MPI=1 mpirun or srun starts several ranks. Otherwise there is one, and every call returns at
 * once. Only the main thread calls (MPI_THREAD_FUNNELED).
 *
 * Calls marked (all) are made by every rank in the same order. They return SR_OK on every rank.
 * When a rank is gone, has failed or does not answer in time, they fail and name it. The run is
 * then over for all (ranks_close). A waiting rank sleeps between checks, so that there may be more
 * ranks than cores.
 */
#ifndef RANKS_RANKS_H
#define RANKS_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/real.h"
#include "statrec/base.h"

typedef struct ranks ranks;

/* (all) seconds: timeout of waiting for other ranks; 0: none. Fails if a launcher started several
 * processes of a program built without MPI. NULL on failure. */
ranks *ranks_open(double seconds, sr_failure *why);
/* Ends the run for this rank. failure: sent to the others, unless they have it; NULL: none. If a
 * rank has failed, the first rank ends all others. */
void ranks_close(ranks *k, const sr_failure *failure);

/* This process alone, whatever launched it. NULL on failure. */
ranks *ranks_open_one(sr_failure *why);

int ranks_rank(const ranks *k);
int ranks_count(const ranks *k);
/* "4 ranks on 2 hosts, Open MPI v4.1.4"; "1 rank". */
const char *ranks_describe(const ranks *k);
/* Threads of this rank: `wanted`; 0: its part of the host's cores that Slurm granted. */
int ranks_threads(const ranks *k, int wanted);
/* (all) text: a warning about the first rank with too many threads for its cores or with idle
 * cores; "": none, or no launcher. */
enum { RANKS_TEXT = 256 };
sr_status ranks_look_at_cores(ranks *k, int threads, char text[RANKS_TEXT], sr_failure *why);
/* This process's number by its launcher, without MPI; 0 without a launcher. */
int ranks_launched_rank(void);

/* (all) all [count, width]: this rank's row is given, the others are filled in. */
sr_status ranks_allgather(ranks *k, double *all, int64_t width, sr_failure *why);
/* (all) Copies data[bytes] of the first rank to every rank. The others wait without timeout while
 * it lives. */
sr_status ranks_broadcast(ranks *k, void *data, size_t bytes, sr_failure *why);
/* (all) SR_OK if `own` is on every rank. Otherwise *why is the first failed rank's on all. */
sr_status ranks_agree(ranks *k, sr_status own, sr_failure *why);
/* (all) Fails if a rank's text differs from rank 0's: "rank 2 has other ...". */
sr_status ranks_compare(ranks *k, const char *text, const char *what, sr_failure *why);

/* -- sums of gradients, computed while the caller continues */

/* Reduce-scatter and all-gather of a row of real numbers with one shard per rank. Every rank sends
 * each shard to its owner; the owner sends the result to all. */
typedef struct ranks_transfer ranks_transfer;

/* (all) parts[count]: rows that each rank sends. own [parts[rank]]: pointers to its rows [length],
 * which must stay until the end of the transfer. The owner receives ranks_pieces. NULL on
 * failure. */
ranks_transfer *ranks_send_pieces(ranks *k, const int *parts, real *const *own, int64_t length,
                                  sr_failure *why);
/* True when all shards have arrived; never waits. */
bool ranks_pieces_here(ranks_transfer *t);
/* The owner's shard of every row in the order of ranks, [sum of parts, *width]. */
real *ranks_pieces(ranks_transfer *t, int64_t *width);
/* (all, in the order of ranks_send_pieces) Sends the first row of ranks_pieces to all ranks, into
 * to [length]. */
sr_status ranks_return_pieces(ranks_transfer *t, real *to, sr_failure *why);
/* Waits for the end of the current step. */
sr_status ranks_finish(ranks_transfer *t, sr_failure *why);
void ranks_transfer_free(ranks_transfer *t);

#endif
