/* test_depth.c -- steps and missing values of stat-depth, and the median of /steps/tokens. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/step_range.h"
#include "base/rng.h"
#include "base/sort.h"
#include "testing/check.h"
#include "testing/programs.h"

enum { STEPS = 800, TEST_SITES = 2, WIDTH = 3 };

static sr_recorder *create(const char *path) {
    sr_options o = run_options();
    o.vectors_every = 1;
    sr_recorder *to = run_create(path, o);
    for (int i = 0; i < TEST_SITES; i++) run_add_bn(to, i ? "late" : "early", WIDTH, i, 1e-2);
    return to;
}

/* The late site has no psi2_B and a variance of 2. At the early site a variance is infinite in step
 * 7 and a power in step 8. In steps 300 to 309 a mean is missing. */
static void put_site(sr_recorder *to, int site, int step, rng *r) {
    double mean[WIDTH], variance[WIDTH], power[WIDTH];
    for (int k = 0; k < WIDTH; k++) {
        mean[k] = rng_normal(r);
        variance[k] = site ? 2 : exp(3 * rng_normal(r));
        power[k] = mean[k] * mean[k] + variance[k];
    }
    if (!site && step == 7) variance[1] = INFINITY;
    if (!site && step == 8) power[1] = INFINITY;
    if (!site && step / 10 == 30) mean[0] = NAN;
    sr_put_rows(to, site, 2);
    sr_put_vector(to, site, SR_mu_B, mean);
    sr_put_vector(to, site, SR_sigma2_B, variance);
    if (!site) sr_put_vector(to, site, SR_psi2_B, power);
}

static void write_run(const char *path) {
    rng r = rng_create(1);
    sr_recorder *to = create(path);
    for (int step = 1; step <= STEPS; step++) {
        const sr_step row = {
            .size = sizeof(sr_step), step, (int64_t)rng_below(&r, 1000), step, 1, 1, 1};
        sr_begin_step(to, step);
        for (int i = 0; i < TEST_SITES; i++) put_site(to, i, step, &r);
        assert_int_equal(sr_end_step(to, &row), SR_OK);
    }
    run_finish(to);
}

static void rows_are_counted(void **state) {
    (void)state;
    write_run(program_file("long.h5"));
    program_result r = program_run("stat-depth long.h5");
    const int nonfinite[] = {2, 0, 10, 0, 0, 0, 0, 0}; /* [parts, sites] */
    for (int i = 0; i < 8; i++) {
        check_cell(&r, i, "steps", STEPS / 4);
        check_cell(&r, i, "nonfinite", nonfinite[i]);
    }
    assert_true(isnan(table_real(r.out, 1, "power")));
    check_cell(&r, 1, "variance", 2);
    check_cell(&r, 1, "largest", 2);
    program_free(&r);
    r = program_run("stat-depth long.h5 --parts 1000");
    assert_int_equal(table_rows(r.out), 2000); /* most parts have no step */
    program_free(&r);
    r = program_run("stat-depth long.h5 --phase 8:8 --parts 1");
    check_text(&r, 0, "mean_share", "nan"); /* not 0, some mean over infinity */
    program_free(&r);
}

static void tokens_have_a_median(void **state) {
    (void)state;
    static double tokens[STEPS];
    sr_failure why = {0};
    summary of;
    write_run(program_file("long.h5"));
    sr_runfile *run = sr_run_open(program_file("long.h5"), &why);
    assert_non_null(run);
    int64_t few, expected = 0;
    check_ok(run_tokens(run, &of, &few, &why), &why);
    check_ok(sr_run_step_reals(run, "tokens", 0, STEPS, tokens, &why), &why);
    sort_reals(tokens, STEPS);
    assert_int_equal(of.values, STEPS);
    check_equals(of.median, quantile_of_sorted(tokens, STEPS, 0.5));
    check_equals(of.min, tokens[0]);
    check_equals(of.max, tokens[STEPS - 1]);
    while (tokens[expected] < of.median / 2) expected++;
    assert_in_range(expected, 1, STEPS / 2 - 1); /* between half of the median and it, too */
    assert_int_equal(few, expected);
    sr_run_close(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_counted),
        cmocka_unit_test(tokens_have_a_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
