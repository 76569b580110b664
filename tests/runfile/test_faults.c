/* test_faults.c -- full disks and failing allocations. The host continues, the failure is kept,
 * rows flushed before stay readable, no crash. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/sample_run.h"

/* -- allocations ----------------------------------------------------------------------------- */

/* glibc's allocator, called by the malloc in this file. Calls from this program's own code are
 * counted (HDF5 is a shared library), and the fail_at-th fails. */
#ifndef __SANITIZE_ADDRESS__
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
extern const char __executable_start, etext;

static long allocations, fail_at;

static bool fails(const void *caller) {
    const char *c = caller;
    if (fail_at <= 0 || c < &__executable_start || c >= &etext) return false;
    return ++allocations == fail_at;
}

void *malloc(size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

static const sr_finish complete = {sizeof(sr_finish), "complete", "", ""};

/* A step with all values that the recorder computes: raw tensors and sums, merged, and scalars. */
static void put_raw(sr_recorder *r, int64_t step, const int id[2], int merged) {
    const float x[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const double sum[5] = {1, 2, 3, 4, 5};
    const sr_tensor t = {sizeof(sr_tensor), x, SR_FLOAT32, 2, 5, 1, NULL, 0};
    sr_begin_step(r, step);
    sr_take_forward(r, 0, &t, NULL), sr_take_backward(r, 0, &t);
    for (int i = 0; i < 3; i++) sr_take_forward(r, merged, &t, NULL);
    sr_take_backward(r, merged, &t), sr_take_backward(r, merged, &t);
    sr_put_forward(r, merged, &SR_INIT(sr_forward, 2, 0, 0, sum, sum, sum));
    sr_put_backward(r, merged, &SR_INIT(sr_backward, sum, sum, sum));
    sr_put_scalar(r, 0, id[0], 1), sr_put_step_scalar(r, id[1], 2);
    sr_end_step(r, &(sr_step){.size = sizeof(sr_step)});
}

/* The sample's sites and an observed one. */
static sr_recorder *create_raw(const char *path, bool resume, int id[2], int *merged,
                               sr_failure *why) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.sync = SR_SYNC_NONE, o.flush_steps = 3, o.overhead = 1000, o.ranks = "rank 0 of 2",
    o.resume = resume;
    sr_recorder *r = sample_create(path, &o, why);
    if (!r) return NULL;
    *merged = sr_add_site(r, &SR_INIT(sr_site, .name = "merged", .family = SR_FAMILY_PN, .depth = 9,
                                      .width = 5, .alpha = 0.5, .repeat = SR_REPEAT_MERGE));
    id[0] = sr_declare_scalar(r, "own", "1", "of a site", SR_PER_SITE);
    id[1] = sr_declare_scalar(r, "own too", "1", "of a step", SR_PER_STEP);
    return r;
}

/* Records, stops, resumes. */
static sr_status live(const char *path, sr_failure *why) {
    int id[2], merged;
    sr_recorder *r = create_raw(path, false, id, &merged, why);
    if (!r) return why->status;
    put_raw(r, 0, id, merged);
    sr_flush(r);
    sample_steps(r, 1, 5, 2);
    sr_status status = sr_close(r, &complete, why);
    if (status != SR_OK) return status;
    r = create_raw(path, true, id, &merged, why);
    if (!r) return why->status;
    sr_copy_rows(r, path, 3, 3, NULL);
    put_raw(r, 4, id, merged);
    return sr_close(r, &complete, why);
}

/* The file exists under neither name. */
static void expect_nothing(const char *path) {
    char part[4300];
    snprintf(part, sizeof part, "%s.part", path);
    assert_true(access(path, F_OK) != 0 && access(part, F_OK) != 0);
}

static sr_recovery whole; /* counts of a run without failures */

static sr_status live_and_copy(const char *path, const char *copy, sr_recovery *count,
                               sr_failure *why) {
    sr_status status = live(path, why);
    if (status == SR_OK) status = sr_run_check(path, why);
    return status == SR_OK ? sr_run_recover(path, copy, true, -1, count, why) : status;
}

/* Records and resumes a run with the k-th allocation failing. Returns true when no allocation fails
 * any more. */
static bool live_with_failure(long k) {
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    const char *path = sample_path("memory.h5"), *copy = sample_path("memory2.h5");
    allocations = 0, fail_at = k;
    const sr_status status = live_and_copy(path, copy, &count, &why);
    fail_at = 0;
    if (status != SR_OK) expect_nothing(copy);
    unlink(path), unlink(copy);
    if (allocations < k) {
        check_ok(status, &why);
        return true;
    }
    /* Harmless failures: HDF5 verifies header checksums itself, and opening an object checks its
     * existence again. The copy then has all recorded rows. */
    if (status != SR_MEMORY && !(status == SR_OK && memcmp(&count, &whole, sizeof whole) == 0))
        fail_msg("allocation %ld: %s: %s", k, sr_status_name(status), why.text);
    char part[4300];
    snprintf(part, sizeof part, "%s.part", path);
    unlink(part);
    snprintf(part, sizeof part, "%s.part", copy);
    unlink(part);
    return false;
}

/* A test that fails in a child ends it with status 1, or a little more. */
enum { IN_ONE_PROCESS = 64, EACH = 200, NONE_FAILED = 100 };

/* Trying all takes two minutes (tests/README.md). */
static long every(void) {
    return check_places(0) ? 1 : 11;
}

static bool is_tried(long k) {
    return k <= EACH || k % every() == 0;
}

/* HDF5 keeps parts of a file that it could not close, so each process tries some allocations.
 * Returns the last k so far; *all: none fails any more. */
static long fail_some(long k, bool *all) {
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (long i = k; i < k + IN_ONE_PROCESS; i++)
            if (is_tried(i) && live_with_failure(i)) _exit(NONE_FAILED + (int)(i - k));
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status)) fail_msg("allocation %ld or behind it: killed", k);
    const int ended = WEXITSTATUS(status);
    if (ended != 0 && (ended < NONE_FAILED || ended >= NONE_FAILED + IN_ONE_PROCESS))
        fail_msg("allocation %ld or behind it: exit status %d", k, ended);
    *all = ended != 0;
    return *all ? k + ended - NONE_FAILED - 1 : k + IN_ONE_PROCESS - 1;
}

