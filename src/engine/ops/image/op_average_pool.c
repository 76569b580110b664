/* op_average_pool.c -- mean over all positions of an image.
 *
 * x [N, H, W, C], P = H W positions:
 *   y[n,c]    = 1/P sum over p of x[n,p,c]      (sum in double)
 *   dx[n,p,c] = dy[n,c]/P
 * Kept for backward: nothing.
 */
#include "engine/ops/image/image_ops.h"

enum { CHANNELS = 64 }; /* channels summed at a time, on the stack */

/* Means of `count` channels from `from` on, of one image x [positions, channels]. */
static void mean_of(const real *x, int64_t positions, int64_t channels, int64_t from, int64_t count,
                    real *y) {
    double sum[CHANNELS] = {0};
    for (int64_t p = 0; p < positions; p++)
        for (int64_t c = 0; c < count; c++) sum[c] += (double)x[p * channels + from + c];
    for (int64_t c = 0; c < count; c++) y[from + c] = (real)(sum[c] / (double)positions);
}

static void spread(const real *dy, int64_t positions, int64_t channels, bool add, real *dx) {
    real factor = (real)1 / (real)positions;
    for (int64_t p = 0; p < positions; p++, dx += channels)
        for (int64_t c = 0; c < channels; c++) dx[c] = dy[c] * factor + (add ? dx[c] : 0);
}

static void average_pool_backward(tape *t, const tape_node *node) {
    tensor *x = node->in[0];
    const real *dy = node->out->grad;
    int64_t channels = x->dim[3], positions = x->dim[1] * x->dim[2];
    bool add;
    real *dx = tape_grad(t, x, &add);
    if (!dx) return;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t n = 0; n < x->dim[0]; n++)
        spread(dy + n * channels, positions, channels, add, dx + n * positions * channels);
}

tensor *op_average_pool(tape *t, tensor *x) {
    if (!x) return NULL;
    if (x->rank != 4) return tape_fail(t, SR_USAGE, "average_pool: rank %d is not 4", x->rank);
    int64_t channels = x->dim[3], positions = x->dim[1] * x->dim[2];
    tensor *y = tape_tensor(t, 2, (int64_t[]){x->dim[0], channels});
    if (!y) return NULL;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t c = 0; c < channels; c += CHANNELS)
            mean_of(x->value + n * positions * channels, positions, channels, c,
                    channels - c < CHANNELS ? channels - c : CHANNELS, y->value + n * channels);
    return tape_push(t, "average_pool", average_pool_backward, y, (tensor *[]){x, NULL}, NULL);
}
