/* test_metrics.c -- metrics of evaluations: declared, refused, put, read back, recovered; files of
 * before they were declared. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../check.h"
#include "sample_run.h"

static const sr_finish complete = {.size = sizeof(sr_finish), "complete", "", ""};

static sr_recorder *create(const char *name) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    sr_recorder *r = sr_create(sample_path(name), &o, &why);
    if (!r) fail_msg("%s", why.text);
    return r;
}

static void put_step(sr_recorder *r, int64_t step) {
    sr_begin_step(r, step);
    sr_end_step(r, &(sr_step){.size = sizeof(sr_step), step, 1, 1, 1, 1, 1});
}

static void finish(sr_recorder *r) {
    sr_failure why = {0};
    check_ok(sr_close(r, &complete, &why), &why);
}

static double value_of(const sr_runfile *f, const char *name, int64_t row) {
    sr_failure why = {0};
    double value = 0;
    check_ok(sr_run_eval(f, name, row, 1, &value, &why), &why);
    return value;
}

/* Two evaluations of "wer" (less), "f1" (more) and "size" (neither), declared in this order, which
 * is not that of their names. */
static void write_own(const char *name) {
    sr_recorder *r = create(name);
    sr_add_metric(r, "wer", "percent", "word errors", SR_BETTER_LESS);
    sr_add_metric(r, "f1", "percent", "span F1 of the validation set", SR_BETTER_MORE);
    sr_add_metric(r, "size", NULL, NULL, SR_BETTER_NEITHER);
    put_step(r, 1);
    sr_begin_eval(r, 1, 0.25);
    sr_put_metric(r, "f1", 60);
    sr_put_metric(r, "wer", 12);
    sr_end_eval(r);
    put_step(r, 2);
    sr_begin_eval(r, 2, NAN);
    sr_put_metric(r, "size", 1e9);
    check_ok(sr_end_eval(r), sr_failed(r));
    finish(r);
}

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
    assert_null(sr_run_find_metric(f, "valid_loss")); /* nobody computes it */
    assert_null(sr_run_find_metric(f, "epoch"));
    assert_false(sr_run_has_eval(f, "valid_loss"));
    assert_true(sr_run_has_eval(f, "f1"));
    assert_int_equal(sr_run_get_info(f)->evals, 2);
    assert_true(value_of(f, "step", 1) == 2 && value_of(f, "epoch", 0) == 0.25);
    assert_true(value_of(f, "wer", 0) == 12 && value_of(f, "f1", 0) == 60);
    assert_true(value_of(f, "size", 1) == 1e9 && isnan(value_of(f, "epoch", 1)));
    assert_true(isnan(value_of(f, "size", 0)) && isnan(value_of(f, "wer", 1)));
    assert_string_equal(sr_run_definition(f, "evals/f1"), "span F1 of the validation set");
    sr_run_close(f);
}

static void test_own(void **state) {
    (void)state;
    sr_failure why = {0};
    write_own("own.h5");
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
    write_own("own.h5");
    check_ok(sr_run_recover(sample_path("own.h5"), sample_path("copy.h5"), true, -1, &count, &why),
             &why);
    assert_int_equal(count.evals, 2);
    assert_int_equal(count.lost_evals, 0);
    check_own(sample_path("copy.h5"));
}

/* netCDF's readers find the evaluations of a metric by its scale. */
static void test_scale(void **state) {
    (void)state;
    write_own("own.h5");
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
    sr_recorder *r = create("early.h5");
    sr_add_metric(r, "early", "1", "", SR_BETTER_NEITHER);
    put_eval(r, 0);
    sr_add_metric(r, "later", "1", "", SR_BETTER_NEITHER);
    for (int i = 1; i < 16; i++) put_eval(r, 0);
    check_ok(sr_failed(r) ? sr_failed(r)->status : SR_OK, sr_failed(r));
    put_step(r, 1);
    for (int i = 2; i < 40; i++) put_eval(r, i);
    finish(r);
    sr_runfile *f = sample_open(sample_path("early.h5"));
    assert_int_equal(sr_run_get_info(f)->evals, 54);
    assert_true(value_of(f, "early", 0) == 7 && isnan(value_of(f, "later", 0)));
    assert_true(value_of(f, "step", 53) == 39);
    sr_run_close(f);
    r = create("early.h5");
    sr_add_metric(r, "early", "1", "", SR_BETTER_NEITHER);
    for (int i = 0; i < 17; i++) put_eval(r, i);
    check_failure(sr_failed(r), SR_STATE, "too many evaluations before a step");
    sr_abandon(r);
}

