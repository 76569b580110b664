/* op_tanh.c -- y = tanh(x), element by element. x, y [any].
 *
 *   e = e^(-2 |x|),  |y| = (1 - e)/(1 + e) with the sign of x: off by a unit in the last place of
 *   1 at most, however small x is.
 *
 * Backward: dx = dy (1 - y^2).
 * Kept: nothing; backward reads y.
 */
#include "exp_fast.h"
#include "pieces.h"
#include "statnet/ops.h"

static void forward_piece(int64_t n, const real *restrict x, real *restrict y) {
    for (int64_t i = 0; i < n; i++) {
        const real e = exp_fast(x[i] < 0 ? 2 * x[i] : -2 * x[i]);
        y[i] = (x[i] < 0 ? e - 1 : 1 - e) / (1 + e);
    }
}

static void write_piece(int64_t n, const real *restrict y, const real *restrict dy,
                        real *restrict dx) {
    for (int64_t i = 0; i < n; i++) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

static void add_piece(int64_t n, const real *restrict y, const real *restrict dy,
                      real *restrict dx) {
    for (int64_t i = 0; i < n; i++) dx[i] += dy[i] * (1 - y[i] * y[i]);
}

static void tanh_backward(tape *t, const tape_node *node) {
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

tensor *op_tanh(tape *t, tensor *x) {
    tensor *y = tape_like(t, x);
    if (!y) return NULL;
    int64_t pieces = piece_count(x->count);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (pieces > 1)
    for (int64_t p = 0; p < pieces; p++)
        forward_piece(piece_length(p, x->count), x->value + p * PIECE, y->value + p * PIECE);
    return tape_push(t, "tanh", tanh_backward, y, (tensor *[]){x, NULL}, NULL);
}
