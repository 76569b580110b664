/* test_failing_close.c -- close reports that bytes were not written, as on a network file system.
 * The file does not get its name, and the writer reports the reason. A file of arrays gets its name
 * after fsync. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "copied_run.h"
#include "hdf5/array_file.h"
#include "testing/check.h"
#include "testing/sample_run.h"

static const run_shape shape = {1, 8, 77, "1", true};
static const char *ending; /* end of the path whose close fails; NULL: none */
static int failed, synced, synced_before_name;

static bool is_of_ending(int fd) {
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    const size_t tail = strlen(ending);
    return length >= (ssize_t)tail && memcmp(path + length - tail, ending, tail) == 0;
}

/* These override the system's functions. The descriptor is closed. */
int close(int fd) {
    static union {
        void *object;
        int (*call)(int);
    } original;
    if (!original.object) original.object = dlsym(RTLD_NEXT, "close");
    const bool fails = ending && is_of_ending(fd);
    const int result = original.call(fd);
    if (!fails) return result;
    failed++;
    return errno = EDQUOT, -1;
}

int fsync(int fd) {
    synced += fcntl(fd, F_GETFD) >= 0;
    return 0;
}

int rename(const char *from, const char *to) {
    synced_before_name = synced;
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static void run_file(void **state) {
    (void)state;
    sr_failure why = {0};
    const sr_finish complete = SR_INIT(sr_finish, .status = "complete", .reason = "by test");
    sr_recorder *r = copied_begin("x.h5", &shape);
    ending = "x.h5.part";
    const sr_status status = sr_close(r, &complete, &why);
    ending = NULL;
    assert_true(failed > 0);
    assert_int_equal(status, SR_IO);
    check_failure(&why, SR_IO, strerror(EDQUOT));
    assert_int_equal(access(sample_path("x.h5"), F_OK), -1);
    assert_int_equal(access(sample_path("x.h5.part"), F_OK), 0);
}

static sr_status write_arrays(float value, sr_failure *why) {
    const npz_array one = {.type = NPZ_FLOAT32, .data = &value};
    array_writer *w = array_writer_create(sample_path("x.arrays"), "test", 1, why);
    if (!w) return why->status;
    array_writer_add(w, "one", &one, NULL);
    return array_writer_finish(w, why);
}

static void expect_array(float value) {
    sr_failure why = {0};
    float found = 0;
    const npz_array one = {.type = NPZ_FLOAT32, .data = &found};
    array_reader *r = array_reader_open(sample_path("x.arrays"), "test", 1, &why);
    check_ok(why.status, &why);
    check_ok(array_reader_fill(r, "one", &one, &why), &why);
    array_reader_close(r);
    assert_true(found == value);
}

static void arrays(void **state) {
    (void)state;
    sr_failure why = {0};
    synced = synced_before_name = 0;
    check_ok(write_arrays(1, &why), &why);
    assert_int_equal(synced_before_name, 1);
    failed = 0, ending = "x.arrays.part";
    const sr_status status = write_arrays(2, &why);
    ending = NULL;
    assert_true(failed > 0);
    assert_int_equal(status, SR_IO);
    check_failure(&why, SR_IO, strerror(EDQUOT));
    expect_array(1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(run_file), cmocka_unit_test(arrays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
