/* test_metrics.c -- metrics of evaluations: declared, rejected, written, read back, recovered. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

static void check_own(const char *path) {
    static const sr_run_metric want[] = {
        {sizeof(sr_run_metric), "wer", "percent", "word errors", SR_BETTER_LESS},
        {sizeof(sr_run_metric), "f1", "percent", "span F1 of the validation set", SR_BETTER_MORE},
        {sizeof(sr_run_metric), "size", "", "", SR_BETTER_NEITHER}};
    sr_runfile *f = sample_open(path);
    assert_string_equal(sr_run_name(f, "evals", 0), "epoch");
    for (int i = 0; i < 3; i++) {
        const sr_run_metric *m = sr_run_get_metric(f, i);
        assert_non_null(m);
        assert_string_equal(m->name, want[i].name);
        assert_string_equal(m->unit, want[i].unit);
        assert_string_equal(m->definition, want[i].definition);
        assert_int_equal(m->better, want[i].better);
        assert_ptr_equal(sr_run_find_metric(f, want[i].name), m);
        assert_string_equal(sr_run_name(f, "evals", 1 + i), want[i].name);
    }
    assert_null(sr_run_get_metric(f, 3));
    assert_null(sr_run_get_metric(f, -1));
    assert_null(sr_run_find_metric(f, "valid_loss")); /* not computed */
    assert_null(sr_run_find_metric(f, "epoch"));
    assert_false(sr_run_has_eval(f, "valid_loss"));
    assert_true(sr_run_has_eval(f, "f1"));
    assert_int_equal(sr_run_get_info(f)->evals, 2);
    check_equals(run_eval_value(f, "step", 1), 2);
    check_equals(run_eval_value(f, "epoch", 0), 0.25);
    check_equals(run_eval_value(f, "wer", 0), 12);
    check_equals(run_eval_value(f, "f1", 0), 60);
    check_equals(run_eval_value(f, "size", 1), 1e9);
    assert_true(isnan(run_eval_value(f, "epoch", 1)));
    assert_true(isnan(run_eval_value(f, "size", 0)) && isnan(run_eval_value(f, "wer", 1)));
    assert_string_equal(sr_run_definition(f, "evals/f1"), "span F1 of the validation set");
    sr_run_close(f);
}

