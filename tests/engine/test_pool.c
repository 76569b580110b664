/* op_shortcut, op_max_pool, op_average_pool and op_add_bias by hand; accumulated gradients; equal
 * bytes for any number of threads; wrong shapes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "engine/ops/image/image_ops.h"
#include "engine/ops/ops.h"
#include "reals.h"
#include "testing/check.h"

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
                    if (sampled) check_equals(y->value[to], (middle ? x->value[from] : 0));
                    if (middle) check_equals(x->grad[from], (sampled ? 2 * dy[to] : 0));
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
    assert_ptr_equal(op_shortcut(t, x, 1, 4), x);
    assert_ptr_not_equal(op_shortcut(t, x, 1, 6), x);
    assert_null(op_shortcut(t, x, 2, 3));
    check_failure(tape_failure(t), SR_USAGE, "shortcut: rank 4, 4 channels to 3");
    tape_reset(t, rng_create(1), true, true);
    assert_null(op_shortcut(t, input(t, 1, 2, 2, 4), 0, 4));
    check_failure(tape_failure(t), SR_USAGE, "stride 0");
    tape_reset(t, rng_create(1), true, true);
    assert_null(op_shortcut(t, reals_tensor(t, 2, (int64_t[]){2, 4}, 5), 2, 4));
    check_failure(tape_failure(t), SR_USAGE, "shortcut: rank 2");
    tape_free(t);
}

/* 70 channels: more than one block of the sum. */
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

/* Index in x of the window's maximum by the definition; NaN counts as the largest. */
static int64_t maximum_at(const tensor *x, int64_t n, int64_t top, int64_t left, int64_t c,
                          int64_t k) {
    int64_t best = -1;
    for (int64_t a = 0; a < k; a++)
        for (int64_t b = 0; b < k; b++) {
            int64_t at = ((n * x->dim[1] + top + a) * x->dim[2] + left + b) * x->dim[3] + c;
            const bool beaten = best >= 0 && isnan((double)x->value[best]);
            if (best < 0 ||
                (!beaten && (x->value[at] > x->value[best] || isnan((double)x->value[at]))))
                best = at;
        }
    return best;
}

static bool same_value(real a, real b) {
    return a == b || (isnan((double)a) && isnan((double)b));
}

/* y, and the gradients after two backward passes, against the definition. */
static void check_max_pool(const tensor *values, int k, int stride) {
    tape *t = reals_tape(2);
    tensor *x = input(t, values->dim[0], values->dim[1], values->dim[2], values->dim[3]);
    memcpy(x->value, values->value, (size_t)x->count * sizeof *x->value);
    tensor *y = op_max_pool(t, x, k, stride);
    reals_check_tape(t);
    assert_int_equal(y->dim[1], (x->dim[1] - k) / stride + 1);
    assert_int_equal(y->dim[2], (x->dim[2] - k) / stride + 1);
    real *dy = reals_random(y->count, 6);
    double *dx = calloc((size_t)x->count, sizeof *dx);
    assert_non_null(dx);
    reals_backward(t, y, dy);
    t->last = NULL;
    reals_backward(t, op_max_pool(t, x, k, stride), dy);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t c = i % y->dim[3], j = i / y->dim[3] % y->dim[2],
                      r = i / y->dim[3] / y->dim[2] % y->dim[1],
                      n = i / y->dim[3] / y->dim[2] / y->dim[1];
        const int64_t at = maximum_at(x, n, r * stride, j * stride, c, k);
        assert_true(same_value(y->value[i], x->value[at]));
        dx[at] += 2 * (double)dy[i];
    }
    reals_check("dx", x->grad, dx, x->count, 1e-6, 1e-6);
    free(dx), free(dy);
    tape_free(t);
}

static void max_by_hand(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    tensor *x = input(t, 3, 7, 9, 5);
    check_max_pool(x, 2, 2); /* a row and a column are dropped */
    check_max_pool(x, 3, 1);
    check_max_pool(x, 1, 2);
    check_max_pool(x, 2, 3);
    check_max_pool(x, 7, 1);
    for (int64_t i = 0; i < x->count; i++) x->value[i] = (real)-fabs((double)x->value[i]);
    check_max_pool(x, 2, 2); /* an initial zero would be larger */
    tape_free(t);
}

/* Few distinct values: many ties. Then NaN, alone and several in a window, first and last;
 * infinities. */
static void ties_and_nan(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    tensor *x = input(t, 2, 8, 8, 3);
    for (int64_t i = 0; i < x->count; i++) x->value[i] = (real)(i * 7 % 3);
    check_max_pool(x, 2, 2);
    check_max_pool(x, 3, 2);
    for (int64_t i = 0; i < x->count; i += 5) x->value[i] = (real)NAN;
    for (int64_t i = 2; i < x->count; i += 11) x->value[i] = (real)INFINITY;
    for (int64_t i = 3; i < x->count; i += 3) x->value[i] = (real)-INFINITY;
    check_max_pool(x, 2, 2);
    check_max_pool(x, 3, 2);
    for (int64_t i = 0; i < x->count; i++) x->value[i] = (real)-INFINITY;
    check_max_pool(x, 2, 2);
    tape_free(t);
}

