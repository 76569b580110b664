/* op_cube.c -- y = x^3, element by element (Chen and Manning, 2014: the activation of their parser,
 * docs/models.md 8). x, y [any].
 *
 * Backward: dx = 3 x^2 dy.
 * Kept: nothing; backward reads x.
 */
#include "engine/ops/elementwise.h"

static void forward_chunk(int64_t n, const real *restrict x, real *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i] * x[i];
}

static void backward_chunk(int64_t n, bool add, const real *restrict x, const real *restrict dy,
                           real *restrict dx) {
    for (int64_t i = 0; i < n; i++) {
        const real d = 3 * x[i] * x[i] * dy[i];
        dx[i] = add ? dx[i] + d : d;
    }
}

tensor *op_cube(tape *t, tensor *x) {
    static const elementwise op = {"cube", forward_chunk, backward_chunk, true};
    return elementwise_apply(&op, t, x);
}
