/* op_relu, op_add, op_scale and op_softmax: values, NaN and infinities, shapes, wrong arguments. */
#include <math.h>
#include <stdlib.h>

#include "../check.h"
#include "reals.h"
#include "statnet/gradcheck.h"
#include "statnet/ops.h"

static void relu_values(void **state) {
    (void)state;
    real x[5] = {-2, 0, 3, (real)NAN, (real)-INFINITY};
    const double y[5] = {0, 0, 3, NAN, 0}, dx[5] = {0, 0, 10, 10, 0};
    const real dy[5] = {10, 10, 10, 10, 10};
    tape *t = reals_tape(1);
    tensor *in = tape_wrap(t, 1, (int64_t[]){5}, x);
    in->wants_grad = true;
    tensor *out = op_relu(t, in);
    reals_backward(t, out, dy);
    reals_check("y", out->value, y, 5, 0, 0);
    reals_check("dx", in->grad, dx, 5, 0, 0);
    tape_free(t);
}

static void add_and_scale_values(void **state) {
    (void)state;
    enum { N = 20011 };
    tensor *a = gradcheck_tensor(1, (int64_t[]){N}, 1, true);
    tensor *b = gradcheck_tensor(1, (int64_t[]){N}, 2, true);
    real *dy = reals_random(N, 3);
    double *want = malloc(3 * N * sizeof *want);
    for (int i = 0; i < N; i++) {
        want[i] = (double)a->value[i] - 2.5 * (double)b->value[i];
        want[N + i] = (double)dy[i];
        want[2 * N + i] = -2.5 * (double)dy[i];
    }
    tape *t = reals_tape(2);
    tensor *y = op_add(t, a, op_scale(t, b, -2.5));
    reals_backward(t, y, dy);
    reals_check("a - 2.5 b", y->value, want, N, 1e-6, 1e-6);
    reals_check("da", a->grad, want + N, N, 0, 0);
    reals_check("db", b->grad, want + 2 * N, N, 1e-6, 0);
    free(want);
    free(dy);
    tape_free(t);
    gradcheck_tensor_free(a);
    gradcheck_tensor_free(b);
}

static void add_takes_the_first_shape(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    tensor *a = tape_tensor(t, 2, (int64_t[]){2, 6}), *b = tape_tensor(t, 3, (int64_t[]){3, 2, 2});
    tensor *y = op_add(t, a, b);
    assert_non_null(y);
    assert_int_equal(y->rank, 2);
    assert_int_equal(y->dim[1], 6);
    assert_null(op_add(t, a, tape_tensor(t, 1, (int64_t[]){11})));
    check_failure(tape_failure(t), SR_USAGE, "add: 11 numbers to 12");
    tape_free(t);
}

static void softmax_values(void **state) {
    (void)state;
    enum { ROWS = 9, N = 70 };
    tensor *x = gradcheck_tensor(2, (int64_t[]){ROWS, N}, 1, true);
    real *dy = reals_random(ROWS * N, 2);
    double want[ROWS * N], dx[ROWS * N];
    for (int r = 0; r < ROWS; r++) {
        double sum = 0, dot = 0, *y = want + r * N;
        for (int j = 0; j < N; j++) {
            x->value[r * N + j] = x->value[r * N + j] * 4 - 500; /* exp of these is 0 */
            sum += y[j] = exp((double)x->value[r * N + j] + 500);
        }
        for (int j = 0; j < N; j++) dot += (y[j] /= sum) * (double)dy[r * N + j];
        for (int j = 0; j < N; j++) dx[r * N + j] = y[j] * ((double)dy[r * N + j] - dot);
    }
    tape *t = reals_tape(2);
    tensor *y = op_softmax(t, x);
    reals_backward(t, y, dy);
    reals_check("y", y->value, want, ROWS * N, 1e-6, 1e-12);
    reals_check("dx", x->grad, dx, ROWS * N, 1e-5, 1e-7);
    free(dy);
    tape_free(t);
    gradcheck_tensor_free(x);
}

static void softmax_of_special_values(void **state) {
    (void)state;
    real x[9] = {
        1, (real)-INFINITY, 1, 1, (real)NAN, 2, (real)-INFINITY, (real)-INFINITY, (real)-INFINITY};
    const double want[9] = {0.5, 0, 0.5, NAN, NAN, NAN, NAN, NAN, NAN};
    tape *t = reals_tape(1);
    tensor *y = op_softmax(t, tape_wrap(t, 2, (int64_t[]){3, 3}, x));
    assert_non_null(y);
    reals_check("y", y->value, want, 9, 1e-6, 0);
    tape_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relu_values),
        cmocka_unit_test(add_and_scale_values),
        cmocka_unit_test(add_takes_the_first_shape),
        cmocka_unit_test(softmax_values),
        cmocka_unit_test(softmax_of_special_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
