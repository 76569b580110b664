/* test_kept_open.c -- HDF5 fails to close a file and keeps it open. The file's descriptor and lock
 * are released, nothing is written later, and HDF5's later calls on it fail. Also writes of a
 * forked process, and writes that fail without an error number. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <hdf5.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hdf5/h5.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/sample_run.h"

static bool keeps, refuses; /* H5Fclose, pwrite */

/* These override the libraries' functions. */
herr_t H5Fclose(hid_t file) {
    static union {
        void *object;
        herr_t (*call)(hid_t);
    } original;
    if (!original.object) original.object = dlsym(RTLD_NEXT, "H5Fclose");
    return keeps ? -1 : original.call(file);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    static union {
        void *object;
        ssize_t (*call)(int, const void *, size_t, off_t);
    } original;
    if (!original.object) original.object = dlsym(RTLD_NEXT, "pwrite");
    if (!refuses) return original.call(fd, bytes, size, at);
    return errno = 0, -1;
}

static const h5_shape numbers = {.type = H5_UINT8, .rank = 1, .dims = {3000}};

static h5_id create(const char *name, h5_id *set) {
    h5_id file;
    sr_failure why = {0};
    check_ok(h5_create(sample_path(name), false, &file, &why), &why);
    check_ok(h5_add_dataset(file, "/numbers", &numbers, set, &why), &why);
    return file;
}

static off_t size_of(const char *name) {
    struct stat s;
    assert_int_equal(stat(sample_path(name), &s), 0);
    return s.st_size;
}

/* failed: an earlier write failed. */
static void expect_kept(const char *name, bool failed) {
    static uint8_t value[3000];
    const int before = check_descriptors();
    h5_id set;
    sr_failure why = {0};
    const h5_id file = create(name, &set);
    if (failed) h5_divert(file);
    keeps = true;
    const sr_status status = h5_close(file, &why);
    keeps = false;
    check_failure(&why, failed ? SR_IO : SR_LIBRARY, failed ? strerror(EIO) : "close");
    assert_int_equal(status, why.status);
    assert_int_equal(check_descriptors(), before);
    const off_t size = size_of(name);
    why = (sr_failure){0};
    assert_int_not_equal(h5_read_all(set, H5_UINT8, 0, value, &why), SR_OK);
    h5_write_all(set, H5_UINT8, 0, value, NULL);
    h5_close_dataset(set);
    H5Fclose(file); /* as HDF5's exit handler does */
    assert_int_equal(size_of(name), size);
    assert_int_equal(check_descriptors(), before);
}

static void test_kept(void **state) {
    (void)state;
    expect_kept("kept.h5", false);
    expect_kept("failed.h5", true);
}

/* The child has a copy of HDF5's state and may exit in any way. */
static void test_forked(void **state) {
    (void)state;
    static uint8_t value[3000], found[3000];
    int status;
    h5_id set;
    h5_shape shape;
    sr_failure why = {0};
    const h5_id file = create("forked.h5", &set);
    memset(value, 7, sizeof value);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        h5_write_all(set, H5_UINT8, 0, value, NULL);
        h5_add_group(file, "/of-the-child", NULL);
        _exit(h5_close(file, NULL) != SR_OK);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    memset(value, 5, sizeof value);
    check_ok(h5_write_all(set, H5_UINT8, 0, value, &why), &why);
    h5_close_dataset(set);
    check_ok(h5_close(file, &why), &why);
    h5_id opened;
    check_ok(h5_open(sample_path("forked.h5"), H5_CLOSED, NULL, &opened, &why), &why);
    assert_false(h5_has(opened, "/of-the-child"));
    check_ok(h5_open_dataset(opened, "/numbers", -1, &set, &shape, NULL, &why), &why);
    check_ok(h5_read_all(set, H5_UINT8, 0, found, &why), &why);
    assert_memory_equal(found, value, sizeof value);
    h5_close_dataset(set);
    check_ok(h5_close(opened, &why), &why);
}

/* errno is 0 after an allocation failed. */
static void test_no_reason(void **state) {
    (void)state;
    static uint8_t value[3000];
    h5_id set;
    sr_failure why = {0};
    const h5_id file = create("reason.h5", &set);
    refuses = true;
    check_ok(h5_write_all(set, H5_UINT8, 0, value, &why), &why);
    assert_int_equal(h5_flush(file, &why), SR_MEMORY);
    refuses = false;
    check_failure(&why, SR_MEMORY, "write: ");
    h5_close_dataset(set);
    assert_int_equal(h5_close(file, NULL), SR_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_forked),
        cmocka_unit_test(test_no_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
