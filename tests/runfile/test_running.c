/* test_running.c -- running statistics that outlive the process: a stopped and resumed run equals
 * an uninterrupted one, bit by bit. */
#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/damage.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

/* Sites of all families with running statistics; `late` is observed from step LATE on, `still`
 * never. */
enum { SITES = 7, WIDTH = 4, ROWS = 8, LATE = 9, STEPS = 24 };

static const sr_site sites[SITES] = {
    {.name = "sigma", .family = SR_FAMILY_SIGMA, .alpha = 0.9},
    {.name = "psi", .family = SR_FAMILY_PSI, .alpha = 0.75},
    {.name = "pn", .family = SR_FAMILY_PN, .alpha = 0.9},
    {.name = "merged", .family = SR_FAMILY_PN, .alpha = 0.5, .repeat = SR_REPEAT_MERGE},
    {.name = "late", .family = SR_FAMILY_SIGMA, .alpha = 0.9},
    {.name = "still", .family = SR_FAMILY_SIGMA, .alpha = 0.9},
    {.name = "none", .family = SR_FAMILY_SIGMA, .alpha = NAN},
};

static sr_options options(void) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.vectors_every = 1, o.overhead = 0;
    return o;
}

static sr_recorder *create(const char *path, const sr_options *o) {
    sr_failure why = {0};
    sr_recorder *r = sr_create(path, o, &why);
    if (!r) fail_msg("%s", why.text);
    for (int i = 0; i < SITES; i++) {
        sr_site s = sites[i];
        s.size = sizeof s, s.width = WIDTH, s.depth = i, s.eps = 1e-5;
        sr_add_site(r, &s);
    }
    return r;
}

static void observe(sr_recorder *r, int site, int64_t step, int pass) {
    float x[ROWS * WIDTH], dy[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) {
        const double at = (double)(step * 100 + site * 10 + pass) + 0.37 * i;
        x[i] = (float)(2 * sin(at) + site), dy[i] = (float)cos(1.7 * at);
    }
    const sr_tensor forward = SR_INIT(sr_tensor, x, SR_FLOAT32, ROWS, WIDTH, 1, NULL, 0);
    const sr_tensor backward = SR_INIT(sr_tensor, dy, SR_FLOAT32, ROWS, WIDTH, 1, NULL, 0);
    sr_take_forward(r, site, &forward, NULL);
    sr_take_backward(r, site, &backward);
}

static void put_step(sr_recorder *r, int64_t step) {
    sr_begin_step(r, step);
    for (int i = 0; i < SITES; i++) {
        if (i == 5 || (i == 4 && step < LATE)) continue;
        observe(r, i, step, 0);
        if (sites[i].repeat == SR_REPEAT_MERGE) observe(r, i, step, 1);
    }
    sr_end_step(r, &SR_INIT(sr_step, .update = step));
}

static void put_steps(sr_recorder *r, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; step++) put_step(r, step);
    check_ok(sr_failed(r) ? sr_failed(r)->status : SR_OK, sr_failed(r));
}

static void close_run(sr_recorder *r) {
    run_finish(r);
}

/* Compares every vector and scalar of both, row by row; steps: in each. */
static void expect_equal(const char *path, const char *as, int64_t steps) {
    enum { ALL = SITES * WIDTH * STEPS };
    static float got[ALL], want[ALL];
    sr_failure why = {0};
    sr_runfile *f = sample_open(path), *g = sample_open(as);
    assert_int_equal(sr_run_get_info(f)->steps, steps);
    for (int v = 0; v < SR_VECTOR_COUNT; v++) {
        const char *name = sr_vector_name(v);
        check_ok(sr_run_vector(f, name, -1, 0, steps, got, &why), &why);
        check_ok(sr_run_vector(g, name, -1, 0, steps, want, &why), &why);
        if (memcmp(got, want, (size_t)steps * SITES * WIDTH * sizeof *got) != 0)
            fail_msg("%s: %s is not that of %s", path, name, as);
    }
    for (int k = 0; k < SR_SCALAR_COUNT; k++) {
        const char *name = sr_scalar_name(k);
        check_ok(sr_run_scalar(f, name, -1, 0, steps, got, &why), &why);
        check_ok(sr_run_scalar(g, name, -1, 0, steps, want, &why), &why);
        if (memcmp(got, want, (size_t)steps * SITES * sizeof *got) != 0)
            fail_msg("%s: %s is not that of %s", path, name, as);
    }
    sr_run_close(f), sr_run_close(g);
}

