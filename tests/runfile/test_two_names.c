/* test_two_names.c -- a run file is PATH.part while it is written, and PATH afterwards. Tests
 * transient faults of a reader, and names that no file has. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runfile/read/file/read_growing.h"
#include "statrec/runfile.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/sample_run.h"

static bool retries(const char *path, const char *file, sr_status status, bool live, int attempts) {
    sr_failure why = {0};
    sr_fail(&why, status, "%s: truncated", file);
    return reader_retries(path, live, &why, attempts);
}

/* A fault is transient if the file has its other name now, since the rename may cause it. A fault
 * of the file under its current name is permanent. */
static void test_renamed(void **state) {
    (void)state;
    const char *path = sample_path("run.h5"), *part = sample_path("run.h5.part"),
               *other = sample_path("run.h5x");
    damage_store(path, "x", 1);
    assert_true(retries(path, part, SR_FORMAT, false, 0));
    assert_true(retries(part, part, SR_IO, false, 0));
    assert_true(retries(path, other, SR_FORMAT, false, 0));
    assert_false(retries(path, path, SR_FORMAT, false, 0));
    assert_false(retries(part, path, SR_FORMAT, false, 0));
    assert_int_equal(rename(path, part), 0);
    assert_true(retries(path, path, SR_FORMAT, false, 0));
    assert_false(retries(path, part, SR_FORMAT, false, 0));
    assert_int_equal(unlink(part), 0);
    assert_false(retries(path, part, SR_IO, false, 0)); /* it has neither name */
}

/* Out of memory is not transient, and the number of retries is limited. */
static void test_patience(void **state) {
    (void)state;
    const char *path = sample_path("run.h5");
    assert_true(retries(path, path, SR_FORMAT, true, 0));
    assert_false(retries(path, path, SR_MEMORY, true, 0));
    assert_false(retries(path, path, SR_USAGE, true, 0));
    assert_false(retries(path, path, SR_FORMAT, true, 7));
}

static void test_long_name(void **state) {
    (void)state;
    char path[PATH_MAX + 64];
    sr_failure why = {0};
    memset(path, 'x', sizeof path - 1), path[sizeof path - 1] = 0;
    assert_false(reader_is_live(path));
    assert_null(sr_run_open(path, &why));
    assert_int_equal(why.status, SR_IO);
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_renamed),
                                       cmocka_unit_test(test_patience),
                                       cmocka_unit_test(test_long_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
