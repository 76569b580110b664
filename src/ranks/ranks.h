/* ranks.h -- the processes of one run, as MPI numbers them: 0 is the first, which writes the files.
 *
 * With MPI=1 mpirun or srun starts several ranks. Otherwise there is one, and every call returns at
 * once. Only the main thread calls (MPI_THREAD_FUNNELED).
 *
 * Calls marked (all) are made by every rank in the same order. They return SR_OK on every rank.
 * When a rank is gone, has failed or does not answer in time, they fail and name it. The run is
 * then over for all (ranks_close). A rank that waits sleeps between two looks, so that more ranks
 * than cores do no harm.
 */
#ifndef RANKS_RANKS_H
#define RANKS_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"
#include "statrec/base.h"

typedef struct ranks ranks;

/* (all) seconds: how long a rank waits for the others before it gives up; 0: without end. Refused
 * where a launcher started several processes of a program that was built without MPI. NULL on
 * failure. */
ranks *ranks_open(double seconds, sr_failure *why);
/* The run is over for this rank. failure: what ended it here, told to the others, unless they know;
 * NULL: nothing. Where a rank has failed the first ends all of them. */
void ranks_close(ranks *k, const sr_failure *failure);

/* This process alone, whatever started it. NULL on failure. */
ranks *ranks_open_one(sr_failure *why);

int ranks_rank(const ranks *k);
int ranks_count(const ranks *k);
/* "4 ranks on 2 hosts, Open MPI v4.1.4"; "1 rank". */
const char *ranks_describe(const ranks *k);
/* Threads of this rank: `wanted`, or with 0 its part of the cores that Slurm gave the host. */
int ranks_threads(const ranks *k, int wanted);
/* (all) text: what is wrong with the cores of the first rank that has too many threads for them or
 * leaves some idle, "" where all is well, or nobody but the user started this process. */
enum { RANKS_TEXT = 256 };
sr_status ranks_look_at_cores(ranks *k, int threads, char text[RANKS_TEXT], sr_failure *why);
/* Number that a launcher gave this process, before MPI is asked; 0 without a launcher. */
int ranks_launched_rank(void);

/* (all) all [count, width]: this rank's row is there, the others' are filled in. */
sr_status ranks_allgather(ranks *k, double *all, int64_t width, sr_failure *why);
/* (all) data[bytes] of the first rank on every rank. The others wait for it however long it takes,
 * as long as it lives. */
sr_status ranks_broadcast(ranks *k, void *data, size_t bytes, sr_failure *why);
/* (all) SR_OK where `own` is on every rank. Otherwise the first rank that failed says why to
 * all. */
sr_status ranks_agree(ranks *k, sr_status own, sr_failure *why);
/* (all) Refused with the first rank whose text is not that of rank 0: "rank 2 has other ...". */
sr_status ranks_compare(ranks *k, const char *text, const char *what, sr_failure *why);

/* -- sums that are made while the caller goes on: gradients */

/* Reduce-scatter and all-gather of a row of real numbers with one shard per rank. Every rank sends
 * each shard to its owner; the owner sends the result to all. */
typedef struct ranks_transfer ranks_transfer;

/* (all) parts[count]: rows that each rank sends. own [parts[rank]]: pointers to its rows [length],
 * which stay until the transfer is over. What the owner gets: ranks_pieces. NULL on failure. */
ranks_transfer *ranks_send_pieces(ranks *k, const int *parts, real *const *own, int64_t length,
                                  sr_failure *why);
/* True when all pieces have come; never waits. */
bool ranks_pieces_here(ranks_transfer *t);
/* The owner's piece of every row in the order of ranks, [sum of parts, *width]. */
real *ranks_pieces(ranks_transfer *t, int64_t *width);
/* (all, in the order of ranks_send_pieces) The first row of ranks_pieces goes to all ranks, into
 * to [length]. */
sr_status ranks_return_pieces(ranks_transfer *t, real *to, sr_failure *why);
/* Waits until whichever of both steps was begun is over; *why as above. */
sr_status ranks_finish(ranks_transfer *t, sr_failure *why);
void ranks_transfer_free(ranks_transfer *t);

#endif
