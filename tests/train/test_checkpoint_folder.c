/* test_checkpoint_folder.c -- an unreadable folder of checkpoints is an error; a missing one has no
 * checkpoints. */
#include <stdio.h>

#include "testing/check.h"
#include "train/checkpoint/checkpoint.h"

static char unreadable[600], missing[600]; /* prefixes of checkpoints */

static void test_files(void **state) {
    (void)state;
    sr_status (*const each[])(const char *, sr_failure *) = {
        checkpoint_sweep, checkpoint_set_aside, checkpoint_put_back, checkpoint_drop_old};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        sr_failure why = {0}, none = {0};
        each[i](unreadable, &why);
        check_failure(&why, SR_IO, "file: Not a directory");
        check_ok(each[i](missing, &none), &none);
    }
}

static void test_list(void **state) {
    (void)state;
    int64_t *update;
    int count;
    sr_failure why = {0}, none = {0};
    checkpoint_list(unreadable, &update, &count, &why);
    check_failure(&why, SR_IO, "file: Not a directory");
    check_ok(checkpoint_list(missing, &update, &count, &none), &none);
    assert_int_equal(count, 0);
}

int main(void) {
    char file[600];
    snprintf(file, sizeof file, "%s/file", check_temporary());
    check_write(file, "no folder");
    snprintf(unreadable, sizeof unreadable, "%s/file/small", check_temporary());
    snprintf(missing, sizeof missing, "%s/nothing/small", check_temporary());
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
