/* test_buckets.c -- buckets of an axis, and the values kept from each. */
#include <math.h>
#include <string.h>

#include "base/buckets.h"
#include "base/rng.h"
#include "testing/check.h"

static void extremes_stay(void **state) {
    (void)state;
    double value[] = {3, NAN, -7, 5, INFINITY, 4, 1e6, -INFINITY};
    const bucket_range r = bucket_measure(value, 8);
    check_equals(r.least, -7);
    check_equals(r.median, 4);
    check_equals(r.largest, 1e6);
    double even[] = {4, 1, 2, 10};
    check_equals(bucket_measure(even, 4).median, 3);
    double rising[] = {1, 2, NAN, 4, 10}, falling[] = {5, 4, 2, 1};
    check_equals(bucket_measure(rising, 5).median, 3);
    check_equals(bucket_measure(falling, 4).median, 3);
    double many[100]; /* 0 to 99 in another order: the mean of the middle two */
    for (int order = 3; order < 100; order += 10) {
        for (int i = 0; i < 100; i++) many[i] = order * i % 100;
        check_equals(bucket_measure(many, 100).median, 49.5);
    }
    double none[] = {NAN, INFINITY};
    assert_true(isnan(bucket_measure(none, 2).median) && isnan(bucket_measure(none, 0).least));
}

static void parts_are_equal(void **state) {
    (void)state;
    assert_int_equal(bucket_of(0, 0, 10, 5), 0);
    assert_int_equal(bucket_of(1.999, 0, 10, 5), 0);
    assert_int_equal(bucket_of(2, 0, 10, 5), 1);
    assert_int_equal(bucket_of(10, 0, 10, 5), 4); /* the end is in the last bucket */
    assert_int_equal(bucket_of(-3, 0, 10, 5), 0);
    assert_int_equal(bucket_of(99, 0, 10, 5), 4);
    assert_int_equal(bucket_of(NAN, 0, 10, 5), 0);
    assert_int_equal(bucket_of(1, 1, 1, 5), 0); /* an axis without extent */
}

/* Must equal a loop over single values, also for -0 and 0, which compare equal. */
static void check_gathered(const double *from, int count) {
    double want[300], got[300], least = INFINITY, largest = -INFINITY, low = least, high = largest;
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (!isfinite(from[i])) continue;
        want[n++] = from[i];
        least = from[i] < least ? from[i] : least;
        largest = from[i] > largest ? from[i] : largest;
    }
    memcpy(got, from, (size_t)count * sizeof *got);
    assert_int_equal(gather_finite(got, got, count, &low, &high), n);
    assert_memory_equal(got, want, (size_t)n * sizeof *got);
    assert_memory_equal(&low, &least, sizeof low);
    assert_memory_equal(&high, &largest, sizeof high);
}

static void finite_values_come_to_the_front(void **state) {
    (void)state;
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0};
    rng r = rng_create(4);
    double value[300];
    for (int trial = 0; trial < 2000; trial++) {
        const int count = (int)rng_below(&r, 300), rare = trial % 4 ? 1 + 20 * (trial % 40) : 0;
        const double shift = trial % 3 - 1;
        for (int i = 0; i < count; i++) {
            value[i] = shift + (shift == 0 ? rng_normal(&r) : 0.1 * rng_uniform(&r));
            if (trial % 5 == 0) value[i] = fabs(value[i]) * shift;
            if (rare && rng_below(&r, (uint64_t)rare) == 0) value[i] = odd[rng_below(&r, 5)];
        }
        check_gathered(value, count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(extremes_stay),
                                       cmocka_unit_test(parts_are_equal),
                                       cmocka_unit_test(finite_values_come_to_the_front)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
