/* test_bootstrap_fixed.c -- resamples of long series from fixed blocks: quantiles against values
 * counted one by one, draws, and spread against circular blocks. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap_fixed.h"
#include "analysis/columns/column_summary.h"
#include "testing/check.h"

enum { LENGTH = (1 << 16) + 1001, RESAMPLES = 100, KINDS = 7 };

static double value_of(int kind, int i, double *state, rng *r) {
    *state = 0.95 * *state + 0.3 * rng_normal(r);
    switch (kind) {
    case 0:
        return rng_normal(r);
    case 1:
        return *state;
    case 2:
        return floor(2 * *state); /* ties */
    case 3:
        return -7.25;
    case 4:
        return rng_below(r, 200) ? 1 : rng_normal(r); /* one window */
    case 5:
        return i; /* a block holds neighbouring values only */
    default:
        return i < LENGTH / 3 ? 1e6 + rng_normal(r) : *state;
    }
}

static void fill(double *value, int kind) {
    double state = 0;
    rng r = rng_create(31);
    for (int i = 0; i < LENGTH; i++) value[i] = value_of(kind, i, &state, &r);
}

/* -- one by one ------------------------------------------------------------------------------ */

typedef struct ranked {
    double value;
    int64_t block;
} ranked;

static int by_value(const void *a, const void *b) {
    const double x = ((const ranked *)a)->value, y = ((const ranked *)b)->value;
    return (x > y) - (x < y);
}

static int64_t times_of(const block_draws *d, int64_t block, int64_t b) {
    return d->times[(b / DRAW_LANES * d->blocks + block) * DRAW_LANES + b % DRAW_LANES];
}

/* Lists values in ascending order, each as often as its block is drawn; returns their number. */
static int64_t plain_resample(const ranked *sorted, const block_draws *d, int64_t b,
                              double *drawn) {
    int64_t n = 0;
    for (int64_t i = 0; i < LENGTH; i++)
        for (int64_t k = times_of(d, sorted[i].block, b); k > 0; k--) drawn[n++] = sorted[i].value;
    return n;
}

static void plain_order(const double *value, int64_t blocks, ranked *sorted) {
    for (int64_t k = 0, i = 0; k < blocks; k++)
        for (; i < (k + 1) * LENGTH / blocks; i++) sorted[i] = (ranked){value[i], k};
    qsort(sorted, LENGTH, sizeof *sorted, by_value);
}

static void expect_quantiles(int kind, int64_t block) {
    static double value[LENGTH], drawn[2 * LENGTH], got[BOOTSTRAP_TAILS * RESAMPLES];
    static const double p[BOOTSTRAP_TAILS] = {0.5, 0.99, 1};
    static ranked sorted[LENGTH];
    const int64_t blocks = fixed_blocks(LENGTH, block);
    sr_failure why = {0};
    block_draws d;
    fill(value, kind);
    plain_order(value, blocks, sorted);
    check_ok(block_draws_make(&d, blocks, rng_create(5), 0, RESAMPLES, &why), &why);
    check_ok(bootstrap_fixed(value, LENGTH, &d, RESAMPLES, got, &why), &why);
    for (int64_t b = 0; b < RESAMPLES; b++) {
        const int64_t n = plain_resample(sorted, &d, b, drawn);
        for (int i = 0; i < BOOTSTRAP_TAILS; i++) {
            const double want = quantile_of_sorted(drawn, n, p[i]);
            if (got[i * RESAMPLES + b] != want)
                fail_msg("series %d, blocks of %d, resample %d: tail %d is %a, not %a", kind,
                         (int)block, (int)b, i, got[i * RESAMPLES + b], want);
        }
    }
    block_draws_free(&d);
}

static void quantiles_are_exact(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        expect_quantiles(kind, 17);
        expect_quantiles(kind, 500);
        expect_quantiles(kind, LENGTH / 3);
        expect_quantiles(kind, LENGTH);
    }
}

