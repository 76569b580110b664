/* test_refused_locks.c -- file systems that reject locks: the writer writes, and a lock file beside
 * the run excludes a second writer. */
#define _GNU_SOURCE 1 /* RTLD_NEXT, F_OFD_SETLK */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

static int refused; /* errno of every lock */

int flock(int fd, int operation) {
    (void)fd, (void)operation;
    errno = refused;
    return refused ? -1 : 0;
}

int fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    union {
        void *symbol;
        int (*call)(int, int, void *);
    } original = {.symbol = dlsym(RTLD_NEXT, "fcntl")};
    const bool locks = command == F_OFD_SETLK || command == F_OFD_GETLK || command == F_SETLK;
    if (!locks || !refused) return original.call(fd, command, argument);
    errno = refused;
    return -1;
}

static bool unreadable; /* files named .lock cannot be opened */

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    union {
        void *symbol;
        int (*call)(const char *, int, ...);
    } original = {.symbol = dlsym(RTLD_NEXT, "open")};
    const size_t length = strlen(path);
    const bool lock = length > 5 && strcmp(path + length - 5, ".lock") == 0;
    if (!unreadable || !lock || flags & O_CREAT) return original.call(path, flags, mode);
    errno = EACCES;
    return -1;
}

static time_t later; /* seconds added to the monotonic clock */

int clock_gettime(clockid_t clock, struct timespec *t) {
    union {
        void *symbol;
        int (*call)(clockid_t, struct timespec *);
    } original = {.symbol = dlsym(RTLD_NEXT, "clock_gettime")};
    const int result = original.call(clock, t);
    if (clock == CLOCK_MONOTONIC) t->tv_sec += later;
    return result;
}

static const sr_finish complete = {sizeof(sr_finish), "complete", "", ""};

static sr_options options(void) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0, o.flush_steps = 4, o.flush_seconds = 1000, o.sync = SR_SYNC_NONE;
    return o;
}

static const char *beside(const char *path, const char *ending) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", strrchr(path, '/') + 1, ending);
    return sample_path(name);
}

static void set_age(const char *lock, time_t seconds) {
    const struct timespec at = {.tv_sec = time(NULL) - seconds};
    assert_int_equal(utimensat(AT_FDCWD, lock, (struct timespec[]){at, at}, 0), 0);
}

static double age(const char *lock) {
    struct stat s;
    assert_int_equal(stat(lock, &s), 0);
    return difftime(time(NULL), s.st_mtime);
}

static void expect_refused(const char *path, bool resume) {
    sr_failure why = {0};
    sr_options o = options();
    o.resume = resume;
    assert_null(sample_create(path, &o, &why));
    check_failure(&why, SR_EXISTS, "another run is writing this file");
    assert_non_null(strstr(why.hint, ".h5.part.lock"));
}

static void write_run(int reason) {
    sr_failure why = {0};
    sr_options o = options();
    char name[32];
    snprintf(name, sizeof name, "refused-%d.h5", reason);
    const char *path = sample_path(name), *lock = beside(path, ".part.lock");
    refused = reason;
    sr_recorder *r = sample_begin(path, &o);
    assert_non_null(sr_lock_refused(r));
    assert_non_null(strstr(sr_lock_refused(r), strerror(reason)));
    assert_int_equal(access(lock, F_OK), 0);
    expect_refused(path, false), expect_refused(path, true);
    check_ok(sample_steps(r, 1, 10, 0), sr_failed(r));
    expect_refused(path, false), expect_refused(path, true);
    /* a growing file is read as one: its written rows count, not its journal */
    sr_runfile *f = sample_open(path);
    assert_true(sr_run_get_info(f)->steps >= 8);
    sample_check(f, 1, 1);
    sr_run_close(f);
    check_ok(sr_close(r, &complete, &why), &why);
    assert_int_equal(access(lock, F_OK), -1);
    check_ok(sr_run_check(path, &why), &why);
    refused = 0;
}

static void test_reasons(void **state) {
    (void)state;
    const int reason[] = {ENOLCK, ENOTSUP, EAGAIN, EACCES, EIO, ENOSYS, EINVAL, EPERM};
    for (size_t i = 0; i < sizeof reason / sizeof reason[0]; i++) write_run(reason[i]);
    sr_failure why = {0};
    sr_options o = options();
    sr_recorder *r = sample_begin(sample_path("granted.h5"), &o);
    assert_null(sr_lock_refused(r));
    assert_int_equal(access(sample_path("granted.h5.part.lock"), F_OK), -1);
    check_ok(sr_close(r, &complete, &why), &why);
}

/* Without a heartbeat for ten minutes, or with force, the next writer takes over. The first one
 * notices at its next flush and leaves the other's lock alone. */
