/* op_linear.c -- affine map of the last dimension.
 *
 * x [rows, in], w [out, in] (row = output unit), b [out] or none:
 *   y  = x w^T + b        [rows, out]
 *   dx = dy w
 *   dw += dy^T x
 *   db += sum over rows of dy, in double, by fixed blocks of rows merged in their order
 * In bfloat16 (tape.h), r of bf16.h:
 *   y  = r(r(x) r(w)^T + b)      dx = r(dy) r(w)      dw += r(dy)^T r(x)
 * Kept for backward: nothing but the inputs.
 */
#include "engine/gemm/bf16.h"
#include "engine/gemm/gemm.h"
#include "engine/ops/bias.h"
#include "engine/ops/ops.h"

/* c = op(a) op(b) + beta c, contiguous: the sizes give lda, ldb and ldc. */
static void product(tape *t, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const real *a,
                    const real *b, bool beta, real *c) {
    const int64_t lda = ta ? m : k, ldb = tb ? k : n;
    if (t->bf16)
        gemm_bf16(&t->operands, t->threads, ta, tb, m, n, k, a, lda, b, ldb, beta, c, n,
                  &t->failure);
    else
        gemm(&t->operands, t->threads, ta, tb, m, n, k, a, lda, b, ldb, beta, c, n);
}

static void rounded_forward(tape *t, const tensor *x, const tensor *w, const tensor *b, tensor *y) {
    if (b) {
        int64_t rows = tensor_rows(y), out = tensor_features(y);
#pragma omp parallel for num_threads(t->threads) schedule(static) if (y->count > 1 << 15)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < out; j++) y->value[r * out + j] = b->value[j];
    }
    product(t, false, true, tensor_rows(x), w->dim[0], w->dim[1], x->value, w->value, b != NULL,
            y->value);
    bf16_round(t->threads, y->count, y->value, y->value);
}

static void linear_backward(tape *t, const tape_node *node) {
    tensor *x = node->in[0], *w = node->in[1], *b = node->in[2];
    const real *dy = node->out->grad;
    int64_t rows = tensor_rows(x), in = tensor_features(x), out = tensor_features(node->out);
    bool add;
    real *dx = tape_grad(t, x, &add);
    if (dx) product(t, false, false, rows, in, out, dy, w->value, add, dx);
    real *dw = tape_grad(t, w, &add);
    if (dw) product(t, true, false, out, in, rows, dy, x->value, add, dw);
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
    tensor *y = tape_with_features(t, x, out);
    if (!y) return NULL;
    if (t->bf16)
        rounded_forward(t, x, w, b, y);
    else
        gemm_biased(&t->operands, t->threads, false, true, rows, out, in, x->value, in, w->value,
                    in, b ? b->value : NULL, y->value, out);
    return tape_push_reading(t, "linear", linear_backward, y, (tensor *[]){x, w, b, NULL}, NULL,
                             READS_IN(0) | READS_IN(1));
}
