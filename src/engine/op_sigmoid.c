/* op_sigmoid.c -- y = 1 / (1 + e^-x), element by element. x, y [any].
 *
 *   e = e^-|x|,  y = 1/(1 + e) where x >= 0, e/(1 + e) where x < 0: nothing overflows, and small
 *   values keep their digits.
 *
 * Backward: dx = dy y (1 - y).
 * Kept: nothing; backward reads y.
 */
#include "exp_fast.h"
#include "pieces.h"
#include "statnet/ops.h"

static void forward_piece(int64_t n, const real *restrict x, real *restrict y) {
    for (int64_t i = 0; i < n; i++) {
        const real e = exp_fast(x[i] < 0 ? x[i] : -x[i]);
        y[i] = (x[i] < 0 ? e : 1) / (1 + e);
    }
}

static void write_piece(int64_t n, const real *restrict y, const real *restrict dy,
                        real *restrict dx) {
    for (int64_t i = 0; i < n; i++) dx[i] = dy[i] * y[i] * (1 - y[i]);
}

static void add_piece(int64_t n, const real *restrict y, const real *restrict dy,
                      real *restrict dx) {
    for (int64_t i = 0; i < n; i++) dx[i] += dy[i] * y[i] * (1 - y[i]);
}

static void sigmoid_backward(tape *t, const tape_node *node) {
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

tensor *op_sigmoid(tape *t, tensor *x) {
    tensor *y = tape_like(t, x);
    if (!y) return NULL;
    int64_t pieces = piece_count(x->count);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (pieces > 1)
    for (int64_t p = 0; p < pieces; p++)
        forward_piece(piece_length(p, x->count), x->value + p * PIECE, y->value + p * PIECE);
    return tape_push(t, "sigmoid", sigmoid_backward, y, (tensor *[]){x, NULL}, NULL);
}