static int make_whole(void **state) {
    (void)state;
    sr_options o = options();
    sr_recorder *r = create(sample_path("whole.h5"), &o);
    put_steps(r, 1, STEPS);
    close_run(r);
    return 0;
}

/* Resumes `path` after `step`, in place, to the end. Returns the step of its running statistics. */
static int64_t go_on(const char *path, int64_t step, bool running) {
    sr_options o = options();
    sr_recovery count = SR_INIT(sr_recovery, .running_step = 77);
    o.resume = true, o.running = running;
    sr_recorder *r = create(path, &o);
    check_ok(sr_copy_rows(r, path, step, step, &count), sr_failed(r));
    assert_int_equal(count.steps, step);
    put_steps(r, step + 1, STEPS);
    close_run(r);
    return count.running_step;
}

static void test_goes_on(void **state) {
    (void)state;
    static const int64_t stops[] = {1, 8, 9, 17, 23};
    const char *path = sample_path("stopped.h5");
    for (int i = 0; i < 10; i++) {
        const int64_t stop = stops[i % 5];
        sr_options o = options();
        sr_recorder *r = create(path, &o);
        put_steps(r, 1, stop);
        check_ok(sr_flush(r), sr_failed(r));
        if (i < 5) { /* and ran on, without a trace of it */
            put_steps(r, stop + 1, stop + 1);
            sr_abandon(r);
        } else {
            close_run(r);
        }
        assert_int_equal(go_on(path, stop, true), stop);
        expect_equal(path, sample_path("whole.h5"), STEPS);
        sr_failure why = {0};
        check_ok(sr_run_check(path, &why), &why);
        unlink(path);
    }
}

/* Wall time continues from the copied rows, not from the start of the new process. */
static void test_wall_time(void **state) {
    (void)state;
    enum { STOP = 4, END = 6 };
    const char *path = sample_path("clock.h5");
    double seconds[END];
    sr_failure why = {0};
    sr_options o = options();
    o.started = (double)time(NULL) - 1000;
    sr_recorder *r = create(path, &o);
    put_steps(r, 1, STOP);
    close_run(r);
    o.started = 0, o.resume = true;
    r = create(path, &o);
    check_ok(sr_copy_rows(r, path, STOP, STOP, NULL), sr_failed(r));
    put_steps(r, STOP + 1, END);
    close_run(r);
    sr_runfile *f = sample_open(path);
    check_ok(sr_run_step_reals(f, "seconds", 0, END, seconds, &why), &why);
    for (int i = 0; i < END; i++) assert_true(seconds[i] >= (i ? seconds[i - 1] : 999));
    sr_run_close(f);
    unlink(path);
}

/* Resumes twice, the second time from a row that the first resumption copied. */
static void test_goes_on_twice(void **state) {
    (void)state;
    const char *path = sample_path("twice.h5");
    sr_options o = options();
    sr_recorder *r = create(path, &o);
    for (int64_t step = 1; step <= 12; step++) put_steps(r, step, step), sr_flush(r);
    close_run(r);
    sr_recovery count = SR_INIT(sr_recovery, .steps = 0);
    o.resume = true;
    r = create(path, &o);
    check_ok(sr_copy_rows(r, path, 12, 12, &count), sr_failed(r));
    assert_int_equal(count.running_step, 12);
    for (int64_t step = 13; step <= 14; step++) put_steps(r, step, step), sr_flush(r);
    close_run(r);
    /* 7 .. 14 are the last ones; they overwrite earlier ones, the oldest first */
    r = create(path, &o);
    check_ok(sr_copy_rows(r, path, 6, 6, &count), sr_failed(r));
    assert_int_equal(count.running_step, -1);
    sr_abandon(r);
    assert_int_equal(go_on(path, 7, true), 7);
    expect_equal(path, sample_path("whole.h5"), STEPS);
    unlink(path);
}

