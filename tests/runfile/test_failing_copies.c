/* test_failing_copies.c -- a run file is recovered and copied while one call fails: an allocation,
 * a system call or an HDF5 call. The new file is complete or absent; recover counts the rows that
 * it copied. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "failing_readings.h"
#include "testing/failing_deeds.h"
#include "testing/sample_run.h"

static sr_recovery recovered; /* result without a failure */
static sr_recovery now;
static int losses; /* datasets with reported losses */

static void note_loss(void *context, const char *dataset, int64_t rows, const char *reason) {
    (void)context, (void)rows;
    if (*dataset != '/' || strlen(reason) < 10) complain("recover", "'%s': '%s'", dataset, reason);
    losses++;
}

static sr_status recover(sr_failure *why) {
    losses = 0;
    now = (sr_recovery){.size = sizeof now};
    const sr_status status = sr_run_recover_report(sample_path("killed.h5"), sample_path("x.h5"),
                                                   true, -1, &now, note_loss, NULL, why);
    if (status == SR_OK && failing_at == 0) recovered = now;
    return status;
}

static sr_status copy(sr_failure *why) {
    char *const paths[] = {(char *)(uintptr_t)sample_path("first.h5"),
                           (char *)(uintptr_t)sample_path("second.h5")};
    run_copy_options o = copied_plain();
    run_copied count;
    o.anonymous = true;
    return run_copy(paths, 2, sample_path("x.h5"), &o, &count, why);
}

/* The file is complete, also if syncing its name failed; or it does not exist. */
static void look(const char *after, sr_status status, const char *wanted) {
    if (access(sample_path("x.h5.part"), F_OK) == 0) complain(after, "a part is left");
    if (status == SR_OK || access(sample_path("x.h5"), F_OK) == 0)
        readings_look("x.h5", after, true, wanted);
}

/* Unreadable data are left out, and counted or reported; all other data are copied. */
static void look_at_recovered(const char *after, sr_status status) {
    sr_failure why = {0};
    const bool same = memcmp(&now, &recovered, sizeof now) == 0;
    if (status != SR_OK || (same && losses == 0))
        return look(after, status, "interrupted, 16 steps readable: recovered from");
    if (sr_run_check(sample_path("x.h5"), &why) == SR_OK || !strstr(why.text, "interrupted, "))
        complain(after, "recovered: %s", why.text);
    if (losses && !strstr(why.text, "damaged dataset"))
        complain(after, "%d losses: %s", losses, why.text);
}

static void look_at_copy(const char *after, sr_status status) {
    look(after, status, "complete");
}

static void prepare(void) {
    unlink(sample_path("x.h5")), unlink(sample_path("x.h5.part"));
}

static const deed recovering = {"recover", recover, look_at_recovered, prepare, ".h5", true},
                  copying = {"copy", copy, look_at_copy, prepare, ".h5", true};

static void test_allocations(void **state) {
    (void)state;
    deed_fail_each(&recovering, FAILING_ALLOCATIONS);
    deed_fail_each(&copying, FAILING_ALLOCATIONS);
}

static void test_system(void **state) {
    (void)state;
    deed_fail_each(&recovering, FAILING_SYSTEM);
    deed_fail_each(&copying, FAILING_SYSTEM);
}

static void test_hdf5(void **state) {
    (void)state;
    deed_fail_each(&recovering, FAILING_HDF5);
    deed_fail_each(&copying, FAILING_HDF5);
}

static int make_files(void **state) {
    (void)state;
    const run_shape first = {1, READINGS_STEPS / 2, 77, "1", false},
                    second = {READINGS_STEPS / 2 + 1, READINGS_STEPS, 77, "1", true};
    copied_write("first.h5", &first), copied_write("second.h5", &second);
    sr_recorder *r = copied_begin("killed.h5", &readings_shape);
    check_ok(sr_flush(r), sr_failed(r));
    sr_abandon(r);
    return 0;
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_hdf5),
    };
    return cmocka_run_group_tests(tests, make_files, NULL);
}
