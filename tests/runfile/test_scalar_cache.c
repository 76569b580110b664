/* test_scalar_cache.c -- scalars of a run with many sites are read in blocks of neighbouring sites.
 * Each value belongs to its site and row, in any order of reads, and no failing call changes it. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <math.h>

#include "runfile/read/file/scalar_cache.h"
#include "statrec/runfile.h"
#include "testing/check.h"
#include "testing/failing_deeds.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { SITES = 1100, STEPS = 80 }; /* a block has 819 sites of all steps */

static double rows_of(int64_t step, int64_t site) {
    return (double)(1 + (step * 7919 + site * 104729) % 65521);
}

static void expect_values(const sr_runfile *f, int64_t site, int64_t first, int64_t count) {
    float value[STEPS];
    sr_failure why = {0};
    check_ok(sr_run_scalar(f, "rows", site, first, count, value, &why), &why);
    for (int64_t i = 0; i < count; i++) check_equals(value[i], rows_of(first + i + 1, site));
    check_ok(sr_run_scalar(f, "dx_norm", site, first, count, value, &why), &why);
    for (int64_t i = 0; i < count; i++) check_equals(value[i], 0.5 * rows_of(first + i + 1, site));
}

static void test_each_site(void **state) {
    (void)state;
    sr_runfile *f = sample_open(sample_path("wide.h5"));
    for (int64_t site = 0; site < SITES; site++) expect_values(f, site, 0, STEPS);
    sr_run_close(f);
}

/* Reads blocks of different rows and sites side by side, more than the cache keeps. */
static void test_any_order(void **state) {
    (void)state;
    sr_runfile *f = sample_open(sample_path("wide.h5"));
    uint32_t random = 1;
    for (int i = 0; i < 300; i++) {
        random = random * 1664525u + 1013904223u;
        const int64_t site = (int64_t)(random >> 8) % SITES, first = (random >> 20) % STEPS;
        expect_values(f, site, first, 1 + (int64_t)(random >> 12) % (STEPS - first));
    }
    for (int64_t site = SITES - 1; site >= 0; site -= 7) expect_values(f, site, 3, 5);
    expect_values(f, 5, 0, 10), expect_values(f, 4, 0, 10), expect_values(f, 5, 1, 10);
    expect_values(f, 5, 1, 9), expect_values(f, 0, 0, 0);
    sr_run_close(f);
}

/* Reads use the cache if one site fills at most half a block. Otherwise, and for few sites, each
 * site is read alone. */
static void test_limits(void **state) {
    (void)state;
    sr_runfile *wide = sample_open(sample_path("wide.h5")),
               *narrow = sample_open(sample_path("narrow.h5"));
    assert_true(scalar_cache_holds(wide, 1) && scalar_cache_holds(wide, 32768));
    assert_false(scalar_cache_holds(wide, 0) || scalar_cache_holds(wide, 32769));
    assert_false(scalar_cache_holds(narrow, 1));
    sr_run_close(wide), sr_run_close(narrow);
}

/* -- while a call fails ---------------------------------------------------------------------- */

static sr_status read_some(sr_failure *why) {
    static const int64_t site[] = {0, 1, 1000, 2};
    float value[STEPS];
    sr_runfile *f = sr_run_open(sample_path("wide.h5"), why);
    if (!f) return why->status;
    sr_status first = SR_OK;
    for (int i = 0; i < 4; i++) {
        sr_failure own = {0};
        const sr_status status = sr_run_scalar(f, "rows", site[i], 0, STEPS, value, &own);
        for (int k = 0; k < STEPS && status == SR_OK; k++)
            if (value[k] != (float)rows_of(k + 1, site[i])) complain("read", "another value");
        if (status != own.status) complain("read", "%d is not %d", status, own.status);
        if (first == SR_OK && status != SR_OK) first = status, *why = own;
    }
    sr_run_close(f);
    return first;
}

static void test_failing(void **state) {
    (void)state;
    static const deed reading = {"read bands", read_some, NULL, NULL, "wide.h5", false};
    deed_fail_each(&reading, FAILING_ALLOCATIONS);
    failing_only = "H5Dread";
    deed_fail_all(&reading, FAILING_HDF5);
    failing_only = NULL;
}

static void write_run(const char *name, int sites) {
    char site[16];
    sr_options o = run_options();
    o.vectors = false, o.overhead = 0;
    sr_recorder *r = run_create(sample_path(name), o);
    for (int i = 0; i < sites; i++) {
        snprintf(site, sizeof site, "s%d", i);
        sr_add_site(r, &SR_INIT(sr_site, .name = site, .family = SR_FAMILY_SIGMA, .width = 1));
    }
    for (int64_t step = 1; step <= STEPS; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < sites; i++) {
            sr_put_rows(r, i, (int64_t)rows_of(step, i));
            sr_put_scalar(r, i, SR_SCALAR_dx_norm, 0.5 * rows_of(step, i));
        }
        run_end_step(r, (int)step);
    }
    run_finish(r);
}

static int write_runs(void **state) {
    (void)state;
    write_run("wide.h5", SITES), write_run("narrow.h5", 3);
    return 0;
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_site), cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_failing)};
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
