/* test_recorder_mistakes.c -- rejected calls of the recorder: one line each; earlier rows are
 * kept. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/sample_run.h"

static const sr_finish complete = {
    .size = sizeof(sr_finish), "complete", "", "0123456789abcdef0123456789abcdef"};

/* Each host mistake is kept, stops the recording, and is returned by sr_close. */
static void expect_mistake(const char *part, sr_status status, void (*mistake)(sr_recorder *)) {
    sr_failure why = {0};
    const char *path = sample_path("mistake.h5");
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    sr_recorder *r = sample_begin(path, &o);
    check_ok(sample_steps(r, 1, 5, 0), sr_failed(r));
    assert_null(sr_failed(r));
    mistake(r);
    assert_non_null(sr_failed(r));
    check_failure(sr_failed(r), status, part);
    assert_int_equal(sample_step(r, 7), status); /* later calls do nothing */
    assert_int_equal(sr_close(r, &complete, &why), status);
    check_failure(&why, status, part);
    sr_runfile *f = sample_open(path);
    assert_string_equal(sr_run_get_info(f)->status, "failed");
    assert_non_null(strstr(sr_run_get_info(f)->reason, part));
    assert_int_equal(sr_run_get_info(f)->steps, 5);
    sample_check(f, 1, 1);
    sr_run_close(f);
}

static double zeros[SAMPLE_WIDTH];

static void put_unknown_site(sr_recorder *r) {
    sr_begin_step(r, 6);
    assert_int_equal(sr_put_vector(r, 4, SR_mu, zeros), SR_USAGE);
}
static void put_negative_site(sr_recorder *r) {
    sr_begin_step(r, 6);
    assert_int_equal(sr_put_rows(r, -1, 3), SR_USAGE);
}
static void put_unknown_vector(sr_recorder *r) {
    sr_begin_step(r, 6);
    assert_int_equal(sr_put_vector(r, 0, SR_VECTOR_COUNT, zeros), SR_USAGE);
}
static void put_no_vector(sr_recorder *r) {
    sr_begin_step(r, 6);
    assert_int_equal(sr_put_vector(r, 0, SR_mu, NULL), SR_USAGE);
}
static void put_twice(sr_recorder *r) {
    sr_begin_step(r, 6);
    sr_put_vector(r, 0, SR_mu, zeros);
    assert_int_equal(sr_put_vector(r, 0, SR_mu, zeros), SR_STATE);
}
static void put_unknown_scalar(sr_recorder *r) {
    sr_begin_step(r, 6);
    assert_int_equal(sr_put_scalar(r, 0, SR_SCALAR_COUNT, 1), SR_USAGE);
}
static void put_negative_rows(sr_recorder *r) {
    sr_begin_step(r, 6);
    assert_int_equal(sr_put_rows(r, 0, -1), SR_USAGE);
}
static void put_outside(sr_recorder *r) {
    assert_int_equal(sr_put_rows(r, 0, 1), SR_STATE);
}
static void begin_twice(sr_recorder *r) {
    sr_begin_step(r, 6);
    assert_int_equal(sr_begin_step(r, 7), SR_STATE);
}
static void begin_old(sr_recorder *r) {
    assert_int_equal(sr_begin_step(r, 5), SR_USAGE);
}
static void end_outside(sr_recorder *r) {
    sr_step row = {.size = sizeof(sr_step)};
    assert_int_equal(sr_end_step(r, &row), SR_STATE);
}
static void end_without_row(sr_recorder *r) {
    sr_begin_step(r, 6);
    assert_int_equal(sr_end_step(r, NULL), SR_USAGE);
}
static void add_late_site(sr_recorder *r) {
    assert_int_equal(
        sr_add_site(r, &(sr_site){.size = sizeof(sr_site), .name = "late", .width = 1}), -1);
}
static void add_late_embedding(sr_recorder *r) {
    assert_int_equal(sr_add_embedding(r, "late", 2, 2), SR_STATE);
}
static void expect_late(sr_recorder *r) {
    assert_int_equal(sr_expect_vectors(r, 0, 1), SR_STATE);
}
static void copy_late(sr_recorder *r) {
    assert_int_equal(sr_copy_rows(r, sample_path("trip.h5"), -1, -1, NULL), SR_STATE);
}
static void eval_backwards(sr_recorder *r) {
    sample_put_eval(r, 5);
    assert_int_equal(sr_begin_eval(r, 4, 1), SR_USAGE);
}
static void unknown_embedding(sr_recorder *r) {
    assert_int_equal(sr_put_singular_values(r, "other", 5, zeros), SR_USAGE);
}
static void observe_wrong_width(sr_recorder *r) {
    float data[8] = {0};
    sr_begin_step(r, 6);
    assert_int_equal(
        sr_take_forward(r, 0, &(sr_tensor){sizeof(sr_tensor), data, SR_FLOAT32, 2, 4, 1, NULL, 0},
                        NULL),
        SR_USAGE);
}
static void observe_backward_first(sr_recorder *r) {
    float data[10] = {0};
    sr_begin_step(r, 6);
    assert_int_equal(
        sr_take_backward(r, 0, &(sr_tensor){sizeof(sr_tensor), data, SR_FLOAT32, 2, 5, 1, NULL, 0}),
        SR_STATE);
}
static void observe_other_shape(sr_recorder *r) {
    float data[10] = {0};
    sr_begin_step(r, 6);
    sr_take_forward(r, 0, &(sr_tensor){sizeof(sr_tensor), data, SR_FLOAT32, 2, 5, 1, NULL, 0},
                    NULL);
    assert_int_equal(
        sr_take_backward(r, 0, &(sr_tensor){sizeof(sr_tensor), data, SR_FLOAT32, 1, 5, 1, NULL, 0}),
        SR_STATE);
}
static void observe_backward_alone(sr_recorder *r) {
    float data[10] = {0};
    sr_begin_step(r, 6);
    assert_int_equal(
        sr_take_backward(r, 0, &(sr_tensor){sizeof(sr_tensor), data, SR_FLOAT32, 2, 5, 1, NULL, 0}),
        SR_STATE);
}

