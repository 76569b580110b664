/* op_relu.c -- y = max(x, 0), element by element. x, y [any].
 *
 * Backward: dx = dy where x > 0, else 0 (0 at x = 0). Kept: one bit per element, so that the tape
 * may free y (a dropout after it reads nothing either). NaN stays NaN, and its gradient passes.
 *
 * A block of 512 elements has 16 words of bits. Element 16 b + j is bit b of word j, so that
 * neighbours in memory are neighbours in a SIMD register. */
#include "engine/ops/ops.h"
#include "engine/work_chunks.h"

enum { WORDS = 16, BITS = 32, BLOCK = WORDS * BITS, CHUNK_WORDS = CHUNK / BITS };

/* Processes `words` neighbours from element i of the block on: the compile-time constant WORDS, or
 * fewer at the block's end. */
static inline void forward_words(int words, int64_t i, const real *restrict x, real *restrict y,
                                 uint32_t *restrict word) {
    for (int j = 0; j < words; j++) {
        word[j] |= x[i + j] <= 0 ? 0 : UINT32_C(1) << i / WORDS;
        y[i + j] = x[i + j] < 0 ? 0 : x[i + j];
    }
}

/* n <= BLOCK elements */
static void forward_block(int64_t n, const real *restrict x, real *restrict y,
                          uint32_t *restrict passes) {
    uint32_t word[WORDS] = {0};
    int64_t i = 0;
    for (; i + WORDS <= n; i += WORDS) forward_words(WORDS, i, x, y, word);
    forward_words((int)(n - i), i, x, y, word);
    for (int j = 0; passes && j < WORDS; j++) passes[j] = word[j];
}

static inline real passed(const uint32_t *passes, int64_t i, int j, real dy) {
    return passes[j] & UINT32_C(1) << i / WORDS ? dy : 0;
}

/* dx may be dy. */
static void backward_block(int64_t n, const uint32_t *passes, bool add, const real *dy, real *dx) {
    int64_t i = 0;
    for (; !add && i + WORDS <= n; i += WORDS)
#pragma omp simd
        for (int j = 0; j < WORDS; j++) dx[i + j] = passed(passes, i, j, dy[i + j]);
    for (; add && i + WORDS <= n; i += WORDS)
#pragma omp simd
        for (int j = 0; j < WORDS; j++) dx[i + j] += passed(passes, i, j, dy[i + j]);
    for (int j = 0; i + j < n; j++)
        dx[i + j] = (add ? dx[i + j] : 0) + passed(passes, i, j, dy[i + j]);
}

static void relu_backward(tape *t, const tape_node *node) {
    bool add;
    const uint32_t *passes = node->kept;
    const real *dy = node->out->grad;
    real *dx = tape_grad_in_place(t, node->out, node->in[0], &add);
    if (!dx) return;
    const int64_t count = node->out->count, chunks = chunk_count(count);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++) {
        const int64_t end = p * CHUNK + chunk_length(p, count);
        for (int64_t at = p * CHUNK; at < end; at += BLOCK)
            backward_block(lesser(BLOCK, end - at), passes + at / BITS, add, dy + at, dx + at);
    }
}

tensor *op_relu(tape *t, tensor *x) {
    tensor *y = tape_like(t, x);
    if (!y) return NULL;
    const int64_t count = x->count, chunks = chunk_count(count);
    uint32_t *passes = NULL;
    if (t->recording && x->wants_grad) {
        passes = tape_alloc(t, (size_t)(chunks * CHUNK_WORDS) * sizeof *passes);
        if (!passes) return NULL;
    }
#pragma omp parallel for num_threads(t->threads) schedule(static) if (chunks > 1)
    for (int64_t p = 0; p < chunks; p++) {
        const int64_t end = p * CHUNK + chunk_length(p, count);
        for (int64_t at = p * CHUNK; at < end; at += BLOCK)
            forward_block(lesser(BLOCK, end - at), x->value + at, y->value + at,
                          passes ? passes + at / BITS : NULL);
    }
    return tape_push_reading(t, "relu", relu_backward, y, (tensor *[]){x, NULL}, passes,
                             READS_NOTHING);
}
