/* shard_gather.c -- see shard_gather.h. Numbers of shards differ by one between processes: each
 * process sends as many rows as the largest number. */
#include "observe/shard_gather.h"

#include <stdlib.h>
#include <string.h>

int shard_gather_count(const run_exchange *x) {
    return x->first[x->ranks];
}

static int shares_of(const run_exchange *x, int rank) {
    return x->first[rank + 1] - x->first[rank];
}

sr_status shard_gather_shares(const run_exchange *x, const double *own, int64_t each, double **all,
                              sr_failure *why) {
    int64_t most = 0;
    for (int k = 0; k < x->ranks; k++) most = shares_of(x, k) > most ? shares_of(x, k) : most;
    double *rows = *all = calloc((size_t)(x->ranks * most * each) + 1, sizeof *rows);
    if (!rows) return sr_fail(why, SR_MEMORY, "out of memory for %d shares", shard_gather_count(x));
    memcpy(rows + x->rank * most * each, own, (size_t)(shares_of(x, x->rank) * each) * sizeof *own);
    sr_status status = x->gather(x->context, rows, most * each);
    /* [ranks, most, each] -> [shards, each] in place: no row moves to the right */
    for (int k = 0; k < x->ranks && status == SR_OK; k++)
        memmove(rows + x->first[k] * each, rows + k * most * each,
                (size_t)(shares_of(x, k) * each) * sizeof *rows);
    if (status == SR_OK) return SR_OK;
    free(rows);
    *all = NULL;
    return status;
}