static void test_kept(void **state) {
    (void)state;
    const char *path = sample_path("kept.h5");
    sr_recovery count = SR_INIT(sr_recovery, .steps = 0);
    sr_options o = options();
    sr_recorder *r = create(path, &o);
    for (int64_t step = 1; step <= 20; step++) {
        put_steps(r, step, step);
        if (step % 2) continue;
        check_ok(sr_flush(r), sr_failed(r));
        check_ok(sr_flush(r), sr_failed(r)); /* once is enough */
    }
    put_steps(r, 21, 21);
    sr_begin_step(r, 30); /* its values are not yet written */
    observe(r, 0, 30, 0);
    check_ok(sr_flush(r), sr_failed(r));
    close_run(r);
    for (int64_t step = 1; step <= 21; step++) {
        o.force = true;
        r = create(sample_path("copy.h5"), &o);
        check_ok(sr_copy_rows(r, path, step, step, &count), sr_failed(r));
        assert_int_equal(count.running_step, step < 8 ? -1 : step == 21 ? 21 : step / 2 * 2);
        sr_abandon(r);
    }
    unlink(path), unlink(sample_path("copy.h5.part"));
}

/* A recovered run has exactly the kept statistics. */
static void test_recovered(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery count = SR_INIT(sr_recovery, .steps = 0);
    sr_options o = options();
    o.flush_steps = 1, o.sync = SR_SYNC_CLOSE;
    const char *path = sample_path("broken.h5"), *to = sample_path("mended.h5");
    sr_recorder *r = create(path, &o);
    put_steps(r, 1, 10);
    check_ok(sr_flush(r), sr_failed(r));
    put_steps(r, 11, 14);
    sr_abandon(r);
    check_ok(sr_run_recover(sample_path("broken.h5.part"), to, true, -1, &count, &why), &why);
    assert_int_equal(count.steps, 14);
    assert_int_equal(count.running_step, 10);
    assert_int_equal(go_on(to, 10, true), 10);
    expect_equal(to, sample_path("whole.h5"), STEPS);
    /* again, from the recovered file at a step without kept statistics */
    unlink(to);
    check_ok(sr_run_recover(sample_path("broken.h5.part"), to, true, -1, &count, &why), &why);
    r = create(sample_path("copy.h5"), &o);
    check_ok(sr_copy_rows(r, to, 14, 14, &count), sr_failed(r));
    assert_int_equal(count.running_step, 10);
    sr_abandon(r);
    unlink(to), unlink(sample_path("broken.h5.part"));
}

static void test_not_wanted(void **state) {
    (void)state;
    const char *path = sample_path("without.h5");
    sr_options o = options();
    o.running = false;
    sr_recorder *r = create(path, &o);
    put_steps(r, 1, 10);
    close_run(r);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_int_equal(H5Lexists(file, "/running", H5P_DEFAULT), 0);
    H5Fclose(file);
    assert_int_equal(go_on(path, 10, true), -1); /* without running statistics */
    unlink(path);
    o.running = true;
    r = create(path, &o);
    put_steps(r, 1, 10);
    close_run(r);
    assert_int_equal(go_on(path, 10, false), 10); /* resumes there, and keeps no statistics */
    expect_equal(path, sample_path("whole.h5"), STEPS);
    assert_int_equal(go_on(path, 10, true), -1);
    unlink(path);
}

