/* op_tanh.c -- y = tanh(x), element by element. x, y [any].
 *
 *   e = e^(-2 |x|),  |y| = (1 - e)/(1 + e) with the sign of x: the error is at most a unit in the
 *   last place of 1, for any x.
 *
 * Backward: dx = dy (1 - y^2). Kept: nothing; backward reads y. */
#include "engine/exp_fast.h"
#include "engine/ops/elementwise.h"

static void forward_chunk(int64_t n, const real *restrict x, real *restrict y) {
    for (int64_t i = 0; i < n; i++) {
        const real e = exp_fast(x[i] < 0 ? 2 * x[i] : -2 * x[i]);
        y[i] = (x[i] < 0 ? e - 1 : 1 - e) / (1 + e);
    }
}

static void backward_chunk(int64_t n, bool add, const real *restrict y, const real *restrict dy,
                           real *restrict dx) {
    for (int64_t i = 0; i < n; i++) {
        const real d = dy[i] * (1 - y[i] * y[i]);
        dx[i] = add ? dx[i] + d : d;
    }
}

tensor *op_tanh(tape *t, tensor *x) {
    static const elementwise op = {"tanh", forward_chunk, backward_chunk, false};
    return elementwise_apply(&op, t, x);
}