static void test_own(void **state) {
    (void)state;
    sr_failure why = {0};
    write_metric_run(sample_path("own.h5"));
    check_own(sample_path("own.h5"));
    check_ok(sr_run_check(sample_path("own.h5"), &why), &why);
    sr_runfile *f = sample_open(sample_path("own.h5"));
    assert_int_equal(sr_run_eval(f, "bleu", 0, 1, &(double){0}, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "no column 'bleu'");
    sr_run_close(f);
}

static void test_recover(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    write_metric_run(sample_path("own.h5"));
    check_ok(sr_run_recover(sample_path("own.h5"), sample_path("copy.h5"), true, -1, &count, &why),
             &why);
    assert_int_equal(count.evals, 2);
    assert_int_equal(count.lost_evals, 0);
    check_own(sample_path("copy.h5"));
}

/* netCDF's readers find the evaluations of a metric by its scale. */
static void test_scale(void **state) {
    (void)state;
    write_metric_run(sample_path("own.h5"));
    hid_t file = H5Fopen(sample_path("own.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t attribute =
        H5Aopen_by_name(file, "/evals/f1", "DIMENSION_LIST", H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute);
    hvl_t list = {0, NULL};
    H5O_info_t seen, step;
    assert_true(H5Aread(attribute, type, &list) >= 0);
    assert_int_equal(list.len, 1);
    hid_t set = H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT, list.p);
    assert_true(H5Oget_info2(set, &seen, H5O_INFO_BASIC) >= 0);
    assert_true(H5Oget_info_by_name2(file, "/evals/step", &step, H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
    assert_true(seen.addr == step.addr);
    H5free_memory(list.p);
    H5Dclose(set), H5Tclose(type), H5Aclose(attribute), H5Fclose(file);
}

/* -- before the first step ------------------------------------------------------------------- */

static void put_eval(sr_recorder *r, int64_t step) {
    sr_begin_eval(r, step, 0);
    sr_put_metric(r, "early", 7);
    sr_end_eval(r);
}

static void test_before_steps(void **state) {
    (void)state;
    sr_recorder *r = run_create(sample_path("early.h5"), run_options());
    sr_add_metric(r, "early", "1", "", SR_BETTER_NEITHER);
    put_eval(r, 0);
    sr_add_metric(r, "later", "1", "", SR_BETTER_NEITHER);
    for (int i = 1; i < 16; i++) put_eval(r, 0);
    check_ok(sr_failed(r) ? sr_failed(r)->status : SR_OK, sr_failed(r));
    run_put_step(r, 1);
    for (int i = 2; i < 40; i++) put_eval(r, i);
    run_finish(r);
    sr_runfile *f = sample_open(sample_path("early.h5"));
    assert_int_equal(sr_run_get_info(f)->evals, 54);
    check_equals(run_eval_value(f, "early", 0), 7);
    assert_true(isnan(run_eval_value(f, "later", 0)));
    check_equals(run_eval_value(f, "step", 53), 39);
    sr_run_close(f);
    r = run_create(sample_path("early.h5"), run_options());
    sr_add_metric(r, "early", "1", "", SR_BETTER_NEITHER);
    for (int i = 0; i < 17; i++) put_eval(r, i);
    check_failure(sr_failed(r), SR_STATE, "at most 16 before the first step");
    sr_abandon(r);
}

/* -- rejected calls -------------------------------------------------------------------------- */

static void expect_refused(const char *part, const char *name, const char *unit,
                           const char *definition, sr_better better) {
    sr_recorder *r = run_create(sample_path("refused.h5"), run_options());
    sr_add_metric(r, "there", "1", "", SR_BETTER_MORE);
    assert_int_equal(sr_add_metric(r, name, unit, definition, better), SR_USAGE);
    check_failure(sr_failed(r), SR_USAGE, part);
    sr_abandon(r);
}

static void test_declarations(void **state) {
    (void)state;
    static const char *const names[] = {"", NULL, "a/b", ".hidden", "step", "epoch", "a\tb"};
    char longest[SR_DEFINITION_SIZE + 1];
    memset(longest, 'x', sizeof longest - 1), longest[SR_DEFINITION_SIZE] = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        expect_refused("neither step nor epoch", names[i], "1", "", SR_BETTER_MORE);
    expect_refused("1 to 63 bytes", longest + SR_DEFINITION_SIZE - SR_NAME_SIZE, "1", "",
                   SR_BETTER_MORE);
    expect_refused("declared twice", "there", "1", "", SR_BETTER_MORE);
    expect_refused("unit of 64 bytes", "a", longest + SR_DEFINITION_SIZE - SR_NAME_SIZE, "",
                   SR_BETTER_MORE);
    expect_refused("definition of 512", "a", "1", longest, SR_BETTER_MORE);
    expect_refused("control characters", "a", "1", "two\nlines", SR_BETTER_MORE);
    expect_refused("direction 2", "a", "1", "", (sr_better)2);
    sr_recorder *r = run_create(sample_path("many.h5"), run_options());
    char name[16];
    for (int i = 0; i < SR_METRICS_MAX; i++) {
        snprintf(name, sizeof name, "m%d", i);
        check_ok(sr_add_metric(r, name, "1", longest + 1, SR_BETTER_MORE), sr_failed(r));
    }
    run_put_step(r, 1);
    assert_int_equal(sr_add_metric(r, "late", "1", "", SR_BETTER_MORE), SR_STATE);
    check_failure(sr_failed(r), SR_STATE, "sr_add_metric after the first step");
    sr_failure why = {0};
    assert_int_equal(sr_close(r, &run_complete, &why), SR_STATE);
    sr_runfile *f = sample_open(sample_path("many.h5"));
    assert_string_equal(sr_run_get_metric(f, 2)->name, "m2"); /* m10 is before it by name */
    assert_non_null(sr_run_get_metric(f, SR_METRICS_MAX - 1));
    sr_run_close(f);
    r = run_create(sample_path("many.h5"), run_options());
    for (int i = 0; i <= SR_METRICS_MAX; i++) {
        snprintf(name, sizeof name, "m%d", i);
        sr_add_metric(r, name, "1", "", SR_BETTER_MORE);
    }
    check_failure(sr_failed(r), SR_USAGE, "metric m128: 128 are declared already");
    sr_abandon(r);
}

static void put_unknown(sr_recorder *r) {
    sr_begin_eval(r, 1, 1);
    sr_put_metric(r, "f2", 1);
    assert_string_equal(sr_failed(r)->hint, "declared: f1, wer");
}
static void put_twice(sr_recorder *r) {
    sr_begin_eval(r, 1, 1);
    sr_put_metric(r, "f1", 1);
    sr_put_metric(r, "f1", 1);
}
static void put_outside(sr_recorder *r) {
    sr_put_metric(r, "f1", 1);
}
static void begin_inside(sr_recorder *r) {
    sr_begin_eval(r, 1, 1);
    sr_begin_eval(r, 2, 1);
}
static void begin_negative(sr_recorder *r) {
    sr_begin_eval(r, -1, 1);
}
static void end_outside(sr_recorder *r) {
    sr_end_eval(r);
}

static void expect_mistake(const char *part, sr_status status, void (*mistake)(sr_recorder *)) {
    sr_failure why = {0};
    sr_recorder *r = run_create(sample_path("mistake.h5"), run_options());
    sr_add_metric(r, "f1", "1", "", SR_BETTER_MORE);
    sr_add_metric(r, "wer", "1", "", SR_BETTER_LESS);
    run_put_step(r, 1);
    mistake(r);
    check_failure(sr_failed(r), status, part);
    assert_int_equal(sr_end_eval(r), status); /* later calls do nothing */
    assert_int_equal(sr_close(r, &run_complete, &why), status);
    sr_runfile *f = sample_open(sample_path("mistake.h5"));
    assert_int_equal(sr_run_get_info(f)->evals, 0);
    sr_run_close(f);
}

static void test_mistakes(void **state) {
    (void)state;
    expect_mistake("no metric 'f2' was declared", SR_USAGE, put_unknown);
    expect_mistake("f1 put twice at step 1", SR_STATE, put_twice);
    expect_mistake("'f1' outside an evaluation", SR_STATE, put_outside);
    expect_mistake("step 2 begun inside the one at 1", SR_STATE, begin_inside);
    expect_mistake("evaluation at step -1", SR_USAGE, begin_negative);
    expect_mistake("sr_end_eval outside", SR_STATE, end_outside);
    assert_int_equal(sr_add_metric(NULL, "a", "1", "", SR_BETTER_MORE), SR_STATE);
    assert_int_equal(sr_begin_eval(NULL, 1, 1), SR_STATE);
    assert_int_equal(sr_put_metric(NULL, "a", 1), SR_STATE);
    assert_int_equal(sr_end_eval(NULL), SR_STATE);
}

static void expect_not_copied(const char *part, const char *unit, sr_better better, bool others) {
    sr_recorder *r = run_create(sample_path("into.h5"), run_options());
    sr_add_metric(r, "f1", unit, "span F1 of the validation set", better);
    if (others) sr_add_metric(r, "wer", "percent", "", SR_BETTER_LESS);
    assert_int_equal(sr_copy_rows(r, sample_path("own.h5"), -1, -1, NULL), SR_USAGE);
    check_failure(sr_failed(r), SR_USAGE, part);
    sr_abandon(r);
}

/* Copying needs a recorder that declares the same metrics, units and directions. */
static void test_copy(void **state) {
    (void)state;
    write_metric_run(sample_path("own.h5"));
    expect_not_copied("metric f1 has another unit", "1", SR_BETTER_MORE, true);
    expect_not_copied("metric f1 has another unit or direction", "percent", SR_BETTER_LESS, true);
    expect_not_copied("no metric 'wer' was declared", "percent", SR_BETTER_MORE, false);
}

static void test_projection(void **state) {
    (void)state;
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true, o.planned_steps = 10;
    sr_recorder *r = sr_create(sample_path("size.h5"), &o, NULL);
    const int64_t without = sr_projected_bytes(r);
    char name[16];
    for (int i = 0; i < 113; i++) {
        snprintf(name, sizeof name, "m%d", i);
        sr_add_metric(r, name, "1", "", SR_BETTER_MORE);
    }
    assert_int_equal(sr_projected_bytes(r) - without, 2 * 200000); /* with backup copies */
    sr_abandon(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),          cmocka_unit_test(test_recover),
        cmocka_unit_test(test_scale),        cmocka_unit_test(test_before_steps),
        cmocka_unit_test(test_declarations), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_copy),         cmocka_unit_test(test_projection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
