/* op_relu.c -- y = max(x, 0), element by element. x, y [any].
 *
 * Backward: dx = dy where y > 0, else 0 (0 at x = 0).
 * Kept: nothing; backward reads the sign from y.
 * NaN stays NaN, and its gradient passes.
 */
#include "pieces.h"
#include "statnet/ops.h"

static void forward_piece(int64_t n, const real *restrict x, real *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

static void write_piece(int64_t n, const real *restrict y, const real *restrict dy,
                        real *restrict dx) {
    for (int64_t i = 0; i < n; i++) dx[i] = y[i] <= 0 ? 0 : dy[i];
}

static void add_piece(int64_t n, const real *restrict y, const real *restrict dy,
                      real *restrict dx) {
    for (int64_t i = 0; i < n; i++) dx[i] += y[i] <= 0 ? 0 : dy[i];
}

static void relu_backward(tape *t, const tape_node *node) {
    bool add;
    real *dx = tape_grad(t, node->in[0], &add);
    if (!dx) return;
    const tensor *y = node->out;
    int64_t pieces = piece_count(y->count);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (pieces > 1)
    for (int64_t p = 0; p < pieces; p++) {
        int64_t at = p * PIECE;
        (add ? add_piece : write_piece)(piece_length(p, y->count), y->value + at, y->grad + at,
                                        dx + at);
    }
}

tensor *op_relu(tape *t, tensor *x) {
    tensor *y = tape_like(t, x);
    if (!y) return NULL;
    int64_t pieces = piece_count(x->count);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (pieces > 1)
    for (int64_t p = 0; p < pieces; p++)
        forward_piece(piece_length(p, x->count), x->value + p * PIECE, y->value + p * PIECE);
    return tape_push(t, "relu", relu_backward, y, (tensor *[]){x, NULL}, NULL);
}
