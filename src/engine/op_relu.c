/* op_relu.c -- y = max(x, 0), element by element. x, y [any].
 *
 * Backward: dx = dy where y > 0, else 0 (0 at x = 0).
 * Kept: nothing; backward reads the sign from y.
 * NaN stays NaN, and its gradient passes.
 */
#include "elementwise.h"

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

tensor *op_relu(tape *t, tensor *x) {
    static const elementwise op = {"relu", forward_piece, write_piece, add_piece, false};
    return elementwise_apply(&op, t, x);
}
