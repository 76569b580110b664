/* op_shortcut and op_average_pool by hand; gradients that add; same
 * bytes for any number of threads; wrong shapes. */
#include <stdlib.h>

#include "../check.h"
#include "reals.h"
#include "statnet/gemm.h"
#include "statnet/ops.h"

static tensor *input(tape *t, int64_t n, int64_t h, int64_t w, int64_t c) {
    return reals_tensor(t, 4, (int64_t[]){n, h, w, c}, 5);
}

static void shortcut_by_hand(void **state) {
    (void)state;
    tape *t = reals_tape(2);
    tensor *x = input(t, 3, 5, 4, 3);
    tensor *y = op_shortcut(t, x, 2, 8);
    reals_check_tape(t);
    assert_true(y->rank == 4 && y->dim[0] == 3 && y->dim[1] == 3 && y->dim[2] == 2);
    real *dy = reals_random(y->count, 6);
    reals_backward(t, y, dy);
    t->last = NULL;
    reals_backward(t, op_shortcut(t, x, 2, 8), dy);
    for (int64_t n = 0; n < 3; n++)
        for (int64_t i = 0; i < 5; i++)
            for (int64_t j = 0; j < 4; j++)
                for (int64_t c = 0; c < 8; c++) {
                    bool sampled = i % 2 == 0 && j % 2 == 0, middle = c >= 2 && c < 5;
                    int64_t from = ((n * 5 + i) * 4 + j) * 3 + c - 2;
                    int64_t to = ((n * 3 + i / 2) * 2 + j / 2) * 8 + c;
                    if (sampled) assert_true(y->value[to] == (middle ? x->value[from] : 0));
                    if (middle) assert_true(x->grad[from] == (sampled ? 2 * dy[to] : 0));
                }
    free(dy);
    tape_free(t);
}

static void shortcut_of_equal_shape_is_its_input(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    tensor *x = input(t, 2, 3, 3, 4);
    assert_ptr_equal(op_shortcut(t, x, 1, 4), x);
    assert_null(op_shortcut(t, NULL, 1, 4));
    assert_null(tape_failure(t));
    assert_null(op_shortcut(t, x, 2, 3));
    check_failure(tape_failure(t), SR_USAGE, "shortcut: rank 4, 4 channels to 3");
    tape_free(t);
}

/* 70 channels: more than are summed at a time. */
static void average_by_hand(void **state) {
    (void)state;
    tape *t = reals_tape(2);
    tensor *x = input(t, 5, 3, 7, 70);
    for (int64_t i = 0; i < x->count; i++) x->value[i] += 1000;
    tensor *y = op_average_pool(t, x);
    reals_check_tape(t);
    real *dy = reals_random(y->count, 6);
    reals_backward(t, y, dy);
    t->last = NULL;
    reals_backward(t, op_average_pool(t, x), dy);
    double *mean = calloc((size_t)y->count, sizeof *mean),
           *dx = calloc((size_t)x->count, sizeof *dx);
    assert_true(mean && dx);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t to = i / (21 * 70) * 70 + i % 70;
        mean[to] += (double)x->value[i] / 21;
        dx[i] = 2 * (double)dy[to] / 21;
    }
    reals_check("mean", y->value, mean, y->count, 1e-7, 0);
    reals_check("dx", x->grad, dx, x->count, 3e-7, 0);
    free(mean), free(dx), free(dy);
    assert_null(op_average_pool(t, y));
    check_failure(tape_failure(t), SR_USAGE, "average_pool: rank 2");
    tape_free(t);
}

typedef tensor *build_fn(tape *t, tensor *x);

static tensor *build_shortcut(tape *t, tensor *x) {
    return op_shortcut(t, x, 2, 32);
}

static void check_threads(build_fn *build) {
    tape *t[3];
    tensor *x[3], *y[3];
    for (int k = 0; k < 3; k++) {
        t[k] = reals_tape(k + 1);
        x[k] = input(t[k], 13, 9, 8, 16);
        y[k] = build(t[k], x[k]);
        real *dy = reals_random(y[k]->count, 6);
        reals_backward(t[k], y[k], dy);
        free(dy);
        reals_check_bytes("y", y[k]->value, y[0]->value, y[0]->count);
        reals_check_bytes("dx", x[k]->grad, x[0]->grad, x[0]->count);
    }
    for (int k = 0; k < 3; k++) tape_free(t[k]);
}

static void same_bytes_for_any_threads(void **state) {
    (void)state;
    check_threads(build_shortcut);
    check_threads(op_average_pool);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shortcut_by_hand),
        cmocka_unit_test(shortcut_of_equal_shape_is_its_input),
        cmocka_unit_test(average_by_hand),
        cmocka_unit_test(same_bytes_for_any_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
