/* norm_rows.h -- a batch as the normalization layers of a model see it: rows, mask, samples. */
#ifndef NORM_KERNELS_NORM_ROWS_H
#define NORM_KERNELS_NORM_ROWS_H

#include "engine/tape.h"

typedef enum {
    NORM_TRAIN,   /* batch statistics, running state advances */
    NORM_BATCH,   /* batch statistics, running state stays */
    NORM_RUNNING, /* inference: running statistics */
} norm_mode;

/* All-gather of a synchronized layer: fills all [ranks, width], which has this rank's row. NULL:
 * one process. Every rank calls it equally often with the same width, even without valid rows. */
typedef sr_status norm_gather_fn(void *context, double *all, int64_t width);

typedef struct norm_rows {
    int64_t rows;         /* all rows, padded ones too */
    int64_t valid;        /* n */
    const uint8_t *mask;  /* [rows], 1 = valid; NULL: all valid */
    const int32_t *index; /* [valid] numbers of the valid rows, rising; NULL: all valid */
    /* [rows] sample of each row, 0 .. samples-1, in any order; NULL: every row is a sample */
    const int32_t *sample;
    int64_t samples;
    norm_mode mode;
    /* NORM_RUNNING in training (norm_site_freeze). Hooks are called and also get batch statistics.
     * Running statistics are constants in both passes. */
    bool frozen;
    bool outside;    /* rows outside the batch: NORM_RUNNING stays, despite never_running */
    double tokens;   /* divisor of the loss (docs/norms.md 11, 14) */
    double *penalty; /* RBN adds its loss here; may be NULL */
    /* [features] mean over the valid rows of the position encoding added to them; NULL: none. For
     * hooks of sites with takes_positions. */
    const double *position_mean;
    norm_gather_fn *gather;
    void *gather_context;
    int rank, ranks; /* rank and number of ranks of gather */
} norm_rows;

/* Number of the i-th valid row. */
static inline int64_t norm_row_number(const norm_rows *r, int64_t i) {
    return r->index ? r->index[i] : i;
}

/* Fills rows, valid, mask and index from a mask (NULL: all valid). The index is in the tape's
 * memory. A mask of ones leaves mask and index NULL. Sets the mode and zeroes other fields. */
sr_status norm_rows_init(norm_rows *r, tape *t, int64_t rows, const uint8_t *mask, norm_mode mode);

#endif
