/* test_waiting.c -- no row waits longer than flush_seconds to be written. Cases: in the middle of a
 * step, around an evaluation, before a step expected to take as long as the last one. */
#include <math.h>
#include <time.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

static void wait_seconds(double seconds) {
    const struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&t, NULL);
}

static sr_recorder *begin(const char *path, double flush_seconds, int id[2]) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0, o.vectors_every = 1, o.flush_steps = 100000, o.flush_seconds = flush_seconds;
    sr_recorder *r = sample_begin(path, &o);
    id[0] = sr_declare_scalar(r, "own", "1", "of a site", SR_PER_SITE);
    id[1] = sr_declare_scalar(r, "own too", "1", "of a step", SR_PER_STEP);
    return r;
}

static void expect_rows(const char *path, int64_t steps, int64_t evals) {
    sr_runfile *f = sample_open(path);
    assert_int_equal(sr_run_get_info(f)->steps, steps);
    assert_int_equal(sr_run_get_info(f)->vectors, steps);
    assert_int_equal(sr_run_get_info(f)->evals, evals);
    if (steps > 0) sample_check(f, 1, 1);
    sr_run_close(f);
}

static void put_site(sr_recorder *r, int64_t step, int i) {
    double value[SAMPLE_WIDTH];
    sr_put_rows(r, i, sample_rows(step, i));
    for (int v = 0; v < SR_VECTOR_COUNT; v++) {
        if (!sample_puts(i, v)) continue;
        for (int64_t k = 0; k < sample_sites[i].width; k++) value[k] = sample_vector(step, i, v, k);
        sr_put_vector(r, i, (sr_vector)v, value);
    }
}

/* Like sample_step, with a pause of `pause` seconds in the middle. */
static void slow_step(sr_recorder *r, int64_t step, const int id[2], double pause) {
    const sr_step row = sample_row(step);
    sr_begin_step(r, step);
    sr_put_scalar(r, 3, SR_SCALAR_row_grad_var, (double)step);
    sr_put_scalar(r, 2, id[0], (double)step), sr_put_step_scalar(r, id[1], (double)step);
    for (int i = 0; i < SAMPLE_SITES; i++) {
        if (i == 2 && pause > 0) wait_seconds(pause);
        put_site(r, step, i);
    }
    check_ok(sr_end_step(r, &row), sr_failed(r));
}

/* Values of the current step are kept while earlier rows are written. */
static void test_in_a_step(void **state) {
    (void)state;
    sr_failure why = {0};
    int id[2];
    const char *path = sample_path("step.h5");
    sr_recorder *r = begin(path, 0.3, id);
    for (int64_t step = 1; step <= 3; step++) slow_step(r, step, id, 0);
    expect_rows(path, 0, 0);
    sr_begin_step(r, 4);
    put_site(r, 4, 0), sr_put_scalar(r, 2, id[0], 4), sr_put_step_scalar(r, id[1], 4);
    wait_seconds(0.4);
    expect_rows(path, 0, 0);
    put_site(r, 4, 1);
    expect_rows(path, 3, 0);
    put_site(r, 4, 2), put_site(r, 4, 3), sr_put_scalar(r, 3, SR_SCALAR_row_grad_var, 4);
    const sr_step row = sample_row(4);
    check_ok(sr_end_step(r, &row), sr_failed(r));
    for (int64_t step = 5; step <= 8; step++) slow_step(r, step, id, step == 6 ? 0.4 : 0);
    run_finish(r);
    check_ok(sr_run_check(path, &why), &why);
    expect_rows(path, 8, 0);
    sr_runfile *f = sample_open(path);
    float own[8];
    double too[8];
    check_ok(sr_run_scalar(f, "own", 2, 0, 8, own, &why), &why);
    check_ok(sr_run_step_reals(f, "own too", 0, 8, too, &why), &why);
    for (int i = 0; i < 8; i++) {
        check_equals(own[i], (float)(i + 1));
        check_equals(too[i], i + 1);
    }
    sr_run_close(f);
}

static void test_between_steps(void **state) {
    (void)state;
    int id[2];
    const char *path = sample_path("between.h5");
    sr_recorder *r = begin(path, 0.3, id);
    slow_step(r, 1, id, 0), wait_seconds(0.4);
    sr_begin_eval(r, 1, NAN); /* after a validation */
    expect_rows(path, 1, 0);
    sr_put_metric(r, "valid_nll", 1);
    wait_seconds(0.4);
    sr_end_eval(r);
    expect_rows(path, 1, 0); /* its wait has only started */
    wait_seconds(0.4);
    sr_begin_step(r, 2);
    sr_runfile *f = sample_open(path);
    assert_int_equal(sr_run_get_info(f)->evals, 1);
    sr_run_close(f);
    sr_abandon(r);
}

/* A step is expected to take as long as the last one. */
static void test_looks_ahead(void **state) {
    (void)state;
    int id[2];
    const char *path = sample_path("ahead.h5");
    sr_recorder *r = begin(path, 1, id);
    slow_step(r, 1, id, 0.1);
    expect_rows(path, 0, 0);
    slow_step(r, 2, id, 0.7);
    expect_rows(path, 2, 0);
    sr_abandon(r);
}

static void test_before_something_long(void **state) {
    (void)state;
    int id[2];
    const char *path = sample_path("long.h5");
    sr_recorder *r = begin(path, 1000, id);
    check_ok(sr_flush_rows(r), sr_failed(r)); /* no rows yet */
    for (int64_t step = 1; step <= 3; step++) slow_step(r, step, id, 0);
    expect_rows(path, 0, 0);
    check_ok(sr_flush_rows(r), sr_failed(r));
    expect_rows(path, 3, 0);
    sr_abandon(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_a_step),
        cmocka_unit_test(test_between_steps),
        cmocka_unit_test(test_looks_ahead),
        cmocka_unit_test(test_before_something_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
