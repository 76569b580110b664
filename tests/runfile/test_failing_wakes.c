/* test_failing_wakes.c -- most of many open files are closed for now; one is read again while one
 * call fails. The value is right or fails with a reason, and the next read of the file succeeds. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "copied_run.h"
#include "testing/failing_deeds.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { BESIDE = 32 };

static double loss, singular[SAMPLE_EMBEDDING];
static char definition[256];

/* Reads from the file; returns the first failure. */
static sr_status ask(const sr_runfile *f, sr_failure *why) {
    int64_t step;
    sr_failure own[2] = {{0}, {0}};
    loss = singular[0] = -1;
    snprintf(definition, sizeof definition, "%s", sr_run_definition(f, "steps/loss"));
    sr_run_singular_values(f, "shared", 1, &step, singular, &own[0]);
    sr_run_step_reals(f, "loss", 2, 1, &loss, &own[1]);
    for (int i = 0; i < 2 && why->status == SR_OK; i++) *why = own[i];
    return why->status;
}

static void expect_right(const char *after, sr_status status) {
    if (status != SR_OK) return;
    if (loss != sample_row(3).loss || singular[0] != 14 || !strstr(definition, "loss"))
        complain(after, "%g, %g, '%s'", loss, singular[0], definition);
}

/* Failures are not injected while the files are opened. */
static sr_status wake(sr_failure *why) {
    sr_runfile *f, *beside[BESIDE];
    sr_failure again = {0};
    failing_watches = false;
    f = sr_run_open_beside(sample_path("first.h5"), NULL, why);
    if (!f) complain("open", "%s", why->text);
    for (int i = 0; i < BESIDE; i++)
        if (!(beside[i] = sr_run_open_beside(sample_path("beside.h5"), f, why)))
            complain("open", "%s", why->text);
    failing_watches = true;
    const sr_status status = ask(f, why);
    failing_watches = false;
    if (ask(f, &again) != SR_OK) complain("again", "%s", again.text);
    expect_right("again", SR_OK);
    for (int i = 0; i < BESIDE; i++) sr_run_close(beside[i]);
    failing_watches = true;
    sr_run_close(f);
    return status;
}

static const deed waking = {"read what was closed", wake, NULL, NULL, ".h5", false};

static void test_allocations(void **state) {
    (void)state;
    deed_fail_all(&waking, FAILING_ALLOCATIONS);
}

static void test_system(void **state) {
    (void)state;
    deed_fail_each(&waking, FAILING_SYSTEM);
}

static void test_hdf5(void **state) {
    (void)state;
    static const char *const functions[] = {"H5Fopen", "H5Dopen2", "H5Aopen_by_name", "H5Pcreate"};
    for (int i = 0; i < 4; i++) {
        failing_only = functions[i];
        deed_fail_all(&waking, FAILING_HDF5);
    }
    failing_only = NULL;
}

static int write_runs(void **state) {
    (void)state;
    sr_options o = run_options();
    o.overhead = 0;
    sr_recorder *r = sample_begin(sample_path("first.h5"), &o);
    check_ok(sample_steps(r, 1, 6, 2), sr_failed(r));
    run_finish(r);
    r = run_create(sample_path("beside.h5"), o);
    run_put_step(r, 1);
    run_finish(r);
    return 0;
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_allocations),
                                       cmocka_unit_test(test_system), cmocka_unit_test(test_hdf5)};
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
