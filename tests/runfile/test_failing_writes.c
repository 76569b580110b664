/* test_failing_writes.c -- a run file is recorded and resumed while one call fails: an allocation,
 * a system call or an HDF5 call. The remaining file is right or rejected; a success gives the same
 * file as without the failure. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "failing_readings.h"
#include "testing/failing_deeds.h"
#include "testing/sample_run.h"

enum { RESUMED = 12 };

static const run_shape resumed_shape = {RESUMED + 1, READINGS_STEPS, 77, "1", true};

static sr_recorder *begin(const char *path, bool resume, const run_shape *shape, int id[2],
                          sr_failure *why) {
    sr_options o = copied_options();
    o.force = !resume, o.resume = resume, o.flush_steps = 4, o.started = 0;
    sr_recorder *r = sample_create(path, &o, why);
    if (r) copied_declare(r, shape, id);
    return r;
}

static sr_status end(sr_recorder *r, const run_shape *shape, const int id[2], sr_failure *why) {
    const sr_finish complete = SR_INIT(sr_finish, .status = "complete", .reason = "by test");
    copied_put(r, shape, id);
    return sr_close(r, &complete, why);
}

static sr_status record(sr_failure *why) {
    int id[2];
    sr_recorder *r = begin(sample_path("x.h5"), false, &readings_shape, id, why);
    return r ? end(r, &readings_shape, id, why) : why->status;
}

static sr_status resume(sr_failure *why) {
    int id[2];
    sr_recorder *r = begin(sample_path("resumed.h5"), true, &resumed_shape, id, why);
    if (!r) return why->status;
    sr_copy_rows(r, sample_path("resumed.h5"), RESUMED, RESUMED, NULL);
    return end(r, &resumed_shape, id, why);
}

static void look_at_record(const char *after, sr_status status) {
    readings_look("x.h5", after, status == SR_OK, "complete");
}

/* The earlier file stays until the new one is complete. */
static void look_at_resumed(const char *after, sr_status status) {
    readings_look("resumed.h5", after, status == SR_OK, "complete");
}

static void prepare(void) {
    char command[1200];
    snprintf(command, sizeof command, "rm -f '%s'* '%s'* && cp '%s' '%s'", sample_path("x.h5"),
             sample_path("resumed.h5"), sample_path("whole.h5"), sample_path("resumed.h5"));
    assert_int_equal(system(command), 0);
}

static const deed recording = {"record", record, look_at_record, prepare, "x.h5", true},
                  resuming = {"resume", resume, look_at_resumed, prepare, "resumed.h5", true};

static void test_allocations(void **state) {
    (void)state;
    deed_fail_each(&recording, FAILING_ALLOCATIONS);
    deed_fail_each(&resuming, FAILING_ALLOCATIONS);
}

static void test_system(void **state) {
    (void)state;
    deed_fail_each(&recording, FAILING_SYSTEM);
    deed_fail_each(&resuming, FAILING_SYSTEM);
}

static void test_hdf5(void **state) {
    (void)state;
    deed_fail_each(&recording, FAILING_HDF5);
    deed_fail_each(&resuming, FAILING_HDF5);
}

/* One call site reads all datasets, so more of its calls fail. A failed read must not leave rows
 * out of the file that replaces the old one. */
static void test_reads(void **state) {
    (void)state;
    enum { TRIED = 96 };
    long call[TRIED];
    sr_failure why = {0};
    prepare();
    failing_begin(FAILING_SYSTEM, 0);
    check_ok(resume(&why), &why);
    failing_end();
    const long made = failing_made;
    assert_true(made > TRIED);
    for (int i = 0; i < TRIED; i++) call[i] = 1 + i * made / TRIED;
    for (int i = 0; i < TRIED; i += DEEDS_TOGETHER)
        assert_true(deed_fail_some(&resuming, FAILING_SYSTEM, call + i, DEEDS_TOGETHER));
}

static int make_files(void **state) {
    (void)state;
    copied_write("whole.h5", &readings_shape);
    return 0;
}

int main(void) {
    /* hundreds of files, each with an fsync: in memory if possible */
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_hdf5),
        cmocka_unit_test(test_reads),
    };
    return cmocka_run_group_tests(tests, make_files, NULL);
}
