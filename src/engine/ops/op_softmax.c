/* op_softmax.c -- softmax over the last dimension. x, y [rows, n].
 *
 *   m = max_j x_j,  y_j = exp(x_j - m) / sum_k exp(x_k - m)
 *
 * Backward: dx_j = y_j (dy_j - sum_k dy_k y_k).
 * Kept: nothing; backward reads y.
 */
#include "engine/ops/ops.h"
#include "engine/row_math.h"
#include "engine/work_chunks.h"

static void softmax_row(int64_t n, const real *x, real *y) {
    row_scale(n, (real)(1 / row_exp(n, x, row_max(n, x), y)), y);
}

static void backward_row(int64_t n, bool add, const real *restrict y, const real *restrict dy,
                         real *restrict dx) {
    real dot = (real)row_dot(n, dy, y);
    if (add)
        for (int64_t j = 0; j < n; j++) dx[j] += y[j] * (dy[j] - dot);
    else
        for (int64_t j = 0; j < n; j++) dx[j] = y[j] * (dy[j] - dot);
}

static void softmax_backward(tape *t, const tape_node *node) {
    bool add;
    real *dx = tape_grad(t, node->in[0], &add);
    if (!dx) return;
    const tensor *y = node->out;
    int64_t n = tensor_features(y), rows = tensor_rows(y), step = chunk_rows(n);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (rows > step)
    for (int64_t r = 0; r < rows; r++)
        backward_row(n, add, y->value + r * n, y->grad + r * n, dx + r * n);
}

tensor *op_softmax(tape *t, tensor *x) {
    tensor *y = tape_like(t, x);
    if (!y) return NULL;
    int64_t n = tensor_features(x), rows = tensor_rows(x), step = chunk_rows(n);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (rows > step)
    for (int64_t r = 0; r < rows; r++) softmax_row(n, x->value + r * n, y->value + r * n);
    return tape_push(t, "softmax", softmax_backward, y, (tensor *[]){x, NULL}, NULL);
}