static void test_allocations(void **state) {
    (void)state;
    long k = 0;
    sr_failure why = {0};
    whole.size = sizeof whole;
    check_ok(live_and_copy(sample_path("memory.h5"), sample_path("memory2.h5"), &whole, &why),
             &why);
    assert_true(whole.steps > 3);
    unlink(sample_path("memory.h5")), unlink(sample_path("memory2.h5"));
    for (bool all = false; !all;) k = fail_some(k + 1, &all);
    printf("%ld allocations, of which the first %d and every %ldth failed in turn\n", k, EACH,
           every());
    assert_true(k > 300);
}
#else
static void test_allocations(void **state) {
    (void)state;
    printf("skipped: failing allocations (the address sanitizer owns malloc)\n");
    skip();
}
#endif

/* -- full disks ------------------------------------------------------------------------------ */

/* Limits files of this process to `limit` bytes. A coverage build's output is discarded: truncated,
 * it would damage other processes' output. */
static bool limit_files(rlim_t limit) {
    setenv("GCOV_PREFIX", "/dev/null", 1), setenv("GCOV_ERROR_FILE", "/dev/null", 1);
    return setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit}) == 0;
}

/* The recorder's failure after a full disk is the system's reason, whatever HDF5 did later. */
static void expect_full(const sr_failure *kept, rlim_t limit) {
    if (kept->status == SR_IO && strstr(kept->text, "File too large")) return;
    fprintf(stderr, "limit %lu: %s: %s\n", (unsigned long)limit, sr_status_name(kept->status),
            kept->text);
    _exit(23);
}

/* The child: a run whose file is limited to `limit` bytes. Exit status 0: finished; 10: the failure
 * was kept and returned correctly; other: a fault. */
