/* test_naming.c -- a finished run gets its name on file systems without hard links or without a
 * rename that never replaces. A file that appears meanwhile is not replaced. */
#define _GNU_SOURCE 1 /* RTLD_NEXT, renameat2 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/sample_run.h"

static int link_fails, renameat2_fails; /* calls fail with this errno; 0: they do not */
static const char *appears;             /* a file that another process creates meanwhile */

static void make_appearing(void) {
    if (appears) check_write(appears, "of another program\n");
    appears = NULL;
}

int link(const char *from, const char *to) {
    union {
        void *symbol;
        int (*call)(const char *, const char *);
    } original = {.symbol = dlsym(RTLD_NEXT, "link")};
    if (!link_fails) return original.call(from, to);
    errno = link_fails;
    return -1;
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    union {
        void *symbol;
        int (*call)(int, const char *, int, const char *, unsigned);
    } original = {.symbol = dlsym(RTLD_NEXT, "renameat2")};
    make_appearing();
    if (!renameat2_fails) return original.call(from_at, from, to_at, to, flags);
    errno = renameat2_fails;
    return -1;
}

static sr_recorder *begin(const char *path) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    sr_recorder *r = sample_begin(path, &o);
    check_ok(sample_steps(r, 1, 5, 0), sr_failed(r));
    return r;
}

static sr_status end(sr_recorder *r, sr_failure *why) {
    const sr_finish complete = {
        .size = sizeof(sr_finish), "complete", "", "0123456789abcdef0123456789abcdef"};
    return sr_close(r, &complete, why);
}

static void expect_whole(const char *path) {
    sr_runfile *f = sample_open(path);
    assert_string_equal(sr_run_get_info(f)->status, "complete");
    assert_int_equal(sr_run_get_info(f)->steps, 5);
    sr_run_close(f);
}

static const int reasons[][2] = {{0, 0}, {EPERM, 0}, {EPERM, EINVAL}, {EMLINK, ENOSYS}};
enum { REASONS = sizeof reasons / sizeof *reasons };

static void test_names(void **state) {
    (void)state;
    for (int i = 0; i < REASONS; i++) {
        char name[32];
        sr_failure why = {0};
        snprintf(name, sizeof name, "named%d.h5", i);
        const char *path = sample_path(name);
        sr_recorder *r = begin(path);
        link_fails = reasons[i][0], renameat2_fails = reasons[i][1];
        check_ok(end(r, &why), &why);
        link_fails = renameat2_fails = 0;
        expect_whole(path);
    }
}

static void test_one_that_appears(void **state) {
    (void)state;
    for (int i = 0; i < REASONS; i++) {
        char name[32], part[4200], text[64] = "";
        sr_failure why = {0};
        snprintf(name, sizeof name, "appears%d.h5", i);
        const char *path = sample_path(name);
        snprintf(part, sizeof part, "%s.part", path);
        sr_recorder *r = begin(path);
        link_fails = reasons[i][0], renameat2_fails = reasons[i][1];
        appears = path;
        if (!link_fails) make_appearing();
        assert_int_equal(end(r, &why), SR_EXISTS);
        link_fails = renameat2_fails = 0;
        check_failure(&why, SR_EXISTS, "appeared while recording; the run is in");
        expect_whole(part);
        FILE *f = fopen(path, "r");
        assert_true(f && fgets(text, sizeof text, f) && fclose(f) == 0);
        assert_string_equal(text, "of another program\n");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_one_that_appears),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
