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
    struct model_memory *memory; /* of the stream that the batch is the next part of, left as the
                                    next one needs it; NULL: none, nothing came before */
    /* What a model that decodes sets outside training: tags [count, source_length] of a batch, in
     * the tape's memory; NULL: it decodes nothing. */
    const int32_t *predicted;
    norm_gather_fn *gather; /* of synchronised normalizations, as in norm.h; NULL: one process */
    void *gather_context;
    int rank, ranks;
    int64_t tokens; /* that the loss will be divided by; 0: the batch's */
    bool absent;    /* the batch only keeps the others company: none of its rows is valid */
} pass;

/* Rows of `samples` samples (sentences, images) with `length` rows each, as normalization sites of
 * this pass take them: valid where mask [samples, length] is 1 (NULL: everywhere). Lives as long as
 * the tape's step; NULL and a failure of the tape when out of memory. */
norm_rows *pass_rows(pass *p, int64_t samples, int64_t length, const uint8_t *mask);
/* Rows that are of no batch of this pass, such as those of memory: normalized as in evaluation, by
   running statistics, in every pass. They enter no statistic, update no running statistic and reach
   no hook. All valid; NULL as pass_rows. */
norm_rows *pass_rows_outside(pass *p, int64_t samples, int64_t length);

#endif
