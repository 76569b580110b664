/* test_failing_close.c -- what close says of the bytes that were written, as on a network file
 * system: the run file does not get its name, and the recorder says why. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "copied_run.h"
#include "testing/check.h"
#include "testing/sample_run.h"

static const run_shape shape = {1, 8, 77, "1", true};
static const char *ending; /* of the path of the file whose close fails; NULL: none */
static int failed;

static bool is_of_ending(int fd) {
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    const size_t tail = strlen(ending);
    return length >= (ssize_t)tail && memcmp(path + length - tail, ending, tail) == 0;
}

/* Stands before the system's own. The descriptor is closed. */
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(run_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
