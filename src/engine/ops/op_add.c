/* op_add.c -- y = a + b, element by element, in the shape of a. a, b [any, equal counts].
 *
 * Backward: da = dy, db = dy; x + x gives 2 dy.
 * Kept: nothing.
 */
#include <string.h>

#include "engine/ops/ops.h"
#include "engine/work_chunks.h"

static void sum_chunk(int64_t n, const real *restrict a, const real *restrict b, real *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void add_chunk(int64_t n, const real *restrict dy, real *restrict dx) {
    for (int64_t i = 0; i < n; i++) dx[i] += dy[i];
}

/* dx = dy, or dx += dy */
static void pass_gradient(tape *t, tensor *x, const real *dy) {
    bool add;
    real *dx = tape_grad(t, x, &add);
    if (!dx) return;
    int64_t chunks = chunk_count(x->count);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++) {
        int64_t at = p * CHUNK, n = chunk_length(p, x->count);
        if (add)
            add_chunk(n, dy + at, dx + at);
        else
            memcpy(dx + at, dy + at, (size_t)n * sizeof *dx);
    }
}

/* Avoids a copy when a term has no gradient yet: that term takes dy's memory, and the other one
 * shares it. */
static void add_backward(tape *t, const tape_node *node) {
    tensor *a = node->in[0], *b = node->in[1], *y = node->out;
    if (a != b && tape_move_grad(y, a)) {
        if (!tape_alias_grad(a, b)) pass_gradient(t, b, a->grad);
    } else if (a != b && tape_move_grad(y, b)) {
        pass_gradient(t, a, b->grad);
    } else {
        pass_gradient(t, b, y->grad);
        pass_gradient(t, a, y->grad);
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
        int64_t at = p * CHUNK;
        sum_chunk(chunk_length(p, a->count), a->value + at, b->value + at, y->value + at);
    }
    return tape_push_reading(t, "add", add_backward, y, (tensor *[]){a, b, NULL}, NULL,
                             READS_NOTHING);
}
