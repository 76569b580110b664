/* test_growing_names.c -- a file being written belongs to its writer. No other process replaces it,
 * and the writer notices when it is gone. The host's use of HDF5 is left alone. */
#include <errno.h>
#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

static const sr_finish complete = {sizeof(sr_finish), "complete", "", ""};

static const char *part_of(const char *path) {
    char name[64];
    snprintf(name, sizeof name, "%s.part", strrchr(path, '/') + 1);
    return sample_path(name);
}

static sr_options defaults(void) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0, o.flush_steps = 4, o.flush_seconds = 1000;
    o.sync = SR_SYNC_NONE; /* a slow disk would space flushes */
    return o;
}

/* -- another writer's file ------------------------------------------------------------------- */

static void expect_refused(const char *path, bool force, bool resume) {
    sr_failure why = {0};
    sr_options o = defaults();
    o.force = force, o.resume = resume;
    check_failure((sr_check_path(path, force, &why), &why), SR_EXISTS,
                  "another run is writing this file");
    why = (sr_failure){0};
    assert_null(sample_create(path, &o, &why));
    check_failure(&why, SR_EXISTS, "another run is writing this file");
}

static void test_force(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = defaults();
    const char *path = sample_path("force.h5"), *other = sample_path("other.h5");
    sr_recorder *r = sample_begin(path, &o);
    expect_refused(path, true, false), expect_refused(path, false, false);
    check_ok(sample_steps(r, 1, 10, 0), sr_failed(r));
    expect_refused(path, true, false), expect_refused(path, true, true);
    sr_recorder *source = sample_begin(other, &o);
    check_ok(sample_steps(source, 1, 10, 0), sr_failed(source));
    check_ok(sr_close(source, &complete, &why), &why);
    assert_int_equal(sr_run_recover(other, path, true, -1, NULL, &why), SR_EXISTS);
    why = (sr_failure){0};
    check_ok(sample_steps(r, 11, 20, 0), sr_failed(r));
    run_finish(r);
    check_ok(sr_run_check(path, &why), &why);
    sr_runfile *f = sample_open(path);
    assert_int_equal(sr_run_get_info(f)->steps, 20);
    sr_run_close(f);
}

/* A file is free at once if its writer was killed, gave up, or could not write. */
static void test_force_on_dead(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = defaults();
    const char *path = sample_path("dead.h5");
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        sr_recorder *r = sample_create(path, &o, &why);
        sample_steps(r, 1, 10, 0);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(access(part_of(path), F_OK), 0);
    o.force = true;
    sr_recorder *r = sample_begin(path, &o);
    check_ok(sample_steps(r, 1, 10, 0), sr_failed(r));
    sr_abandon(r);
    r = sample_begin(path, &o);
    check_ok(sample_steps(r, 1, 10, 0), sr_failed(r));
    assert_int_equal(unlink(part_of(path)), 0);
    assert_int_equal(sr_flush(r), SR_IO);
    sr_recorder *next = sample_begin(path, &o);
    check_ok(sample_steps(next, 1, 10, 0), sr_failed(next));
    assert_int_equal(sr_close(r, &complete, &why), SR_IO);
    why = (sr_failure){0};
    check_ok(sr_close(next, &complete, &why), &why);
    check_ok(sr_run_check(path, &why), &why);
}

/* -- a file that vanishes -------------------------------------------------------------------- */

static void expect_vanished(sr_recorder *r, const char *what) {
    sr_failure why = {0};
    sr_status status = SR_OK;
    for (int64_t step = 11; step <= 15 && status == SR_OK; step++) status = sample_step(r, step);
    assert_non_null(sr_failed(r)); /* at the next flush */
    check_failure(sr_failed(r), SR_IO, what);
    assert_int_equal(sr_close(r, &complete, &why), SR_IO);
}

static void test_vanished(void **state) {
    (void)state;
    sr_options o = defaults();
    const char *path = sample_path("gone.h5"), *part = part_of(path);
    for (int replaced = 0; replaced < 2; replaced++) {
        sr_recorder *r = sample_begin(path, &o);
        check_ok(sample_steps(r, 1, 10, 0), sr_failed(r));
        assert_int_equal(unlink(part), 0);
        FILE *other = replaced ? fopen(part, "w") : NULL;
        if (other) fclose(other);
        expect_vanished(r, "removed or replaced while recording");
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(access(part, F_OK), replaced ? 0 : -1); /* another process's file stays */
        unlink(part);
    }
    char inside[600];
    const char *folder = sample_path("folder"), *moved = sample_path("moved");
    mkdir(folder, 0777);
    snprintf(inside, sizeof inside, "%s/run.h5", folder);
    sr_recorder *r = sample_begin(inside, &o);
    check_ok(sample_steps(r, 1, 10, 0), sr_failed(r));
    assert_int_equal(rename(folder, moved), 0);
    expect_vanished(r, "moved or replaced while recording");
    snprintf(inside, sizeof inside, "%s/run.h5.part", moved);
    sr_runfile *f = sample_open(inside);
    assert_true(sr_run_get_info(f)->steps >= 12); /* flushed rows are in the moved file */
    sr_run_close(f);
}

/* A host may change its directory for a while. */
static void test_elsewhere(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = defaults();
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(check_temporary()), 0);
    sr_recorder *r = sample_begin("relative.h5", &o);
    assert_int_equal(chdir("/"), 0);
    check_ok(sample_steps(r, 1, 20, 0), sr_failed(r));
    assert_int_equal(chdir(check_temporary()), 0);
    run_finish(r);
    check_ok(sr_run_check("relative.h5", &why), &why);
    assert_int_equal(chdir(here), 0);
}

/* -- the host's HDF5 ------------------------------------------------------------------------- */

/* A host that leaves closing its own file to the library's exit handler. */
static void leave_open(const char *host, const char *path) {
    sr_failure why = {0};
    sr_options o = defaults();
    const hsize_t size = 3;
    const double value[3] = {1, 2, 3};
    sr_recorder *r = sample_create(path, &o, &why); /* HDF5's first use in this process */
    hid_t file = H5Fcreate(host, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &size, NULL);
    hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value);
    sample_steps(r, 1, 10, 0);
    if (sr_close(r, &complete, &why) != SR_OK) _exit(1);
    exit(0);
}

static void test_host_file(void **state) {
    (void)state;
    /* not check_temporary: the child that exits would remove it */
    char folder[] = "/tmp/statrec-live-XXXXXX", host[64], path[64];
    double value[3] = {0};
    int status = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(host, sizeof host, "%s/host.h5", folder);
    snprintf(path, sizeof path, "%s/run.h5", folder);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) leave_open(host, path);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    hid_t file = H5Fopen(host, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    hid_t set = H5Dopen2(file, "x", H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value);
    check_equals(value[0], 1);
    check_equals(value[1], 2);
    check_equals(value[2], 3);
    H5Dclose(set), H5Fclose(file);
    unlink(host), unlink(path), rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_file), /* first: HDF5 is not yet in use */
        cmocka_unit_test(test_force),     cmocka_unit_test(test_force_on_dead),
        cmocka_unit_test(test_vanished),  cmocka_unit_test(test_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
