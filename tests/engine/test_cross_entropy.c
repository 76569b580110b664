/* op_cross_entropy against PyTorch's numbers and plain sums in double: digits of a tiny loss,
 * counts of the report, NaN, wrong arguments. */
#include <math.h>
#include <stdlib.h>

#include "engine/ops/loss/loss_ops.h"
#include "engine/ops/ops.h"
#include "oracle/ops_values.h"
#include "reals.h"
#include "testing/check.h"
#include "testing/gradcheck.h"

typedef struct outcome {
    cross_entropy_report report;
    double loss;     /* value of the loss tensor */
    double *dlogits; /* free() it */
} outcome;

static outcome run(const double *logits, int64_t rows, int64_t V, const int32_t *target,
                   int32_t ignore, double eps, smoothing_form form, double seed) {
    tensor *x = gradcheck_tensor(2, (int64_t[]){rows, V}, 1, true);
    for (int64_t i = 0; i < x->count; i++) x->value[i] = (real)logits[i];
    outcome o = {.dlogits = malloc((size_t)x->count * sizeof(double))};
    tape *t = reals_tape(2);
    tensor *loss = op_cross_entropy(t, x, target, ignore, -1, eps, form, &o.report);
    reals_check_tape(t);
    o.loss = (double)loss->value[0];
    tape_backward(t, loss, (real)seed);
    reals_check_tape(t);
    for (int64_t i = 0; i < x->count; i++) o.dlogits[i] = (double)x->grad[i];
    tape_free(t);
    gradcheck_tensor_free(x);
    return o;
}

static void pytorch_numbers(void **state) {
    (void)state;
    int32_t target[5];
    for (int i = 0; i < 5; i++) target[i] = (int32_t)cross_entropy_target[i];
    outcome o = run(cross_entropy_logits, 5, 7, target, 1, 0.1, SMOOTHING_ALL, 1);
    check_near_double("loss", &o.report.loss, cross_entropy_loss_nll, 1, 1e-6, 0);
    check_near_double("nll", &o.report.nll, cross_entropy_loss_nll + 1, 1, 1e-6, 0);
    check_near_double("value", &o.loss, cross_entropy_loss_nll, 1, 1e-6, 0);
    check_near_double("dlogits", o.dlogits, cross_entropy_dlogits, 35, 1e-5, 1e-7);
    assert_int_equal(o.report.tokens, 4);
    free(o.dlogits);
}

/* Rows wide enough for several vectors, targets at every index, sums in long double. */
static void plain_sums(void **state) {
    (void)state;
    enum { ROWS = 37, V = 1003 };
    double *logits = malloc(sizeof(double) * ROWS * V);
    int32_t target[ROWS];
    rng r = rng_create(2);
    for (int i = 0; i < ROWS * V; i++) logits[i] = (double)(float)(5 * rng_normal(&r) + 40);
    for (int i = 0; i < ROWS; i++) target[i] = i * 27;
    outcome o = run(logits, ROWS, V, target, -1, 0.1, SMOOTHING_ALL, 0.25);
    double nll = 0, below = 0, *want = malloc(sizeof(double) * ROWS * V);
    for (int i = 0; i < ROWS; i++) {
        const double *x = logits + i * V;
        long double sum = 0;
        for (int v = 0; v < V; v++) sum += expl((long double)x[v] - 40);
        double log_sum = (double)logl(sum) + 40;
        nll += log_sum - x[target[i]];
        for (int v = 0; v < V; v++) {
            below += log_sum - x[v];
            want[i * V + v] = 0.25 * (exp(x[v] - log_sum) - 0.1 / V - (v == target[i] ? 0.9 : 0));
        }
    }
    double loss = 0.9 * nll + 0.1 / V * below;
    check_near_double("nll", &o.report.nll, &nll, 1, 1e-7, 0);
    check_near_double("loss", &o.report.loss, &loss, 1, 1e-7, 0);
    check_near_double("dlogits", o.dlogits, want, ROWS * V, 2e-6, 1e-9);
    free(want);
    free(o.dlogits);
    free(logits);
}

/* nll = log(1 + 3 exp(-16)) = 3.4e-7: float sums would round it to 0 or 3.6e-7. */
static void tiny_losses_keep_their_digits(void **state) {
    (void)state;
    const double logits[4] = {2, 18, 2, 2};
    outcome o = run(logits, 1, 4, (int32_t[]){1}, -1, 0, SMOOTHING_ALL, 1);
    double want = log1p(3 * exp(-16.0));
    check_near_double("nll", &o.report.nll, &want, 1, 1e-6, 0);
    free(o.dlogits);
}

static void extreme_logits(void **state) {
    (void)state;
    const double logits[6] = {1e30, -1e30, 0, -INFINITY, 3, -INFINITY};
    outcome o = run(logits, 2, 3, (int32_t[]){0, 1}, -1, 0, SMOOTHING_ALL, 1);
    double zero[6] = {0};
    check_near_double("nll", &o.report.nll, zero, 1, 0, 0);
    check_near_double("dlogits", o.dlogits, zero, 6, 0, 0);
    assert_int_equal(o.report.correct, 2);
    free(o.dlogits);
}

