/* crf_shape.h -- checks the sizes of op_crf and crf_viterbi. */
#ifndef ENGINE_OPS_LOSS_CRF_SHAPE_H
#define ENGINE_OPS_LOSS_CRF_SHAPE_H

#include "engine/ops/loss/loss_ops.h"

/* False when an input is NULL, or, with a failure of the tape, when sizes do not match. */
static inline bool crf_fits(tape *t, const crf_inputs *in) {
    if (!in->logits || !in->trans || !in->start || !in->end) return false;
    const int64_t K = tensor_features(in->logits);
    if (in->logits->rank == 3 && in->trans->rank == 2 && in->trans->dim[0] == K &&
        in->trans->dim[1] == K && in->start->count == K && in->end->count == K)
        return true;
    return tape_fail(t, SR_USAGE,
                     "crf: logits must be [B, T, K], transitions [K, K], start and end [K]");
}

#endif
