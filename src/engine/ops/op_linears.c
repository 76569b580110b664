/* op_linears.c -- several affine maps of one x in one product, as attention needs them.
 *
 * x [rows, in], w_i [out, in], b_i [out], i < count:
 *   y_i = x w_i^T + b_i            [y_0 y_1 ..] = x [w_0; w_1; ..]^T + [b_0 b_1 ..]
 *   dx  = sum_i dy_i w_i           = [dy_0 dy_1 ..] [w_0; w_1; ..]
 *   dw_i += dy_i^T x               [dw_0; dw_1; ..] += [dy_0 dy_1 ..]^T x
 *   db_i as in op_linear.c
 * Semicolons concatenate rows. x is packed once instead of count times, and dx is written once.
 *
 * Each y_i has a node, whose backward function keeps dy_i. A common node was pushed before them, so
 * it runs after them and computes the products of the gradients that arrived. Kept for backward:
 * nothing but the inputs. */
#include "engine/gemm_group.h"
#include "engine/ops/bias.h"
#include "engine/ops/ops.h"

typedef struct linears {
    tensor *x, *w[PRODUCTS_TOGETHER], *b[PRODUCTS_TOGETHER];
    int count;
    real *dy[PRODUCTS_TOGETHER]; /* NULL: none arrived */
} linears;

typedef struct linears_member {
    linears *of;
    int number;
} linears_member;

/* dx [+]= sum of the gradients dy that arrived times their weights. */
static void input_gradient(tape *t, const linears *l, int64_t rows, int64_t in, int64_t out) {
    bool add;
    int count = 0;
    real *dx = tape_grad(t, l->x, &add);
    gemm_group p[PRODUCTS_TOGETHER];
    for (int i = 0; i < l->count && dx; i++)
        if (l->dy[i])
            p[count++] = (gemm_group){false,          false, rows, in, out, l->dy[i], out,
                                      l->w[i]->value, in,    add,  dx, in,  NULL};
    if (count) gemm_grouped(&t->operands, SIDES_DEPTH, count, p, t->threads);
}

static void weight_gradients(tape *t, const linears *l, int64_t rows, int64_t in, int64_t out) {
    int count = 0;
    gemm_group p[PRODUCTS_TOGETHER];
    for (int i = 0; i < l->count; i++) {
        bool add;
        real *dw = l->dy[i] ? tape_grad(t, l->w[i], &add) : NULL;
        if (dw)
            p[count++] = (gemm_group){true,        false, out, in, rows, l->dy[i], out,
                                      l->x->value, in,    add, dw, in,   NULL};
    }
    if (count) gemm_grouped(&t->operands, SIDES_ROWS, count, p, t->threads);
}

static void linears_backward(tape *t, const tape_node *node) {
    linears *l = node->kept;
    const int64_t rows = tensor_rows(l->x), in = tensor_features(l->x), out = l->w[0]->dim[0];
    input_gradient(t, l, rows, in, out);
    weight_gradients(t, l, rows, in, out);
    for (int i = 0; i < l->count; i++) {
        if (!l->dy[i]) continue;
        if (l->b[i]) bias_gradient(t, l->dy[i], rows, out, l->b[i]);
        tape_return(t, l->dy[i], (size_t)(rows * out) * sizeof(real));
        l->dy[i] = NULL; /* another loss may give none */
    }
}

static void member_backward(tape *t, const tape_node *node) {
    const linears_member *m = node->kept;
    m->of->dy[m->number] = tape_keep_grad(t, node->out);
    tape_grad_zeroed(t, node->in[0]);
}

static void linears_forward(tape *t, const linears *l, tensor *const *y) {
    const int64_t rows = tensor_rows(l->x), in = tensor_features(l->x), out = l->w[0]->dim[0];
    gemm_group p[PRODUCTS_TOGETHER];
    for (int i = 0; i < l->count; i++)
        p[i] = (gemm_group){false,
                            true,
                            rows,
                            out,
                            in,
                            l->x->value,
                            in,
                            l->w[i]->value,
                            in,
                            0,
                            y[i]->value,
                            out,
                            l->b[i] ? l->b[i]->value : NULL};
    gemm_grouped(&t->operands, SIDES_COLUMNS, l->count, p, t->threads);
}

/* Pushes the common node. No op reads its result; it has a gradient when a member has one. */
static tensor *push_all(tape *t, linears *l) {
    tensor *in[NODE_INPUTS] = {l->x};
    int used = 1;
    for (int i = 0; i < l->count; i++) in[used++] = l->w[i];
    for (int i = 0; i < l->count; i++)
        if (l->b[i]) in[used++] = l->b[i];
    tensor *all = tape_tensor(t, 1, (int64_t[]){1});
    return tape_push_reading(t, "linear", linears_backward, all, in, l,
                             ((1u << (l->count + 1)) - 1));
}

/* Sets all y to NULL after a failure. */
static bool make_together(tape *t, linears *l, tensor **y) {
    tensor *made[PRODUCTS_TOGETHER];
    for (int i = 0; i < l->count; i++)
        if (!(made[i] = tape_with_features(t, l->x, l->w[0]->dim[0]))) return false;
    linears_forward(t, l, made);
    tensor *all = push_all(t, l);
    if (!all) return false;
    for (int i = 0; i < l->count; i++) {
        linears_member *m = tape_alloc(t, sizeof *m);
        if (!m) return false;
        *m = (linears_member){l, i};
        made[i] = tape_push_reading(t, "linear", member_backward, made[i], (tensor *[]){all, NULL},
                                    m, READS_NOTHING);
        if (!made[i]) return false;
    }
    for (int i = 0; i < l->count; i++) y[i] = made[i];
    return true;
}

/* False when op_linear must report the error. */
static bool fit_together(const tape *t, const linears *l) {
    const int64_t in = tensor_features(l->x);
    for (int i = 0; i < l->count; i++) {
        const tensor *w = l->w[i], *b = l->b[i];
        if (!w || w->rank != 2 || w->dim[1] != in || w->dim[0] != l->w[0]->dim[0]) return false;
        /* The gradient of a weight is one block of a product, so two may not write it. */
        for (int j = 0; j < i; j++)
            if (l->w[j] == w) return false;
        if (b && b->count != w->dim[0]) return false;
    }
    return l->count > 1 && !t->bf16;
}

bool op_linears(tape *t, tensor *x, int count, tensor *const *w, tensor *const *b, tensor **y) {
    bool good = true;
    for (int i = 0; i < count; i++) y[i] = NULL;
    if (!x) return false;
    if (count <= PRODUCTS_TOGETHER) {
        linears *l = tape_alloc(t, sizeof *l);
        if (!l) return false;
        *l = (linears){.x = x, .count = count};
        for (int i = 0; i < count; i++) l->w[i] = w[i], l->b[i] = b[i];
        if (fit_together(t, l)) return make_together(t, l, y);
    }
    for (int i = 0; i < count; i++) good = (y[i] = op_linear(t, x, w[i], b[i])) && good;
    return good;
}