static void write_limited(const char *path, rlim_t limit) {
    sr_failure why = {0};
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGSEGV, SIG_DFL), signal(SIGABRT, SIG_DFL); /* cmocka would continue in the child */
    if (!limit_files(limit)) _exit(20);
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.sync = SR_SYNC_NONE, o.flush_steps = 8, o.planned_steps = 150;
    sr_recorder *r = sample_create(path, &o, &why);
    if (!r) _exit(why.status == SR_IO ? 10 : 21);
    sr_status status = sample_steps(r, 1, 150, 10);
    sr_failure kept = sr_failed(r) ? *sr_failed(r) : (sr_failure){0};
    if (status != SR_OK) {
        if (sample_step(r, 1000) != status || sr_flush(r) != status) _exit(22);
        expect_full(&kept, limit);
    }
    sr_status closed =
        sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, &why);
    if (status != SR_OK && (closed != status || strcmp(why.text, kept.text) != 0)) _exit(24);
    if (access(path, F_OK) == 0 && closed != SR_OK) _exit(25);
    /* exit, not _exit: HDF5 must not run or crash at exit either */
    exit(closed == SR_OK ? 0 : closed == SR_IO ? 10 : 26);
}

/* Every row that a reader reports must be right. Returns the number of rows, -1: no run file. */
static int64_t check_left(const char *path) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) return -1;
    int64_t steps = sr_run_get_info(f)->steps;
    sample_check(f, 1, 1);
    sr_run_close(f);
    return steps;
}

static void test_full_disk(void **state) {
    (void)state;
    /* not check_temporary: a child that calls exit would remove it */
    char folder[] = "/tmp/statrec-full-XXXXXX", path[64], part[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/full.h5", folder);
    snprintf(part, sizeof part, "%s/full.h5.part", folder);
    int finished = 0, failed = 0, readable = 0;
    for (rlim_t limit = 0; limit < 600000 && finished < 2; limit += 4099) {
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) write_limited(path, limit);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 10))
            fail_msg("limit %lu: %s %d", (unsigned long)limit,
                     WIFEXITED(status) ? "exit status" : "signal",
                     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        finished += WEXITSTATUS(status) == 0, failed += WEXITSTATUS(status) == 10;
        readable += check_left(path) > 0;
        unlink(path), unlink(part);
    }
    rmdir(folder);
    printf("full disk: %d failed, %d of all had readable rows, %d finished\n", failed, readable,
           finished);
    assert_true(failed > 20 && readable > 10 && finished > 0);
}

/* The child: rows of more bytes than HDF5 buffers, so that a write itself fails. */
static void write_wide(const char *path, rlim_t limit) {
    enum { SITES = 64, WIDTH = 512 };
    static double value[WIDTH];
    const sr_forward sums = SR_INIT(sr_forward, 1, 0, 0, value, value, value);
    sr_failure why = {0};
    char name[32];
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGSEGV, SIG_DFL), signal(SIGABRT, SIG_DFL);
    if (!limit_files(limit)) _exit(20);
    sr_recorder *r = sr_create(path, NULL, &why);
    for (int i = 0; i < SITES && r; i++) {
        snprintf(name, sizeof name, "site.%d", i);
        sr_add_site(
            r, &(sr_site){.size = sizeof(sr_site), .name = name, .norm = "bn", .width = WIDTH});
    }
    const int own = sr_declare_scalar(r, "own", "1", "", SR_PER_SITE);
    for (int64_t step = 1; step < 400 && r && !sr_failed(r); step++) {
        sr_step row = {.size = sizeof(sr_step)};
        sr_begin_step(r, step);
        for (int i = 0; i < SITES; i++) sr_put_forward(r, i, &sums), sr_put_scalar(r, i, own, 1);
        sr_end_step(r, &row);
        if (step % 5 == 0) sr_flush(r); /* running statistics */
    }
    if (!r || !sr_failed(r)) _exit(21);
    expect_full(sr_failed(r), limit);
    exit(sr_close(r, NULL, &why) == SR_IO ? 0 : 22);
}

static void test_full_disk_wide(void **state) {
    (void)state;
    char folder[] = "/tmp/statrec-full-XXXXXX", path[64], part[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/full.h5", folder);
    snprintf(part, sizeof part, "%s/full.h5.part", folder);
    for (rlim_t limit = 1000000; limit < 24000000; limit += 2999999) {
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) write_wide(path, limit);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        unlink(path), unlink(part);
    }
    rmdir(folder);
}

int main(void) {
    /* hundreds of files, each with an fsync: in memory if possible */
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_full_disk_wide),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
