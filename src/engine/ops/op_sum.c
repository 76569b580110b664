/* op_sum.c -- y = sum over all elements of x, in double and in their order; dx = dy everywhere. */
#include "engine/ops/ops.h"

static void sum_backward(tape *t, const tape_node *node) {
    bool add;
    const real g = node->out->grad[0];
    real *dx = tape_grad(t, node->in[0], &add);
    for (int64_t i = 0; dx && i < node->in[0]->count; i++) dx[i] = add ? dx[i] + g : g;
}

tensor *op_sum(tape *t, tensor *x) {
    tensor *y = x ? tape_tensor(t, 1, (int64_t[]){1}) : NULL;
    double sum = 0;
    if (!y) return NULL;
    for (int64_t i = 0; i < x->count; i++) sum += (double)x->value[i];
    y->value[0] = (real)sum;
    return tape_push(t, "sum", sum_backward, y, (tensor *[]){x, NULL}, NULL);
}
