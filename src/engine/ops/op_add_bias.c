/* op_add_bias.c -- a vector added to every row: the bias of a convolution.
 *
 * x [rows, C], b [C]:
 *   y  = x + b
 *   dx = dy
 *   db += sum over rows of dy (bias.c)
 * Kept for backward: nothing.
 */
#include "engine/ops/bias.h"
#include "engine/ops/ops.h"
#include "engine/work_chunks.h"

/* Rows from .. to-1. */
static void add_rows(int64_t from, int64_t to, int64_t channels, const real *restrict x,
                     const real *restrict b, real *restrict y) {
    for (int64_t r = from; r < to; r++)
        for (int64_t c = 0; c < channels; c++) y[r * channels + c] = x[r * channels + c] + b[c];
}

static void add_bias_backward(tape *t, const tape_node *node) {
    tensor *x = node->in[0];
    tape_pass_grad(t, x, node->out->grad);
    bias_gradient(t, node->out->grad, tensor_rows(x), tensor_features(x), node->in[1]);
}

tensor *op_add_bias(tape *t, tensor *x, tensor *b) {
    if (!x || !b) return NULL;
    const int64_t rows = tensor_rows(x), channels = tensor_features(x), step = chunk_rows(channels);
    if (b->count != channels)
        return tape_fail(t, SR_USAGE, "add_bias: %lld channels, bias of %lld", (long long)channels,
                         (long long)b->count);
    tensor *y = tape_like(t, x);
    if (!y) return NULL;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (rows > step)
    for (int64_t r = 0; r < rows; r += step)
        add_rows(r, rows - r < step ? rows : r + step, channels, x->value, b->value, y->value);
    return tape_push(t, "add_bias", add_bias_backward, y, (tensor *[]){x, b, NULL}, NULL);
}
