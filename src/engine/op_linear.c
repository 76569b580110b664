/* op_linear.c -- affine map of the last dimension.
 *
 * x [rows, in], w [out, in] (row = output unit), b [out] or none:
 *   y  = x w^T + b        [rows, out]
 *   dx = dy w
 *   dw += dy^T x
 *   db += sum over rows of dy, in double, by fixed blocks of rows merged in their order
 * Kept for backward: nothing but the inputs.
 */
#include "bias.h"
#include "statnet/gemm.h"
#include "statnet/ops.h"

static void fill_with_bias(const tape *t, tensor *y, const tensor *b) {
    int64_t rows = tensor_rows(y), out = tensor_features(y);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (y->count > 1 << 15)
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < out; j++) y->value[r * out + j] = b->value[j];
}

static void linear_backward(tape *t, const tape_node *node) {
    tensor *x = node->in[0], *w = node->in[1], *b = node->in[2];
    const real *dy = node->out->grad;
    int64_t rows = tensor_rows(x), in = tensor_features(x), out = tensor_features(node->out);
    bool add;
    real *dx = tape_grad(t, x, &add);
    if (dx) gemm(t->threads, false, false, rows, in, out, dy, out, w->value, in, add, dx, in);
    real *dw = tape_grad(t, w, &add);
    if (dw) gemm(t->threads, true, false, out, in, rows, dy, out, x->value, in, add, dw, in);
    if (b) bias_gradient(t, dy, rows, out, b);
}

tensor *op_linear(tape *t, tensor *x, tensor *w, tensor *b) {
    if (!x || !w) return NULL;
    int64_t rows = tensor_rows(x), in = tensor_features(x), out = w->dim[0];
    if (w->rank != 2 || w->dim[1] != in)
        return tape_fail(t, SR_USAGE, "linear: input of %lld features, weight [%lld, %lld]",
                         (long long)in, (long long)out, (long long)w->dim[1]);
    if (b && b->count != out)
        return tape_fail(t, SR_USAGE, "linear: %lld outputs, bias of %lld", (long long)out,
                         (long long)b->count);
    int64_t dim[4] = {x->dim[0], x->dim[1], x->dim[2], x->dim[3]};
    dim[x->rank - 1] = out;
    tensor *y = tape_tensor(t, x->rank, dim);
    if (!y) return NULL;
    if (b) fill_with_bias(t, y, b);
    gemm(t->threads, false, true, rows, out, in, x->value, in, w->value, in, b != NULL, y->value,
         out);
    return tape_push(t, "linear", linear_backward, y, (tensor *[]){x, w, b, NULL}, NULL);
}
