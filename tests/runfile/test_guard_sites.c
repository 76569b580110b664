/* test_guard_sites.c -- many sites: work for one site does not depend on their number. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "testing/bounded.h"
#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { SITES = 100000, WIDTH = 2, STEPS = 3 };

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put_step(sr_recorder *r, int64_t step) {
    const double value[WIDTH] = {1, 2};
    assert_int_equal(sr_begin_step(r, step), SR_OK);
    for (int i = 0; i < SITES; i++) {
        sr_put_rows(r, i, 4 + i % 7 + (int)step);
        sr_put_vector(r, i, SR_mu_B, value);
        sr_put_vector(r, i, SR_mu, value);
        sr_put_vector(r, i, SR_sigma2, value);
    }
    const sr_step row = sample_row(step);
    assert_int_equal(sr_end_step(r, &row), SR_OK);
}

static void record(const char *path) {
    sr_options o = SR_OPTIONS_DEFAULT;
    sr_failure why = {0};
    o.overhead = 0, o.planned_steps = STEPS, o.force = true;
    sr_recorder *r = run_create(path, o);
    for (int i = 0; i < SITES; i++) {
        char name[SR_NAME_SIZE];
        snprintf(name, sizeof name, "block.%d.norm", i);
        const sr_site s = {.size = sizeof s,
                           .name = name,
                           .norm = "bn",
                           .kind = "conv",
                           .family = SR_FAMILY_SIGMA,
                           .width = WIDTH,
                           .depth = i,
                           .eps = 1e-5,
                           .alpha = 0.9};
        if (sr_add_site(r, &s) != i) fail_msg("%s", sr_failed(r)->text);
    }
    const sr_site again = {
        .size = sizeof again, .name = "block.77777.norm", .width = 1, .norm = "bn"};
    for (int step = 1; step <= STEPS; step++) put_step(r, step);
    run_finish(r);
    r = sr_create(path, &o, &why);
    assert_int_equal(sr_add_site(r, &again), 0);
    assert_int_equal(sr_add_site(r, &again), -1);
    check_failure(sr_failed(r), SR_USAGE, "block.77777.norm declared twice");
    sr_abandon(r);
}

/* Finds every site by its name and reads its values in three columns, site after site. */
static void test_sites(void **state) {
    (void)state;
    const char *path = sample_path("sites.h5");
    const double start = seconds();
    record(path);
    sr_runfile *f = sample_open(path);
    for (int i = 0; i < SITES; i++) {
        char name[SR_NAME_SIZE];
        float rows[STEPS], none[STEPS], distance[STEPS];
        snprintf(name, sizeof name, "block.%d.norm", i);
        assert_int_equal(sr_run_find_site(f, name), i);
        check_ok(sr_run_scalar(f, "rows", i, 0, STEPS, rows, NULL), &(sr_failure){0});
        check_ok(sr_run_scalar(f, "dist_mu", i, 0, STEPS, distance, NULL), &(sr_failure){0});
        check_ok(sr_run_scalar(f, "g_mu", i, 1, STEPS - 1, none, NULL), &(sr_failure){0});
        for (int k = 0; k < STEPS; k++)
            if (rows[k] != (float)(4 + i % 7 + k + 1) || distance[k] != 0 ||
                (k > 0 && none[k - 1] == none[k - 1]))
                fail_msg("site %d, step %d: %g %g", i, k + 1, rows[k], distance[k]);
    }
    sr_run_close(f);
    if (seconds() - start > 10) fail_msg("%g seconds", seconds() - start);
}

static void test_programs(void **state) {
    (void)state;
    static const char *const programs[] = {"statrec info FILE",
                                           "statrec check FILE",
                                           "statrec recover FILE -o OUT.h5",
                                           "statrec copy FILE -o FEW.h5 --site *1.norm",
                                           "statrec export FILE -o OUT.npz",
                                           "stat-distance FILE",
                                           "stat-compare FILE FILE --groups none",
                                           "stat-batchmix FILE --burn-in 0"};
    const char *path = sample_path("sites.h5");
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        bounded_result r = bounded_run(programs[i], path);
        if (r.signal) fail_msg("%s: signal %d", programs[i], r.signal);
        if (r.status != 0) fail_msg("%s: %s", programs[i], r.text);
        if (r.memory > bounded_memory(path))
            fail_msg("%s: %lld bytes", programs[i], (long long)r.memory);
        bounded_free(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sites),
                                       cmocka_unit_test(test_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
