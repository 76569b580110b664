/* test_sparse_runs.c -- runs with values at some steps only: sites that are recorded at every N-th
 * step, or first used late. Every step has a row of /vectors, NaN where nothing was put. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

enum { STEPS = 403, EVERY = 20, LATE = 301, WIDTH = 3, SPARSE = 0, LATER = 1 };

/* Site `sparse` is recorded at every `every`-th step, site `late` at every step from `late` on. */
typedef struct plan {
    const char *path;
    int every, late, broken; /* broken: the first step without a finite TID */
} plan;

/* mean: 1, 2, 3 ... at the recorded steps; gamma: the step. */
static void put_site(sr_recorder *r, int site, int step, double recorded, double tid) {
    double mean[WIDTH], variance[WIDTH], power[WIDTH], gamma[WIDTH], ones[WIDTH];
    for (int k = 0; k < WIDTH; k++) {
        mean[k] = recorded;
        variance[k] = 1 + k;
        power[k] = 1;
        gamma[k] = step;
        ones[k] = 1;
    }
    sr_put_rows(r, site, 32);
    sr_put_scalar(r, site, SR_SCALAR_samples, 2 + step % 7);
    sr_put_scalar(r, site, SR_SCALAR_padded, 0);
    sr_put_vector(r, site, SR_mu_B, mean);
    sr_put_vector(r, site, SR_sigma2_B, variance);
    sr_put_vector(r, site, SR_psi2_B, power);
    sr_put_vector(r, site, SR_gamma, gamma);
    sr_put_vector(r, site, SR_mu, ones);
    sr_put_vector(r, site, SR_sigma2, ones);
    sr_put_scalar(r, site, SR_SCALAR_tid_mean, tid);
    sr_put_scalar(r, site, SR_SCALAR_tid_var, 1);
}

static void write_run(const plan *p) {
    sr_options o = run_options();
    o.vectors_every = 1;
    sr_recorder *r = run_create(program_file(p->path), o);
    run_add_bn(r, "sparse", WIDTH, 1, 1e-5);
    run_add_bn(r, "late", WIDTH, 2, 1e-5);
    run_add_metrics(r);
    for (int step = 1; step <= STEPS; step++) {
        sr_begin_step(r, step);
        const double tid = step < p->broken ? step : NAN;
        if (step % p->every == 0) put_site(r, SPARSE, step, step / p->every, tid);
        if (step >= p->late) put_site(r, LATER, step, step - p->late + 1, tid);
        run_end_step(r, step);
    }
    run_put_eval(r, STEPS, 1, "valid_loss", 1.0);
    run_finish(r);
}

static int write_runs(void **state) {
    (void)state;
    write_run(&(plan){"some.h5", EVERY, LATE, STEPS + 1});
    write_run(&(plan){"rare.h5", 150, STEPS + 1, STEPS + 1});
    write_run(&(plan){"broken.h5", 150, STEPS + 1, 300});
    return 0;
}

/* -- which sites have a statistic ------------------------------------------------------------ */

static void check_sites(const char *command) {
    program_result r = program_run("%s", command);
    if (r.status != 0) fail_msg("%s: %s", command, r.err);
    assert_string_equal(r.err, "");
    assert_int_equal(table_rows(r.out), 2);
    check_text(&r, 0, "site", "sparse");
    check_text(&r, 1, "site", "late");
    check_cell(&r, 0, "nonfinite", STEPS - STEPS / EVERY);
    check_cell(&r, 1, "nonfinite", LATE - 1);
    program_free(&r);
}

/* The first value is far behind the first rows. */
static void late_values_are_found(void **state) {
    (void)state;
    check_sites("stat-tid some.h5 --burn-in 0 --stat total");
    check_sites("stat-scalar some.h5 --burn-in 0 --stat dist_mu_excess");
    check_sites("stat-tid some.h5 --burn-in 0 --stat mean --from vectors");
    check_sites("stat-features some.h5 --burn-in 0 --stat power");
}

/* -- the average passes rows without values -------------------------------------------------- */

