/* test_alpha_figure.c -- the points of statplot alpha, its line of independent batches and the
 * run's alpha. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "time_figures.h"

/* Rounded to float32, as in the file. */
static double stored(double x) {
    return (double)(float)x;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Computes the distances of steps after `left_out`, sorted; returns their number. */
static int distances(double alpha, int left_out, bool rests, double value[TIME_STEPS]) {
    double r[TIME_WIDTH] = {0};
    int count = 0;
    for (int step = 1; step <= TIME_STEPS; step++) {
        double sum = 0;
        for (int k = 0; k < TIME_WIDTH; k++) {
            const double b = stored(rests ? time_noise(step, k) : time_ramp(step, k));
            sum += (b - r[k]) * (b - r[k]);
            r[k] = alpha * r[k] + (1 - alpha) * b;
        }
        if (step > left_out) value[count++] = sqrt(sum) / TIME_WIDTH;
    }
    qsort(value, (size_t)count, sizeof *value, ascending);
    return count;
}

/* 17 distances: the burn-in of alpha 0.7, the largest in 30 steps, is 13. */
static double quantile(double alpha, bool rests, int quarter) {
    double value[TIME_STEPS];
    assert_int_equal(distances(alpha, 13, rests, value), 17);
    return value[4 * quarter];
}

/* 0.8 would leave 9 of 30 steps, less than a third. Bars and line of the first site come before
 * those of the second. */
static void test_alpha_points(void **state) {
    (void)state;
    static const double alpha[] = {0, 0.5, 0.7};
    if (!have_gnuplot()) skip();
    program_result r = drawn("alpha ramp.h5");
    for (int rests = 0; rests < 2; rests++) {
        const double base = quantile(0, rests, 2);
        for (int i = 0; i < 3; i++) {
            double number[4];
            const double x = (rests ? 1.03 : 1) / (1 - alpha[i]);
            check_point(&r, 1, 2 + 2 * rests, i, x, quantile(alpha[i], rests, 2) / base);
            assert_int_equal(point(&r, 1, 1 + 2 * rests, i, number), 4);
            assert_float_equal(number[2], quantile(alpha[i], rests, 1) / base, 1e-5);
            assert_float_equal(number[3], quantile(alpha[i], rests, 3) / base, 1e-5);
        }
        check_point(&r, 1, 2 + 2 * rests, 3, (rests ? 1.03 : 1) / (1 - 0.8), NAN);
    }
    program_free(&r);
    check_svg("α 0.7, 17 steps<", true);
    check_svg("vectors every", false);
    check_svg(">rests<", true);
    check_svg("bar: quartiles", true);
}

/* For independent batches d^2 is 1 + (1 - alpha)/(1 + alpha) times their variance. */
static void test_alpha_noise(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("alpha ramp.h5 --xrange 0.5:50");
    double number[4];
    int below = 0, above = 0;
    for (int row = 0; point(&r, 1, 5, row, number) >= 2; row++) {
        const double alpha = 1 - 1 / number[0];
        if (number[0] < 1) {
            assert_true(isnan(number[1]));
            below++;
        } else {
            const double d2 = 1 + (1 - alpha) / (1 + alpha);
            assert_float_equal(number[1], sqrt(d2 / 2), 1e-5);
            above++;
        }
    }
    assert_true(below > 10 && above > 10);
    program_free(&r);
}

/* The control: for such batches the curve is that line. 0.99 would leave 241 of 700 steps, more
 * than a third. */
static void test_alpha_is_noise(void **state) {
    (void)state;
    static const double alpha[] = {0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99};
    double number[4];
    if (!have_gnuplot()) skip();
    program_result r = drawn("alpha noise.h5");
    for (int row = 0; row < 9; row++) {
        assert_true(point(&r, 1, 2, row, number) >= 2);
        assert_float_equal(number[1], 1 / sqrt(1 + alpha[row]), 0.03);
    }
    assert_true(point(&r, 1, 2, 9, number) >= 2 && isnan(number[1]));
    program_free(&r);
    check_svg("α 0.9, 241 steps<", true);
}

/* The run's alpha refers to one step: over two steps it is squared. */
static void test_alpha_of_run(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("alpha ramp.h5");
    assert_non_null(strstr(r.err, "from (3.33333, graph 0, 0) to (3.33333, graph 1, 0)"));
    program_free(&r);
    r = drawn("alpha sparse.h5");
    assert_non_null(strstr(r.err, "from (1.96078, graph 0, 0)"));
    program_free(&r);
    check_svg("α 0.7, 17 steps, vectors every 2<", true);
    r = drawn("alpha ramp.h5 --xrange 1:3");
    assert_null(strstr(r.err, "graph 0, 0"));
    program_free(&r);
}

/* A panel for each run; runs of one site each share a panel, side by side. */
static void test_alpha_runs(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("alpha ramp.h5 other.h5");
    check_point(&r, 2, 2, 2, 1 / 0.3, quantile(0.7, false, 2) / quantile(0, false, 2));
    program_free(&r);
    check_svg("α 0.5, 17 steps<", true);
    check_svg(">last site<", true);
    r = drawn("alpha ramp.h5 other.h5 --site rests");
    const double y = quantile(0.7, true, 2) / quantile(0, true, 2);
    check_point(&r, 1, 2, 2, pow(1.03, -0.5) / 0.3, y);
    check_point(&r, 1, 4, 2, pow(1.03, 0.5) / 0.3, y);
    assert_non_null(strstr(r.err, "from (3.33333, graph 0"));
    assert_non_null(strstr(r.err, "from (2.00000, graph 0"));
    program_free(&r);
    check_svg("(α 0.5, 17 steps)<", true);
    check_svg(">last site<", false);
    r = drawn("alpha ramp.h5 --stat sigma2 --steps 1:15");
    program_free(&r);
    check_svg("distance of σ²", true);
    check_svg("α 0.7, 8 steps<", true); /* burn-in: 7 steps for 0.5, all but 2 for 0.7 */
}

static void test_alpha_refused(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_refused("alpha one.h5", "no two alphas to compare: too few recorded steps");
    check_refused("alpha \"$STATREC_SAMPLES\"/nlp_bn.h5", "no two alphas to compare");
    check_refused("alpha ln.h5", "ln.h5 has no dist_mu");
    check_refused("alpha ramp.h5 --stat psi2", "has no dist_psi2");
    check_refused("alpha ramp.h5 --stat gamma",
                  "unknown statistic 'gamma'; known: mu, sigma2, psi2");
    check_refused("alpha ramp.h5 --stat mu,sigma2", "--stat is one of mu, sigma2, psi2");
    check_refused("alpha ramp.h5 --xrange -1:5", "logarithmic and begins above 0");
}

/* Four panels are in two rows, three in one. */
static void test_alpha_rows(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("alpha ramp.h5 other.h5 sparse.h5 ramp.h5");
    assert_true(in_two_rows(&r));
    check_point(&r, 4, 2, 2, 1 / 0.3, quantile(0.7, false, 2) / quantile(0, false, 2));
    program_free(&r);
    r = drawn("alpha ramp.h5 other.h5 sparse.h5");
    assert_false(in_two_rows(&r));
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alpha_points),   cmocka_unit_test(test_alpha_noise),
        cmocka_unit_test(test_alpha_is_noise), cmocka_unit_test(test_alpha_of_run),
        cmocka_unit_test(test_alpha_runs),     cmocka_unit_test(test_alpha_refused),
        cmocka_unit_test(test_alpha_rows),
    };
    return cmocka_run_group_tests(tests, time_runs_write, NULL);
}
