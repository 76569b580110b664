/* op_cube.c -- y = x^3, element by element (Chen and Manning, 2014: the activation of their parser,
 * docs/models.md 8). x, y [any].
 *
 * Backward: dx = 3 x^2 dy.
 * Kept: nothing; backward reads x.
 */
#include "pieces.h"
#include "statnet/ops.h"

static void forward_piece(int64_t n, const real *restrict x, real *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i] * x[i];
}

static void write_piece(int64_t n, const real *restrict x, const real *restrict dy,
                        real *restrict dx) {
    for (int64_t i = 0; i < n; i++) dx[i] = 3 * x[i] * x[i] * dy[i];
}

static void add_piece(int64_t n, const real *restrict x, const real *restrict dy,
                      real *restrict dx) {
    for (int64_t i = 0; i < n; i++) dx[i] += 3 * x[i] * x[i] * dy[i];
}

static void cube_backward(tape *t, const tape_node *node) {
    bool add;
    real *dx = tape_grad(t, node->in[0], &add);
    if (!dx) return;
    const tensor *x = node->in[0], *y = node->out;
    int64_t pieces = piece_count(y->count);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (pieces > 1)
    for (int64_t p = 0; p < pieces; p++) {
        int64_t at = p * PIECE;
        (add ? add_piece : write_piece)(piece_length(p, y->count), x->value + at, y->grad + at,
                                        dx + at);
    }
}

tensor *op_cube(tape *t, tensor *x) {
    tensor *y = tape_like(t, x);
    if (!y) return NULL;
    int64_t pieces = piece_count(x->count);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (pieces > 1)
    for (int64_t p = 0; p < pieces; p++)
        forward_piece(piece_length(p, x->count), x->value + p * PIECE, y->value + p * PIECE);
    return tape_push(t, "cube", cube_backward, y, (tensor *[]){x, NULL}, NULL);
}
