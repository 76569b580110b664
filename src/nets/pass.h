/* pass.h -- one pass of a batch through a model: the argument of its forward function. */
#ifndef NETS_PASS_H
#define NETS_PASS_H

#include "batch/batch.h"
#include "norm/norm_site.h"

typedef struct pass {
    tape *tape;
    const batch *batch;
    norm_mode mode;
    double penalty; /* nats; the normalizations' (RBN), summed over their sites: part of the loss */
    struct model_memory *memory; /* memory of the batch's stream; a pass updates it. NULL: none */
    /* Set outside training by a model that decodes: tags [count, source_length] of the batch, in
     * the tape's memory. NULL: it decodes nothing. */
    const int32_t *predicted;
    norm_gather_fn *gather; /* as in norm_rows.h, of synchronised norms; NULL: one process */
    void *gather_context;
    int rank, ranks;
    int64_t tokens; /* that the loss will be divided by; 0: the batch's */
    bool absent;    /* this rank has no rows: none of the batch's rows is valid */
} pass;

/* Rows for the normalization sites of this pass: `samples` samples (sentences, images) with
 * `length` rows each. A row is valid if mask [samples, length] is 1 (NULL: all are). Lives as long
 * as the tape's step. NULL and a failure of the tape when out of memory. */
norm_rows *pass_rows(pass *p, int64_t samples, int64_t length, const uint8_t *mask);
/* Rows outside the batch, such as rows of memory. Every pass normalizes them by running statistics,
 * as in evaluation. They enter no statistic, update no running statistic and reach no hook. All are
 * valid; NULL as in pass_rows. */
norm_rows *pass_rows_outside(pass *p, int64_t samples, int64_t length);

#endif