static void max_refusals(void **state) {
    (void)state;
    const struct { int k, stride; } wrong[] = {{0, 1}, {6, 1}, {2, 0}, {-1, 1}, {2000, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tape *t = reals_tape(1);
        assert_null(op_max_pool(t, input(t, 1, 7, 5, 2), wrong[i].k, wrong[i].stride));
        check_failure(tape_failure(t), SR_USAGE, "max_pool: rank 4, images of 7 x 5");
        tape_free(t);
    }
    tape *t = reals_tape(1);
    assert_null(op_max_pool(t, NULL, 2, 2));
    assert_null(tape_failure(t));
    assert_null(op_max_pool(t, input(t, 1, 3, 9, 2), 4, 2)); /* wide enough, but not high enough */
    check_failure(tape_failure(t), SR_USAGE, "max_pool: rank 4, images of 3 x 9");
    tape_reset(t, rng_create(1), true, true);
    assert_null(op_max_pool(t, reals_tensor(t, 3, (int64_t[]){9, 9, 9}, 5), 2, 2));
    check_failure(tape_failure(t), SR_USAGE, "max_pool: rank 3");
    tape_free(t);
}

/* More rows than a block of the bias sum. */
static void bias_by_hand(void **state) {
    (void)state;
    tape *t = reals_tape(2);
    tensor *x = input(t, 3, 11, 13, 7), *b = reals_tensor(t, 1, (int64_t[]){7}, 8);
    tensor *y = op_add_bias(t, x, b);
    reals_check_tape(t);
    real *dy = reals_random(y->count, 6);
    reals_backward(t, y, dy);
    double db[7] = {0};
    for (int64_t i = 0; i < x->count; i++) {
        check_equals(y->value[i], x->value[i] + b->value[i % 7]);
        check_equals(x->grad[i], dy[i]);
        db[i % 7] += (double)dy[i];
    }
    reals_check("db", b->grad, db, 7, 1e-6, 1e-6);
    free(dy);
    assert_null(op_add_bias(t, x, reals_tensor(t, 1, (int64_t[]){8}, 8)));
    check_failure(tape_failure(t), SR_USAGE, "add_bias: 7 channels, bias of 8");
    tape_free(t);
}

/* Two words of three, all of them, none; 70 features: more than one block of the sum. */
static void masked_mean_by_hand(void **state) {
    (void)state;
    enum { B = 3, T = 3, D = 70 };
    const uint8_t mask[B * T] = {1, 0, 1, 1, 1, 1, 0, 0, 0};
    const int valid[B] = {2, 3, 0};
    tape *t = reals_tape(2);
    tensor *x = reals_tensor(t, 3, (int64_t[]){B, T, D}, 5);
    for (int64_t c = 0; c < D; c++) x->value[D + c] = (real)NAN; /* masked */
    tensor *y = op_masked_mean(t, x, mask);
    reals_check_tape(t);
    assert_true(y->rank == 2 && y->dim[0] == B && y->dim[1] == D);
    real *dy = reals_random(y->count, 6);
    reals_backward(t, y, dy);
    double mean[B * D] = {0}, dx[B * T * D];
    for (int64_t i = 0; i < B * T * D; i++) {
        const int64_t b = i / (T * D), to = b * D + i % D;
        const bool counts = mask[i / D];
        if (counts) mean[to] += (double)x->value[i] / valid[b];
        dx[i] = counts ? (double)dy[to] / valid[b] : 0;
    }
    reals_check("y", y->value, mean, y->count, 1e-6, 1e-7);
    reals_check("dx", x->grad, dx, x->count, 1e-6, 1e-7);
    free(dy);
    assert_null(op_masked_mean(t, y, mask));
    check_failure(tape_failure(t), SR_USAGE, "masked_mean: rank 2 is not 3");
    tape_free(t);
}

typedef tensor *build_fn(tape *t, tensor *x);

static tensor *build_shortcut(tape *t, tensor *x) {
    return op_shortcut(t, x, 2, 32);
}

static tensor *build_max_pool(tape *t, tensor *x) {
    return op_max_pool(t, x, 3, 2);
}

/* Rows of an image as words of a sentence. */
static tensor *build_masked_mean(tape *t, tensor *x) {
    const int64_t dim[3] = {x->dim[0], x->dim[1] * x->dim[2], x->dim[3]};
    return op_masked_mean(t, tape_reshape(t, x, 3, dim), NULL);
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
    check_threads(build_max_pool);
    check_threads(build_masked_mean);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shortcut_by_hand),
        cmocka_unit_test(shortcut_of_equal_shape_is_its_input),
        cmocka_unit_test(average_by_hand),
        cmocka_unit_test(max_by_hand),
        cmocka_unit_test(ties_and_nan),
        cmocka_unit_test(max_refusals),
        cmocka_unit_test(bias_by_hand),
        cmocka_unit_test(masked_mean_by_hand),
        cmocka_unit_test(same_bytes_for_any_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
