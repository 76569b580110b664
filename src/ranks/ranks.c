/* ranks.c -- see ranks.h: common to one process and several. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/hash.h"
#include "ranks/ranks_private.h"

/* -- opening ----------------------------------------------------------------------------------- */

ranks *ranks_open_one(sr_failure *why) {
    ranks *k = calloc(1, sizeof *k);
    if (!k) {
        sr_fail(why, SR_MEMORY, "out of memory for the ranks");
        return NULL;
    }
    *k = (ranks){.kind = &ranks_alone, .count = 1, .neighbours = 1, .launcher = ""};
    snprintf(k->text, sizeof k->text, "1 rank");
    return k;
}

ranks *ranks_open(double seconds, sr_failure *why) {
    ranks *k = ranks_open_one(why);
    if (!k) return NULL;
    k->seconds = seconds;
    const int launched = ranks_launched(&k->launcher);
    sr_status status = SR_OK;
#ifdef USE_MPI
    status = ranks_mpi_open(k, why);
#endif
    if (status == SR_OK && (k->count > 1 || launched == 1)) return k;
    if (status == SR_OK) { /* separate processes would all write one file */
#ifdef USE_MPI
        sr_fail(why, SR_USAGE, "%s started %d processes, MPI found only this one", k->launcher,
                launched);
        if (strcmp(k->launcher, "srun") == 0)
            sr_hint(why, "try srun --mpi=pmix; srun --mpi=list shows others");
        else
            sr_hint(why, "the mpirun of the MPI that statrec was built with");
#else
        sr_fail(why, SR_USAGE, "%s started %d processes, but statrec was built without MPI",
                k->launcher, launched);
        sr_hint(why,
                "make MPI=1 builds one that trains in several (docs/train-on-several-ranks.md)");
#endif
    }
    free(k);
    return NULL;
}

void ranks_close(ranks *k, const sr_failure *failure) {
    if (!k) return;
    k->kind->close(k, failure);
    free(k);
}

int ranks_rank(const ranks *k) {
    return k->rank;
}

int ranks_count(const ranks *k) {
    return k->count;
}

const char *ranks_describe(const ranks *k) {
    return k->text;
}

/* -- exchanges --------------------------------------------------------------------------------- */

static sr_status check_whole(const ranks *k, sr_failure *why) {
    return k->broken ? sr_fail(why, SR_STATE, "the ranks have lost each other") : SR_OK;
}

/* After a failure no rank may wait again. */
static sr_status keep_broken(ranks *k, sr_status status) {
    k->broken |= status != SR_OK;
    return status;
}

sr_status ranks_allgather(ranks *k, double *all, int64_t width, sr_failure *why) {
    if (check_whole(k, why) != SR_OK) return SR_STATE;
    k->all_know = false; /* the run continued */
    return keep_broken(k, k->kind->gather(k, all, width, why));
}

sr_status ranks_broadcast(ranks *k, void *data, size_t bytes, sr_failure *why) {
    if (check_whole(k, why) != SR_OK) return SR_STATE;
    return keep_broken(k, k->kind->broadcast(k, 0, data, bytes, why));
}

sr_status ranks_agree(ranks *k, sr_status own, sr_failure *why) {
    char first_is_here = 0;
    if (k->count == 1 || k->broken) return own;
    if (ranks_broadcast(k, &first_is_here, 1, why) != SR_OK) return why->status;
    double *all = calloc((size_t)k->count, sizeof *all);
    if (!all) return sr_fail(why, SR_MEMORY, "out of memory for %d ranks", k->count);
    all[k->rank] = (double)own;
    sr_status status = ranks_allgather(k, all, 1, why);
    int failed = 0; /* the first rank that did */
    while (status == SR_OK && failed < k->count && all[failed] == 0) failed++;
    const bool none = failed == k->count;
    const sr_status theirs = none ? SR_OK : (sr_status)all[failed];
    free(all);
    if (status != SR_OK || none) return status;
    sr_failure told = {0};
    if (failed == k->rank) told = *why;
    status = keep_broken(k, k->kind->broadcast(k, failed, &told, sizeof told, why));
    if (status != SR_OK) return status;
    k->all_know = true;
    if (failed == k->rank) return own;
    *why = (sr_failure){0};
    if (failed > 0)
        sr_fail(why, theirs, "rank %d: %s", failed, told.text);
    else
        sr_fail(why, theirs, "%s", told.text);
    sr_hint(why, "%s", told.hint);
    return theirs;
}

sr_status ranks_compare(ranks *k, const char *text, const char *what, sr_failure *why) {
    if (k->count == 1) return SR_OK;
    double *all = calloc((size_t)k->count, sizeof *all);
    if (!all) return sr_fail(why, SR_MEMORY, "out of memory for %d ranks", k->count);
    all[k->rank] = (double)(hash_bytes(text, strlen(text)) >> 11); /* a double has 53 bits */
    sr_status status = ranks_allgather(k, all, 1, why);
    int other = 1;
    while (status == SR_OK && other < k->count && all[other] == all[0]) other++;
    free(all);
    if (status != SR_OK || other == k->count) return status;
    k->all_know = true;
    return sr_fail(why, SR_USAGE, "rank %d has other %s than rank 0", other, what);
}

/* -- transfers --------------------------------------------------------------------------------- */

ranks_transfer *ranks_send_pieces(ranks *k, const int *parts, real *const *own, int64_t length,
                                  sr_failure *why) {
    if (check_whole(k, why) != SR_OK) return NULL;
    ranks_transfer *t = calloc(1, sizeof *t);
    if (!t) {
        sr_fail(why, SR_MEMORY, "out of memory for a transfer");
        return NULL;
    }
    *t = (ranks_transfer){.ranks = k, .length = length, .parts = parts};
    for (int r = 0; r < k->count; r++) t->total += parts[r];
    t->width = piece_begins(t, k->rank + 1) - piece_begins(t, k->rank);
    t->piece = malloc((size_t)(t->total * t->width + 1) * sizeof *t->piece);
    if (!t->piece) sr_fail(why, SR_MEMORY, "out of memory for %d pieces", t->total);
    if (t->piece && keep_broken(k, k->kind->send(t, own, why)) == SR_OK) return t;
    ranks_transfer_free(t);
    return NULL;
}

bool ranks_pieces_here(ranks_transfer *t) {
    return t->ranks->kind->here(t);
}

real *ranks_pieces(ranks_transfer *t, int64_t *width) {
    *width = t->width;
    return t->piece;
}

sr_status ranks_return_pieces(ranks_transfer *t, real *to, sr_failure *why) {
    if (check_whole(t->ranks, why) != SR_OK) return SR_STATE;
    return keep_broken(t->ranks, t->ranks->kind->give_back(t, to, why));
}

sr_status ranks_finish(ranks_transfer *t, sr_failure *why) {
    if (check_whole(t->ranks, why) != SR_OK) return SR_STATE;
    return keep_broken(t->ranks, t->ranks->kind->finish(t, why));
}

void ranks_transfer_free(ranks_transfer *t) {
    if (!t) return;
    t->ranks->kind->free(t);
    free(t->piece);
    free(t);
}
