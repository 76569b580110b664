/* op_slice.c -- indices first .. first+count-1 of an axis. y has the rank of x and dim[axis] =
 * count.
 *
 * Backward: dx += dy at these indices, 0 elsewhere. Kept: axis and first. */
#include "engine/axis_blocks.h"
#include "engine/ops/ops.h"

typedef struct range {
    int axis;
    int64_t first;
} range;

static void slice_backward(tape *t, const tape_node *node) {
    const range *r = node->kept;
    const tensor *x = node->in[0], *y = node->out;
    const int64_t outer = axis_blocks_outer(x, r->axis), inner = axis_blocks_inner(x, r->axis);
    const int64_t length = y->dim[r->axis] * inner;
    real *dx = tape_grad_zeroed(t, node->in[0]);
    if (dx)
        axis_blocks_move(t->threads, true, outer, length, y->grad, length, dx + r->first * inner,
                         x->dim[r->axis] * inner);
}

tensor *op_slice(tape *t, tensor *x, int axis, int64_t first, int64_t count) {
    if (!x) return NULL;
    if (axis < 0 || axis >= x->rank)
        return tape_fail(t, SR_USAGE, "slice: axis %d of %d", axis, x->rank);
    if (first < 0 || count < 1 || first > x->dim[axis] - count)
        return tape_fail(t, SR_USAGE, "slice: %lld numbers from %lld of %lld", (long long)count,
                         (long long)first, (long long)x->dim[axis]);
    int64_t dim[4];
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = count;
    tensor *y = tape_tensor(t, x->rank, dim);
    range *kept = y ? tape_alloc(t, sizeof *kept) : NULL;
    if (!kept) return NULL;
    *kept = (range){axis, first};
    const int64_t outer = axis_blocks_outer(x, axis), inner = axis_blocks_inner(x, axis);
    axis_blocks_move(t->threads, false, outer, count * inner, x->value + first * inner,
                     x->dim[axis] * inner, y->value, count * inner);
    return tape_push(t, "slice", slice_backward, y, (tensor *[]){x, NULL}, kept);
}