/* A feature's value may be NaN; a site that was never observed is different. */
static void test_nan(void **state) {
    (void)state;
    const char *paths[] = {sample_path("nan.h5"), sample_path("nan2.h5")};
    for (int stops = 0; stops < 2; stops++) {
        sr_options o = options();
        float x[ROWS * WIDTH] = {NAN, 1, 2, 3};
        const sr_tensor t = SR_INIT(sr_tensor, x, SR_FLOAT32, ROWS, WIDTH, 1, NULL, 0);
        sr_recorder *r = create(paths[stops], &o);
        put_steps(r, 1, 3);
        sr_begin_step(r, 4);
        for (int i = 0; i < 3; i++) sr_take_forward(r, i, &t, NULL), sr_take_backward(r, i, &t);
        sr_end_step(r, &SR_INIT(sr_step, .update = 4));
        if (!stops) put_steps(r, 5, STEPS);
        close_run(r);
        if (stops) assert_int_equal(go_on(paths[1], 4, true), 4);
    }
    expect_equal(paths[1], paths[0], STEPS);
}

/* -- damage ---------------------------------------------------------------------------------- */

static void told(void *context, const char *dataset, int64_t rows, const char *reason) {
    (void)rows, (void)reason;
    *(int *)context += strncmp(dataset, "/running/", 9) == 0;
}

static void spoil(const char *path, const char *dataset) {
    const hsize_t three = 3;
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &three, NULL);
    assert_true(H5Ldelete(file, dataset, H5P_DEFAULT) >= 0);
    hid_t set =
        H5Dcreate2(file, dataset, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set), H5Sclose(space), H5Fclose(file);
}

static void test_damage(void **state) {
    (void)state;
    static const char *const datasets[] = {"/running/step", "/running/mu", "/running/nu"};
    const char *path = sample_path("damaged.h5"), *to = sample_path("mended.h5");
    for (int i = 0; i < 3; i++) {
        sr_options o = options();
        sr_failure why = {0};
        sr_recovery count = SR_INIT(sr_recovery, .steps = 0);
        int lost = 0;
        o.force = true;
        sr_recorder *r = create(path, &o);
        put_steps(r, 1, STEPS);
        close_run(r);
        spoil(path, datasets[i]);
        assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
        check_failure(&why, SR_FORMAT, datasets[i]);
        why = (sr_failure){0};
        check_ok(sr_run_recover_report(path, to, true, -1, &count, told, &lost, &why), &why);
        assert_int_equal(count.running_step, -1);
        assert_true(count.steps == STEPS && lost > 0);
        expect_equal(path, sample_path("whole.h5"), STEPS);
        expect_equal(to, sample_path("whole.h5"), STEPS);
        unlink(to);
        r = create(sample_path("copy.h5"), &o);
        check_ok(sr_copy_rows(r, path, -1, -1, &count), sr_failed(r));
        assert_int_equal(count.running_step, -1);
        sr_abandon(r);
    }
}

/* Returns the last nonzero number of /running/mu. */
static double last_value(const char *path) {
    static double all[1 << 12];
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, "/running/mu", H5P_DEFAULT), space = H5Dget_space(set);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    hssize_t i = count;
    assert_in_range(count, 1, sizeof all / sizeof *all);
    assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
    H5Sclose(space), H5Dclose(set), H5Fclose(file);
    while (i > 0 && !(fabs(all[i - 1]) > 0)) i--;
    assert_true(i > 0);
    return all[i - 1];
}

