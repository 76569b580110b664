/* op_unfold.c -- each position of a sequence with its neighbours, zeros beyond its ends: the input
 * of a 1-D convolution. x [N, C, d], y [N, C, width d], width odd, h = width/2 rounded down.
 *
 *   y[n, c, k d + m] = x[n, c + k - h, m]       0 where c + k - h is not a position
 *
 * op_linear after it, with weights [filters, width d], is the convolution. Backward: dx[n, c, m] =
 * sum_k dy[n, c - k + h, k d + m], k rising. Kept: the width. */
#include <string.h>

#include "engine/ops/ops.h"
#include "engine/work_chunks.h"

/* Row of windows at position c of C; x and y of one sequence. */
static void window_row(int64_t C, int64_t d, int64_t width, int64_t c, const real *x, real *y) {
    for (int64_t k = 0; k < width; k++) {
        const int64_t from = c + k - width / 2;
        real *to = y + (c * width + k) * d;
        if (from < 0 || from >= C)
            memset(to, 0, (size_t)d * sizeof *to);
        else
            memcpy(to, x + from * d, (size_t)d * sizeof *to);
    }
}

static void window_row_back(int64_t C, int64_t d, int64_t width, int64_t c, const real *dy,
                            real *restrict dx) {
    for (int64_t k = 0; k < width; k++) {
        const int64_t at = c - k + width / 2;
        if (at < 0 || at >= C) continue;
        const real *restrict from = dy + (at * width + k) * d;
        for (int64_t m = 0; m < d; m++) dx[c * d + m] += from[m];
    }
}

static void windows_backward(tape *t, const tape_node *node) {
    const tensor *x = node->in[0], *y = node->out;
    const int64_t C = x->dim[1], d = x->dim[2], width = *(const int64_t *)node->kept;
    real *dx = tape_grad_zeroed(t, node->in[0]);
    if (!dx) return;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (y->count > CHUNK)
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t c = 0; c < C; c++)
            window_row_back(C, d, width, c, y->grad + n * C * width * d, dx + n * C * d);
}

tensor *op_unfold(tape *t, tensor *x, int64_t width) {
    if (!x) return NULL;
    if (x->rank != 3 || width < 1 || width % 2 == 0)
        return tape_fail(t, SR_USAGE, "windows: rank %d, windows of %lld", x->rank,
                         (long long)width);
    const int64_t C = x->dim[1], d = x->dim[2];
    tensor *y = tape_tensor(t, 3, (int64_t[]){x->dim[0], C, width * d});
    int64_t *kept = y ? tape_alloc(t, sizeof *kept) : NULL;
    if (!kept) return NULL;
    *kept = width;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (y->count > CHUNK)
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t c = 0; c < C; c++)
            window_row(C, d, width, c, x->value + n * C * d, y->value + n * C * width * d);
    return tape_push(t, "windows", windows_backward, y, (tensor *[]){x, NULL}, kept);
}
