/* test_lngrad.c -- stat-lngrad's table of Theorem 1, on a run whose numbers are known. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "room.h"
#include "testing/check.h"
#include "testing/programs.h"

/* The four cases of the theorem, and two sites that it does not cover. The second step of case d is
 * off by a tenth. */
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

/* An overflow in the backward pass: the closed form is finite in all three steps. The measured
 * variance is infinite in the second and NaN in the third. */
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

/* Files that predate exact values do not have the datasets. */
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

/* Medians are the values of step 2. Differences are the largest: 0.1 of the variance in case d, 0.5
 * in case c, in units of sqrt(1.5). */
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

/* Exact values that are NaN at every step, and a file that predates them. */
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

/* Steps that enter no difference are counted. */
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

/* statrec.watch records no row_* of a LayerNorm. */
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

/* -- long runs ------------------------------------------------------------------------------- */

enum { LONG_STEPS = 70001, LONG_SITES = 3, STATISTICS = 7 };

int stat_lngrad_main(int argc, char **argv);

/* Values of site i: grad_mean, grad_var, exact_mean, exact_var, g_mean, g_var, free_var. The
 * largest differences and a value that is not finite are in the last steps. */
static void put_long_step(double *v, int i, int step, rng *r) {
    for (int k = 0; k < STATISTICS; k++) v[k] = (i + 1) * exp(rng_normal(r) + 0.1 * k);
    if (step == LONG_STEPS) v[0] = 1e6, v[1] = 2e6;
    if (step == LONG_STEPS - 1 - i) v[5] = INFINITY;
    if (step % 1000 == 7) v[3] = 0;
    for (int k = 0; k < STATISTICS; k++) v[k] = (double)(float)v[k];
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double plain_median(const double *value) {
    static double sorted[LONG_STEPS];
    int n = 0;
    for (int i = 0; i < LONG_STEPS; i++)
        if (isfinite(value[i])) sorted[n++] = value[i];
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    return n % 2 ? sorted[n / 2] : sorted[n / 2 - 1] / 2 + sorted[n / 2] / 2;
}

static double plain_difference(const double *a, const double *b, const double *unit, bool root) {
    double most = 0;
    for (int i = 0; i < LONG_STEPS; i++) {
        const double here = fabs(a[i] - b[i]) / (root ? sqrt(unit[i]) : unit[i]);
        if (isfinite(here) && here > most) most = here;
    }
    return most;
}

static double long_value[LONG_SITES][STATISTICS][LONG_STEPS];

static void write_long(const char *path) {
    static const sr_scalar scalar[STATISTICS] = {SR_SCALAR_row_grad_mean,  SR_SCALAR_row_grad_var,
                                                 SR_SCALAR_row_exact_mean, SR_SCALAR_row_exact_var,
                                                 SR_SCALAR_row_g_mean,     SR_SCALAR_row_g_var,
                                                 SR_SCALAR_row_free_var};
    rng random = rng_create(4);
    sr_recorder *r = run_create(program_file(path), run_options());
    for (int i = 0; i < LONG_SITES; i++) run_add_ln(r, (char[]){'s', (char)('0' + i), 0}, 2, i, 3);
    for (int step = 1; step <= LONG_STEPS; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < LONG_SITES; i++) {
            double v[STATISTICS];
            put_long_step(v, i, step, &random);
            sr_put_rows(r, i, 2);
            for (int k = 0; k < STATISTICS; k++) {
                sr_put_scalar(r, i, scalar[k], v[k]);
                long_value[i][k][step - 1] = v[k];
            }
        }
        run_end_step(r, step);
    }
    run_finish(r);
}

/* A run long enough that two threads read it, against every step, one after the other. */
static void test_long(void **state) {
    (void)state;
    static const char *const name[STATISTICS] = {"grad_mean", "grad_var", "exact_mean", "exact_var",
                                                 "g_mean",    "g_var",    "free_var"};
    write_long("long.h5");
    program_result r = program_run("stat-lngrad --burn-in 0 long.h5");
    assert_int_equal(table_rows(r.out), LONG_SITES);
    for (int i = 0; i < LONG_SITES; i++) {
        double(*v)[LONG_STEPS] = long_value[i];
        check_cell(&r, i, "steps", LONG_STEPS);
        check_cell(&r, i, "nonfinite", 1);
        for (int k = 0; k < STATISTICS; k++) check_cell(&r, i, name[k], plain_median(v[k]));
        check_cell(&r, i, "mean_diff", plain_difference(v[0], v[2], v[3], true));
        check_cell(&r, i, "var_diff", plain_difference(v[1], v[3], v[3], false));
    }
    program_free(&r);
}

/* Columns that do not fit into memory together, against all. */
static void test_some_columns_at_a_time(void **state) {
    (void)state;
    char *run = strdup(program_file("long.h5")), *name = "stat-lngrad";
    for (int columns = 1; columns <= 3; columns++)
        expect_same_table(stat_lngrad_main, columns * 8 * (LONG_STEPS + 1),
                          (char *[]){name, run, NULL}, LONG_SITES + 1);
    free(run);
}

/* Five sites with one statistic and one with another: the five fit, half of the six is less. */
static void test_uneven_columns(void **state) {
    (void)state;
    enum { STEPS_HERE = 200, FIRST = 5 };
    char *run = strdup(program_file("uneven.h5")), *name = "stat-lngrad", *startup = "--burn-in";
    rng random = rng_create(5);
    sr_recorder *r = run_create(run, run_options());
    for (int i = 0; i <= FIRST; i++) run_add_ln(r, (char[]){'s', (char)('0' + i), 0}, 2, i, 3);
    for (int step = 1; step <= STEPS_HERE; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i <= FIRST; i++)
            sr_put_scalar(r, i, i < FIRST ? SR_SCALAR_row_grad_mean : SR_SCALAR_row_grad_var,
                          exp(rng_normal(&random)));
        run_end_step(r, step);
    }
    run_finish(r);
    expect_same_table(stat_lngrad_main, FIRST * 8 * (STEPS_HERE + 1),
                      (char *[]){name, run, startup, "0", NULL}, FIRST + 2);
    free(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_theorem),       cmocka_unit_test(test_theorem_without_exact),
        cmocka_unit_test(test_nonfinite),     cmocka_unit_test(test_watched),
        cmocka_unit_test(test_long),          cmocka_unit_test(test_some_columns_at_a_time),
        cmocka_unit_test(test_uneven_columns)};
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
