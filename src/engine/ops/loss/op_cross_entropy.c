/* op_cross_entropy.c -- softmax cross entropy with label smoothing, summed (docs/models.md 2.5).
 *
 * Row r with logits x [V] and target t, p = softmax(x):
 *   m = max_v x_v,  s = sum_v exp(x_v - m),  -log p_v = m - x_v + log s
 *   nll  = -log p_t
 *   loss = a nll + u sum_v(-log p_v)
 *   form 0 (SMOOTHING_ALL):    u = eps/V,      a = 1 - eps
 *   form 1 (SMOOTHING_OTHERS): u = eps/(V-1),  a = 1 - eps - u
 * Rows whose target is `ignore` are not counted. logits [rows, V], target [rows], result [1].
 *
 * Backward: dx_v = g (p_v - a [v = t] - u), zero in ignored rows; g = dL/dloss. (a + V u = 1.)
 * Kept: m and 1/s of each row, the caller's targets (copied); p is recomputed from x. log s is
 * log1p(s - 1): s starts with exp(0) = 1, so a tiny nll keeps its digits. Sums over rows are
 * double, in the order of the rows. */
#include <string.h>

#include "engine/ops/loss/loss_ops.h"
#include "engine/row_math.h"
#include "engine/work_chunks.h"

typedef struct row_result {
    double loss, nll;
    real max, inverse; /* m, 1/s */
    bool correct;
} row_result;

typedef struct cross_entropy {
    int32_t *target; /* [rows] */
    row_result *row; /* [rows] */
    int32_t ignore;
    double a, u;
} cross_entropy;

/* sum_v (m - x_v) */
static double row_below(int64_t n, const real *restrict x, real m) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += (double)m - (double)x[i];
    return sum;
}

static bool row_correct(const real *x, int32_t target, real m) {
    if (!(x[target] == m)) return false;
    for (int32_t v = 0; v < target; v++)
        if (x[v] == m) return false;
    return true;
}

static row_result forward_row(const cross_entropy *c, int64_t V, const real *x, int32_t target) {
    real m = row_max(V, x);
    double s = row_exp_sum(V, x, m), log_s = log1p(s - 1);
    row_result r = {.max = m, .inverse = (real)(1 / s)};
    r.nll = (double)m - (double)x[target] + log_s;
    r.loss = c->a * r.nll;
    if (c->u != 0) r.loss += c->u * (row_below(V, x, m) + (double)V * log_s);
    r.correct = row_correct(x, target, m);
    return r;
}

static void cross_entropy_backward(tape *t, const tape_node *node) {
    bool add;
    real *dx = tape_grad_over(t, node, 0, &add);
    if (!dx) return;
    const tensor *x = node->in[0];
    const cross_entropy *c = node->kept;
    int64_t V = tensor_features(x), rows = tensor_rows(x);
    real g = node->out->grad[0];
#pragma omp parallel for num_threads(t->threads) schedule(static) if (rows > chunk_rows(V))
    for (int64_t r = 0; r < rows; r++) {
        const row_result *row = c->row + r;
        real *to = dx + r * V; /* may be the memory of x */
        if (c->target[r] != c->ignore) {
            row_softmax_gradient(V, x->value + r * V, row->max, g * row->inverse, g * (real)c->u,
                                 add, to);
            to[c->target[r]] -= g * (real)c->a;
        } else if (!add) {
            memset(to, 0, (size_t)V * sizeof *to);
        }
    }
}

static cross_entropy *cross_entropy_create(tape *t, int64_t rows, int64_t V, const int32_t *target,
                                           int32_t ignore, double eps, smoothing_form form) {
    if (!(eps >= 0 && eps < 1) || (eps > 0 && form == SMOOTHING_OTHERS && V < 2))
        return tape_fail(t, SR_USAGE, "cross_entropy: smoothing %g of %lld classes", eps,
                         (long long)V);
    cross_entropy *c = tape_alloc(t, sizeof *c);
    if (!c) return NULL;
    c->ignore = ignore;
    c->u = eps == 0 ? 0 : eps / (double)(form == SMOOTHING_ALL ? V : V - 1);
    c->a = 1 - eps - (form == SMOOTHING_ALL ? 0 : c->u);
    c->target = tape_alloc(t, (size_t)rows * sizeof *c->target);
    c->row = tape_alloc(t, (size_t)rows * sizeof *c->row);
    if (!c->target || !c->row) return NULL;
    memcpy(c->target, target, (size_t)rows * sizeof *target);
    for (int64_t r = 0; r < rows; r++)
        if (target[r] != ignore && (target[r] < 0 || target[r] >= V))
            return tape_fail(t, SR_USAGE, "cross_entropy: target %d of row %lld, %lld classes",
                             target[r], (long long)r, (long long)V);
    return c;
}

static cross_entropy_report add_rows(const cross_entropy *c, int64_t rows, int32_t unk) {
    cross_entropy_report sum = {0};
    for (int64_t r = 0; r < rows; r++) {
        if (c->target[r] == c->ignore) continue;
        sum.loss += c->row[r].loss;
        sum.nll += c->row[r].nll;
        sum.tokens++;
        sum.correct += c->row[r].correct;
        sum.unknown += c->target[r] == unk;
    }
    return sum;
}

tensor *op_cross_entropy(tape *t, tensor *logits, const int32_t *target, int32_t ignore,
                         int32_t unk, double eps, smoothing_form form,
                         cross_entropy_report *report) {
    if (!logits) return NULL;
    int64_t V = tensor_features(logits), rows = tensor_rows(logits);
    cross_entropy *kept = cross_entropy_create(t, rows, V, target, ignore, eps, form);
    tensor *loss = kept ? tape_tensor(t, 1, (int64_t[]){1}) : NULL;
    if (!loss) return NULL;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (rows > chunk_rows(V))
    for (int64_t r = 0; r < rows; r++)
        if (target[r] != ignore)
            kept->row[r] = forward_row(kept, V, logits->value + r * V, target[r]);
    cross_entropy_report sum = add_rows(kept, rows, unk);
    loss->value[0] = (real)sum.loss;
    if (report) *report = sum;
    return tape_push_reading(t, "cross_entropy", cross_entropy_backward, loss,
                             (tensor *[]){logits, NULL}, kept, READS_IN(0));
}
