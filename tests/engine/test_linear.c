/* op_linear and its gradients against loops in double; accumulated gradients; equal bytes for any
 * number of threads; wrong shapes. */
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "engine/ops/ops.h"
#include "reals.h"
#include "testing/check.h"

enum { X, W, B, INPUTS };

typedef struct layer {
    tape *t;
    int64_t rows, in, out;
    tensor *tensor[INPUTS];
    real *dy;
    double *y, *dx, *dw, *db;
} layer;

static double *doubles(int64_t count) {
    double *x = calloc((size_t)count, sizeof *x);
    assert_non_null(x);
    return x;
}

static void layer_want(layer *l) {
    const real *x = l->tensor[X]->value, *w = l->tensor[W]->value, *b = l->tensor[B]->value;
    for (int64_t r = 0; r < l->rows; r++)
        for (int64_t o = 0; o < l->out; o++) {
            double dy = (double)l->dy[r * l->out + o], *y = l->y + r * l->out + o;
            *y = (double)b[o];
            l->db[o] += dy;
            for (int64_t i = 0; i < l->in; i++) {
                *y += (double)x[r * l->in + i] * (double)w[o * l->in + i];
                l->dx[r * l->in + i] += dy * (double)w[o * l->in + i];
                l->dw[o * l->in + i] += dy * (double)x[r * l->in + i];
            }
        }
}

static layer layer_create(int threads, int64_t rows, int64_t in, int64_t out) {
    layer l = {.t = reals_tape(threads), .rows = rows, .in = in, .out = out};
    l.tensor[X] = reals_tensor(l.t, 2, (int64_t[]){rows, in}, 1);
    l.tensor[W] = reals_tensor(l.t, 2, (int64_t[]){out, in}, 2);
    l.tensor[B] = reals_tensor(l.t, 1, (int64_t[]){out}, 3);
    l.dy = reals_random(rows * out, 4);
    l.y = doubles(rows * out), l.dx = doubles(rows * in), l.dw = doubles(out * in);
    l.db = doubles(out);
    layer_want(&l);
    return l;
}

static void layer_free(layer *l) {
    tape_free(l->t);
    free(l->dy), free(l->y), free(l->dx), free(l->dw), free(l->db);
}

/* Forward and backward once more: gradients add. */
static tensor *layer_run(layer *l) {
    tensor *y = op_linear(l->t, l->tensor[X], l->tensor[W], l->tensor[B]);
    reals_backward(l->t, y, l->dy);
    l->t->last = NULL; /* the nodes have been run */
    return y;
}

static void layer_check(const layer *l, const char *what, double times) {
    double tolerance = sizeof(real) == 4 ? 2e-4 : 1e-11;
    double *want[] = {l->dx, l->dw, l->db};
    for (int i = 0; i < INPUTS; i++) {
        int64_t count = l->tensor[i]->count;
        double *scaled = doubles(count);
        for (int64_t j = 0; j < count; j++) scaled[j] = times * want[i][j];
        reals_check(what, l->tensor[i]->grad, scaled, count, tolerance, tolerance);
        free(scaled);
    }
}

static void run_layer(int64_t rows, int64_t in, int64_t out) {
    layer l = layer_create(1, rows, in, out);
    tensor *y = layer_run(&l);
    reals_check("y", y->value, l.y, y->count, 1e-5, sizeof(real) == 4 ? 1e-4 : 1e-12);
    layer_check(&l, "first gradient", 1);
    layer_run(&l);
    layer_check(&l, "gradient added", 2);
    layer_free(&l);
}

static void values_and_gradients(void **state) {
    (void)state;
    run_layer(1, 1, 1);
    run_layer(3, 5, 2);
    run_layer(300, 33, 17);
    run_layer(1100, 128, 70);
}

static void same_bytes_for_any_threads(void **state) {
    (void)state;
    layer l[3];
    tensor *y[3];
    for (int i = 0; i < 3; i++) {
        l[i] = layer_create(i + 1, 1037, 130, 67);
        y[i] = layer_run(&l[i]);
    }
    for (int i = 1; i < 3; i++) {
        reals_check_bytes("y", y[i]->value, y[0]->value, y[0]->count);
        for (int j = 0; j < INPUTS; j++)
            reals_check_bytes("gradient", l[i].tensor[j]->grad, l[0].tensor[j]->grad,
                              l[0].tensor[j]->count);
    }
    for (int i = 0; i < 3; i++) layer_free(&l[i]);
}

static void wrong_shapes_and_null(void **state) {
    (void)state;
    layer l = layer_create(1, 3, 5, 2);
    assert_null(op_linear(l.t, NULL, l.tensor[W], NULL));
    assert_null(op_linear(l.t, l.tensor[X], NULL, NULL));
    assert_null(tape_failure(l.t));
    assert_null(op_linear(l.t, l.tensor[X], l.tensor[W], l.tensor[X]));
    check_failure(tape_failure(l.t), SR_USAGE, "linear: 2 outputs, bias of 15");
    tape_reset(l.t, rng_create(1), true, true);
    tensor *x = reals_tensor(l.t, 2, (int64_t[]){3, 6}, 1);
    tensor *w = reals_tensor(l.t, 2, (int64_t[]){2, 5}, 2);
    assert_null(op_linear(l.t, x, w, NULL));
    check_failure(tape_failure(l.t), SR_USAGE, "linear: input of 6 features, weight [2, 5]");
    layer_free(&l);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_gradients),
        cmocka_unit_test(same_bytes_for_any_threads),
        cmocka_unit_test(wrong_shapes_and_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
