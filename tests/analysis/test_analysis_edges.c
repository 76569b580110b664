/* Analyses of many statistics at once, and of values that are not finite. */
#include <math.h>
#include <string.h>

#include "statrec/format.h"
#include "testing/check.h"
#include "testing/programs.h"

/* One site of the LN family. row_grad_mean is infinite, 1, 2, NaN, 7, 7. row_grad_var is -5 once, 3
 * once and otherwise 0. */
static int write_runs(void **state) {
    (void)state;
    static const double value[] = {INFINITY, 1, 2, NAN, 7, 7};
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    sr_recorder *r = sr_create(program_file("edges.h5"), &o, &why);
    if (!r) fail_msg("%s", why.text);
    run_add_ln(r, "top", 2, 1, 1e-5);
    for (int step = 1; step <= 6; step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 4);
        sr_put_scalar(r, 0, SR_SCALAR_row_grad_mean, value[step - 1]);
        sr_put_scalar(r, 0, SR_SCALAR_row_grad_var, step == 2 ? 3 : step == 3 ? -5 : 0);
        sr_put_scalar(r, 0, SR_SCALAR_row_exact_var, 3);
        sr_put_scalar(r, 0, (sr_scalar)(SR_SCALAR_COUNT - 1), 3);
        sr_end_step(r, &(sr_step){.size = sizeof(sr_step), step, 10, step, 1, 0.1, 1});
    }
    check_ok(sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, &why),
             &why);
    return 0;
}

#define NAME(name, definition) #name ","
static const char all_names[] = SR_SCALARS(NAME);
#define TEXT(name, definition) #name,
static const char *const each_name[] = {SR_SCALARS(TEXT)};

/* Every name below /scalars, the last one included, has a row. */
static void test_all_statistics(void **state) {
    (void)state;
    static const char *const program[] = {"stat-outlier", "stat-scalar"};
    const char *last_name = each_name[SR_SCALAR_COUNT - 1];
    for (int i = 0; i < 2; i++) {
        program_result r = program_run("%s edges.h5 --stat %s%s", program[i], all_names, last_name);
        if (r.status) fail_msg("%s", r.err);
        const int last = table_rows(r.out) - 1;
        check_text(&r, last, "statistic", last_name);
        check_cell(&r, last, "median", 3);
        assert_non_null(strstr(r.out, "no g_psi2 at 1 of 1 sites"));
        program_free(&r);
    }
}

static void test_unknown_statistic(void **state) {
    (void)state;
    program_result r = program_run("stat-scalar edges.h5 --stat row_exact_vra");
    assert_int_equal(r.status, 2);
    assert_non_null(strstr(r.err, "unknown statistic 'row_exact_vra'\n"));
    assert_non_null(strstr(r.err, "hint: did you mean 'row_exact_var'? --help lists all "));
    program_free(&r);
}

/* The first step is infinite and may not be the largest value. 1 2 7 7 have median 4.5 and
 * deviations 3.5 2.5 2.5 2.5. */
static void test_outlier_after_infinity(void **state) {
    (void)state;
    program_result r = program_run("stat-outlier edges.h5 --stat row_grad_mean");
    assert_int_equal(r.status, 0);
    check_cell(&r, 0, "nonfinite", 2);
    check_cell(&r, 0, "max", 7);
    check_cell(&r, 0, "mad", 2.5);
    check_cell(&r, 0, "outliers", 0);
    check_cell(&r, 0, "largest", -1.4);
    check_cell(&r, 0, "largest_step", 2);
    program_free(&r);
}

/* 0 3 -5 0 0 0: more than half are equal, so all other values are outliers, on both sides. */
static void test_outlier_without_spread(void **state) {
    (void)state;
    program_result r =
        program_run("stat-outlier edges.h5 --stat row_grad_var --deviations 1000; "
                    "stat-outlier edges.h5 --stat row_grad_var --list | grep ^edges");
    assert_int_equal(r.status, 0);
    check_cell(&r, 0, "median", 0);
    check_cell(&r, 0, "mad", 0);
    check_cell(&r, 0, "outliers", 2);
    check_cell(&r, 0, "share", 2.0 / 6);
    check_text(&r, 0, "largest", "-inf");
    check_cell(&r, 0, "largest_step", 3);
    assert_int_equal(table_rows(r.out), 3);
    assert_non_null(strstr(r.out, "\t3\tinf\n"));
    assert_non_null(strstr(r.out, "\t-5\t-inf\n"));
    program_free(&r);
    r = program_run("stat-outlier edges.h5 --stat row_exact_var");
    check_cell(&r, 0, "outliers", 0);
    check_cell(&r, 0, "largest", 0);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_statistics),
                                       cmocka_unit_test(test_unknown_statistic),
                                       cmocka_unit_test(test_outlier_without_spread),
                                       cmocka_unit_test(test_outlier_after_infinity)};
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
