/* op_average_pool.c -- mean over all positions of an image.
 *
 * x [N, H, W, C], P = H W positions:
 *   y[n,c]    = 1/P sum over p of x[n,p,c]      (sum in double)
 *   dx[n,p,c] = dy[n,c]/P
 * The positions are the words of a sentence without padding (op_masked_mean.c). */
#include "engine/ops/image/image_ops.h"
#include "engine/ops/ops.h"

tensor *op_average_pool(tape *t, tensor *x) {
    if (!x) return NULL;
    if (x->rank != 4) return tape_fail(t, SR_USAGE, "average_pool: rank %d is not 4", x->rank);
    const int64_t dim[3] = {x->dim[0], x->dim[1] * x->dim[2], x->dim[3]};
    return op_masked_mean(t, tape_reshape(t, x, 3, dim), NULL);
}
