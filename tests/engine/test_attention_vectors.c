/* A whole encoder layer without norms against the shared vectors: op_attention, op_linear,
 * op_scale, op_relu and op_add together, padding included. (Layers with norms: tests/nets.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "../oracle_file.h"
#include "reals.h"
#include "statnet/gemm.h"
#include "statnet/gradcheck.h"
#include "statnet/ops.h"

enum { X, WQ, BQ, WK, BK, WV, BV, WO, BO, W1, B1, W2, B2, INPUTS };
static const char *const names[INPUTS] = {"x",  "Wq", "bq", "Wk", "bk", "Wv", "bv",
                                          "Wo", "bo", "W1", "b1", "W2", "b2"};

typedef struct layer {
    const oracle_file *file;
    int number, heads;
    tensor *in[INPUTS];
    uint8_t *mask; /* [B T] */
    real *dy;
} layer;

static double *read_input(const layer *l, const char *name, int64_t dim[4], int64_t *count) {
    char path[32];
    snprintf(path, sizeof path, "in/%s", name);
    double *x = oracle_read(l->file, l->number, path, dim, count);
    if (!x) fail_msg("%s is missing", path);
    return x;
}

static tensor *read_tensor(const layer *l, const char *name) {
    int64_t dim[4], count;
    double *from = read_input(l, name, dim, &count);
    int rank = name[0] == 'x' ? 3 : name[0] == 'W' ? 2 : 1;
    tensor *x = gradcheck_tensor(rank, dim, 1, true);
    assert_non_null(x);
    assert_int_equal(x->count, count);
    for (int64_t i = 0; i < count; i++) x->value[i] = (real)from[i];
    free(from);
    return x;
}

static layer layer_read(const oracle_file *f, int number) {
    layer l = {.file = f, .number = number, .heads = (int)oracle_number(f, number, "heads", 0)};
    for (int i = 0; i < INPUTS; i++) l.in[i] = read_tensor(&l, names[i]);
    int64_t count;
    double *mask = read_input(&l, "mask", NULL, &count), *dy = read_input(&l, "dy", NULL, NULL);
    l.mask = malloc((size_t)count);
    l.dy = malloc((size_t)l.in[X]->count * sizeof *l.dy);
    for (int64_t i = 0; i < count; i++) l.mask[i] = mask[i] != 0;
    for (int64_t i = 0; i < l.in[X]->count; i++)
        l.dy[i] = l.mask[i / l.in[X]->dim[2]] ? (real)dy[i] : 0;
    free(dy);
    free(mask);
    return l;
}

static tensor *layer_build(tape *t, const layer *l) {
    tensor *const *in = l->in;
    double scale = 1 / sqrt((double)(in[X]->dim[2] / l->heads));
    tensor *q = op_scale(t, op_linear(t, in[X], in[WQ], in[BQ]), scale);
    tensor *k = op_linear(t, in[X], in[WK], in[BK]), *v = op_linear(t, in[X], in[WV], in[BV]);
    tensor *a = op_attention(t, q, k, v, l->heads, l->mask, false, 0);
    tensor *h = op_add(t, in[X], op_linear(t, a, in[WO], in[BO]));
    tensor *f = op_relu(t, op_linear(t, h, in[W1], in[B1]));
    return op_add(t, h, op_linear(t, f, in[W2], in[B2]));
}

static void compare(const layer *l, const char *name, const real *got, int64_t count, bool rows) {
    double *wide = malloc((size_t)count * sizeof *wide);
    for (int64_t i = 0; i < count; i++) wide[i] = (double)got[i];
    bool same = oracle_check(l->file, l->number, name, wide, count, rows ? l->mask : NULL,
                             rows ? l->in[X]->dim[2] : 1);
    free(wide);
    if (!same) fail_msg("case %d: %s differs", l->number, name);
}

static void check_layer(const oracle_file *f, int number) {
    layer l = layer_read(f, number);
    tape *t = reals_tape(2);
    tensor *y = layer_build(t, &l);
    reals_check_tape(t);
    reals_backward(t, y, l.dy);
    compare(&l, "y", y->value, y->count, true);
    for (int i = 0; i < INPUTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "d_%s", names[i]);
        compare(&l, name, l.in[i]->grad, l.in[i]->count, i == X);
        gradcheck_tensor_free(l.in[i]);
    }
    tape_free(t);
    free(l.dy);
    free(l.mask);
}

static void layers_without_norms(void **state) {
    (void)state;
    const char *path = check_shared("reference/vectors/models/encoder_layer.h5");
    if (!path) skip();
    oracle_file *f = oracle_open(path);
    assert_non_null(f);
    int checked = 0;
    for (int k = 0; k < oracle_cases(f); k++) {
        if (strcmp(oracle_text(f, k, "norm"), "none") != 0) continue;
        check_layer(f, k);
        checked++;
    }
    assert_true(checked > 0);
    oracle_close(f);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_without_norms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
