/* test_old_names.c -- public names of version 0.1 still work. */
#include <stdlib.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/damage.h"
#include "testing/sample_run.h"

static int lost_datasets;

static void count_lost(void *context, const char *dataset, int64_t rows, const char *reason) {
    (void)context, (void)dataset, (void)rows, (void)reason;
    lost_datasets++;
}

static void count_fault(void *context, const sr_failure *fault) {
    *(int *)context += fault->status != SR_OK;
}

static void old_names(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = sample_path("old.h5"), *copy = sample_path("old_copy.h5");
    sr_tell_fn *tell = count_fault;
    size_t size;
    int faults = 0;
    damage_make_run(path, 50);
    sr_runfile *f = sample_open(path);
    assert_true(sr_run_has_sums(f));
    assert_null(sr_run_mended(f, 0));
    sr_run_close(f);
    char *bytes = damage_load(path, &size);
    bytes[9] ^= 1; /* in the superblock, which has a backup copy */
    damage_store(path, bytes, size);
    free(bytes);
    f = sample_open(path);
    assert_non_null(sr_run_mended(f, 0));
    assert_string_equal(sr_run_mended(f, 0), sr_run_repaired(f, 0));
    sr_run_close(f);
    assert_int_equal(sr_run_check_all(path, tell, &faults, &why), SR_FORMAT);
    assert_true(faults > 0);
    why = (sr_failure){0};
    check_ok(sr_run_recover_telling(path, copy, false, -1, NULL, count_lost, NULL, &why), &why);
    assert_int_equal(lost_datasets, 0);
    check_ok(sr_run_recover_telling(copy, path, true, -1, NULL, NULL, NULL, &why), &why);
    unlink(path), unlink(copy);
}

int main(void) {
    sr_own_process();
    const struct CMUnitTest tests[] = {cmocka_unit_test(old_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
