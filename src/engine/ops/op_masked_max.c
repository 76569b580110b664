/* op_masked_max.c -- the largest value of each feature over the valid positions of a sequence.
 *
 * x [N, C, F], valid [N, C] (NULL: everywhere), y [N, F]:
 *   y[n, f] = max over c with valid[n, c] of x[n, c, f]         0 where no position is valid
 *   dx[n, c, f] = dy[n, f] at the position of the maximum
 *
 * Ties: the first of equal values gets the whole gradient. NaN is larger than every number; the
 * first NaN wins. Kept: the position of each maximum, -1: none. */

#include "engine/ops/ops.h"
#include "engine/work_chunks.h"

static void max_of_sequence(int64_t C, int64_t F, const uint8_t *valid, const real *restrict x,
                            real *restrict y, int32_t *restrict position) {
    int64_t seen = 0;
    for (int64_t f = 0; f < F; f++) y[f] = 0, position[f] = -1;
    for (int64_t c = 0; c < C; c++) {
        if (valid && !valid[c]) continue;
        const real *here = x + c * F;
        for (int64_t f = 0; f < F; f++) {
            const bool larger = !seen || (!(here[f] <= y[f]) && y[f] == y[f]);
            y[f] = larger ? here[f] : y[f];
            position[f] = larger ? (int32_t)c : position[f];
        }
        seen++;
    }
}

static void masked_max_backward(tape *t, const tape_node *node) {
    const int32_t *position = node->kept;
    const tensor *x = node->in[0], *y = node->out;
    const int64_t C = x->dim[1], F = x->dim[2];
    real *dx = tape_grad_zeroed(t, node->in[0]);
    if (!dx) return;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (x->count > CHUNK)
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t f = 0; f < F; f++) {
            const int64_t at = position[n * F + f];
            if (at >= 0) dx[(n * C + at) * F + f] += y->grad[n * F + f];
        }
}

tensor *op_masked_max(tape *t, tensor *x, const uint8_t *valid) {
    if (!x) return NULL;
    if (x->rank != 3) return tape_fail(t, SR_USAGE, "masked_max: rank %d, not [N, C, F]", x->rank);
    const int64_t C = x->dim[1], F = x->dim[2];
    tensor *y = tape_tensor(t, 2, (int64_t[]){x->dim[0], F});
    int32_t *position = y ? tape_alloc(t, (size_t)y->count * sizeof *position) : NULL;
    if (!position) return NULL;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (x->count > CHUNK)
    for (int64_t n = 0; n < x->dim[0]; n++)
        max_of_sequence(C, F, valid ? valid + n * C : NULL, x->value + n * C * F, y->value + n * F,
                        position + n * F);
    return tape_push(t, "masked_max", masked_max_backward, y, (tensor *[]){x, NULL}, position);
}
