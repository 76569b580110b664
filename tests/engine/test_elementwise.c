/* Element-wise ops, op_concat and op_slice: values, NaN and infinities, shapes, wrong
 * arguments. */
#include <math.h>
#include <stdlib.h>

#include "engine/ops/ops.h"
#include "reals.h"
#include "testing/check.h"
#include "testing/extra_ops.h"
#include "testing/gradcheck.h"

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

/* Lengths that leave remainders of vectors, blocks and chunks. Two uses of x, so that a gradient is
 * added to. */
static void relu_at_any_end(void **state) {
    (void)state;
    static const int64_t length[] = {1, 15, 16, 17, 511, 513, 8192 + 530};
    for (size_t l = 0; l < sizeof length / sizeof length[0]; l++) {
        const int64_t n = length[l];
        tape *t = reals_tape(2);
        tensor *x = reals_tensor(t, 1, &n, 1);
        x->value[n - 1] = 1;
        real *dy = reals_random(n, 2);
        double *y = malloc((size_t)n * sizeof *y), *dx = malloc((size_t)n * sizeof *dx);
        assert_true(y && dx);
        for (int64_t i = 0; i < n; i++) {
            y[i] = x->value[i] > 0 ? 2 * (double)x->value[i] : 0;
            dx[i] = x->value[i] > 0 ? 2 * (double)dy[i] : 0;
        }
        tensor *sum = op_add(t, op_relu(t, x), op_relu(t, x));
        reals_check("y", sum->value, y, n, 0, 0);
        reals_backward(t, sum, dy);
        reals_check("dx", x->grad, dx, n, 0, 0);
        free(y), free(dx), free(dy);
        tape_free(t);
    }
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

/* Against libm over the whole range; the far ends, NaN and infinities. */
static void sigmoid_and_tanh_values(void **state) {
    (void)state;
    enum { N = 20011 };
    real *x = malloc(N * sizeof *x);
    double *sigmoid = malloc(N * sizeof *sigmoid), *hyperbolic = malloc(N * sizeof *hyperbolic);
    assert_true(x && sigmoid && hyperbolic);
    for (int i = 0; i < N; i++) x[i] = (real)((i - N / 2) * 0.004);
    x[0] = (real)NAN, x[1] = (real)INFINITY, x[2] = (real)-INFINITY;
    for (int i = 0; i < N; i++) {
        sigmoid[i] = 1 / (1 + exp(-(double)x[i]));
        hyperbolic[i] = tanh((double)x[i]);
    }
    tape *t = reals_tape(2);
    tensor *in = tape_wrap(t, 1, (int64_t[]){N}, x);
    tensor *y = op_sigmoid(t, in), *z = op_tanh(t, in);
    reals_check_tape(t);
    reals_check("sigmoid", y->value, sigmoid, N, 1e-6, 1e-37);
    reals_check("tanh", z->value, hyperbolic, N, 1e-6, 2e-7);
    tape_free(t);
    free(x), free(sigmoid), free(hyperbolic);
}

/* Gradients without other contributions: tensors of the tape, unlike parameters. */
static void fresh_gradients(void **state) {
    (void)state;
    enum { N = 20011 };
    tape *t = reals_tape(2);
    tensor *x[4];
    for (int i = 0; i < 4; i++) x[i] = reals_tensor(t, 1, (int64_t[]){N}, (uint64_t)i + 1);
    tensor *part[] = {op_sigmoid(t, x[0]), op_tanh(t, x[1]), op_multiply(t, x[2], x[3])};
    tensor *y = op_concat(t, part, 3, 0);
    real *dy = reals_random(3 * N, 9);
    double *want = malloc(4 * N * sizeof *want);
    for (int i = 0; i < N; i++) {
        const double sigmoid = 1 / (1 + exp(-(double)x[0]->value[i]));
        want[i] = (double)dy[i] * sigmoid * (1 - sigmoid);
        want[N + i] = (double)dy[N + i] * (1 - pow(tanh((double)x[1]->value[i]), 2));
        want[2 * N + i] = (double)dy[2 * N + i] * (double)x[3]->value[i];
        want[3 * N + i] = (double)dy[2 * N + i] * (double)x[2]->value[i];
    }
    reals_backward(t, y, dy);
    const char *const name[4] = {"sigmoid", "tanh", "product: first", "product: second"};
    for (int i = 0; i < 4; i++) reals_check(name[i], x[i]->grad, want + i * N, N, 1e-5, 1e-6);
    free(want), free(dy);
    tape_free(t);
}

static void product_values(void **state) {
    (void)state;
    real a[4] = {1, -2, 3, (real)INFINITY}, b[4] = {5, 6, -7, 2};
    const double want[4] = {5, -12, -21, INFINITY};
    tape *t = reals_tape(1);
    tensor *x = tape_wrap(t, 2, (int64_t[]){2, 2}, a), *y = tape_wrap(t, 1, (int64_t[]){4}, b);
    tensor *z = op_multiply(t, x, y);
    reals_check_tape(t);
    assert_int_equal(z->rank, 2);
    reals_check("a b", z->value, want, 4, 0, 0);
    assert_null(op_multiply(t, x, tape_tensor(t, 1, (int64_t[]){3})));
    check_failure(tape_failure(t), SR_USAGE, "product: 4 numbers by 3");
    tape_free(t);
}

/* Values that encode their index: 100 i + 10 j + k at [i, j, k]. */
static tensor *places(tape *t, int64_t I, int64_t J, int64_t K) {
    tensor *x = tape_tensor(t, 3, (int64_t[]){I, J, K});
    assert_non_null(x);
    for (int64_t i = 0; i < x->count; i++)
        x->value[i] = (real)(100 * (i / (J * K)) + 10 * (i / K % J) + i % K);
    return x;
}

/* Every axis, every range: a slice has the values of its indices. Concatenating the slices before,
 * in and after the range gives the tensor. */
static void slices_and_concatenations(void **state) {
    (void)state;
    const int64_t dim[3] = {3, 4, 5};
    for (int axis = 0; axis < 3; axis++)
        for (int64_t first = 1; first < dim[axis] - 1; first++) {
            tape *t = reals_tape(1);
            tensor *x = places(t, 3, 4, 5);
            tensor *part[3] = {op_slice(t, x, axis, 0, first), op_slice(t, x, axis, first, 1),
                               op_slice(t, x, axis, first + 1, dim[axis] - first - 1)};
            reals_check_tape(t);
            const int64_t step[3] = {100, 10, 1};
            assert_int_equal((int64_t)part[1]->value[0], first * step[axis]);
            assert_int_equal(part[1]->dim[axis], 1);
            assert_int_equal(part[1]->count, 60 / dim[axis]);
            tensor *y = op_concat(t, part, 3, axis);
            reals_check_tape(t);
            assert_int_equal(y->rank, 3);
            for (int k = 0; k < 3; k++) assert_int_equal(y->dim[k], dim[k]);
            reals_check_bytes("concat of slices", y->value, x->value, 60);
            tape_free(t);
        }
}

static void wrong_slices_and_concatenations(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    tensor *x = places(t, 2, 3, 4), *y = places(t, 2, 2, 4), *z = tape_tensor(t, 1, (int64_t[]){4});
    const struct {
        int axis;
        int64_t first, count;
        const char *text;
    } wrong[] = {{3, 0, 1, "slice: axis 3 of 3"},
                 {-1, 0, 1, "slice: axis -1 of 3"},
                 {1, 2, 2, "slice: 2 numbers from 2 of 3"},
                 {1, -1, 2, "slice: 2 numbers from -1 of 3"},
                 {2, 1, 0, "slice: 0 numbers from 1 of 4"},
                 {2, INT64_MAX, 2, "slice: 2 numbers from 9223372036854775807 of 4"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        t->failure = (sr_failure){0};
        assert_null(op_slice(t, x, wrong[i].axis, wrong[i].first, wrong[i].count));
        check_failure(tape_failure(t), SR_USAGE, wrong[i].text);
    }
    t->failure = (sr_failure){0};
    assert_null(op_concat(t, (tensor *[]){x, y}, 2, 2));
    check_failure(tape_failure(t), SR_USAGE, "concat: tensor 1 differs in more than axis 2");
    t->failure = (sr_failure){0};
    assert_null(op_concat(t, (tensor *[]){x, z}, 2, 0));
    check_failure(tape_failure(t), SR_USAGE, "concat: tensor 1 differs in more than axis 0");
    t->failure = (sr_failure){0};
    assert_null(op_concat(t, (tensor *[]){x, y}, 2, 3));
    check_failure(tape_failure(t), SR_USAGE, "concat: axis 3 of 3");
    t->failure = (sr_failure){0};
    assert_null(op_concat(t, (tensor *[]){x}, 0, 1));
    check_failure(tape_failure(t), SR_USAGE, "concat: 0 tensors, not 1 to 8");
    tape_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relu_values),
        cmocka_unit_test(relu_at_any_end),
        cmocka_unit_test(add_and_scale_values),
        cmocka_unit_test(add_takes_the_first_shape),
        cmocka_unit_test(sigmoid_and_tanh_values),
        cmocka_unit_test(fresh_gradients),
        cmocka_unit_test(product_values),
        cmocka_unit_test(slices_and_concatenations),
        cmocka_unit_test(wrong_slices_and_concatenations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
