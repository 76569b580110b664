/* test_burn_in.c -- a burn-in counts recorded steps, whatever their numbers. A host may number them
 * by tokens, with gaps, or not from 1. Only `statrec train` numbers passes. */
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

enum { STEPS = 40, BURN_IN = 7 /* of alpha 0.5 */ };

/* dist_mu of the n-th step, from 1, is n; its number is first + (n - 1) gap. */
static void write_run(const char *path, const char *program, int64_t first, int64_t gap) {
    sr_options o = run_options();
    o.program = program;
    sr_recorder *r = run_create(program_file(path), o);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "a",
                              .norm = "bn",
                              .family = SR_FAMILY_SIGMA,
                              .width = 2,
                              .eps = 1e-5,
                              .alpha = 0.5});
    for (int n = 1; n <= STEPS; n++) {
        const int64_t step = first + (n - 1) * gap;
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 4);
        sr_put_scalar(r, 0, SR_SCALAR_dist_mu, n);
        sr_put_scalar(r, 0, SR_SCALAR_tid_mean, n);
        sr_put_scalar(r, 0, SR_SCALAR_tid_var, n);
        sr_end_step(r, &(sr_step){.size = sizeof(sr_step), step, 10, 1, 1, 0.1, 1});
    }
    run_finish(r);
}

static int write_runs(void **state) {
    (void)state;
    write_run("tokens.h5", "test", 1000, 1000);
    write_run("late.h5", "test", 101, 1);
    write_run("plain.h5", "test", 1, 1);
    write_run("zero.h5", "test", 0, 1);
    write_run("later_part.h5", "statrec train", 101, 1);
    return 0;
}

/* Steps first to last, from 1, are used, and the line `# steps` has these words. */
static void expect_steps(const char *run, const char *options, int first, int last,
                         const char *words) {
    char line[256];
    program_result r = program_run("stat-scalar %s --stat dist_mu %s", run, options);
    if (r.status != 0) fail_msg("%s %s: %s", run, options, r.err);
    check_cell(&r, 0, "steps", last - first + 1);
    if (last >= first) check_cell(&r, 0, "median", (first + last) / 2.0);
    snprintf(line, sizeof line, "# steps: %s: %s", run, words);
    if (!strstr(r.out, line)) fail_msg("not \"%s\":\n%s", line, r.out);
    program_free(&r);
}

static void burn_in_counts_recorded_steps(void **state) {
    (void)state;
    expect_steps("tokens.h5", "", BURN_IN + 1, STEPS,
                 "7001 to 40000 of 40000; burn-in skipped: the first 7 recorded steps, until step "
                 "7000, in which running values may hold over 1 % of initial ones (--burn-in 0");
    expect_steps("late.h5", "", BURN_IN + 1, STEPS,
                 "108 to 140 of 140; burn-in skipped: the first 7 recorded steps, until step 107,");
    expect_steps("zero.h5", "", BURN_IN + 1, STEPS,
                 "7 to 39 of 39; burn-in skipped: the first 7 recorded steps, until step 6,");
    expect_steps("plain.h5", "", BURN_IN + 1, STEPS,
                 "8 to 40 of 40; burn-in skipped: until step 7 running values hold");
    expect_steps("tokens.h5", "--burn-in 12", 13, STEPS,
                 "12001 to 40000 of 40000; the first 12 left out (--burn-in)\n");
    expect_steps("tokens.h5", "--burn-in 0", 1, STEPS, "1000 to 40000 of 40000\n");
    expect_steps("tokens.h5", "--phase 9000:20000", 9, 20,
                 "9000 to 20000 of 40000; as asked for\n");
    expect_steps("zero.h5", "--burn-in 0 --parts 1", 1, STEPS, "0 to 39 of 39\n");
    program_result r = program_run("stat-scalar tokens.h5 --stat dist_mu --burn-in 40");
    assert_int_equal(r.status, 2);
    assert_non_null(strstr(r.err, "--burn-in 40: tokens.h5 has 40 steps"));
    program_free(&r);
}

/* A copy of later steps of a training: its burn-in is over. */
static void trainings_number_passes(void **state) {
    (void)state;
    expect_steps("later_part.h5", "", 1, STEPS, "101 to 140 of 140\n");
    expect_steps("later_part.h5", "--burn-in 12", 13, STEPS,
                 "113 to 140 of 140; the first 12 left out (--burn-in)\n");
}

/* No step lies in the first half of the numbers: the line says so. Parts are of recorded steps. */
static void numbers_from_a_later_one(void **state) {
    (void)state;
    expect_steps("late.h5", "--phase first-half", 1, 0, "none of 140; first half");
    program_result r = program_run("stat-scalar late.h5 --stat dist_mu --burn-in 0 --parts 4");
    for (int k = 0; k < 4; k++) check_cell(&r, k, "steps", STEPS / 4);
    program_free(&r);
}

/* Figures shade the same steps: 7 of 40. */
static void grey_ends_there(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = program_run("statplot tid tokens.h5 -o t.svg --keep 2>kept && "
                                   "d=$(sed -n 's/^statplot: kept //p' kept) && "
                                   "cat $d/* | grep 'run_startup.1. =' && rm -r $d");
    if (!strstr(r.out, "run_startup[1] = 17.5\n")) fail_msg("%s%s", r.out, r.err);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(burn_in_counts_recorded_steps),
        cmocka_unit_test(trainings_number_passes),
        cmocka_unit_test(numbers_from_a_later_one),
        cmocka_unit_test(grey_ends_there),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
