/* test_buckets.c -- parts of an axis, and what stays of each. */
#include <math.h>

#include "../check.h"
#include "statnet/buckets.h"

static void extremes_stay(void **state) {
    (void)state;
    double value[] = {3, NAN, -7, 5, INFINITY, 4, 1e6, -INFINITY};
    const bucket_range r = bucket_measure(value, 8);
    assert_true(r.least == -7 && r.median == 4 && r.largest == 1e6);
    double even[] = {4, 1, 2, 10};
    assert_true(bucket_measure(even, 4).median == 3);
    double rising[] = {1, 2, NAN, 4, 10}, falling[] = {5, 4, 2, 1};
    assert_true(bucket_measure(rising, 5).median == 3 && bucket_measure(falling, 4).median == 3);
    double many[100]; /* 0 to 99 in other orders: of the middle two the mean */
    for (int order = 3; order < 100; order += 10) {
        for (int i = 0; i < 100; i++) many[i] = order * i % 100;
        assert_true(bucket_measure(many, 100).median == 49.5);
    }
    double none[] = {NAN, INFINITY};
    assert_true(isnan(bucket_measure(none, 2).median) && isnan(bucket_measure(none, 0).least));
}

static void parts_are_equal(void **state) {
    (void)state;
    assert_int_equal(bucket_of(0, 0, 10, 5), 0);
    assert_int_equal(bucket_of(1.999, 0, 10, 5), 0);
    assert_int_equal(bucket_of(2, 0, 10, 5), 1);
    assert_int_equal(bucket_of(10, 0, 10, 5), 4); /* the end is in the last part */
    assert_int_equal(bucket_of(-3, 0, 10, 5), 0);
    assert_int_equal(bucket_of(99, 0, 10, 5), 4);
    assert_int_equal(bucket_of(NAN, 0, 10, 5), 0);
    assert_int_equal(bucket_of(1, 1, 1, 5), 0); /* no axis at all */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(extremes_stay),
                                       cmocka_unit_test(parts_are_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
