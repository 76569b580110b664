/* stat-svd --summary: spectra whose ranks and slopes follow by hand, and spectra without them. */
#include "testing/programs.h"

#include <math.h>
#include <string.h>

#include "testing/check.h"

enum { VALUES = 4, POWER_VALUES = 8 };

static const struct {
    const char *name;
    double value[VALUES];
} spectra[] = {
    {"flat", {3, 3, 3, 3}},
    {"geometric", {8, 4, 2, 1}},
    {"low", {1, 0.5, 0.25, 1e-9}},
    {"zero", {0, 0, 0, 0}},
    {"nan", {NAN, NAN, NAN, NAN}},
    {"one", {2, 0, 0, 0}},
    {"infinite", {INFINITY, 1, 1, 1}},
    {"huge", {1e300, 1e300, 1e300, 1e300}},
};
enum { SPECTRA = sizeof spectra / sizeof spectra[0] };

static sr_recorder *create(const char *path, const char *name, int count) {
    sr_recorder *r = run_create(path, run_options());
    run_add_ln(r, "stem", 2, 1, 1);
    if (name) assert_int_equal(sr_add_embedding(r, name, 100, count), SR_OK);
    return r;
}

static void end_step(sr_recorder *r, int step) {
    sr_begin_step(r, step);
    run_end_step(r, step);
}

static int write_runs(void **state) {
    (void)state;
    sr_recorder *r = create(program_file("spectra.h5"), NULL, 0);
    for (int i = 0; i < SPECTRA; i++) sr_add_embedding(r, spectra[i].name, 100, VALUES);
    end_step(r, 1);
    for (int i = 0; i < SPECTRA; i++)
        sr_put_singular_values(r, spectra[i].name, 1, spectra[i].value);
    run_finish(r);
    double power[POWER_VALUES], square[POWER_VALUES];
    for (int i = 0; i < POWER_VALUES; i++) {
        power[i] = 10.0 / (i + 1);
        square[i] = power[i] * power[i];
    }
    power[0] = 1000; /* the fit skips it by default */
    r = create(program_file("power.h5"), "word", POWER_VALUES);
    end_step(r, 1);
    sr_put_singular_values(r, "word", 1, power);
    end_step(r, 2);
    sr_put_singular_values(r, "word", 2, square);
    run_finish(r);
    r = create(program_file("waiting.h5"), "word", POWER_VALUES);
    end_step(r, 1);
    assert_int_equal(sr_flush(r), SR_OK);
    sr_abandon(r);
    return 0;
}

static int row_of(const program_result *r, const char *name) {
    for (int i = 0; i < table_rows(r->out); i++)
        if (strcmp(table_cell(r->out, i, "embedding"), name) == 0) return i;
    fail_msg("no embedding %s in:\n%s", name, r->out);
    return -1;
}

static void check_nothing(const program_result *r, int row, int resolved) {
    static const char *const column[] = {"effective_rank", "stable_rank", "condition", "decay",
                                         "r2"};
    check_cell(r, row, "resolved", resolved);
    check_cell(r, row, "below_resolution", VALUES - resolved);
    for (int i = 0; i < 5; i++) check_text(r, row, column[i], "nan");
}

static void test_flat(void **state) {
    (void)state;
    program_result r = program_run("stat-svd spectra.h5 --summary");
    static const char *const name[] = {"flat", "huge"};
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), SPECTRA);
    for (int i = 0; i < 2; i++) {
        const int row = row_of(&r, name[i]);
        check_cell(&r, row, "values", 4);
        check_cell(&r, row, "below_resolution", 0);
        check_cell(&r, row, "effective_rank", 4);
        check_cell(&r, row, "stable_rank", 4);
        check_cell(&r, row, "condition", 1);
        check_text(&r, row, "decay", "0");
        check_text(&r, row, "r2", "nan");
    }
    program_free(&r);
}

/* 8 4 2 1 of 15: entropy ln 15 - (8 3 + 4 2 + 2 1)/15 ln 2. In the fit, ln sigma falls by ln 2
 * between x = ln 2, ln 3, ln 4. So Sxy = -ln 2 (ln 4 - ln 2) and Syy = 2 (ln 2)^2. */
