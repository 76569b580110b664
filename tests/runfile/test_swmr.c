/* test_swmr.c -- a run file that is read while it grows, or after its writer was killed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { EVERY = 2, FLUSH = 8 };

/* The child: writes steps until `steps`, pausing `pause_us` after each; closes. Never returns. */
static void write_run(const char *path, int64_t steps, long pause_us) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.vectors_every = EVERY, o.flush_steps = FLUSH, o.sync = SR_SYNC_CLOSE;
    struct timespec pause = {0, pause_us * 1000};
    sr_recorder *r = sample_create(path, &o, NULL);
    for (int64_t i = 1; i <= steps && sample_steps(r, i, i, 5) == SR_OK; i++)
        if (pause_us) nanosleep(&pause, NULL);
    _exit(sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, NULL) == SR_OK
              ? 0
              : 1);
}

static pid_t start(const char *path, int64_t steps, long pause_us) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) write_run(path, steps, pause_us);
    return child;
}

static void wait_us(long us) {
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

/* The counts are written in sequence, steps first. A kill between them leaves the last flush's
 * vectors uncounted, but no vector without its step. */
static void check_vector_count(int64_t vectors, int64_t steps) {
    if (vectors != steps / EVERY) assert_int_equal(vectors, (steps - FLUSH) / EVERY);
}

/* A file killed before its first step has no rows and reports it. In all others, rows up to the
 * count are right. */
static int64_t check_killed(const char *path) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) {
        assert_true(why.status == SR_FORMAT || why.status == SR_IO);
        return -1;
    }
    int64_t steps = sr_run_get_info(f)->steps;
    assert_int_equal(steps % FLUSH, 0);
    check_vector_count(sr_run_get_info(f)->vectors, steps);
    assert_string_equal(sr_run_get_info(f)->status, "running");
    sample_check(f, 1, EVERY);
    sr_run_close(f);
    assert_int_equal(sr_run_check(path, &why), SR_STATE);
    check_failure(&why, SR_STATE, "unfinished");
    return steps;
}

static void check_recovered(const char *broken, int64_t steps) {
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    const char *path = sample_path("recovered.h5");
    check_ok(sr_run_recover(broken, path, true, -1, &count, &why), &why);
    assert_int_equal(count.steps, steps);
    check_vector_count(count.vectors, steps);
    sr_runfile *f = sr_run_open(path, &why);
    assert_non_null(f);
    assert_string_equal(sr_run_get_info(f)->status, "interrupted");
    assert_int_equal(sr_run_get_info(f)->steps, steps);
    sample_check(f, 1, EVERY);
    sr_run_close(f);
}

static void test_kill(void **state) {
    (void)state;
    const char *path = sample_path("killed.h5"), *part = sample_path("killed.h5.part");
    int64_t most = 0;
    /* each child runs longer than the one before; a busy machine needs more of them */
    for (int i = 0; i < 24 || (most <= 2 * FLUSH && i < 200); i++) {
        pid_t child = start(path, 100000, i % 3 ? 0 : 300);
        wait_us(2000 + 3571 * i);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        int64_t steps = check_killed(path);
        if (steps > most) most = steps;
        if (i % 8 == 7 && steps >= 0) check_recovered(part, steps);
        unlink(part);
    }
    assert_true(most > 2 * FLUSH); /* otherwise the test had no effect */
}

static void test_read_while_growing(void **state) {
    (void)state;
    const char *path = sample_path("growing.h5");
    pid_t child = start(path, 500, 1000);
    int64_t last = -1, grown = 0;
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        sr_failure why = {0};
        sr_runfile *f = sr_run_open(path, &why);
        if (f) {
            int64_t steps = sr_run_get_info(f)->steps;
            assert_true(steps >= last);
            grown += steps > last;
            last = steps;
            sample_check(f, 1, EVERY);
            sr_run_close(f);
        }
        wait_us(5000);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(grown > 3);
    sr_failure why = {0};
    check_ok(sr_run_check(path, &why), &why);
    sr_runfile *f = sr_run_open(path, &why);
    assert_non_null(f);
    assert_int_equal(sr_run_get_info(f)->steps, 500);
    sample_check(f, 1, EVERY);
    sr_run_close(f);
}

