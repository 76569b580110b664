/* test_metric_files.c -- files with invalid metrics, and files older than declared metrics. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

/* -- damage ---------------------------------------------------------------------------------- */

static hid_t reopen(void) {
    write_metric_run(sample_path("spoilt.h5"));
    return H5Fopen(sample_path("spoilt.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
}

static void add_dataset(hid_t file, const char *name, hid_t type, int rank) {
    const hsize_t dims[2] = {2, 3};
    hid_t space = H5Screate_simple(rank, dims, NULL);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set), H5Sclose(space);
}

/* Replaces the attribute: HDF5 1.10 fails to overwrite some. */
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

/* An invalid metric is reported and left out; a check names it. */
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
    expect_spoilt("/evals: invalid name of a metric", true, add_long);
    expect_spoilt("/evals/f1 attribute better: 'upwards'", true, spoil_better);
    expect_spoilt("/evals/f1 attribute unit: not a line", true, spoil_unit);
    expect_spoilt("/evals/f1 attribute better", true, drop_better);
    expect_spoilt("/evals declares 1000000 metrics", true, spoil_number);
    expect_spoilt("/evals/f1: at place 2 instead of 1", true, spoil_place);
    expect_spoilt("/evals/f1: at place 1 instead of 0", true, drop_first);
    expect_spoilt("/evals: 2 metrics, 3 were declared", true, drop_last);
    expect_spoilt("/evals/epoch", true, drop_epoch);
}

/* -- older files ----------------------------------------------------------------------------- */

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
    while ((m = sr_run_get_metric(f, count)) && !isfinite(run_eval_value(f, m->name, 0))) count++;
    assert_string_equal(sr_run_get_metric(f, count)->name, first);
    while (sr_run_get_metric(f, count)) count++;
    assert_int_equal(count, 12);
}

/* Their first metric with a value is the one that tables used. */
static void test_old_files(void **state) {
    (void)state;
    static const char *const run[] = {"sample_runs/nlp_bn.h5", "sample_runs/cv_bn.h5"},
                             *const first[] = {"valid_ppl", "valid_accuracy"},
                             *const unit[] = {"nats per token", "nats per image"};
    for (int i = 0; i < 2; i++) {
        sr_failure why = {0};
        sr_runfile *f = sample_open(run[i]);
        check_old(f, first[i], unit[i]);
        const double ppl = run_eval_value(f, "valid_ppl", 4), epoch = run_eval_value(f, "epoch", 4);
        check_within(ppl, exp(run_eval_value(f, "valid_nll", 4)), 1e-9 * ppl);
        sr_run_close(f);
        check_ok(sr_run_check(run[i], &why), &why);
        check_ok(sr_run_recover(run[i], sample_path("old.h5"), true, -1, NULL, &why), &why);
        f = sample_open(sample_path("old.h5"));
        check_old(f, first[i], unit[i]);
        check_equals(run_eval_value(f, "valid_ppl", 4), ppl);
        check_equals(run_eval_value(f, "epoch", 4), epoch);
        sr_run_close(f);
    }
}

/* Makes an older file: without the metrics' number, order and directions. */
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
    sr_recorder *r = run_create(sample_path("aged.h5"), run_options());
    int added = 0;
    const char *kept[8];
    for (int i = 0; i < 8; i++)
        if (strcmp(name[i], without) != 0) kept[added++] = name[i];
    for (int i = 0; i < added; i++) sr_add_metric(r, kept[i], "1", "", SR_BETTER_NEITHER);
    run_put_step(r, 1);
    run_finish(r);
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
    expect_old("", NULL); /* the first files had no _batch columns */
    expect_old("uas", "/evals/uas: missing");
    expect_old("", "/evals/foreign");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spoilt),
        cmocka_unit_test(test_old_files),
        cmocka_unit_test(test_old_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