/* The mean rises by 1 from one recorded step to the next. */
static void alpha_waits_at_unrecorded_steps(void **state) {
    (void)state;
    program_result r = program_run("stat-alpha some.h5 --stat mu --alpha 0 --burn-in 0");
    assert_string_equal(r.err, "");
    check_cell(&r, 0, "steps", STEPS);
    check_cell(&r, 0, "nonfinite", STEPS - STEPS / EVERY);
    check_cell(&r, 0, "median", 1 / sqrt(WIDTH));
    check_cell(&r, 0, "max", 1 / sqrt(WIDTH));
    check_cell(&r, 0, "spacing", EVERY);
    check_cell(&r, 1, "nonfinite", LATE - 1);
    check_cell(&r, 1, "max", 1 / sqrt(WIDTH));
    check_cell(&r, 1, "spacing", 1);
    program_free(&r);
}

/* 5 recorded steps are 100 steps of `sparse`. */
static void burn_in_counts_recorded_steps(void **state) {
    (void)state;
    program_result r = program_run("stat-alpha some.h5 --stat mu --alpha 0 --burn-in 5");
    check_cell(&r, 0, "steps", STEPS - 5 * EVERY);
    check_cell(&r, 1, "steps", STEPS - LATE + 1 - 5);
    check_cell(&r, 1, "nonfinite", 0);
    program_free(&r);
    r = program_run("stat-alpha some.h5 --stat mu --alpha 0 --burn-in 25 --site sparse");
    assert_int_equal(r.status, 2);
    assert_non_null(strstr(r.err, "some.h5 has 20 recorded steps"));
    program_free(&r);
}

/* -- first, middle and last ------------------------------------------------------------------ */

static void last_step_has_values(void **state) {
    (void)state;
    program_result r = program_run("stat-gamma some.h5");
    check_cell(&r, 0, "step", STEPS / EVERY * EVERY);
    check_cell(&r, 0, "nonfinite", 0);
    check_cell(&r, 1, "step", STEPS);
    program_free(&r);
    r = program_run("stat-features some.h5 --per-feature --stat gamma --step first,middle,last");
    const int want[] = {20, 200, 400, LATE, STEPS}; /* the first one of `late` is its middle, too */
    assert_int_equal(table_rows(r.out), 5 * WIDTH);
    for (int i = 0; i < 5; i++) check_cell(&r, i < 3 ? i : 3 * WIDTH + i - 3, "gamma", want[i]);
    program_free(&r);
}

/* -- running means of covariates ------------------------------------------------------------- */

/* The lengths of the batches between the recorded ones are unknown. Of `late` 44 steps are lost:
 * until 0.9^44 < 1 %. */
static void batchmix_needs_every_length(void **state) {
    (void)state;
    program_result r = program_run("stat-batchmix some.h5");
    assert_non_null(strstr(r.out, "length is not recorded at every step, as its running mean "
                                  "needs, at 1 of 2 sites (sparse)"));
    assert_int_equal(table_rows(r.out), 4);
    check_text(&r, 0, "site", "sparse");
    check_text(&r, 0, "part", "none");
    check_text(&r, 1, "site", "late");
    check_text(&r, 2, "part", "length");
    check_cell(&r, 2, "steps", STEPS - LATE + 1 - 44);
    program_free(&r);
}

/* -- the end of training --------------------------------------------------------------------- */

/* Steps 364 to 403 have no TID of `sparse`; the last one with it is 300. */
static void tid_of_the_last_step_with_it(void **state) {
    (void)state;
    program_result r = program_run("stat-table rare.h5 broken.h5 some.h5");
    assert_string_equal(r.err, "");
    check_cell(&r, 0, "tid_mean", 100 * 300);
    check_text(&r, 1, "tid_mean", "nan"); /* it was recorded, but is not finite */
    check_cell(&r, 2, "tid_mean", 100 * (364 + STEPS) / 2.0);
    assert_non_null(strstr(r.out, "at its last step with one"));
    assert_null(strstr(strstr(r.out, "# steps: some.h5"), "at its last step with one"));
    program_free(&r);
    r = program_run("stat-gap rare.h5");
    check_cell(&r, 0, "tid_mean", 100 * 300);
    check_text(&r, 0, "tid_from", "steps");
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_values_are_found),
        cmocka_unit_test(alpha_waits_at_unrecorded_steps),
        cmocka_unit_test(burn_in_counts_recorded_steps),
        cmocka_unit_test(last_step_has_values),
        cmocka_unit_test(batchmix_needs_every_length),
        cmocka_unit_test(tid_of_the_last_step_with_it),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
