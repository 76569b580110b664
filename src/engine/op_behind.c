/* op_behind.c -- rows of x behind rows that no gradient goes to: the memory of a recurrent model
 * (Dai et al., Transformer-XL, ACL 2019, section 3.2; docs/models.md 4).
 *
 *   front [B, M, d], x [B, T, d] -> y [B, M + T, d];   dx = the last T rows of dy of each sequence
 */
#include <string.h>

#include "statnet/ops.h"

static void behind_backward(tape *t, const tape_node *node) {
    const tensor *x = node->in[0], *y = node->out;
    const int64_t size = x->count / x->dim[0], all = y->count / y->dim[0];
    bool add;
    real *dx = tape_grad(t, node->in[0], &add);
    if (!dx) return;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t b = 0; b < x->dim[0]; b++) {
        const real *dy = y->grad + (b + 1) * all - size;
        real *to = dx + b * size;
        if (!add) memcpy(to, dy, (size_t)size * sizeof *to);
        for (int64_t i = 0; add && i < size; i++) to[i] += dy[i];
    }
}

tensor *op_behind(tape *t, const tensor *front, tensor *x) {
    if (!x || !front) return x;
    if (x->rank != 3 || front->rank != 3 || front->dim[0] != x->dim[0] ||
        front->dim[2] != x->dim[2])
        return tape_fail(t, SR_USAGE, "behind: front must be [B, M, d], x [B, T, d]");
    tensor *y = tape_tensor(t, 3, (int64_t[]){x->dim[0], front->dim[1] + x->dim[1], x->dim[2]});
    if (!y) return NULL;
    const int64_t size = x->count / x->dim[0], before = front->count / x->dim[0];
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t b = 0; b < x->dim[0]; b++) {
        real *to = y->value + b * (before + size);
        memcpy(to, front->value + b * before, (size_t)before * sizeof *to);
        memcpy(to + before, x->value + b * size, (size_t)size * sizeof *to);
    }
    return tape_push(t, "behind", behind_backward, y, (tensor *[]){x, NULL}, NULL);
}
