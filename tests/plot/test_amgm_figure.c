/* test_amgm_figure.c -- the points of statplot amgm, against the table of stat-amgm. Also the
 * options that a report passes to it and to alpha. */
#include <math.h>
#include <string.h>

#include "testing/check.h"
#include "time_figures.h"

/* Checks the table, whose numbers test_feature_power.c checks. */
static double excess_at(const program_result *table, int row) {
    return table_real(table->out, row, "excess");
}

/* Steps 5 to 30. The infinite value is a mark at the upper edge, in the first panel only. */
static void test_amgm_points(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result table = program_run("stat-amgm waves.h5 --per-step"), r = drawn("amgm waves.h5");
    const int tested = TIME_STEPS - 4;
    double high = 1, number[4];
    for (int row = 0; row < tested; row++) high = fmax(high, excess_at(&table, tested + row));
    check_above(high, 1);
    for (int row = 0; row < tested; row++) {
        const double x = 100.0 * (row + 5) / TIME_STEPS;
        assert_true(point(&r, 1, 3, row, number) >= 2);
        check_point(&r, 1, 3, row, x, excess_at(&table, tested + row));
        check_point(&r, 1, 2, row, x, row + 5 == 9 ? 1.15 * high : NAN);
        check_point(&r, 1, 4, row, x, NAN);
    }
    for (int row = 0; point(&r, 1, 5, row, number) >= 2; row++) assert_float_equal(number[1], 1, 0);
    program_free(&table);
    table = program_run("stat-amgm waves.h5");
    const double share = table_real(table.out, 1, "share");
    check_above(share, 0);
    check_cell(&table, 0, "infinite", 1);
    check_cell(&table, 1, "infinite", 0);
    check_point(&r, 2, 1, 0, 1, 100.0 / tested);
    check_point(&r, 2, 1, 1, 2, 100 * share);
    check_point(&r, 2, 3, 1, 2, 100 * share);
    program_free(&table);
    program_free(&r);
    check_svg(">infinite (V = 0): 1 of 52 tested steps<", true);
}

/* Buckets of many steps show the largest value; only selected steps count. */
static void test_amgm_steps(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("amgm noise.h5"), table = program_run("stat-amgm noise.h5");
    double number[4], high = 0;
    int rows = 0;
    for (; point(&r, 1, 1, rows, number) >= 2; rows++) high = fmax(high, number[1]);
    assert_int_equal(rows, 100);
    check_cell(&table, 0, "excess_step", 303);
    check_cell(&table, 0, "excess", high);
    program_free(&r);
    program_free(&table);
    r = drawn("amgm waves.h5 --steps 10:20");
    table = program_run("stat-amgm waves.h5 --phase 10:20 --site wave");
    const double share = table_real(table.out, 0, "share");
    check_point(&r, 2, 3, 1, 2, 100 * share);
    assert_true(point(&r, 1, 3, 0, number) >= 2);
    check_within(number[0], 100.0 * 10 / TIME_STEPS, 1e-5);
    program_free(&r);
    program_free(&table);
}

/* A panel for each run, and one for the fractions of all. */
static void test_amgm_runs(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("amgm waves.h5 sparse.h5 --stat sigma2_B");
    program_result table = program_run("stat-amgm waves.h5 --stat sigma2_B --per-step --site wave");
    check_point(&r, 1, 2, 7, 40, excess_at(&table, 7)); /* no marks: still, wave, the line */
    program_free(&r);
    program_free(&table);
    r = drawn("amgm waves.h5 sparse.h5 --stat sigma2_B --site first");
    program_free(&r);
    check_svg(">vectors every 2 steps<", true);
    check_svg("infinite", false);
    check_svg("last panel: ", true);
    r = drawn("amgm waves.h5 watched.h5 --site still");
    program_free(&r);
    check_svg(">ln (observed)<", true);
    check_svg(">bn (observed)<", false);
}

/* --yrange sets the ends of the excess axis; the fractions keep their axis. */
static void test_amgm_axes(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("amgm \"$STATREC_SAMPLES\"/cv_bn_every.h5 --yrange 0.002:0.5");
    program_free(&r);
    check_svg(">0.8<", false);
    check_svg(">no outlier in 156 steps<", true);
    check_svg(">infinite", false);
    r = drawn("amgm waves.h5 --yrange 0.01:3");
    check_point(&r, 1, 2, 4, 30, 3);
    check_svg(">no outlier", false);
    program_free(&r);
}

static void test_amgm_refused(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_refused("amgm \"$STATREC_SAMPLES\"/nlp_bn.h5", "vectors are at 2 of 240 steps");
    check_refused("amgm waves.h5 --steps 2:4",
                  "no test in steps 2 to 4: it needs 5 recorded steps");
    check_refused("amgm ln.h5", "ln.h5");
    check_refused("amgm waves.h5 --stat mu_B", "is not one of psi2_B|sigma2_B");
}

/* Three panels of runs and the panel of their shares are in two rows. */
static void test_amgm_rows(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("amgm waves.h5 sparse.h5 waves.h5 --stat sigma2_B");
    assert_true(in_two_rows(&r));
    program_free(&r);
}

/* A report passes --stat only to figures of its kind: these ignore a scalar of sites, the others
 * `sigma2`. */
static void test_report(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = program_run(
        "statplot report ramp.h5 waves.h5 --stat g_mu -o report && cat report/alpha.svg "
        "report/amgm.svg");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "distance of μ,"));
    program_free(&r);
    r = program_run("statplot report ramp.h5 waves.h5 --stat sigma2 --force -o report && cat "
                    "report/alpha.svg && "
                    "! grep 'unknown statistic' report/index.html");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "distance of σ²,"));
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amgm_points),  cmocka_unit_test(test_amgm_steps),
        cmocka_unit_test(test_amgm_runs),    cmocka_unit_test(test_amgm_axes),
        cmocka_unit_test(test_amgm_refused), cmocka_unit_test(test_amgm_rows),
        cmocka_unit_test(test_report),
    };
    return cmocka_run_group_tests(tests, time_runs_write, NULL);
}