static void test_mistakes(void **state) {
    (void)state;
    expect_mistake("site 4 of 4", SR_USAGE, put_unknown_site);
    expect_mistake("site -1", SR_USAGE, put_negative_site);
    expect_mistake("vector 14", SR_USAGE, put_unknown_vector);
    expect_mistake("NULL", SR_USAGE, put_no_vector);
    expect_mistake("mu put twice", SR_STATE, put_twice);
    char unknown[32];
    snprintf(unknown, sizeof unknown, "scalar %d", (int)SR_SCALAR_COUNT);
    expect_mistake(unknown, SR_USAGE, put_unknown_scalar);
    expect_mistake("-1 rows", SR_USAGE, put_negative_rows);
    expect_mistake("outside a step", SR_STATE, put_outside);
    expect_mistake("step 7 begun inside step 6", SR_STATE, begin_twice);
    expect_mistake("step 5 after step 5", SR_USAGE, begin_old);
    expect_mistake("outside a step", SR_STATE, end_outside);
    expect_mistake("sr_step: NULL", SR_USAGE, end_without_row);
    expect_mistake("after the first step", SR_STATE, add_late_site);
    expect_mistake("after the first step", SR_STATE, add_late_embedding);
    expect_mistake("after the first step", SR_STATE, expect_late);
    expect_mistake("after the first step", SR_STATE, copy_late);
    expect_mistake("evaluation at step 4", SR_USAGE, eval_backwards);
    expect_mistake("no embedding 'other'", SR_USAGE, unknown_embedding);
    expect_mistake("tensor [2, 4, 1]", SR_USAGE, observe_wrong_width);
    expect_mistake("no forward", SR_STATE, observe_backward_first);
    expect_mistake("dy and x differ in shape", SR_STATE, observe_other_shape);
    expect_mistake("no forward", SR_STATE, observe_backward_alone);
}

static void expect_bad_site(const char *part, sr_site site) {
    sr_failure why = {0};
    sr_recorder *r = sample_begin(sample_path("site.h5"), NULL);
    assert_int_equal(sr_add_site(r, &site), -1);
    check_failure(sr_failed(r), SR_USAGE, part);
    assert_int_equal(sr_begin_step(r, 1), SR_USAGE);
    assert_int_equal(sr_close(r, &complete, &why), SR_USAGE);
    assert_int_not_equal(access(sample_path("site.h5"), F_OK), 0);
    assert_int_not_equal(access(sample_path("site.h5.part"), F_OK), 0);
}

static void test_bad_sites(void **state) {
    (void)state;
    char name[SR_NAME_SIZE + 1];
    memset(name, 'n', SR_NAME_SIZE), name[SR_NAME_SIZE] = 0;
    expect_bad_site("no name", (sr_site){.size = sizeof(sr_site), .name = "", .width = 1});
    expect_bad_site("no name", (sr_site){.size = sizeof(sr_site), .width = 1});
    expect_bad_site("too long", (sr_site){.size = sizeof(sr_site), .name = name, .width = 1});
    expect_bad_site("too long",
                    (sr_site){.size = sizeof(sr_site), .name = "a", .kind = name, .width = 1});
    expect_bad_site("control characters",
                    (sr_site){.size = sizeof(sr_site), .name = "a\nb", .width = 1});
    expect_bad_site("width 0", (sr_site){.size = sizeof(sr_site), .name = "a"});
    expect_bad_site("width -3", (sr_site){.size = sizeof(sr_site), .name = "a", .width = -3});
    expect_bad_site("width 2147483647",
                    (sr_site){.size = sizeof(sr_site), .name = "a", .width = INT32_MAX});
    expect_bad_site(
        "family 17",
        (sr_site){.size = sizeof(sr_site), .name = "a", .width = 1, .family = (sr_family)17});
    expect_bad_site("alpha 1.5 is not within 0 and 1",
                    (sr_site){.size = sizeof(sr_site), .name = "a", .width = 1, .alpha = 1.5});
    expect_bad_site("alpha -0.5",
                    (sr_site){.size = sizeof(sr_site), .name = "a", .width = 1, .alpha = -0.5});
    expect_bad_site("eps -1 negative",
                    (sr_site){.size = sizeof(sr_site), .name = "a", .width = 1, .eps = -1});
    expect_bad_site("eps inf",
                    (sr_site){.size = sizeof(sr_site), .name = "a", .width = 1, .eps = INFINITY});
    expect_bad_site("declared twice",
                    (sr_site){.size = sizeof(sr_site), .name = "stem", .width = 1});
}

