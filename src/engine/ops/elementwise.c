/* elementwise.c -- runs ops that treat every element alike; keeps only the op. Backward reads y or
 * x. */
#include "engine/ops/elementwise.h"

#include "engine/work_chunks.h"

static void elementwise_backward(tape *t, const tape_node *node) {
    bool add;
    const elementwise *op = node->kept;
    real *dx = tape_grad(t, node->in[0], &add);
    if (!dx) return;
    const tensor *y = node->out, *z = op->of_input ? node->in[0] : y;
    const int64_t chunks = chunk_count(y->count);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++) {
        const int64_t at = p * CHUNK;
        op->backward(chunk_length(p, y->count), add, z->value + at, y->grad + at, dx + at);
    }
}

tensor *elementwise_apply(const elementwise *op, tape *t, tensor *x) {
    tensor *y = tape_like(t, x);
    if (!y) return NULL;
    const int64_t chunks = chunk_count(x->count);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++)
        op->forward(chunk_length(p, x->count), x->value + p * CHUNK, y->value + p * CHUNK);
    return tape_push_reading(t, op->name, elementwise_backward, y, (tensor *[]){x, NULL},
                             (void *)op, op->of_input ? READS_IN(0) : READS_OUT);
}
