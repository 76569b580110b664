/* op_max_pool.c -- the largest value of each window of an image, channel by channel.
 *
 * x [N, H, W, C], windows of k x k every s pixels, no padding; Ho = (H - k)/s + 1 rounded down, Wo
 * likewise. Rows and columns that fill no window are ignored.
 *   y[n,i,j,c]  = max over a,b < k of x[n, i s + a, j s + b, c]
 *   dx[n,p,q,c] = sum of dy[n,i,j,c] over the windows whose maximum is at (p, q)
 * Ties: the first of equal values in reading order (a, then b) is the maximum and gets the whole
 * gradient, as in PyTorch (docs/models.md 7). NaN is larger than every number, and the first NaN
 * wins: y is NaN and its gradient goes there. Kept for backward: k, s, and a k + b of each
 * maximum. */
#include <string.h>

#include "engine/ops/image/image_ops.h"

typedef struct pool_kept {
    int64_t k, stride;
    int32_t *index; /* [count of y], a k + b */
} pool_kept;

/* Computes one row of windows; x is its first row of pixels. */
static void pool_row(const tensor *in, const tensor *out, const pool_kept *p, const real *x,
                     real *restrict y, int32_t *restrict index) {
    const int64_t channels = in->dim[3], row = in->dim[2] * channels;
    for (int64_t j = 0; j < out->dim[2]; j++, y += channels, index += channels) {
        const real *window = x + j * p->stride * channels;
        memcpy(y, window, (size_t)channels * sizeof *y);
        memset(index, 0, (size_t)channels * sizeof *index);
        for (int64_t at = 1; at < p->k * p->k; at++) {
            const real *restrict here = window + at / p->k * row + at % p->k * channels;
            for (int64_t c = 0; c < channels; c++) {
                const bool larger = !(here[c] <= y[c]) && y[c] == y[c]; /* true for the first NaN */
                y[c] = larger ? here[c] : y[c];
                index[c] = larger ? (int32_t)at : index[c];
            }
        }
    }
}

/* Adds the gradients of one image's maxima at their positions. */
static void scatter(const tensor *in, const tensor *out, const pool_kept *p, const real *dy,
                    const int32_t *index, real *dx) {
    const int64_t channels = in->dim[3], row = in->dim[2] * channels;
    for (int64_t i = 0; i < out->dim[1]; i++)
        for (int64_t j = 0; j < out->dim[2]; j++) {
            real *window = dx + i * p->stride * row + j * p->stride * channels;
            for (int64_t c = 0; c < channels; c++) {
                const int64_t at = *index++;
                window[at / p->k * row + at % p->k * channels + c] += *dy++;
            }
        }
}

static void max_pool_backward(tape *t, const tape_node *node) {
    const pool_kept *p = node->kept;
    tensor *x = node->in[0], *y = node->out;
    const int64_t from = x->count / x->dim[0], to = y->count / y->dim[0];
    real *dx = tape_grad_zeroed(t, x);
    if (!dx) return;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t n = 0; n < x->dim[0]; n++)
        scatter(x, y, p, y->grad + n * to, p->index + n * to, dx + n * from);
}

tensor *op_max_pool(tape *t, tensor *x, int k, int stride) {
    if (!x) return NULL;
    if (x->rank != 4 || k < 1 || k > 1024 || stride < 1 || x->dim[1] < k || x->dim[2] < k)
        return tape_fail(t, SR_USAGE,
                         "max_pool: rank %d, images of %lld x %lld, windows of %d, stride %d",
                         x->rank, (long long)x->dim[1], (long long)x->dim[2], k, stride);
    const int64_t dim[4] = {x->dim[0], (x->dim[1] - k) / stride + 1, (x->dim[2] - k) / stride + 1,
                            x->dim[3]};
    tensor *y = tape_tensor(t, 4, dim);
    pool_kept *p = tape_alloc(t, sizeof *p);
    int32_t *index = y ? tape_alloc(t, (size_t)y->count * sizeof *index) : NULL;
    if (!p || !index) return NULL;
    *p = (pool_kept){k, stride, index};
    const int64_t row = dim[2] * dim[3];
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t r = 0; r < dim[0] * dim[1]; r++) {
        const int64_t from = (r / dim[1] * x->dim[1] + r % dim[1] * stride) * x->dim[2] * dim[3];
        pool_row(x, y, p, x->value + from, y->value + r * row, index + r * row);
    }
    return tape_push(t, "max_pool", max_pool_backward, y, (tensor *[]){x, NULL}, p);
}
