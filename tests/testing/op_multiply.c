/* op_multiply.c -- y = a b, element by element, in the shape of a. a, b [any, equal counts].
 *
 * Backward: da = dy b, db = dy a; x x gives 2 x dy.
 * Kept: nothing; backward reads a and b.
 */
#include "engine/ops/ops.h"
#include "engine/work_chunks.h"
#include "testing/extra_ops.h"

static void write_chunk(int64_t n, const real *restrict a, const real *restrict b,
                        real *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

static void add_chunk(int64_t n, const real *restrict a, const real *restrict b, real *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] += a[i] * b[i];
}

static void multiply(int threads, bool add, int64_t count, const real *a, const real *b, real *y) {
    int64_t chunks = chunk_count(count);
#pragma omp parallel for num_threads(threads) schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++) {
        int64_t at = p * CHUNK;
        (add ? add_chunk : write_chunk)(chunk_length(p, count), a + at, b + at, y + at);
    }
}

static void product_backward(tape *t, const tape_node *node) {
    const tensor *y = node->out;
    for (int i = 0; i < 2; i++) {
        bool add;
        real *dx = tape_grad(t, node->in[i], &add);
        if (dx) multiply(t->threads, add, y->count, y->grad, node->in[1 - i]->value, dx);
    }
}

tensor *op_multiply(tape *t, tensor *a, tensor *b) {
    if (!a || !b) return NULL;
    if (a->count != b->count)
        return tape_fail(t, SR_USAGE, "product: %lld numbers by %lld", (long long)a->count,
                         (long long)b->count);
    tensor *y = tape_like(t, a);
    if (!y) return NULL;
    multiply(t->threads, false, a->count, a->value, b->value, y->value);
    return tape_push(t, "product", product_backward, y, (tensor *[]){a, b, NULL}, NULL);
}
