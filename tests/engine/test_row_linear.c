/* Rows times a weight against sums in double: partially filled tiles, several k-blocks, values that
 * are not finite. A row has the same bytes whatever the other rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/row_ops.h"
#include "reals.h"
#include "testing/check.h"

typedef struct sizes {
    int64_t rows, in, out;
} sizes;

static const sizes cases[] = {{1, 3, 5},    {40, 32, 32},  {33, 31, 64},    {70, 128, 100},
                              {17, 40, 33}, {97, 512, 48}, {149, 1100, 65}, {300, 64, 81}};

enum { CASES = sizeof cases / sizeof cases[0] };

typedef struct trial {
    sizes s;
    tensor w;
    row_weight transposed;
    real *x, *b, *y;
} trial;

static void trial_pack(trial *t) {
    sr_failure why = {0};
    row_weight_free(&t->transposed);
    check_ok(row_weight_init(&t->transposed, &t->w, &why), &why);
}

static trial trial_create(sizes s) {
    trial t = {.s = s, .w = {.rank = 2, .dim = {s.out, s.in}, .count = s.out * s.in}};
    t.w.value = reals_random(s.out * s.in, 1);
    t.x = reals_random(s.rows * s.in, 2);
    t.b = reals_random(s.out, 3);
    t.y = reals_random(s.rows * s.out, 4);
    trial_pack(&t);
    return t;
}

static void trial_free(trial *t) {
    row_weight_free(&t->transposed);
    free(t->w.value), free(t->x), free(t->b), free(t->y);
}

static double *trial_want(const trial *t, bool biased) {
    double *want = malloc((size_t)(t->s.rows * t->s.out) * sizeof *want);
    assert_non_null(want);
    for (int64_t r = 0; r < t->s.rows; r++)
        for (int64_t j = 0; j < t->s.out; j++) {
            double sum = biased ? (double)t->b[j] : 0;
            for (int64_t p = 0; p < t->s.in; p++)
                sum += (double)t->x[r * t->s.in + p] * (double)t->w.value[j * t->s.in + p];
            want[r * t->s.out + j] = sum;
        }
    return want;
}

static void values_and_threads(void **state) {
    (void)state;
    for (int i = 0; i < 2 * CASES; i++) {
        trial t = trial_create(cases[i / 2]);
        const bool biased = i % 2;
        const int64_t count = t.s.rows * t.s.out;
        real *more = malloc((size_t)count * sizeof *more);
        double *want = trial_want(&t, biased);
        assert_non_null(more);
        row_linear(1, t.s.rows, t.x, &t.transposed, biased ? t.b : NULL, t.y);
        reals_check("row_linear", t.y, want, count, 1e-5, 2e-6 * sqrt((double)t.s.in));
        for (int threads = 2; threads <= 4; threads++) {
            row_linear(threads, t.s.rows, t.x, &t.transposed, biased ? t.b : NULL, more);
            reals_check_bytes("row_linear, more threads", more, t.y, count);
        }
        free(want), free(more);
        trial_free(&t);
    }
}

/* As exact as float sums of one term after the other: to a unit in the last place of the terms. */
static void exact(void **state) {
    (void)state;
    trial t = trial_create((sizes){64, 600, 64});
    double *want = trial_want(&t, true), ours = 0, plain = 0;
    row_linear(1, t.s.rows, t.x, &t.transposed, t.b, t.y);
    for (int64_t i = 0; i < t.s.rows * t.s.out; i++) {
        real sum = 0;
        for (int64_t p = 0; p < t.s.in; p++)
            sum += t.x[i / t.s.out * t.s.in + p] * t.w.value[i % t.s.out * t.s.in + p];
        sum += t.b[i % t.s.out];
        ours += ((double)t.y[i] - want[i]) * ((double)t.y[i] - want[i]);
        plain += ((double)sum - want[i]) * ((double)sum - want[i]);
    }
    if (sizeof(real) == 4) check_at_most(ours, 1.1 * plain);
    free(want);
    trial_free(&t);
}

/* Row r of many rows, alone and as the last of fewer. */
static void a_row_alone(void **state) {
    (void)state;
    for (int i = 0; i < CASES; i++) {
        trial t = trial_create(cases[i]);
        real *one = malloc((size_t)(t.s.rows * t.s.out) * sizeof *one);
        assert_non_null(one);
        row_linear(1, t.s.rows, t.x, &t.transposed, t.b, t.y);
        for (int64_t r = 0; r < t.s.rows; r += 7) {
            row_linear(1, 1, t.x + r * t.s.in, &t.transposed, t.b, one);
            reals_check_bytes("alone", one, t.y + r * t.s.out, t.s.out);
            row_linear(1, r + 1, t.x, &t.transposed, t.b, one);
            reals_check_bytes("the last", one + r * t.s.out, t.y + r * t.s.out, t.s.out);
        }
        free(one);
        trial_free(&t);
    }
}

static void check_like(const trial *t, const double *want) {
    for (int64_t i = 0; i < t->s.rows * t->s.out; i++) {
        const real w = (real)want[i], y = t->y[i];
        if (isnan(w) ? !isnan(y) : isinf(w) ? y != w : !isfinite(y))
            fail_msg("at %lld: %g, not %g", (long long)i, (double)y, want[i]);
        if (isfinite(w)) check_within_inclusive((double)y, want[i], 1e-4 + 1e-5 * fabs(want[i]));
    }
}

/* NaN, infinity and a nearly infinite value in rows: neighbouring rows keep their bytes. Then
 * infinity in the weight. */
static void not_finite(void **state) {
    (void)state;
    trial t = trial_create((sizes){400, 70, 50});
    real *before = malloc((size_t)(t.s.rows * t.s.out) * sizeof *before);
    assert_non_null(before);
    for (int64_t j = 0; j < t.s.out; j++) t.w.value[j * 70] = (real)1e-10;
    trial_pack(&t);
    row_linear(1, t.s.rows, t.x, &t.transposed, t.b, before);
    t.x[3 * 70 + 2] = (real)NAN, t.x[5 * 70 + 69] = (real)INFINITY, t.x[39 * 70] = (real)3.4e38F;
    row_linear(1, t.s.rows, t.x, &t.transposed, t.b, t.y);
    double *want = trial_want(&t, true);
    check_like(&t, want);
    for (int64_t r = 0; r < t.s.rows; r++)
        if (r != 3 && r != 5 && r != 39)
            reals_check_bytes("beside", t.y + r * t.s.out, before + r * t.s.out, t.s.out);
    t.w.value[7 * 70 + 7] = (real)-INFINITY;
    trial_pack(&t);
    row_linear(2, t.s.rows, t.x, &t.transposed, t.b, t.y);
    free(want);
    want = trial_want(&t, true);
    check_like(&t, want);
    free(want), free(before);
    trial_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_threads),
        cmocka_unit_test(exact),
        cmocka_unit_test(a_row_alone),
        cmocka_unit_test(not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