/* A row has damaged values: an older one is used. */
static void test_unreadable_row(void **state) {
    (void)state;
    const char *path = sample_path("flipped.h5"), *to = sample_path("mended.h5");
    sr_options o = options();
    sr_failure why = {0};
    sr_recovery count = SR_INIT(sr_recovery, .steps = 0);
    int lost = 0;
    size_t size, at = 0;
    o.force = true;
    sr_recorder *r = create(path, &o);
    put_steps(r, 1, STEPS / 2);
    check_ok(sr_flush(r), sr_failed(r));
    put_steps(r, STEPS / 2 + 1, STEPS);
    close_run(r);
    const double value = last_value(path);
    char *bytes = damage_load(path, &size);
    while (at + sizeof value <= size && memcmp(bytes + at, &value, sizeof value) != 0) at++;
    assert_true(at + sizeof value <= size);
    bytes[at] ^= 4;
    damage_store(path, bytes, size);
    free(bytes);
    check_ok(sr_run_recover_report(path, to, true, -1, &count, told, &lost, &why), &why);
    assert_true(count.steps == STEPS && lost > 0);
    assert_int_equal(count.running_step, STEPS / 2);
}

/* -- killed ---------------------------------------------------------------------------------- */

enum { WIDE = 60000 };

/* Sums that make every running statistic equal the step: alpha 0 keeps only the last batch. */
static void write_for_ever(const char *path) {
    static double value[WIDE];
    sr_options o = options();
    o.vectors = false;
    sr_recorder *r = sr_create(path, &o, NULL);
    int site =
        sr_add_site(r, &SR_INIT(sr_site, .name = "s", .family = SR_FAMILY_SIGMA, .width = WIDE));
    for (int64_t step = 1; step < 1000000; step++) {
        for (int k = 0; k < WIDE; k++) value[k] = (double)step;
        sr_begin_step(r, step);
        sr_put_forward(r, site, &SR_INIT(sr_forward, 5, 0, 0, value, value, value));
        sr_end_step(r, &SR_INIT(sr_step, .update = step));
        if (sr_flush(r) != SR_OK) _exit(1);
    }
    _exit(0);
}

/* Checks that rows with a step are complete; returns their number. */
static int check_rows(const char *path) {
    static double value[SR_RUNNING_KEPT][WIDE];
    static const char *const names[] = {"/running/mu", "/running/sigma2", "/running/psi2"};
    int64_t step[SR_RUNNING_KEPT];
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, H5P_DEFAULT);
    hid_t set = file < 0 ? -1 : H5Dopen2(file, "/running/step", H5P_DEFAULT);
    if (file < 0 || set < 0) return -1;
    hid_t space = H5Dget_space(set);
    const int count = (int)H5Sget_simple_extent_npoints(space);
    assert_true(count <= SR_RUNNING_KEPT);
    assert_true(H5Dread(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, step) >= 0);
    H5Dclose(set), H5Sclose(space);
    for (int i = 0; i < 3; i++) {
        memset(value, 0, sizeof value);
        set = H5Dopen2(file, names[i], H5P_DEFAULT);
        assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
        H5Dclose(set);
        for (int row = 0; row < count; row++)
            for (int k = 0; k < WIDE && step[row] >= 0; k++)
                if (value[row][k] != (double)step[row])
                    fail_msg("%s: row of step %d holds %g", names[i], (int)step[row],
                             value[row][k]);
    }
    H5Fclose(file);
    return count;
}

static void test_killed(void **state) {
    (void)state;
    const char *path = sample_path("killed.h5"), *part = sample_path("killed.h5.part");
    int full = 0;
    for (int i = 0; i < 24 || (i < 400 && full < 4); i++) {
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) write_for_ever(path);
        const long us = 20000 + 2371 * i;
        nanosleep(&(struct timespec){0, us * 1000}, NULL);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        if (access(part, F_OK) == 0) full += check_rows(part) == SR_RUNNING_KEPT;
        unlink(part);
    }
    printf("killed: %d with all rows in use\n", full);
    assert_true(full > 0);
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* many flushes */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_wall_time),
        cmocka_unit_test(test_goes_on_twice),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_recovered),
        cmocka_unit_test(test_not_wanted),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_unreadable_row),
        cmocka_unit_test(test_killed),
    };
    return cmocka_run_group_tests(tests, make_whole, NULL);
}
