/* op_dropout: PyTorch's scaling, the dropped fraction, one mask for both passes, streams that do
 * not repeat, evaluation, wrong arguments. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/dropout_mask.h"
#include "engine/ops/ops.h"
#include "oracle/ops_values.h"
#include "reals.h"
#include "testing/check.h"

enum { N = 400000 };

static tensor *ones(tape *t) {
    tensor *x = tape_tensor(t, 2, (int64_t[]){N / 8, 8});
    assert_non_null(x);
    for (int64_t i = 0; i < N; i++) x->value[i] = 1;
    x->wants_grad = true;
    return x;
}

/* p is a multiple of 2^-16, within 2^-17 of the requested value. 1/(1-p) changes by this much
 * relative to 1-p. */
static void scaling(void **state) {
    (void)state;
    for (size_t c = 0; c < sizeof dropout_rate / sizeof *dropout_rate; c++) {
        double p = dropout_rate[c], kept = dropout_kept[c];
        tape *t = reals_tape(2);
        tensor *y = op_dropout(t, ones(t), p);
        int64_t dropped = 0;
        for (int64_t i = 0; i < N; i++) {
            if (y->value[i] == 0)
                dropped++;
            else if (!(fabs((double)y->value[i] - kept) <= kept * kept * 0x1p-17 * 1.01))
                fail_msg("p %g: kept element is %.9g, PyTorch has %.9g", p, (double)y->value[i],
                         kept);
        }
        double sigma = sqrt(N * p * (1 - p));
        if (!(fabs((double)dropped - N * p) < 4 * sigma))
            fail_msg("p %g: %lld of %d dropped", p, (long long)dropped, N);
        tape_free(t);
    }
}

/* Neighbours within a 64-bit draw, and draws themselves, are independent. */
static void neighbours(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    tensor *y = op_dropout(t, ones(t), 0.5);
    for (int lag = 1; lag <= 5; lag++) {
        int64_t both = 0;
        for (int64_t i = 0; i + lag < N; i++) both += y->value[i] == 0 && y->value[i + lag] == 0;
        check_within((double)both, N * 0.25, 5 * sqrt(N * 0.25 * 0.75));
    }
    tape_free(t);
}

static void one_mask_in_both_passes(void **state) {
    (void)state;
    tape *t = reals_tape(2);
    tensor *x = ones(t);
    real *dy = malloc(N * sizeof *dy);
    for (int64_t i = 0; i < N; i++) dy[i] = 1;
    tensor *y = op_dropout(t, x, 0.3);
    reals_backward(t, y, dy);
    reals_check_bytes("dx", x->grad, y->value, N);
    free(dy);
    tape_free(t);
}

static void masks_differ_by_call_and_repeat_by_step(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    real *first = malloc(N * sizeof *first);
    tensor *y = op_dropout(t, ones(t), 0.5), *z = op_dropout(t, ones(t), 0.5);
    int64_t same = 0;
    for (int64_t i = 0; i < N; i++) {
        first[i] = y->value[i];
        same += y->value[i] == z->value[i];
    }
    check_within((double)same, N * 0.5, 5 * sqrt(N * 0.25));
    tape_reset(t, rng_create(1), true, true);
    reals_check_bytes("repeated", op_dropout(t, ones(t), 0.5)->value, first, N);
    free(first);
    tape_free(t);
}

static void element_numbers_decide(void **state) {
    (void)state;
    const double p = 0.4;
    tape *t = reals_tape(2);
    rng stream = t->random;
    uint64_t key = rng_split(&stream, 0).key;
    tensor *y = op_dropout(t, ones(t), p);
    for (uint64_t i = 0; i < N; i++) {
        bool dropped =
            (rng_at(key, i / 4) >> (16 * (i % 4)) & 0xffff) < (uint64_t)(p * 65536 + 0.5);
        assert_int_equal(y->value[i] == 0, dropped);
    }
    tape_free(t);
}

static void evaluation_returns_the_input(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    tensor *x = ones(t);
    assert_ptr_equal(op_dropout(t, x, 0), x);
    tape_reset(t, rng_create(1), false, true);
    x = ones(t);
    assert_ptr_equal(op_dropout(t, x, 0.5), x);
    tape_free(t);
}

static void rounding_of_p(void **state) {
    (void)state;
    assert_int_equal(dropout_mask_of(1, 1e-6).threshold, 0);
    check_equals(dropout_mask_of(1, 1e-6).scale, 1);
    assert_int_equal(dropout_mask_of(1, 0.25).threshold, 16384);
    assert_int_equal(dropout_mask_of(1, 1 - 1e-9).threshold, 65535);
}

/* Seven samples of 333 elements, divided into 3, 0 and 4: this splits words of the stream. */
static void shares_drop_what_the_whole_drops(void **state) {
    (void)state;
    enum { SAMPLES = 7, EACH = 333 };
    real whole[SAMPLES * EACH];
    const int64_t first[] = {0, 3, 3, SAMPLES};
    tape *t = reals_tape(2);
    tensor *x = tape_tensor(t, 2, (int64_t[]){SAMPLES, EACH});
    for (int64_t i = 0; i < x->count; i++) x->value[i] = (real)(i + 1);
    memcpy(whole, op_dropout(t, x, 0.4)->value, sizeof whole);
    for (int s = 0; s < 3; s++) {
        const int64_t samples = first[s + 1] - first[s];
        if (samples == 0) continue;
        tape_reset(t, rng_create(1), true, true);
        t->sample_first = first[s], t->samples = samples;
        tensor *part = tape_tensor(t, 2, (int64_t[]){samples, EACH});
        for (int64_t i = 0; i < part->count; i++) part->value[i] = (real)(first[s] * EACH + i + 1);
        const tensor *y = op_dropout(t, part, 0.4);
        for (int64_t i = 0; i < y->count; i++)
            check_equals(y->value[i], whole[first[s] * EACH + i]);
    }
    tape_free(t);
}

static void nan_is_data(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    tensor *x = ones(t);
    for (int64_t i = 0; i < N; i++) x->value[i] = (real)NAN;
    tensor *y = op_dropout(t, x, 0.5);
    for (int64_t i = 0; i < N; i++) assert_true(isnan(y->value[i]));
    tape_free(t);
}

static void wrong_arguments(void **state) {
    (void)state;
    const double wrong[4] = {1, -0.1, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        tape *t = reals_tape(1);
        assert_null(op_dropout(t, ones(t), wrong[i]));
        check_failure(tape_failure(t), SR_USAGE, "dropout: p is");
        tape_free(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaling),
        cmocka_unit_test(neighbours),
        cmocka_unit_test(one_mask_in_both_passes),
        cmocka_unit_test(masks_differ_by_call_and_repeat_by_step),
        cmocka_unit_test(element_numbers_decide),
        cmocka_unit_test(evaluation_returns_the_input),
        cmocka_unit_test(rounding_of_p),
        cmocka_unit_test(shares_drop_what_the_whole_drops),
        cmocka_unit_test(nan_is_data),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
