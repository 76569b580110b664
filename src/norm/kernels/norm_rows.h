/* norm_rows.h -- one batch as every normalization layer of a model sees it: rows, their mask, their
 * samples. */
#ifndef NORM_KERNELS_NORM_ROWS_H
#define NORM_KERNELS_NORM_ROWS_H

#include "engine/tape.h"

typedef enum {
    NORM_TRAIN,   /* batch statistics, running state advances */
    NORM_BATCH,   /* batch statistics, running state stays */
    NORM_RUNNING, /* inference: running statistics */
} norm_mode;

/* Fills all [ranks, width] of a synchronised layer: this rank's row is there, those of the others
 * are wanted; NULL: one process. Every rank calls it the same number of times with the same width, a
 * rank without valid rows too. */
typedef sr_status norm_gather_fn(void *context, double *all, int64_t width);

typedef struct norm_rows {
    int64_t rows;          /* all rows, padded ones too */
    int64_t valid;         /* n */
    const uint8_t *mask;   /* [rows], 1 = valid; NULL: all valid */
    const int32_t *index;  /* [valid] numbers of the valid rows, ascending; NULL: all valid */
    const int32_t *sample; /* [rows] sample of each row, 0 .. samples-1, in any order; NULL: each
                              row is its own sample */
    int64_t samples;
    norm_mode mode;
    /* NORM_RUNNING in training (norm_site_freeze): hooks are called and get the statistics of the batch
     * too. The running statistics are constants in both passes. */
    bool frozen;
    bool outside;    /* of no batch of this pass: NORM_RUNNING stays, never_running or not */
    double tokens;   /* token count that the loss will be divided by (docs/norms.md 11, 14) */
    double *penalty; /* RBN adds its loss here; may be NULL */
    /* [features] mean over the valid rows of the position encoding that the model added to them;
     * NULL: none. For watchers of the sites that have takes_positions. */
    const double *position_mean;
    norm_gather_fn *gather;
    void *gather_context;
    int rank, ranks; /* of gather */
} norm_rows;

/* Fills rows, valid, mask, index from a mask (NULL: all valid); the index is memory of the tape.
 * A mask of ones leaves mask and index NULL. Other fields are zeroed, mode as given. */
sr_status norm_rows_init(norm_rows *r, tape *t, int64_t rows, const uint8_t *mask, norm_mode mode);

#endif
