/* op_shortcut.c -- the parameter-free shortcut of residual networks, option A. Source: He et al.,
 * Deep Residual Learning for Image Recognition, 2016, section 3.3; docs/models.md 1.1.
 *
 * x [N, H, W, C], y [N, ceil(H/s), ceil(W/s), D], front = (D - C)/2:
 *   y[n,i,j,front+c]  = x[n, i s, j s, c], all other channels 0
 *   dx[n, i s, j s, c] = dy[n,i,j,front+c], 0 at skipped pixels
 * Kept for backward: the stride. The paper does not place the zero channels. Half come first and
 * half last, as in common implementations; an odd one comes last. */
#include <string.h>

#include "engine/ops/image/image_ops.h"

/* Chunks are rows of pixels. */
static void sample(const tape *t, const tensor *x, tensor *y, int64_t stride) {
    int64_t channels = y->dim[3], c = x->dim[3], front = (channels - c) / 2;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t row = 0; row < y->dim[0] * y->dim[1]; row++) {
        int64_t n = row / y->dim[1], i = row % y->dim[1];
        const real *from = x->value + (n * x->dim[1] + i * stride) * x->dim[2] * c;
        real *to = y->value + row * y->dim[2] * channels;
        memset(to, 0, (size_t)(y->dim[2] * channels) * sizeof *to);
        for (int64_t j = 0; j < y->dim[2]; j++)
            memcpy(to + j * channels + front, from + j * stride * c, (size_t)c * sizeof *to);
    }
}

static void shortcut_backward(tape *t, const tape_node *node) {
    tensor *x = node->in[0], *y = node->out;
    const int64_t stride = *(const int64_t *)node->kept, c = x->dim[3], channels = y->dim[3];
    bool add;
    real *dx = tape_grad(t, x, &add);
    if (!dx) return;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t row = 0; row < x->dim[0] * x->dim[1]; row++) {
        const int64_t n = row / x->dim[1], i = row % x->dim[1];
        real *to = dx + row * x->dim[2] * c;
        if (!add) memset(to, 0, (size_t)(x->dim[2] * c) * sizeof *to);
        if (i % stride) continue; /* a skipped row */
        const real *dy = y->grad + (n * y->dim[1] + i / stride) * y->dim[2] * channels;
        dy += (channels - c) / 2;
        for (int64_t j = 0; j < y->dim[2]; j++)
            for (int64_t k = 0; k < c; k++) to[j * stride * c + k] += dy[j * channels + k];
    }
}

tensor *op_shortcut(tape *t, tensor *x, int stride, int64_t channels) {
    if (!x) return NULL;
    if (x->rank != 4 || stride < 1 || channels < x->dim[3])
        return tape_fail(t, SR_USAGE, "shortcut: rank %d, %lld channels to %lld, stride %d",
                         x->rank, (long long)x->dim[3], (long long)channels, stride);
    if (stride == 1 && channels == x->dim[3]) return x;
    tensor *y = tape_tensor(t, 4,
                            (int64_t[]){x->dim[0], (x->dim[1] + stride - 1) / stride,
                                        (x->dim[2] + stride - 1) / stride, channels});
    int64_t *kept = tape_alloc(t, sizeof *kept);
    if (!y || !kept) return NULL;
    *kept = stride;
    sample(t, x, y, stride);
    return tape_push_reading(t, "shortcut", shortcut_backward, y, (tensor *[]){x, NULL}, kept,
                             READS_NOTHING);
}