static void test_bad_options(void **state) {
    (void)state;
    sr_failure why = {0};
    assert_null(sr_create("", NULL, &why));
    check_failure(&why, SR_USAGE, "no path");
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.size = 0;
    why = (sr_failure){0};
    assert_null(sr_create(sample_path("o.h5"), &o, &why));
    check_failure(&why, SR_USAGE, "size is not filled in");
    o = (sr_options)SR_OPTIONS_DEFAULT;
    o.flush_steps = 0;
    why = (sr_failure){0};
    assert_null(sr_create(sample_path("o.h5"), &o, &why));
    check_failure(&why, SR_USAGE, "flush_steps 0");
    why = (sr_failure){0};
    assert_null(sr_create(sample_path("no/such/folder.h5"), NULL, &why));
    check_failure(&why, SR_IO, "no directory");
    /* an older caller has only the first fields */
    o = (sr_options)SR_OPTIONS_DEFAULT;
    o.size = offsetof(sr_options, seed), o.program = "old", o.flush_steps = -5;
    sr_recorder *r = sample_begin(sample_path("old.h5"), &o);
    check_ok(sr_close(r, &complete, &why), sr_failed(NULL));
    assert_int_equal(sr_close(NULL, NULL, NULL), SR_OK);
    assert_int_equal(sr_begin_step(NULL, 1), SR_STATE);
    assert_int_equal(sr_put_rows(NULL, 0, 1), SR_STATE);
    assert_int_equal(sr_flush(NULL), SR_STATE);
    assert_int_equal(sr_add_site(NULL, &sample_sites[0]), -1);
    sr_abandon(NULL);
}

/* A host without standard output and error: its output does not go into the run file. */
static void test_closed_output(void **state) {
    (void)state;
    const int kept[2] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    fflush(NULL);
    close(STDOUT_FILENO), close(STDERR_FILENO);
    sr_recorder *r = sample_begin(sample_path("closed.h5"), &o);
    const ssize_t written[2] = {write(STDOUT_FILENO, "progress", 8),
                                write(STDERR_FILENO, "a warning", 9)};
    const sr_status steps = sample_steps(r, 1, 5, 0), end = sr_close(r, &complete, &why);
    dup2(kept[0], STDOUT_FILENO), dup2(kept[1], STDERR_FILENO);
    close(kept[0]), close(kept[1]);
    assert_int_equal(written[0], -1);
    assert_int_equal(written[1], -1);
    assert_int_equal(steps, SR_OK);
    assert_int_equal(end, SR_OK);
    sr_runfile *f = sample_open(sample_path("closed.h5"));
    sample_check(f, 1, 1);
    sr_run_close(f);
}

static void expect_bad_path(const char *path, bool force, sr_status status, const char *text) {
    sr_failure why = {0};
    assert_int_equal(sr_check_path(path, force, &why), status);
    if (status != SR_OK) check_failure(&why, status, text);
}

static void test_paths(void **state) {
    (void)state;
    char large[5000], part[4200];
    memset(large, 'p', sizeof large - 1);
    large[sizeof large - 1] = 0;
    expect_bad_path(NULL, false, SR_USAGE, "no path for the run file");
    expect_bad_path("", true, SR_USAGE, "no path for the run file");
    expect_bad_path(large, false, SR_USAGE, "pppp...: the path is longer than");
    expect_bad_path("/no/such/folder/x.h5", false, SR_IO, "no directory /no/such/folder");
    if (access("/", W_OK | X_OK) == 0)
        expect_bad_path("/statrec-test-of-paths.h5", false, SR_OK, "");
    assert_int_not_equal(access("/statrec-test-of-paths.h5", F_OK), 0); /* no file is created */
    const char *path = sample_path("folder.h5");
    snprintf(part, sizeof part, "%s.part", path);
    assert_int_equal(mkdir(part, 0700), 0);
    expect_bad_path(path, true, SR_EXISTS, "folder.h5.part: is a directory");
    expect_bad_path(path, false, SR_EXISTS, "folder.h5.part");
    assert_int_equal(rmdir(part), 0);
    expect_bad_path(path, false, SR_OK, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),    cmocka_unit_test(test_bad_sites),
        cmocka_unit_test(test_bad_options), cmocka_unit_test(test_closed_output),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
