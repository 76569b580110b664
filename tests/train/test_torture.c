/* test_torture.c -- a short training that dies or fails at any system call, at any moment, or at
 * any allocation. Its file contains only correct values, a written row stays, and the resumed run
 * ends like an uninterrupted one. */
#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "statrec/runfile.h"
#include "testing/check.h"
#include "testing/programs.h"
#include "torture.h"

enum { STEPS = 24 };

static const char train[] =
    "statrec train --model transformer --preset mini --embed-dim 8 --ffn-dim 8 --heads 1 "
    "--encoder-layers 1 --decoder-layers 1 --data synth-pairs --limit 400 --max-tokens 256 "
    "--threads 1 --quiet --max-steps 24 --validate-interval-updates 8 --checkpoint-every 6 --keep "
    "2 "
    "--flush-steps 4 --flush-seconds 86400 --record all --norm bn";

static double reference[STEPS];
static char digest[32];
static long calls, allocations;

/* -- contents of a file */

/* A reader leaves nothing open, or HDF5 complains when the process ends. */
static void expect_closed(const char *name) {
    if (H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) != 0)
        fail_msg("%s: HDF5 has objects open after it was read", name);
}

/* Rows with the reference's losses; -1: none can be read. Wrong ones fail the test. */
static int64_t right_rows(const char *name) {
    double loss[STEPS];
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(program_file(name), &why);
    if (!f) expect_closed(name);
    if (!f) return -1;
    const int64_t rows = sr_run_get_info(f)->steps;
    assert_true(rows <= STEPS);
    const bool readable = sr_run_step_reals(f, "loss", 0, rows, loss, &why) == SR_OK;
    for (int64_t i = 0; i < rows && readable; i++)
        if (loss[i] != reference[i])
            fail_msg("row %lld of %s: loss %.17g instead of %.17g", (long long)i, name, loss[i],
                     reference[i]);
    sr_run_close(f);
    expect_closed(name);
    return readable ? rows : -1; /* rejected with an error; no wrong value was returned */
}

static void expect_whole(const char *after) {
    sr_failure why = {0};
    if (right_rows("run.h5") != STEPS) fail_msg("%s: not all rows are there", after);
    if (sr_run_check(program_file("run.h5"), &why) != SR_OK) fail_msg("%s: %s", after, why.text);
    sr_runfile *f = sr_run_open(program_file("run.h5"), &why);
    if (strcmp(sr_run_get_info(f)->weights_digest, digest) != 0)
        fail_msg("%s: other weights than those of a run that never stopped", after);
    sr_run_close(f);
}

/* The run that never stopped, and how many calls and allocations that takes. */
static int measure(void **state) {
    (void)state;
    sr_failure why = {0};
    program_result r =
        program_run("%s STATREC_FAULT_COUNT=$PWD/count %s -o whole.h5", torture_faulty(), train);
    if (r.status != 0) fail_msg("exit status %d: %s", r.status, r.err);
    program_free(&r);
    torture_read_count(&calls, &allocations);
    sr_runfile *f = sr_run_open(program_file("whole.h5"), &why);
    assert_non_null(f);
    assert_int_equal(sr_run_get_info(f)->steps, STEPS);
    check_ok(sr_run_step_reals(f, "loss", 0, STEPS, reference, &why), &why);
    snprintf(digest, sizeof digest, "%s", sr_run_get_info(f)->weights_digest);
    sr_run_close(f);
    printf("%ld calls of the system, %ld allocations\n", calls, allocations);
    assert_true(calls > 50 && allocations > 1000);
    return 0;
}

/* -- after a death */

static void clean(void) {
    program_result r = program_run("rm -f run* new.h5*");
    program_free(&r);
}

/* A command that must not crash and must print a line with the reason of a failure. */
static int tell(const char *after, const char *command) {
    program_result r = program_run("%s", command);
    const int status = r.status;
    if (status > 2) fail_msg("%s: %s: exit status %d: %s", after, command, status, r.err);
    if (status != 0 && !strchr(r.err, '\n')) fail_msg("%s: %s: no reason", after, command);
    program_free(&r);
    return status;
}

/* Rows that readers and recover can read from the remaining file; 0 if none. */
static int64_t look_at_rest(const char *after) {
    const int64_t rows = right_rows("run.h5");
    tell(after, "statrec info run.h5");
    tell(after, "statrec check run.h5");
    if (tell(after, "statrec recover run.h5 -o new.h5 --force") != 0) return 0;
    const int64_t recovered = right_rows("new.h5");
    if (recovered < rows)
        fail_msg("%s: %lld rows are read and %lld recovered", after, (long long)rows,
                 (long long)recovered);
    return recovered;
}

/* From the newest checkpoint, or from the start. */
static void go_on(const char *after) {
    char again[1024];
    snprintf(again, sizeof again, "%s -o run.h5 --force", train);
    if (tell(after, "statrec resume run.h5 --quiet") != 0)
        if (tell(after, again) != 0)
            fail_msg("%s: the run can neither go on nor begin anew", after);
    expect_whole(after);
}

/* -- at every k-th call of the system */

/* Dies at call k. Returns the remaining rows; -1: it completed, as that call writes nothing. */
static int64_t die(const char *what, long k) {
    char after[64];
    snprintf(after, sizeof after, "%s at call %ld", what, k);
    clean();
    program_result r =
        program_run("%s STATREC_FAULT=%s:%ld %s -o run.h5", torture_faulty(), what, k, train);
    const bool ended = r.status == 0;
    if (r.status != 128 + SIGKILL && !ended) fail_msg("%s: %d: %s", after, r.status, r.err);
    program_free(&r);
    const int64_t rows = look_at_rest(after);
    go_on(after);
    return ended ? -1 : rows;
}