static void nan_is_data(void **state) {
    (void)state;
    const double logits[6] = {1, NAN, 2, 1, 2, 3};
    outcome o = run(logits, 2, 3, (int32_t[]){0, 2}, -1, 0.1, SMOOTHING_ALL, 1);
    assert_true(isnan(o.report.nll) && isnan(o.report.loss) && isnan(o.loss));
    for (int i = 0; i < 3; i++) assert_true(isnan(o.dlogits[i]));
    for (int i = 3; i < 6; i++) assert_false(isnan(o.dlogits[i]));
    free(o.dlogits);
}

/* Row 0 is right, row 1 wrong, row 2 ignored. Rows 3 and 4 tie with a lower and a higher class. */
static void report_counts(void **state) {
    (void)state;
    real logits[15] = {1, 3, 2, 5, 4, 1, 9, 0, 0, 7, 7, 0, 0, 7, 7};
    const int32_t target[5] = {1, 1, 0, 1, 1};
    tape *t = reals_tape(1);
    tensor *x = tape_wrap(t, 2, (int64_t[]){5, 3}, logits);
    cross_entropy_report r;
    assert_non_null(op_cross_entropy(t, x, target, 0, 1, 0, SMOOTHING_ALL, &r));
    assert_int_equal(r.tokens, 4);
    assert_int_equal(r.correct, 2);
    assert_int_equal(r.unknown, 4);
    assert_non_null(op_cross_entropy(t, x, target, -1, 0, 0, SMOOTHING_ALL, &r));
    assert_int_equal(r.tokens, 5);
    assert_int_equal(r.correct, 3);
    assert_int_equal(r.unknown, 1);
    tape_free(t);
}

static void ignored_rows_are_untouched(void **state) {
    (void)state;
    const double logits[6] = {NAN, INFINITY, 1, 1, 2, 3};
    outcome o = run(logits, 2, 3, (int32_t[]){1, 2}, 1, 0.1, SMOOTHING_OTHERS, 1);
    assert_false(isnan(o.report.loss));
    for (int i = 0; i < 3; i++) check_equals(o.dlogits[i], 0);
    free(o.dlogits);
}

/* On a reuse_activations tape, the gradient of logits without other readers overwrites them. */
static void over_the_logits(void **state) {
    (void)state;
    enum { ROWS = 5, V = 37 };
    const int32_t target[ROWS] = {3, 1, 36, 0, 1};
    tensor *x[2];
    for (int reuse_activations = 0; reuse_activations < 2; reuse_activations++) {
        x[reuse_activations] = gradcheck_tensor(2, (int64_t[]){ROWS, V}, 1, true);
        tape *t = reals_tape(1);
        t->reuse_activations = reuse_activations;
        tensor *logits = op_scale(t, x[reuse_activations], 1);
        const real *place = logits->value;
        tensor *loss = op_cross_entropy(t, logits, target, 1, -1, 0.1, SMOOTHING_OTHERS, NULL);
        tape_backward(t, loss, 1);
        reals_check_tape(t);
        assert_true((logits->value == place) == !reuse_activations);
        tape_free(t);
    }
    assert_memory_equal(x[0]->grad, x[1]->grad, ROWS * V * sizeof(real));
    gradcheck_tensor_free(x[0]), gradcheck_tensor_free(x[1]);
}

static void refuse(int32_t target, int64_t V, double eps, smoothing_form form, const char *text) {
    tape *t = reals_tape(1);
    tensor *x = tape_tensor(t, 2, (int64_t[]){2, V});
    assert_null(op_cross_entropy(t, x, (int32_t[]){0, target}, -1, -1, eps, form, NULL));
    check_failure(tape_failure(t), SR_USAGE, text);
    tape_free(t);
}

static void wrong_arguments(void **state) {
    (void)state;
    refuse(3, 3, 0, SMOOTHING_ALL, "target 3 of row 1");
    refuse(-2, 3, 0, SMOOTHING_ALL, "target -2 of row 1");
    refuse(0, 3, 1, SMOOTHING_ALL, "smoothing 1 of 3");
    refuse(0, 3, -0.1, SMOOTHING_ALL, "smoothing -0.1");
    refuse(0, 1, 0.1, SMOOTHING_OTHERS, "of 1 classes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pytorch_numbers),
        cmocka_unit_test(plain_sums),
        cmocka_unit_test(tiny_losses_keep_their_digits),
        cmocka_unit_test(extreme_logits),
        cmocka_unit_test(nan_is_data),
        cmocka_unit_test(report_counts),
        cmocka_unit_test(ignored_rows_are_untouched),
        cmocka_unit_test(over_the_logits),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
