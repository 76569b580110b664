/* test_lock_file.c -- which lock files count: of a running process, another host, another
 * container, no process. A forked process leaves its parent's lock alone. */
#define _GNU_SOURCE /* utimensat, gethostname */
#include "journal/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/sample_run.h"

/* -- the operating system as this process sees it */

static const char *host_name = "here", *pid_space = "pid:[1]"; /* NULL: unavailable */
static int kill_error;                                         /* 0: the process is running */
static pid_t asked;

int gethostname(char *name, size_t size) {
    if (!host_name) return errno = ENAMETOOLONG, -1;
    snprintf(name, size, "%s", host_name);
    return 0;
}

ssize_t readlink(const char *path, char *to, size_t size) {
    (void)path;
    if (!pid_space) return errno = EACCES, -1;
    const size_t length = strlen(pid_space);
    assert_true(length <= size);
    memcpy(to, pid_space, length);
    return (ssize_t)length;
}

int kill(pid_t process, int signal) {
    assert_int_equal(signal, 0);
    asked = process;
    return errno = kill_error, kill_error ? -1 : 0;
}

/* -- valid owners */

typedef struct holder_case {
    const char *line;
    int kill_error, age; /* seconds */
    bool held;
    const char *host, *space;
} holder_case;

static const holder_case cases[] = {
    {"here 7 pid:[1]\n", ESRCH, 0, false, "here", "pid:[1]"},
    {"here 7 pid:[1]\n", 0, 0, true, "here", "pid:[1]"},
    {"here 7 pid:[1]\n", EPERM, 0, true, "here", "pid:[1]"}, /* another user's */
    {"there 7 pid:[1]\n", ESRCH, 0, true, "here", "pid:[1]"},
    {"here 7 pid:[2]\n", ESRCH, 0, true, "here", "pid:[1]"},
    {"here 0 pid:[1]\n", ESRCH, 0, true, "here", "pid:[1]"}, /* no process; a process group */
    {"here -7 pid:[1]\n", ESRCH, 0, true, "here", "pid:[1]"},
    {"here seven pid:[1]\n", ESRCH, 0, true, "here", "pid:[1]"},
    {"here 7\n", ESRCH, 0, true, "here", "pid:[1]"},
    {"", ESRCH, 0, true, "here", "pid:[1]"},
    {"", ESRCH, LOCK_FILE_STALE + 60, false, "here", "pid:[1]"},
    {"there 7 pid:[1]\n", 0, LOCK_FILE_STALE + 60, false, "here", "pid:[1]"},
    {"there 7 pid:[1]\n", 0, LOCK_FILE_STALE - 60, true, "here", "pid:[1]"},
    /* two systems may both lack a name */
    {"unknown 7 pid:[1]\n", ESRCH, 0, true, NULL, "pid:[1]"},
    {"unknown 7 pid:[1]\n", ESRCH, 0, true, "", "pid:[1]"},
    {"here 7 unknown\n", ESRCH, 0, true, "here", NULL},
};

static const char *lock_of(const char *path) {
    static char name[1100];
    snprintf(name, sizeof name, "%s.lock", path);
    return name;
}

static void test_holders(void **state) {
    (void)state;
    const char *path = sample_path("held");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const holder_case *c = &cases[i];
        const struct timespec at = {.tv_sec = time(NULL) - c->age};
        check_write(lock_of(path), c->line);
        assert_int_equal(utimensat(AT_FDCWD, lock_of(path), (struct timespec[]){at, at}, 0), 0);
        host_name = c->host, pid_space = c->space, kill_error = c->kill_error, asked = 1;
        if (lock_file_is_held(path) != c->held) fail_msg("case %zu: '%s'", i, c->line);
        assert_true(asked > 0);
    }
    host_name = "here", pid_space = "pid:[1]", kill_error = 0;
    assert_int_equal(unlink(lock_of(path)), 0);
    assert_false(lock_file_is_held(path));
}

/* Files that no writer creates do not count as locks and are not removed. */
static void test_others(void **state) {
    (void)state;
    const char *path = sample_path("other");
    for (int kind = 0; kind < 3; kind++) {
        lock_file l;
        sr_failure why = {0};
        if (kind == 0) assert_int_equal(mkdir(lock_of(path), 0700), 0);
        if (kind == 1) assert_int_equal(mkfifo(lock_of(path), 0600), 0);
        if (kind == 2) assert_int_equal(symlink("/dev/null", lock_of(path)), 0);
        assert_false(lock_file_is_held(path));
        assert_int_equal(lock_file_create(&l, path, ENOLCK, true, &why), SR_EXISTS);
        check_failure(&why, SR_EXISTS, "another run is writing this file");
        assert_int_equal(remove(lock_of(path)), 0);
    }
}

/* A forked process has a copy of the lock but is not its owner. */
static void test_forked(void **state) {
    (void)state;
    const char *path = sample_path("forked");
    lock_file l;
    sr_failure why = {0};
    int status;
    check_ok(lock_file_create(&l, path, ENOLCK, false, &why), &why);
    const struct timespec at = {.tv_sec = time(NULL) - 100};
    assert_int_equal(utimensat(AT_FDCWD, lock_of(path), (struct timespec[]){at, at}, 0), 0);
    const pid_t child = fork();
    if (child == 0) {
        l.beat -= 2 * LOCK_FILE_BEAT;
        lock_file_beat(&l);
        const bool moved = lock_file_rename(&l, sample_path("moved"), &why) != SR_OK ||
                           access(lock_of(path), F_OK) != 0;
        lock_file_release(&l);
        _exit(moved);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct stat s;
    assert_int_equal(stat(lock_of(path), &s), 0);
    assert_true(difftime(time(NULL), s.st_mtime) > 50);
    lock_file_release(&l);
    assert_int_equal(access(lock_of(path), F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holders),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_forked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
