/* op_add.c -- y = a + b, element by element, in the shape of a. a, b [any, equal counts].
 *
 * Backward: da = dy, db = dy; x + x gives 2 dy.
 * Kept: nothing.
 */
#include "engine/ops/ops.h"
#include "engine/work_chunks.h"

/* Avoids a copy when a term has no gradient yet: that term takes dy's memory, and the other one
 * shares it. */
static void add_backward(tape *t, const tape_node *node) {
    tensor *a = node->in[0], *b = node->in[1], *y = node->out;
    if (a != b && tape_move_grad(y, a)) {
        if (!tape_alias_grad(a, b)) tape_pass_grad(t, b, a->grad);
    } else if (a != b && tape_move_grad(y, b)) {
        tape_pass_grad(t, a, b->grad);
    } else {
        tape_pass_grad(t, b, y->grad);
        tape_pass_grad(t, a, y->grad);
    }
}

tensor *op_add(tape *t, tensor *a, tensor *b) {
    if (!a || !b) return NULL;
    if (a->count != b->count)
        return tape_fail(t, SR_USAGE, "add: %lld numbers to %lld", (long long)b->count,
                         (long long)a->count);
    tensor *y = tape_like(t, a);
    if (!y) return NULL;
    int64_t chunks = chunk_count(a->count);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++) {
        const int64_t end = p * CHUNK + chunk_length(p, a->count);
        for (int64_t i = p * CHUNK; i < end; i++) y->value[i] = a->value[i] + b->value[i];
    }
    return tape_push_reading(t, "add", add_backward, y, (tensor *[]){a, b, NULL}, NULL,
                             READS_NOTHING);
}
