/* op_concat.c -- concatenates tensors along an axis: y = [x_1, x_2, ...]. All x_i have the same
 * rank and equal dims except dim[axis]; y->dim[axis] is the sum of theirs.
 *
 * Backward: dx_i = its block of dy. Kept: the axis. */
#include "engine/axis_blocks.h"
#include "engine/ops/ops.h"

static void concat_backward(tape *t, const tape_node *node) {
    const int axis = *(const int *)node->kept;
    const tensor *y = node->out;
    const int64_t outer = axis_blocks_outer(y, axis), inner = axis_blocks_inner(y, axis);
    const int64_t row = y->dim[axis] * inner;
    const real *dy = y->grad;
    for (int i = 0; i < NODE_INPUTS && node->in[i]; i++) {
        const int64_t length = node->in[i]->dim[axis] * inner;
        bool add;
        real *dx = tape_grad(t, node->in[i], &add);
        if (dx) axis_blocks_move(t->threads, add, outer, length, dy, row, dx, length);
        dy += length;
    }
}

/* Checks the inputs and fills the shape of the result. */
static bool parts_fit(tape *t, tensor *const *part, int n, int axis, int64_t dim[4]) {
    if (n < 1 || n > NODE_INPUTS)
        return tape_fail(t, SR_USAGE, "concat: %d tensors, not 1 to %d", n, NODE_INPUTS);
    if (axis < 0 || axis >= part[0]->rank)
        return tape_fail(t, SR_USAGE, "concat: axis %d of %d", axis, part[0]->rank);
    memcpy(dim, part[0]->dim, sizeof part[0]->dim);
    for (int i = 1; i < n; i++) {
        bool same = part[i]->rank == part[0]->rank;
        for (int k = 0; same && k < part[i]->rank; k++)
            same = k == axis || part[i]->dim[k] == dim[k];
        if (!same)
            return tape_fail(t, SR_USAGE, "concat: tensor %d differs in more than axis %d", i,
                             axis);
        dim[axis] += part[i]->dim[axis];
    }
    return true;
}

tensor *op_concat(tape *t, tensor *const *part, int n, int axis) {
    for (int i = 0; i < n; i++)
        if (!part[i]) return NULL;
    int64_t dim[4];
    if (!parts_fit(t, part, n, axis, dim)) return NULL;
    tensor *y = tape_tensor(t, part[0]->rank, dim);
    int *kept = y ? tape_alloc(t, sizeof *kept) : NULL;
    if (!kept) return NULL;
    *kept = axis;
    const int64_t outer = axis_blocks_outer(y, axis), inner = axis_blocks_inner(y, axis);
    tensor *in[NODE_INPUTS] = {NULL};
    real *to = y->value;
    for (int i = 0; i < n; i++) {
        const int64_t length = part[i]->dim[axis] * inner;
        axis_blocks_move(t->threads, false, outer, length, part[i]->value, length, to,
                         dim[axis] * inner);
        to += length;
        in[i] = part[i];
    }
    return tape_push(t, "concat", concat_backward, y, in, kept);
}
