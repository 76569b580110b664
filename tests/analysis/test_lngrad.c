/* test_lngrad.c -- stat-lngrad's table of Theorem 1, on a run whose numbers are known. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

/* The four cases of the theorem, and two sites of which it says nothing; the second step of case d
 * is off by a tenth. */
enum { CASES = 4, THEOREM_SITES = 6 };

static void write_theorem(const char *path) {
    static const struct {
        const char *norm, *axis, *uses, *constants;
    } of[THEOREM_SITES] = {
        {"both", "row", "mu,sigma2", "mu,sigma2"}, {"neither", "row", "mu,sigma2", ""},
        {"mean", "row", "mu,sigma2", "mu"},        {"deviation", "row", "mu,sigma2", "sigma2"},
        {"uncentred", "row", "psi2", ""},          {"groups", "sample", "mu,sigma2", ""}};
    sr_recorder *r = run_create(program_file(path), run_options());
    for (int i = 0; i < THEOREM_SITES; i++)
        sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = of[i].norm,
                                  .norm = of[i].norm,
                                  .axis = of[i].axis,
                                  .uses = of[i].uses,
                                  .constants = of[i].constants,
                                  .kind = "encoder",
                                  .family = SR_FAMILY_ROW,
                                  .width = 2,
                                  .depth = i,
                                  .eps = 3,
                                  .alpha = NAN});
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < THEOREM_SITES; i++) {
            const double mean = i % 2 ? 0 : 1.5, variance = (i == 1 || i == 2 ? 0.5 : 1) * step;
            const double off = i == 3 && step == 2 ? 1.1 : 1;
            sr_put_rows(r, i, 2);
            sr_put_scalar(r, i, SR_SCALAR_row_grad_mean, mean + (i == 2 && step == 3 ? 0.5 : 0));
            sr_put_scalar(r, i, SR_SCALAR_row_grad_var, variance * off);
            sr_put_scalar(r, i, SR_SCALAR_row_exact_mean, mean);
            sr_put_scalar(r, i, SR_SCALAR_row_exact_var, variance);
            sr_put_scalar(r, i, SR_SCALAR_row_g_mean, 3);
            sr_put_scalar(r, i, SR_SCALAR_row_g_var, 4 * step);
            sr_put_scalar(r, i, SR_SCALAR_row_free_var, step);
        }
        run_end_step(r, step);
    }
    run_finish(r);
}

/* An overflow in the backward pass: the measured variance is infinite in the second of three steps,
 * NaN in the third, where the closed form is finite. */
static void write_overflow(const char *path) {
    static const double measured[] = {2, INFINITY, NAN};
    sr_recorder *r = run_create(program_file(path), run_options());
    run_add_ln(r, "top", 2, 1, 3);
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 2);
        sr_put_scalar(r, 0, SR_SCALAR_row_grad_mean, 0);
        sr_put_scalar(r, 0, SR_SCALAR_row_grad_var, measured[step - 1]);
        sr_put_scalar(r, 0, SR_SCALAR_row_exact_mean, 0);
        sr_put_scalar(r, 0, SR_SCALAR_row_exact_var, 2);
        run_end_step(r, step);
    }
    run_finish(r);
}

/* Files from before there were exact values do not have the datasets. */
static void remove_exact(const char *path) {
    const hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(f >= 0);
    assert_true(H5Ldelete(f, "/scalars/row_exact_mean", H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(f, "/scalars/row_exact_var", H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(f, "/scalars/row_free_var", H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(f) >= 0);
}

static int write_runs(void **state) {
    (void)state;
    write_theorem("theorem.h5");
    write_overflow("overflow.h5");
    write_small_run(program_file("small.h5"), 6, true);
    write_small_run(program_file("old.h5"), 6, true);
    remove_exact(program_file("old.h5"));
    return 0;
}

/* Medians are those of step 2; differences the largest: 0.1 of the variance in case d, 0.5 in
 * case c, in units of sqrt(1.5). */
static void test_theorem(void **state) {
    (void)state;
    static const char *const letter[THEOREM_SITES] = {"a", "b", "c", "d", "-", "-"};
    program_result r = program_run("stat-lngrad --burn-in 0 theorem.h5");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), THEOREM_SITES);
    for (int i = 0; i < THEOREM_SITES; i++) check_text(&r, i, "case", letter[i]);
    for (int i = 0; i < CASES; i++) {
        check_cell(&r, i, "steps", 3);
        check_cell(&r, i, "grad_mean", i % 2 ? 0 : 1.5);
        check_cell(&r, i, "exact_mean", i % 2 ? 0 : 1.5);
        check_cell(&r, i, "mean_diff", i == 2 ? 0.5 / sqrt(1.5) : 0);
        check_cell(&r, i, "exact_var", i == 1 || i == 2 ? 1 : 2);
        check_cell(&r, i, "grad_var", i == 3 ? 2.2 : i == 0 ? 2 : 1);
        check_cell(&r, i, "g_mean", 3);
        check_cell(&r, i, "g_var", 8);
        check_cell(&r, i, "free_var", 2);
    }
    check_cell(&r, 0, "var_diff", 0);
    check_within(table_real(r.out, 3, "var_diff"), 0.1, 1e-6);
    program_free(&r);
    r = program_run("stat-lngrad --burn-in 0 theorem.h5 --per-step --site neither");
    check_cell(&r, 2, "row_exact_var", 1.5);
    program_free(&r);
}

/* Exact values that are NaN at every step, and a file from before there were any. */
static void test_theorem_without_exact(void **state) {
    (void)state;
    static const char *const run[] = {"small.h5", "old.h5"};
    for (int i = 0; i < 2; i++) {
        program_result r =
            program_run("statrec check %s && stat-lngrad --burn-in 0 %s", run[i], run[i]);
        assert_int_equal(r.status, 0);
        program_free(&r);
        r = program_run("stat-lngrad --burn-in 0 %s", run[i]);
        assert_int_equal(r.status, 0);
        assert_int_equal(table_rows(r.out), 1);
        check_text(&r, 0, "case", "b");
        check_text(&r, 0, "exact_var", "nan");
        check_text(&r, 0, "var_diff", "nan");
        check_text(&r, 0, "free_var", "nan");
        check_cell(&r, 0, "grad_var", 3);
        assert_non_null(strstr(r.out, ".h5: no row_exact_var at "));
        program_free(&r);
    }
}

/* Steps that are in no difference are counted. */
static void test_nonfinite(void **state) {
    (void)state;
    program_result r = program_run("stat-lngrad --burn-in 0 overflow.h5 theorem.h5");
    assert_int_equal(r.status, 0);
    check_cell(&r, 0, "steps", 3);
    check_cell(&r, 0, "nonfinite", 2);
    check_cell(&r, 0, "grad_var", 2);
    check_cell(&r, 0, "var_diff", 0);
    for (int i = 1; i < 5; i++) check_cell(&r, i, "nonfinite", 0);
    program_free(&r);
}

/* What statrec.watch records of a LayerNorm has no row_*. */
static void test_watched(void **state) {
    (void)state;
    sr_recorder *to = run_create(program_file("bare.h5"), run_options());
    run_add_ln(to, "top", 2, 0, 3);
    run_put_step(to, 1);
    run_finish(to);
    program_result r = program_run("stat-lngrad bare.h5");
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "`statrec.watch` records no row_*"));
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_theorem), cmocka_unit_test(test_theorem_without_exact),
        cmocka_unit_test(test_nonfinite), cmocka_unit_test(test_watched)};
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