/* -- draws ----------------------------------------------------------------------------------- */

static void numbers_of_blocks(void **state) {
    (void)state;
    assert_int_equal(fixed_blocks(65535, 100), 0);
    assert_int_equal(fixed_blocks(65536, 15), 0);
    assert_int_equal(fixed_blocks(65536, 16), 4096);
    assert_int_equal(fixed_blocks(65537, 100), 656);
    assert_int_equal(fixed_blocks((int64_t)1 << 31, 1 << 30), 0);
}

/* Draws as many blocks as the series has, from all of them: a count has variance 1 - 1/K. */
static void draws_are_uniform(void **state) {
    (void)state;
    enum { BLOCKS = 300, MANY = DRAWS_MOST };
    sr_failure why = {0};
    block_draws d;
    double squares = 0;
    check_ok(block_draws_make(&d, BLOCKS, rng_create(7), 0, MANY, &why), &why);
    for (int64_t b = 0; b < MANY; b++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < BLOCKS; k++) {
            const int64_t times = times_of(&d, k, b);
            sum += times, squares += (double)((times - 1) * (times - 1));
        }
        assert_int_equal(sum, BLOCKS);
    }
    check_within(squares / BLOCKS / MANY, 1 - 1.0 / BLOCKS, 0.02);
    for (int64_t k = 0; k < BLOCKS; k++) {
        double sum = 0;
        for (int64_t b = 0; b < MANY; b++) sum += (double)times_of(&d, k, b);
        check_within(sum / MANY, 1, 6 / sqrt(MANY));
    }
    block_draws_free(&d);
}

/* A resample depends on its number in the stream, not on other resamples or the thread count. */
static void draws_have_numbers(void **state) {
    (void)state;
    enum { BLOCKS = 77, FIRST = 64, SOME = 130 };
    sr_failure why = {0};
    block_draws all, some;
    const int before = omp_get_max_threads();
    check_ok(block_draws_make(&all, BLOCKS, rng_create(9), 0, FIRST + SOME, &why), &why);
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        check_ok(block_draws_make(&some, BLOCKS, rng_create(9), FIRST, SOME, &why), &why);
        for (int64_t b = 0; b < SOME; b++)
            for (int64_t k = 0; k < BLOCKS; k++)
                assert_int_equal(times_of(&some, k, b), times_of(&all, k, FIRST + b));
        block_draws_free(&some);
    }
    omp_set_num_threads(before);
    block_draws_free(&all);
}

/* -- spread ---------------------------------------------------------------------------------- */

static double deviation(const double *x, int n) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += x[i] / n;
    for (int i = 0; i < n; i++) squares += (x[i] - sum) * (x[i] - sum);
    return sqrt(squares / (n - 1));
}

/* An autocorrelated series: drawing single values would give a fifth of the spread. */
static void spread_of_circular_blocks(void **state) {
    (void)state;
    enum { MANY = 1000, BLOCK = 100 };
    static double value[LENGTH], fixed[BOOTSTRAP_TAILS * MANY], circular[BOOTSTRAP_TAILS * MANY];
    sr_failure why = {0};
    block_draws d;
    fill(value, 1);
    check_ok(block_draws_make(&d, fixed_blocks(LENGTH, BLOCK), rng_create(1), 0, MANY, &why), &why);
    check_ok(bootstrap_fixed(value, LENGTH, &d, MANY, fixed, &why), &why);
    check_ok(bootstrap_tails(value, LENGTH, BLOCK, rng_create(2), MANY, circular, &why), &why);
    for (int i = 0; i < 2; i++) {
        const double a = deviation(fixed + i * MANY, MANY),
                     b = deviation(circular + i * MANY, MANY);
        check_within(a / b, 1, 0.15);
    }
    block_draws_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_exact),       cmocka_unit_test(numbers_of_blocks),
        cmocka_unit_test(draws_are_uniform),         cmocka_unit_test(draws_have_numbers),
        cmocka_unit_test(spread_of_circular_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
