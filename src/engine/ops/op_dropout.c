/* op_dropout.c -- y = x m / (1 - p) in training, m = 1 with probability 1 - p, else 0. Source:
 * Srivastava et al., JMLR 2014, in the inverted form, which leaves evaluation unchanged. x, y
 * [any].
 *
 * Backward: dx = dy m / (1 - p), the mask drawn again. Kept: the stream's key and p. Rounding of p:
 * dropout_mask.h. Evaluation, or p = 0: returns x. A dropped NaN or infinity gives NaN, as the
 * product does. */
#include "engine/ops/dropout_mask.h"
#include "engine/ops/ops.h"
#include "engine/work_chunks.h"

static void dropout_all(int threads, const dropout_mask *m, int64_t count, bool add, const real *x,
                        real *y) {
    int64_t chunks = chunk_count(count);
#pragma omp parallel for num_threads(threads) schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++) {
        int64_t at = p * CHUNK;
        dropout_mask_apply(m, (uint64_t)at / MASK_PER_WORD, chunk_length(p, count), add, x + at,
                           y + at);
    }
}

static void dropout_backward(tape *t, const tape_node *node) {
    bool add;
    const real *dy = node->out->grad;
    real *dx = tape_grad_in_place(t, node->out, node->in[0], &add);
    if (dx) dropout_all(t->threads, node->kept, node->out->count, add, dy, dx);
}

tensor *op_dropout(tape *t, tensor *x, double p) {
    if (!x) return NULL;
    if (!(p >= 0 && p < 1)) return tape_fail(t, SR_USAGE, "dropout: p is %g, not in [0, 1)", p);
    if (!t->training || p == 0) return x;
    tensor *y = tape_like(t, x);
    dropout_mask *kept = y ? tape_alloc(t, sizeof *kept) : NULL;
    if (!kept) return NULL;
    *kept = dropout_mask_create(t, x->count, p);
    dropout_all(t->threads, kept, x->count, false, x->value, y->value);
    return tape_push_reading(t, "dropout", dropout_backward, y, (tensor *[]){x, NULL}, kept,
                             READS_NOTHING);
}