/* -- refusals -------------------------------------------------------------------------------- */

static void expect_refused(const char *part, const char *name, const char *unit,
                           const char *definition, sr_better better) {
    sr_recorder *r = create("refused.h5");
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
    sr_recorder *r = create("many.h5");
    char name[16];
    for (int i = 0; i < SR_METRICS_MAX; i++) {
        snprintf(name, sizeof name, "m%d", i);
        check_ok(sr_add_metric(r, name, "1", longest + 1, SR_BETTER_MORE), sr_failed(r));
    }
    put_step(r, 1);
    assert_int_equal(sr_add_metric(r, "late", "1", "", SR_BETTER_MORE), SR_STATE);
    check_failure(sr_failed(r), SR_STATE, "sr_add_metric after the first step");
    sr_failure why = {0};
    assert_int_equal(sr_close(r, &complete, &why), SR_STATE);
    sr_runfile *f = sample_open(sample_path("many.h5"));
    assert_string_equal(sr_run_get_metric(f, 2)->name, "m2"); /* m10 is before it by name */
    assert_non_null(sr_run_get_metric(f, SR_METRICS_MAX - 1));
    sr_run_close(f);
    r = create("many.h5");
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
    sr_recorder *r = create("mistake.h5");
    sr_add_metric(r, "f1", "1", "", SR_BETTER_MORE);
    sr_add_metric(r, "wer", "1", "", SR_BETTER_LESS);
    put_step(r, 1);
    mistake(r);
    check_failure(sr_failed(r), status, part);
    assert_int_equal(sr_end_eval(r), status); /* what comes later does nothing */
    assert_int_equal(sr_close(r, &complete, &why), status);
    sr_runfile *f = sample_open(sample_path("mistake.h5"));
    assert_int_equal(sr_run_get_info(f)->evals, 0);
    sr_run_close(f);
}

static void test_mistakes(void **state) {
    (void)state;
    expect_mistake("no metric 'f2' was declared", SR_USAGE, put_unknown);
    expect_mistake("f1 put twice at step 1", SR_STATE, put_twice);
    expect_mistake("'f1' outside an evaluation", SR_STATE, put_outside);
    expect_mistake("step 2 begun inside that of 1", SR_STATE, begin_inside);
    expect_mistake("evaluation at step -1", SR_USAGE, begin_negative);
    expect_mistake("sr_end_eval outside", SR_STATE, end_outside);
    assert_int_equal(sr_add_metric(NULL, "a", "1", "", SR_BETTER_MORE), SR_STATE);
    assert_int_equal(sr_begin_eval(NULL, 1, 1), SR_STATE);
    assert_int_equal(sr_put_metric(NULL, "a", 1), SR_STATE);
    assert_int_equal(sr_end_eval(NULL), SR_STATE);
}

static void expect_not_copied(const char *part, const char *unit, sr_better better, bool others) {
    sr_recorder *r = create("into.h5");
    sr_add_metric(r, "f1", unit, "span F1 of the validation set", better);
    if (others) sr_add_metric(r, "wer", "percent", "", SR_BETTER_LESS);
    assert_int_equal(sr_copy_rows(r, sample_path("own.h5"), -1, -1, NULL), SR_USAGE);
    check_failure(sr_failed(r), SR_USAGE, part);
    sr_abandon(r);
}

/* Rows go into a recorder that declares what they hold, in the same unit and direction. */
static void test_copy(void **state) {
    (void)state;
    write_own("own.h5");
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
    assert_int_equal(sr_projected_bytes(r) - without, 2 * 200000); /* with second copies */
    sr_abandon(r);
}

/* -- damage ---------------------------------------------------------------------------------- */

static hid_t reopen(void) {
    write_own("spoilt.h5");
    return H5Fopen(sample_path("spoilt.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
}

static void add_dataset(hid_t file, const char *name, hid_t type, int rank) {
    const hsize_t dims[2] = {2, 3};
    hid_t space = H5Screate_simple(rank, dims, NULL);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set), H5Sclose(space);
}

/* In place of the one that is there: HDF5 1.10 fails to write over some of them. */
static void set_attribute(hid_t file, const char *object, const char *name, hid_t type,
                          const void *value) {
    hid_t space = H5Screate(H5S_SCALAR);
    H5Adelete_by_name(file, object, name, H5P_DEFAULT);
    hid_t a =
        H5Acreate_by_name(file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(a, type, value) >= 0);
    H5Aclose(a), H5Sclose(space);
}

static void set_text(hid_t file, const char *object, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(text) + 1);
    set_attribute(file, object, name, type, text);
    H5Tclose(type);
}

