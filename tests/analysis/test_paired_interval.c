/* test_paired_interval.c -- intervals of pairs that share references: a case computed by hand, and
 * the coverage of 95 % intervals. */
#include <math.h>
#include <stdlib.h>

#include "analysis/bootstrap/bootstrap.h"
#include "base/rng.h"
#include "testing/check.h"

enum { MOST = 20 };

typedef struct group {
    double difference[MOST], of_reference[MOST];
    int reference[MOST];
} group;

static int interval_of(group *g, int n, double *low, double *high) {
    const pairs_values p = {g->difference, g->of_reference, g->reference};
    return paired_interval(&p, n, low, high);
}

/* var(runs)/4 = var(references)/2 = 1/4: t is the mean of those of 3 and of 1 degree. */
static void two_references_of_four_pairs(void **state) {
    (void)state;
    const double run[4] = {-sqrt(0.75), sqrt(0.75), -sqrt(0.75), sqrt(0.75)}, reference[2] = {0, 1};
    group g;
    double low, high;
    for (int i = 0; i < 4; i++) {
        g.reference[i] = 7 - i / 2;
        g.of_reference[i] = reference[i / 2];
        g.difference[i] = run[i] - g.of_reference[i];
    }
    assert_int_equal(interval_of(&g, 4, &low, &high), 2);
    const double half = (3.182446305284263 + 12.706204736174698) / 2 * sqrt(0.5);
    assert_true(fabs(low - (-0.5 - half)) < 1e-12);
    assert_true(fabs(high - (-0.5 + half)) < 1e-12);
}

static void own_references_are_students(void **state) {
    (void)state;
    group g = {{1, 2, 4}, {3, 1, 2}, {5, 0, 2}};
    double low, high, want[2];
    student_interval(g.difference, 3, &want[0], &want[1]);
    assert_int_equal(interval_of(&g, 3, &low, &high), 3);
    assert_true(low == want[0] && high == want[1]);
}

static void one_reference_has_none(void **state) {
    (void)state;
    group g = {{1, 2, 4}, {3, 3, 3}, {1, 1, 1}};
    double low, high;
    assert_int_equal(interval_of(&g, 3, &low, &high), 1);
    assert_true(isnan(low) && isnan(high));
}

static void equal_and_missing_values(void **state) {
    (void)state;
    group g = {{2, 2, 2}, {3, 3, 3}, {1, 1, 0}};
    double low, high;
    interval_of(&g, 3, &low, &high);
    assert_true(low == 2 && high == 2);
    g.difference[1] = NAN;
    interval_of(&g, 3, &low, &high);
    assert_true(isnan(low) && isnan(high));
}

/* Fraction of intervals that cover 0. Run i has the reference of its seed, else the first one. */
static double coverage(int runs, int references, double of_references, rng *r) {
    const int trials = 4000;
    int covered = 0;
    for (int trial = 0; trial < trials; trial++) {
        double value[MOST], low, high;
        group g;
        for (int k = 0; k < references; k++) value[k] = of_references * rng_normal(r);
        for (int i = 0; i < runs; i++) {
            g.reference[i] = i < references ? i : 0;
            g.of_reference[i] = value[g.reference[i]];
            g.difference[i] = rng_normal(r) - g.of_reference[i];
        }
        interval_of(&g, runs, &low, &high);
        covered += low <= 0 && high >= 0;
    }
    return (double)covered / trials;
}

/* Never too short; at most as wide as 99.5 % of the samples need. */
static void coverage_is_95(void **state) {
    (void)state;
    static const int runs[][2] = {{10, 10}, {10, 5}, {10, 3}, {10, 2},
                                  {5, 3},   {3, 2},  {20, 4}, {20, 2}};
    rng r = rng_create(4);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
        for (double spread = 0.5; spread <= 2; spread *= 2) {
            const double covered = coverage(runs[i][0], runs[i][1], spread, &r);
            if (covered < 0.943 || covered > 0.995)
                fail_msg("%d runs, %d references of spread %g: %g", runs[i][0], runs[i][1], spread,
                         covered);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_references_of_four_pairs),
        cmocka_unit_test(own_references_are_students),
        cmocka_unit_test(one_reference_has_none),
        cmocka_unit_test(equal_and_missing_values),
        cmocka_unit_test(coverage_is_95),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
