/* test_sort.c -- sorting of numbers, and order statistics without sorting. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/sort.h"
#include "testing/check.h"

static void reals_in_order(void **state) {
    (void)state;
    double value[] = {2, -INFINITY, 0.5, 1e300, 2, -3, INFINITY, 1e-300};
    const double want[] = {-INFINITY, -3, 1e-300, 0.5, 2, 2, 1e300, INFINITY};
    sort_reals(value, 8);
    for (int i = 0; i < 8; i++) check_equals(value[i], want[i]);
    sort_reals(value, 0);
    sort_reals(value, 1);
    check_equals(value[0], -INFINITY);
}

enum { MOST = 200000, KINDS = 8 };

static double value_of_kind(int kind, int i, rng *r) {
    switch (kind) {
    case 0:
        return rng_normal(r);
    case 1:
        return (double)rng_below(r, 3); /* many are equal */
    case 2:
        return i;
    case 3:
        return -i;
    case 4:
        return rng_below(r, 20) ? 1 : rng_normal(r); /* nearly all are equal */
    case 5:
        return i % 16 ? i : -i; /* a period */
    case 6:
        return i % 3 * 1e9 + rng_normal(r); /* far apart */
    default:
        return i % 2 ? INFINITY : -i;
    }
}

static void expect_ranks(const double *value, int count, const int64_t *rank, int ranks) {
    static double selected[MOST], sorted[MOST];
    memcpy(selected, value, (size_t)count * sizeof *value);
    memcpy(sorted, value, (size_t)count * sizeof *value);
    quickselect_ranks(selected, count, rank, ranks);
    sort_reals(sorted, count);
    for (int i = 0; i < ranks; i++)
        if (!(selected[rank[i]] <= sorted[rank[i]] && selected[rank[i]] >= sorted[rank[i]]))
            fail_msg("%d values: rank %d is %g, not %g", count, (int)rank[i], selected[rank[i]],
                     sorted[rank[i]]);
    sort_reals(selected, count); /* none is lost */
    for (int i = 0; i < count; i++)
        assert_true(!(selected[i] < sorted[i] || sorted[i] < selected[i]));
}

static void ranks_are_those_of_sorting(void **state) {
    (void)state;
    static const int counts[] = {
        1, 2, 3, 24, 25, 64, 200, 1023, 1024, 3000, (1 << 16) - 1, 1 << 16, 70001, MOST};
    rng r = rng_create(1);
    static double value[MOST];
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            const int n = counts[k];
            for (int i = 0; i < n; i++) value[i] = value_of_kind(kind, i, &r);
            const int64_t one[] = {n / 2}, ends[] = {0, n - 1};
            const int64_t many[] = {n / 100, n / 4, n / 4 + 1, n / 2, n - 1};
            expect_ranks(value, n, one, 1);
            expect_ranks(value, n, ends, n > 1 ? 2 : 1);
            if (n > 24) expect_ranks(value, n, many, 5);
        }
    }
}

/* Ranks with overlapping brackets, all in one order; more ranks than brackets. */
static void many_ranks_of_many_values(void **state) {
    (void)state;
    enum { RANKS = 40 };
    static double value[MOST];
    int64_t near[RANKS], apart[RANKS];
    rng r = rng_create(2);
    for (int i = 0; i < RANKS; i++)
        near[i] = MOST / 2 + 500 * i, apart[i] = MOST / RANKS * i + i % 2;
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < MOST; i++) value[i] = value_of_kind(kind, i, &r);
        for (int ranks = 1; ranks <= RANKS; ranks += 13) {
            expect_ranks(value, MOST, near, ranks);
            expect_ranks(value, MOST, apart, ranks);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reals_in_order),
                                       cmocka_unit_test(ranks_are_those_of_sorting),
                                       cmocka_unit_test(many_ranks_of_many_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