static void test_take_over(void **state) {
    (void)state;
    for (int forced = 0; forced < 2; forced++) {
        sr_failure why = {0};
        sr_options o = options();
        const char *path = sample_path(forced ? "force.h5" : "stale.h5");
        const char *lock = beside(path, ".part.lock"), *part = beside(path, ".part");
        refused = ENOLCK;
        sr_recorder *r = sample_begin(path, &o);
        check_ok(sample_steps(r, 1, 10, 0), sr_failed(r));
        set_age(lock, forced ? 0 : 590);
        expect_refused(path, true);
        if (!forced) set_age(lock, 610);
        if (!forced) assert_int_equal(unlink(part), 0);
        o.force = forced;
        sr_recorder *next = sample_begin(path, &o);
        assert_int_equal(sr_flush(r), SR_IO);
        assert_int_equal(sr_close(r, &complete, &why), SR_IO);
        assert_int_equal(access(lock, F_OK), 0);
        why = (sr_failure){0};
        check_ok(sample_steps(next, 1, 6, 0), sr_failed(next));
        check_ok(sr_close(next, &complete, &why), &why);
        assert_int_equal(access(lock, F_OK), -1);
        check_ok(sr_run_check(path, &why), &why);
        refused = 0;
    }
}

/* The lock of a killed process on this host no longer counts; one of another host does. */
static void test_killed(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = options();
    const char *path = sample_path("killed.h5"), *lock = beside(path, ".part.lock");
    refused = ENOTSUP;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        sr_recorder *r = sample_create(path, &o, &why);
        sample_steps(r, 1, 10, 0);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(access(lock, F_OK), 0);
    char line[400], other[400];
    FILE *in = fopen(lock, "r");
    assert_non_null(in);
    assert_non_null(fgets(line, sizeof line, in));
    fclose(in);
    snprintf(other, sizeof other, "elsewhere%s", strchr(line, ' '));
    check_write(lock, other);
    expect_refused(path, true);
    check_write(lock, "no line of ours\n");
    expect_refused(path, true);
    check_write(lock, line);
    o.force = true;
    sr_recorder *r = sample_begin(path, &o);
    check_ok(sample_steps(r, 1, 10, 0), sr_failed(r));
    check_ok(sr_close(r, &complete, &why), &why);
    refused = 0;
}

/* A lock that another user's umask hides counts by its heartbeat. */
static void test_unreadable(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = options();
    const char *path = sample_path("hidden.h5"), *lock = beside(path, ".part.lock");
    refused = ENOLCK, unreadable = true;
    check_write(lock, "elsewhere 1 pid:[1]\n");
    expect_refused(path, false), expect_refused(path, true);
    set_age(lock, 610);
    sr_recorder *r = sample_begin(path, &o);
    check_ok(sr_close(r, &complete, &why), &why);
    refused = 0, unreadable = false;
}

/* A planted link is neither followed nor removed. */
static void test_planted(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = options();
    const char *path = sample_path("planted.h5"), *lock = beside(path, ".part.lock");
    const char *kept = sample_path("kept");
    check_write(kept, "kept\n");
    assert_int_equal(symlink(kept, lock), 0);
    refused = ENOLCK;
    o.force = true;
    assert_null(sample_create(path, &o, &why));
    check_failure(&why, SR_EXISTS, "planted.h5.part.lock");
    assert_int_equal(access(beside(path, ".part"), F_OK), -1);
    struct stat s;
    assert_int_equal(lstat(lock, &s), 0);
    assert_true(S_ISLNK(s.st_mode));
    assert_int_equal(stat(kept, &s), 0);
    assert_int_equal(s.st_size, 5);
    refused = 0;
}

static void test_heartbeat(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = options();
    const char *path = sample_path("beat.h5"), *lock = beside(path, ".part.lock");
    refused = ENOLCK;
    sr_recorder *r = sample_begin(path, &o);
    set_age(lock, 500);
    check_ok(sample_steps(r, 1, 10, 0), sr_failed(r));
    assert_true(age(lock) > 400);
    later = 31;
    check_ok(sample_steps(r, 11, 12, 0), sr_failed(r));
    assert_true(age(lock) < 100);
    later = 0;
    check_ok(sr_close(r, &complete, &why), &why);
    refused = 0;
}

/* A forked child that closes its copy leaves the lock to its parent. */
static void test_forked(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = options();
    const char *path = sample_path("forked.h5"), *lock = beside(path, ".part.lock");
    refused = EIO;
    sr_recorder *r = sample_begin(path, &o);
    check_ok(sample_steps(r, 1, 10, 0), sr_failed(r));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        sr_close(r, &complete, &why);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(access(lock, F_OK), 0);
    assert_true(age(lock) < 100);
    check_ok(sr_close(r, &complete, &why), &why);
    assert_int_equal(access(lock, F_OK), -1);
    refused = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reasons), cmocka_unit_test(test_take_over),
        cmocka_unit_test(test_killed),  cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_planted), cmocka_unit_test(test_heartbeat),
        cmocka_unit_test(test_forked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
