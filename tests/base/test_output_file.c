/* test_output_file.c -- output files: a planted name, and failures of fsync, close and rename. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "testing/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output_file.h"

/* -- replacements of the system's calls */

static struct {
    int error; /* of the call that fails */
    bool sync_fails, close_fails;
    bool no_exclusion; /* as on NFS 2, whose servers lack O_EXCL */
} world;

static int synced; /* files that had their bytes at fsync, since the last reset */

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return openat(AT_FDCWD, path, world.no_exclusion ? flags & ~O_EXCL : flags, mode);
}

int fsync(int fd) {
    struct stat s;
    synced += fstat(fd, &s) == 0 && s.st_size > 0;
    if (!world.sync_fails) return 0;
    return errno = world.error, -1;
}

/* Closes the stream and fails, as after a write error on a network file system. */
int fclose(FILE *file) {
    static union {
        void *object;
        int (*call)(FILE *);
    } original;
    if (!original.object) original.object = dlsym(RTLD_NEXT, "fclose");
    const int result = original.call(file);
    if (!world.close_fails) return result;
    return errno = world.error, EOF;
}

/* -- files */

static const char *path_of(const char *name) {
    static char path[4][4096];
    static int next;
    char *at = path[next++ % 4];
    snprintf(at, sizeof path[0], "%s/%s", check_temporary(), name);
    return at;
}

/* Writes `text` into NAME through NAME.part; so_far: the caller's status. */
static sr_status write_text(const char *name, const char *text, sr_status so_far, sr_failure *why) {
    char part[4096];
    snprintf(part, sizeof part, "%s.part", path_of(name));
    FILE *out = output_file_open(part, path_of(name), why);
    if (!out) return why->status;
    fputs(text, out);
    return output_file_publish(out, part, path_of(name), so_far, why);
}

static void expect_text(const char *name, const char *want) {
    char text[64] = "";
    FILE *in = fopen(path_of(name), "r");
    assert_non_null(in);
    if (!fgets(text, sizeof text, in)) *text = 0;
    fclose(in);
    assert_string_equal(text, want);
}

static bool is_there(const char *name) {
    struct stat s;
    return lstat(path_of(name), &s) == 0;
}

/* -- tests */

static void durable_before_its_name(void **state) {
    (void)state;
    sr_failure why = {0};
    synced = 0;
    check_ok(write_text("new", "text", SR_OK, &why), &why);
    assert_int_equal(synced, 1);
    expect_text("new", "text");
    assert_false(is_there("new.part"));
}

/* The old file stays, without any part of the new one. */
static void expect_kept(int error, sr_status so_far) {
    sr_failure why = {0};
    world.error = error;
    const sr_status status = write_text("kept", "new", so_far, &why);
    world.close_fails = world.sync_fails = false;
    assert_int_equal(status, so_far == SR_OK ? SR_IO : so_far);
    if (so_far == SR_OK) check_failure(&why, SR_IO, strerror(error));
    expect_text("kept", "old");
    assert_false(is_there("kept.part"));
}

static void failing_calls(void **state) {
    (void)state;
    sr_failure why = {0};
    check_ok(write_text("kept", "old", SR_OK, &why), &why);
    world.close_fails = true, expect_kept(EDQUOT, SR_OK);
    world.sync_fails = true, expect_kept(EIO, SR_OK);
    expect_kept(0, SR_MEMORY);
    world.close_fails = true, expect_kept(EIO, SR_FORMAT);
    assert_int_equal(mkdir(path_of("folder"), 0700), 0);
    assert_int_equal(write_text("folder", "new", SR_OK, &why), SR_IO);
    assert_false(is_there("folder.part"));
}

/* A file system without fsync has no disk to wait for. */
static void without_a_disk(void **state) {
    (void)state;
    const int error[] = {EINVAL, ENOSYS};
    for (int i = 0; i < 2; i++) {
        sr_failure why = {0};
        world.sync_fails = true, world.error = error[i];
        check_ok(write_text("no-disk", "text", SR_OK, &why), &why);
        world.sync_fails = false;
        expect_text("no-disk", "text");
    }
}

static void expect_refused(void) {
    sr_failure why = {0};
    assert_int_equal(write_text("planted", "mine", SR_OK, &why), SR_EXISTS);
    check_failure(&why, SR_EXISTS, "planted.part: exists");
    assert_true(is_there("planted.part"));
    assert_false(is_there("planted"));
}

static void planted(void **state) {
    (void)state;
    sr_failure why = {0};
    check_ok(write_text("secret", "secret", SR_OK, &why), &why);
    check_ok(write_text("planted.part", "theirs", SR_OK, &why), &why);
    expect_refused();
    expect_text("planted.part", "theirs");
    assert_int_equal(unlink(path_of("planted.part")), 0);
    assert_int_equal(symlink(path_of("nowhere"), path_of("planted.part")), 0);
    expect_refused();
    assert_false(is_there("nowhere"));
    assert_int_equal(unlink(path_of("planted.part")), 0);
    assert_int_equal(symlink(path_of("secret"), path_of("planted.part")), 0);
    expect_refused();
    expect_text("secret", "secret");
}

/* A link is not followed, even without support for exclusive creation. */
static void planted_without_exclusion(void **state) {
    (void)state;
    sr_failure why = {0};
    check_ok(write_text("private", "private", SR_OK, &why), &why);
    assert_int_equal(symlink(path_of("private"), path_of("link.part")), 0);
    world.no_exclusion = true;
    const sr_status status = write_text("link", "mine", SR_OK, &why);
    world.no_exclusion = false;
    assert_int_equal(status, SR_IO);
    check_failure(&why, SR_IO, strerror(ELOOP));
    expect_text("private", "private");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durable_before_its_name),
        cmocka_unit_test(failing_calls),
        cmocka_unit_test(without_a_disk),
        cmocka_unit_test(planted),
        cmocka_unit_test(planted_without_exclusion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