static void test_geometric(void **state) {
    (void)state;
    program_result r = program_run("stat-svd spectra.h5 --summary");
    const int row = row_of(&r, "geometric");
    const double x[] = {log(2), log(3), log(4)}, mean = (x[0] + x[1] + x[2]) / 3;
    double xx = 0;
    for (int i = 0; i < 3; i++) xx += (x[i] - mean) * (x[i] - mean);
    check_cell(&r, row, "sigma_1", 8);
    check_cell(&r, row, "effective_rank", 15 * pow(2, -34.0 / 15));
    check_cell(&r, row, "stable_rank", 85.0 / 64);
    check_cell(&r, row, "condition", 8);
    check_cell(&r, row, "decay", log(2) * log(2) / xx);
    check_cell(&r, row, "r2", log(2) * log(2) / (2 * xx));
    check_cell(&r, row, "fit_first", 2);
    check_cell(&r, row, "fit_last", 4);
    program_free(&r);
}

static void test_power_law(void **state) {
    (void)state;
    program_result r = program_run("stat-svd power.h5 --summary");
    assert_int_equal(table_rows(r.out), 2); /* every recorded step */
    check_cell(&r, 0, "step", 1);
    check_cell(&r, 0, "decay", 1);
    check_cell(&r, 0, "r2", 1);
    check_cell(&r, 0, "condition", 800);
    check_cell(&r, 1, "step", 2);
    check_cell(&r, 1, "decay", 2);
    check_cell(&r, 1, "condition", 64);
    program_free(&r);
    r = program_run("stat-svd power.h5 --summary --fit-first 1 --fit-last 5");
    check_above(table_real(r.out, 0, "decay"), 2);
    check_below(table_real(r.out, 0, "r2"), 0.95);
    check_cell(&r, 0, "fit_first", 1);
    check_cell(&r, 0, "fit_last", 5);
    check_cell(&r, 1, "decay", 2);
    program_free(&r);
    r = program_run("stat-svd power.h5 --summary --fit-first 6 --fit-last 5");
    assert_int_equal(r.status, 2);
    program_free(&r);
}

/* 1e-9 of the largest is below resolution. Two of 1 1/2 1/4 are in the fit: too few. */
static void test_below_resolution(void **state) {
    (void)state;
    program_result r = program_run("stat-svd spectra.h5 --summary");
    int row = row_of(&r, "low");
    check_cell(&r, row, "resolved", 3);
    check_cell(&r, row, "below_resolution", 1);
    check_cell(&r, row, "condition", 4);
    check_cell(&r, row, "fit_last", 3);
    check_text(&r, row, "decay", "nan");
    row = row_of(&r, "one");
    check_cell(&r, row, "below_resolution", 3);
    check_cell(&r, row, "effective_rank", 1);
    check_cell(&r, row, "stable_rank", 1);
    check_cell(&r, row, "condition", 1);
    check_text(&r, row, "decay", "nan");
    check_nothing(&r, row_of(&r, "zero"), 0);
    check_nothing(&r, row_of(&r, "nan"), 0);
    check_nothing(&r, row_of(&r, "infinite"), 0);
    program_free(&r);
    r = program_run("stat-svd spectra.h5 --summary --fit-first 1");
    check_above(table_real(r.out, row_of(&r, "low"), "decay"), 0);
    program_free(&r);
}

static void test_run_that_has_not_ended(void **state) {
    (void)state;
    program_result r = program_run("stat-svd waiting.h5");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.out, "");
    assert_non_null(strstr(r.err, "has not ended: `statrec train --svd-every N`"));
    program_free(&r);
    r = program_run("stat-svd power.h5 waiting.h5");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "# note: waiting.h5: no singular values of an embedding before"));
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flat),
        cmocka_unit_test(test_geometric),
        cmocka_unit_test(test_power_law),
        cmocka_unit_test(test_below_resolution),
        cmocka_unit_test(test_run_that_has_not_ended),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
