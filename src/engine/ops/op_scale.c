/* op_scale.c -- y = c x, element by element; c is a constant. x, y [any].
 *
 * Backward: dx = c dy.
 * Kept: c.
 */
#include "engine/ops/ops.h"
#include "engine/work_chunks.h"

static void scale_all(int threads, bool add, int64_t count, real c, const real *restrict x,
                      real *restrict y) {
    int64_t chunks = chunk_count(count);
#pragma omp parallel for num_threads(threads) schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++) {
        const int64_t end = p * CHUNK + chunk_length(p, count);
        for (int64_t i = p * CHUNK; i < end; i++) y[i] = add ? y[i] + c * x[i] : c * x[i];
    }
}

static void scale_backward(tape *t, const tape_node *node) {
    bool add;
    real *dx = tape_grad(t, node->in[0], &add);
    if (dx)
        scale_all(t->threads, add, node->out->count, *(const real *)node->kept, node->out->grad,
                  dx);
}

tensor *op_scale(tape *t, tensor *x, double c) {
    tensor *y = tape_like(t, x);
    real *kept = y ? tape_alloc(t, sizeof *kept) : NULL;
    if (!kept) return NULL;
    *kept = (real)c;
    scale_all(t->threads, false, x->count, *kept, x->value, y->value);
    return tape_push_reading(t, "scale", scale_backward, y, (tensor *[]){x, NULL}, kept,
                             READS_NOTHING);
}
