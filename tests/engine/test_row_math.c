/* Rows of every length: exponentials bit-identical to exp_fast, their sums and maximum, values that
 * are not finite. No write after the end. */
#include "testing/check.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "engine/gemm/row_ops.h"
#include "engine/row_math.h"

enum { MOST = 150, GUARD = 16 };

static void fill(real *x, int64_t n, uint64_t seed) {
    rng r = rng_create(seed);
    for (int64_t i = 0; i < n; i++) x[i] = (real)(8 * rng_normal(&r));
}

static real largest_of(int64_t n, const real *x) {
    real m = (real)-INFINITY;
    for (int64_t i = 0; i < n; i++)
        if (x[i] > m) m = x[i];
    return m;
}

/* The summation order of row_math.h, as in its hand-written code. */
static double sum_of(int64_t n, const real *e) {
    double lane[8] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i++) lane[i < n / 8 * 8 ? i % 8 : 0] += (double)e[i];
    for (int j = 0; j < 8; j++) sum += lane[j];
    return sum;
}

static void check_sum(int64_t n, double got, const real *e) {
    const double want = sum_of(n, e);
#if defined(__AVX512DQ__) && !defined(REAL_DOUBLE)
    assert_memory_equal(&got, &want, sizeof got);
#else
    check_near_double("sum", &got, &want, 1, 1e-13, 0);
#endif
    (void)n;
}

static void every_length(void **state) {
    (void)state;
    for (int64_t n = 1; n <= MOST; n++) {
        real x[MOST + GUARD], y[MOST + GUARD], want[MOST + GUARD];
        fill(x, MOST + GUARD, (uint64_t)n);
        const real m = row_max(n, x);
        check_equals(m, largest_of(n, x));
        memcpy(y, x, sizeof y);
        memcpy(want, x, sizeof want);
        for (int64_t i = 0; i < n; i++) want[i] = exp_fast(x[i] - m);
        check_sum(n, row_exp(n, x, m, y), want);
        assert_memory_equal(y, want, sizeof y);
        check_sum(n, row_exp_sum(n, x, m), want);
        check_sum(n, row_exp(n, x, m, x), want); /* in place */
        assert_memory_equal(x, want, sizeof x);
    }
}

/* A NaN anywhere is in the sum and never the maximum. -inf adds nothing. The maximum may be
 * anywhere. */
static void every_place(void **state) {
    (void)state;
    for (int64_t n = 1; n <= MOST; n++)
        for (int64_t at = 0; at < n; at++) {
            real x[MOST];
            fill(x, n, (uint64_t)n);
            x[at] = (real)NAN;
            const real m = row_max(n, x);
            check_equals(m, largest_of(n, x));
            assert_true(isnan(row_exp_sum(n, x, m)));
            x[at] = 1000;
            check_equals(row_max(n, x), 1000);
            x[at] = (real)-INFINITY;
            assert_true(isfinite(row_exp_sum(n, x, 0)));
        }
}

static void sums_of_logs(void **state) {
    (void)state;
    enum { BLOCK = 7 };
    for (int64_t n = 1; n <= MOST; n++) {
        real x[MOST], top[MOST / BLOCK + 1];
        double sum = 0;
        fill(x, n, (uint64_t)(1000 + n));
        const double got = row_log_sum(n, x, BLOCK, top);
        for (int64_t i = 0; i < n; i++) sum += exp((double)x[i]);
        sum = log(sum);
        check_near_double("log sum", &got, &sum, 1, 1e-6, 1e-7);
        for (int64_t i = 0; i < n; i += BLOCK)
            check_equals(top[i / BLOCK], largest_of(n - i < BLOCK ? n - i : BLOCK, x + i));
    }
}

/* Softmax in place, and softmax of products with rows, equal the composition of their parts bit for
 * bit. */
static void shares(void **state) {
    (void)state;
    enum { FEATURES = 40, AT = 3 };
    static real keys[MOST * (AT + FEATURES)], q[FEATURES];
    const real *key[MOST];
    fill(q, FEATURES, 1);
    fill(keys, MOST * (AT + FEATURES), 2);
    for (int64_t j = 0; j < MOST; j++) key[j] = keys + j * (AT + FEATURES);
    for (int64_t n = 1; n <= MOST; n += n < 40 ? 1 : 13)
        for (int64_t d = 1; d <= FEATURES; d += d % 8 ? 7 : 1) {
            real x[MOST + GUARD], y[MOST + GUARD], want[MOST];
            for (int64_t j = 0; j < n; j++) want[j] = x[j] = (real)row_dot(d, q, key[j] + AT);
            for (int64_t j = n; j < MOST + GUARD; j++) x[j] = 1000;
            const double sum = row_exp(n, want, row_max(n, want), want);
            for (int64_t j = 0; j < n; j++) want[j] *= (real)(1 / sum);
            row_softmax(n, x);
            assert_memory_equal(x, want, (size_t)n * sizeof *x);
            row_attention_weights(n, d, q, key, AT, y);
            assert_memory_equal(y, want, (size_t)n * sizeof *y);
        }
}

#if defined(__AVX512DQ__) && !defined(REAL_DOUBLE)
/* Only double sums reveal their order. */
static void orders(void **state) {
    (void)state;
    real x[16];
    double lane[8][8], got[8];
    __m512d v[8];
    for (uint64_t seed = 0; seed < 100; seed++) {
        fill(x, 16, seed);
        for (int i = 0; i < 16; i++) x[i] = (real)exp(2 * (double)x[i]); /* the sums then round */
        for (int64_t n = 1; n <= 16; n++) {
            const double sum = row_sum_few(n, _mm512_loadu_ps(x)), want = sum_of(n, x);
            assert_memory_equal(&sum, &want, sizeof sum);
        }
        for (int j = 0; j < 8; j++) {
            for (int i = 0; i < 8; i++) lane[j][i] = sin((double)(8 * j + i) + (double)seed);
            v[j] = _mm512_loadu_pd(lane[j]);
        }
        _mm512_storeu_pd(got, row_totals(v));
        for (int j = 0; j < 8; j++) {
            const double want = row_total(v[j]);
            assert_memory_equal(&got[j], &want, sizeof want);
        }
    }
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length),
        cmocka_unit_test(every_place),
        cmocka_unit_test(sums_of_logs),
        cmocka_unit_test(shares),
#if defined(__AVX512DQ__) && !defined(REAL_DOUBLE)
        cmocka_unit_test(orders),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
