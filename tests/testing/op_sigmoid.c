/* op_sigmoid.c -- y = 1 / (1 + e^-x), element by element. x, y [any].
 *
 *   e = e^-|x|,  y = 1/(1 + e) where x >= 0, e/(1 + e) where x < 0: nothing overflows, and small
 *   values keep their digits.
 *
 * Backward: dx = dy y (1 - y).
 * Kept: nothing; backward reads y.
 */
#include "engine/exp_fast.h"
#include "engine/ops/elementwise.h"
#include "testing/extra_ops.h"

static void forward_chunk(int64_t n, const real *restrict x, real *restrict y) {
    for (int64_t i = 0; i < n; i++) {
        const real e = exp_fast(x[i] < 0 ? x[i] : -x[i]);
        y[i] = (x[i] < 0 ? e : 1) / (1 + e);
    }
}

static void backward_chunk(int64_t n, bool add, const real *restrict y, const real *restrict dy,
                           real *restrict dx) {
    for (int64_t i = 0; i < n; i++) {
        const real d = dy[i] * y[i] * (1 - y[i]);
        dx[i] = add ? dx[i] + d : d;
    }
}

tensor *op_sigmoid(tape *t, tensor *x) {
    static const elementwise op = {"sigmoid", forward_chunk, backward_chunk, false};
    return elementwise_apply(&op, t, x);
}
