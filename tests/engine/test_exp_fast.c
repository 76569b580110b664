/* exp_fast.h against exp in double, over every 61st float. */
#include "testing/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/exp_fast.h"

#ifndef REAL_DOUBLE
static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Error in units of the last place of the exact value (subnormal results: of the smallest). */
static double ulps(float got, double want) {
    int exponent;
    frexp(want, &exponent);
    return fabs((double)got - want) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

static void test_ulps(void **state) {
    (void)state;
    double worst = 0;
    float where = 0;
    for (uint64_t bits = 0; bits < 1ull << 32; bits += 61) {
        float x = from_bits((uint32_t)bits);
        if (!(x > -110 && x <= 88.72283f)) continue;
        double e = ulps(exp_fast(x), exp((double)x));
        if (e > worst) worst = e, where = x;
    }
    printf("worst error %.3f ulp at %a\n", worst, (double)where);
    check_above(worst, 0.1);
    check_below(worst, 2);
}

#if defined(__AVX512F__)
/* Sixteen adjacent floats, then a step: all kinds of numbers. */
static void test_vector(void **state) {
    (void)state;
    for (uint64_t bits = 0; bits < 1ull << 32; bits += 61 * 16) {
        float x[16], got[16];
        for (int i = 0; i < 16; i++) x[i] = from_bits((uint32_t)bits + (uint32_t)i);
        _mm512_storeu_ps(got, exp_fast_vector(_mm512_loadu_ps(x)));
        for (int i = 0; i < 16; i++) {
            const float want = exp_fast(x[i]);
            if (isnan(want) ? !isnan(got[i]) : memcmp(&got[i], &want, sizeof want) != 0)
                fail_msg("exp(%a): %a alone, %a in a vector", (double)x[i], (double)want,
                         (double)got[i]);
        }
    }
}
#endif
#endif

static void test_special_values(void **state) {
    (void)state;
    check_equals(exp_fast(0), 1);
    check_equals(exp_fast((real)-INFINITY), 0);
    check_equals(exp_fast(-1e30f), 0);
    assert_true(isinf(exp_fast((real)INFINITY)));
    assert_true(isinf(exp_fast(1e30f)));
    assert_true(isnan(exp_fast((real)NAN)));
    assert_true(isnan(exp_fast((real)-NAN)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
#ifndef REAL_DOUBLE
        cmocka_unit_test(test_ulps),
#if defined(__AVX512F__)
        cmocka_unit_test(test_vector),
#endif
#endif
        cmocka_unit_test(test_special_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