static int die_everywhere(const char *what) {
    const long n = torture_places() < calls ? torture_places() : calls;
    int64_t before = 0;
    int lost = 0, died = 0;
    for (long k = 0; k < n; k++) {
        const int64_t rows = die(what, torture_place(k, n, calls));
        if (rows < 0) continue;
        died++;
        /* rows written by an earlier call remain at a later one */
        lost += rows < before;
        if (rows > before) before = rows;
    }
    printf("%s: %ld places, %d deaths, %d lost rows that had been there\n", what, n, died, lost);
    assert_true(before > 0 && died > 0);
    return lost;
}

static void test_kill_at_calls(void **state) {
    (void)state;
    assert_int_equal(die_everywhere("kill"), 0);
}

static void test_torn_writes(void **state) {
    (void)state;
    assert_int_equal(die_everywhere("torn"), 0);
}

/* -- at random times */

static void test_kill_at_times(void **state) {
    (void)state;
    const uint64_t seed = (uint64_t)time(NULL);
    int before_the_end = 0;
    for (long k = 0; k < torture_places(); k++) {
        char after[96];
        const double seconds = 0.5 * (double)(rng_at(seed, (uint64_t)k) >> 11) / 9007199254740992.0;
        snprintf(after, sizeof after, "kill after %.6f s", seconds);
        clean();
        program_result r =
            program_run("GCOV_PREFIX=/dev/null timeout -s KILL %.6f %s -o run.h5", seconds, train);
        before_the_end += r.status != 0;
        program_free(&r);
        look_at_rest(after);
        go_on(after);
    }
    printf("%ld times, %d of them before the end\n", torture_places(), before_the_end);
}

/* -- failing input and output */

static void expect_told(const char *after, const program_result *r, const char *word) {
    if (r->status != 1 && r->status != 2)
        fail_msg("%s: exit status %d: %s", after, r->status, r->err);
    if (!strchr(r->err, '\n')) fail_msg("%s: no reason", after);
    if (word && !strstr(r->err, word)) fail_msg("%s: no word of '%s': %s", after, word, r->err);
}

static void fail_everywhere(const char *what, const char *reason) {
    const long n = torture_places() < calls ? torture_places() : calls;
    int told = 0;
    for (long k = 0; k < n; k++) {
        char after[64];
        clean();
        snprintf(after, sizeof after, "%s from call %ld", what, torture_place(k, n, calls));
        program_result r = program_run("%s STATREC_FAULT=%s:%ld %s -o run.h5", torture_faulty(),
                                       what, torture_place(k, n, calls), train);
        if (r.status != 0) expect_told(after, &r, reason);
        told += r.status != 0;
        if (r.status == 0) expect_whole(after); /* the failed call was not essential */
        program_free(&r);
        look_at_rest(after);
        go_on(after);
    }
    printf("%s: %ld places, %d told\n", what, n, told);
    assert_true(told > 0);
}

static void test_failing_calls(void **state) {
    (void)state;
    fail_everywhere("fail", NULL);
}

static void test_full_disk(void **state) {
    (void)state;
    fail_everywhere("full", "No space left");
}

/* -- failing allocations */

static const char *const commands[] = {
    "statrec info whole.h5",
    "statrec check whole.h5",
    "statrec recover whole.h5 -o new.h5 --force",
    "statrec copy whole.h5 -o new.h5 --force --every 2 --site first",
    "statrec evaluate whole-0000024.ckpt",
    "statrec average whole-0000018.ckpt whole-0000024.ckpt -o new.ckpt --force",
    "statrec export whole-0000024.ckpt -o new.npz --force",
    "statrec diagnose whole.h5",
};

static long count_allocations(const char *command) {
    long made = 0, ignored;
    program_result r =
        program_run("%s STATREC_FAULT_COUNT=$PWD/count %s", torture_faulty(), command);
    if (r.status > 1) fail_msg("%s: exit status %d: %s", command, r.status, r.err);
    program_free(&r);
    torture_read_count(&ignored, &made);
    return made;
}

/* Failures of optional memory, for speed or convenience, have no effect. */
static void fail_allocations(const char *command) {
    const long last = count_allocations(command),
               n = torture_places() < last ? torture_places() : last;
    int told = 0, otherwise = 0;
    for (long k = 0; k < n; k++) {
        char after[200];
        clean();
        snprintf(after, sizeof after, "allocation %ld of %.150s", torture_place(k, n, last),
                 command);
        program_result r = program_run("%s STATREC_FAULT=alloc:%ld %s", torture_faulty(),
                                       torture_place(k, n, last), command);
        if (r.status != 0) expect_told(after, &r, NULL);
        told += r.status != 0;
        if (r.status != 0 && !strstr(r.err, "memory")) {
            if (++otherwise <= 5) printf("%s: no word of memory: %s", after, r.err);
        }
        program_free(&r);
    }
    printf("%ld of %ld allocations, %d told, %d of them without the word: %.40s\n", n, last, told,
           otherwise, command);
    assert_true(told > 0);
}

static void test_allocations(void **state) {
    (void)state;
    char run[1024];
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) fail_allocations(commands[i]);
    snprintf(run, sizeof run, "%s -o run.h5", train);
    fail_allocations(run);
}

int main(void) {
    torture_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_at_calls), cmocka_unit_test(test_torn_writes),
        cmocka_unit_test(test_kill_at_times), cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_full_disk),     cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, measure, NULL);
}