static void set_int(hid_t file, const char *object, const char *name, int64_t value) {
    set_attribute(file, object, name, H5T_NATIVE_INT64, &value);
}

static void add_integers(hid_t file) {
    add_dataset(file, "/evals/foreign", H5T_NATIVE_INT64, 1);
}
static void add_matrix(hid_t file) {
    add_dataset(file, "/evals/foreign", H5T_NATIVE_DOUBLE, 2);
}
static void add_bare(hid_t file) {
    add_dataset(file, "/evals/foreign", H5T_NATIVE_DOUBLE, 1);
}
static void add_group(hid_t file) {
    H5Gclose(H5Gcreate2(file, "/evals/foreign", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}
static void add_long(hid_t file) {
    add_dataset(file, "/evals/a_name_that_is_longer_than_any_name_of_a_metric_can_be_in_a_run_file",
                H5T_NATIVE_DOUBLE, 1);
}
static void spoil_better(hid_t file) {
    set_text(file, "/evals/f1", "better", "upwards");
}
static void spoil_unit(hid_t file) {
    set_text(file, "/evals/f1", "unit", "two\nlines");
}
static void drop_better(hid_t file) {
    H5Adelete_by_name(file, "/evals/f1", "better", H5P_DEFAULT);
}
static void spoil_number(hid_t file) {
    set_int(file, "/evals", "metrics", 1000000);
}
static void spoil_place(hid_t file) {
    set_int(file, "/evals/f1", "place", 2);
}
static void drop_first(hid_t file) {
    H5Ldelete(file, "/evals/wer", H5P_DEFAULT);
}
static void drop_last(hid_t file) {
    H5Ldelete(file, "/evals/size", H5P_DEFAULT);
}
static void drop_epoch(hid_t file) {
    H5Ldelete(file, "/evals/epoch", H5P_DEFAULT);
}

/* What cannot be believed is told, and costs itself; a check names it. */
static void expect_spoilt(const char *part, bool opens, void (*spoil)(hid_t)) {
    sr_failure why = {0}, checked = {0};
    hid_t file = reopen();
    spoil(file);
    H5Fclose(file);
    sr_runfile *f = sr_run_open(sample_path("spoilt.h5"), &why);
    assert_true(opens == (f != NULL));
    if (!opens) check_failure(&why, SR_FORMAT, part);
    sr_run_close(f);
    assert_int_equal(sr_run_check(sample_path("spoilt.h5"), &checked), SR_FORMAT);
    check_failure(&checked, SR_FORMAT, part);
}

static void test_spoilt(void **state) {
    (void)state;
    expect_spoilt("/evals/foreign: refused", true, add_integers);
    expect_spoilt("/evals/foreign: refused", true, add_matrix);
    expect_spoilt("/evals/foreign", true, add_bare);
    expect_spoilt("/evals/foreign", true, add_group);
    expect_spoilt("/evals: a name that no metric has", true, add_long);
    expect_spoilt("/evals/f1 attribute better: 'upwards'", true, spoil_better);
    expect_spoilt("/evals/f1 attribute unit: not a line", true, spoil_unit);
    expect_spoilt("/evals/f1 attribute better", true, drop_better);
    expect_spoilt("/evals declares 1000000 metrics", true, spoil_number);
    expect_spoilt("/evals/f1: at place 2, expected at 1", true, spoil_place);
    expect_spoilt("/evals/f1: at place 1, expected at 0", true, drop_first);
    expect_spoilt("/evals: 2 metrics, 3 were declared", true, drop_last);
    expect_spoilt("/evals/epoch", true, drop_epoch);
}

/* -- files of before ------------------------------------------------------------------------- */

static void check_old(const sr_runfile *f, const char *first, const char *unit) {
    static const char *const less[] = {"valid_loss",       "valid_nll",       "valid_ppl",
                                       "valid_loss_batch", "valid_nll_batch", "valid_ppl_batch"},
                             *const more[] = {"valid_accuracy",
                                              "valid_accuracy_batch",
                                              "bleu",
                                              "f1",
                                              "uas",
                                              "las"};
    const sr_run_metric *m;
    int count = 0;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(sr_run_find_metric(f, less[i])->better, SR_BETTER_LESS);
        assert_int_equal(sr_run_find_metric(f, more[i])->better, SR_BETTER_MORE);
    }
    assert_string_equal(sr_run_find_metric(f, "valid_loss")->unit, unit);
    assert_string_equal(sr_run_find_metric(f, "valid_nll_batch")->unit, unit);
    assert_string_equal(sr_run_find_metric(f, "valid_ppl")->definition, "exp(valid_nll)");
    while ((m = sr_run_get_metric(f, count)) && !isfinite(value_of(f, m->name, 0))) count++;
    assert_string_equal(sr_run_get_metric(f, count)->name, first);
    while (sr_run_get_metric(f, count)) count++;
    assert_int_equal(count, 12);
}

/* Their first metric with a value is the one by which tables judged them. */
static void test_old_files(void **state) {
    (void)state;
    static const char *const run[] = {"sample_runs/nlp_bn.h5", "sample_runs/cv_bn.h5"},
                             *const first[] = {"valid_ppl", "valid_accuracy"},
                             *const unit[] = {"nats per token", "nats per image"};
    for (int i = 0; i < 2; i++) {
        sr_failure why = {0};
        sr_runfile *f = sample_open(run[i]);
        check_old(f, first[i], unit[i]);
        const double ppl = value_of(f, "valid_ppl", 4), epoch = value_of(f, "epoch", 4);
        assert_true(fabs(ppl - exp(value_of(f, "valid_nll", 4))) < 1e-9 * ppl);
        sr_run_close(f);
        check_ok(sr_run_check(run[i], &why), &why);
        check_ok(sr_run_recover(run[i], sample_path("old.h5"), true, -1, NULL, &why), &why);
        f = sample_open(sample_path("old.h5"));
        check_old(f, first[i], unit[i]);
        assert_true(value_of(f, "valid_ppl", 4) == ppl && value_of(f, "epoch", 4) == epoch);
        sr_run_close(f);
    }
}

/* Makes a file of the old kind: no number of metrics, their places and directions. */
static void age(hid_t file, const char *const *name, int count) {
    H5Adelete_by_name(file, "/evals", "metrics", H5P_DEFAULT);
    for (int i = 0; i < count; i++) {
        char path[64];
        snprintf(path, sizeof path, "/evals/%s", name[i]);
        H5Adelete_by_name(file, path, "better", H5P_DEFAULT);
        H5Adelete_by_name(file, path, "place", H5P_DEFAULT);
    }
}

static void expect_old(const char *without, const char *part) {
    static const char *const name[] = {"valid_loss", "valid_nll", "valid_ppl", "valid_accuracy",
                                       "bleu",       "f1",        "uas",       "las"};
    sr_failure why = {0};
    sr_recorder *r = create("aged.h5");
    int added = 0;
    const char *kept[8];
    for (int i = 0; i < 8; i++)
        if (strcmp(name[i], without) != 0) kept[added++] = name[i];
    for (int i = 0; i < added; i++) sr_add_metric(r, kept[i], "1", "", SR_BETTER_NEITHER);
    put_step(r, 1);
    finish(r);
    hid_t file = H5Fopen(sample_path("aged.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
    age(file, kept, added);
    if (part && !*without) add_bare(file);
    H5Fclose(file);
    if (part) {
        assert_int_equal(sr_run_check(sample_path("aged.h5"), &why), SR_FORMAT);
        check_failure(&why, SR_FORMAT, part);
    } else {
        check_ok(sr_run_check(sample_path("aged.h5"), &why), &why);
    }
}

static void test_old_missing(void **state) {
    (void)state;
    expect_old("", NULL); /* the first files had none of the _batch */
    expect_old("uas", "/evals/uas: missing");
    expect_old("", "/evals/foreign");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),          cmocka_unit_test(test_recover),
        cmocka_unit_test(test_scale),        cmocka_unit_test(test_before_steps),
        cmocka_unit_test(test_declarations), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_copy),         cmocka_unit_test(test_projection),
        cmocka_unit_test(test_spoilt),       cmocka_unit_test(test_old_files),
        cmocka_unit_test(test_old_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