/* An abandoned recorder leaves the same as a crash. */
static void test_abandon(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.vectors_every = EVERY, o.flush_steps = FLUSH, o.sync = SR_SYNC_CLOSE;
    sr_recorder *r = sample_begin(sample_path("left.h5"), &o);
    check_ok(sample_steps(r, 1, 3 * FLUSH + 5, 0), sr_failed(r));
    sr_abandon(r);
    assert_int_not_equal(access(sample_path("left.h5"), F_OK), 0);
    sr_runfile *f = sr_run_open(sample_path("left.h5"), &why);
    assert_non_null(f);
    assert_non_null(strstr(sr_run_get_info(f)->path, "left.h5.part"));
    assert_string_equal(sr_run_get_info(f)->status, "running");
    assert_int_equal(sr_run_get_info(f)->steps, 3 * FLUSH);
    sample_check(f, 1, EVERY);
    sr_run_close(f);
    assert_int_equal(sr_run_check(sample_path("left.h5"), &why), SR_STATE);
}

/* A row reaches the file within flush_seconds although flush_steps is far away. */
static void test_flush_by_time(void **state) {
    (void)state;
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.flush_steps = 1000000, o.flush_seconds = 0.05;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        sr_recorder *r = sample_create(sample_path("timed.h5"), &o, NULL);
        sample_steps(r, 1, 1, 0);
        wait_us(100000);
        sample_steps(r, 2, 2, 0);
        kill(getpid(), SIGKILL);
    }
    waitpid(child, NULL, 0);
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(sample_path("timed.h5"), &why);
    assert_non_null(f);
    assert_int_equal(sr_run_get_info(f)->steps, 2);
    sr_run_close(f);
}

/* Copying up to a checkpoint and resuming gives the file of an uninterrupted run. */
static void test_copy_and_go_on(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.vectors_every = EVERY;
    sr_recorder *r = sample_create(sample_path("first.h5"), &o, &why);
    check_ok(sample_steps(r, 1, 90, 5), sr_failed(r));
    check_ok(sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "interrupted"}, &why),
             &why);
    r = sample_begin(sample_path("second.h5"), &o);
    check_ok(sr_copy_rows(r, sample_path("first.h5"), 71, 71, &count), sr_failed(r));
    assert_int_equal(count.steps, 71);
    assert_int_equal(count.vectors, 35);
    assert_int_equal(count.evals, 14);
    assert_int_equal(count.lost_steps + count.lost_vectors + count.lost_evals, 0);
    check_ok(sample_steps(r, 72, 120, 5), sr_failed(r));
    run_finish(r);
    check_ok(sr_run_check(sample_path("second.h5"), &why), &why);
    sr_runfile *f = sr_run_open(sample_path("second.h5"), &why);
    assert_int_equal(sr_run_get_info(f)->steps, 120);
    assert_int_equal(sr_run_get_info(f)->evals, 24);
    sample_check(f, 1, EVERY);
    sr_run_embedding e = {.size = sizeof(sr_run_embedding)};
    check_ok(sr_run_get_embedding(f, "shared", &e, &why), &why);
    assert_int_equal(e.records, 24);
    sr_run_close(f);
    /* different sites */
    r = sr_create(sample_path("other.h5"), &o, &why);
    sr_add_site(r, &sample_sites[1]);
    assert_int_equal(sr_copy_rows(r, sample_path("first.h5"), -1, -1, NULL), SR_USAGE);
    sr_abandon(r);
}

static void test_recover_target(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    const char *first = sample_path("first.h5"), *left = sample_path("left.h5.part");
    assert_int_equal(sr_run_recover(first, first, true, -1, &count, &why), SR_EXISTS);
    check_failure(&why, SR_EXISTS, "is the file to be read");
    why = (sr_failure){0};
    assert_int_equal(sr_run_recover(left, sample_path("left.h5"), true, -1, &count, &why),
                     SR_EXISTS);
    assert_int_equal(access(left, F_OK), 0);
    why = (sr_failure){0};
    assert_int_equal(sr_run_recover(left, first, false, -1, &count, &why), SR_EXISTS);
    check_failure(&why, SR_EXISTS, "first.h5: exists");
    why = (sr_failure){0};
    check_ok(sr_run_recover(left, sample_path("new.h5"), false, 10, &count, &why), &why);
    assert_int_equal(count.steps, 10);
    assert_int_equal(count.lost_steps, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill),           cmocka_unit_test(test_read_while_growing),
        cmocka_unit_test(test_abandon),        cmocka_unit_test(test_flush_by_time),
        cmocka_unit_test(test_copy_and_go_on), cmocka_unit_test(test_recover_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
