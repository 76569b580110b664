/* test_steps.c -- which steps a summary uses: burn-in, halves, learning-rate phases; and the
 * interval of a median. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "statrec/runfile.h"
#include "testing/check.h"
#include "testing/programs.h"

enum { STEPS = 40 };

/* One rate for each step. */
typedef double rate_fn(int step);

static double milestones(int step) {
    return step <= 15 ? 0.1 : step <= 30 ? 0.01 : 0.001;
}
static double warm_up(int step) {
    return step <= 10 ? 0.1 * step : sqrt(10.0 / step);
}
/* Two passes per update; the second records the rate. */
static double every_second(int step) {
    return step % 2 ? NAN : step <= 20 ? 1 : 0.5;
}
static double constant(int step) {
    (void)step;
    return 3;
}

/* dist_mu of step t is t; alpha is the weight of the old running value. */
static void write_run(const char *path, double alpha, rate_fn *rate) {
    sr_recorder *r = run_create(program_file(path), run_options());
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "a",
                              .norm = "bn",
                              .kind = "conv",
                              .family = SR_FAMILY_SIGMA,
                              .width = 2,
                              .eps = 1e-5,
                              .alpha = alpha});
    run_add_ln(r, "b", 2, 1, 1e-5);
    for (int step = 1; step <= STEPS; step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 4);
        sr_put_scalar(r, 0, SR_SCALAR_dist_mu, step);
        sr_put_scalar(r, 1, SR_SCALAR_row_grad_var, step);
        sr_end_step(r, &(sr_step){.size = sizeof(sr_step), step, 10, step, 1, rate(step), 1});
    }
    run_finish(r);
}

static int write_runs(void **state) {
    (void)state;
    write_run("half.h5", 0.5, milestones);
    write_run("warm.h5", NAN, warm_up);
    write_run("second.h5", 0.5, every_second);
    write_run("never.h5", 1, constant);
    write_run("slow.h5", 0.95, constant);
    return 0;
}

/* The steps that the options keep: their number, median and largest value. */
static void expect_steps(const char *run, const char *options, int first, int last) {
    program_result r = program_run("stat-scalar %s --stat dist_mu %s", run, options);
    if (r.status != 0) fail_msg("%s %s: %s", run, options, r.err);
    check_cell(&r, 0, "steps", last - first + 1);
    check_cell(&r, 0, "median", (first + last) / 2.0);
    check_cell(&r, 0, "max", last);
    program_free(&r);
}

static void expect_refusal(const char *run, const char *options, const char *line) {
    program_result r = program_run("stat-scalar %s --stat dist_mu %s", run, options);
    if (r.status != 2 || !strstr(r.err, line) || r.out[0])
        fail_msg("%s %s: exit %d: %s", run, options, r.status, r.err);
    program_free(&r);
}

static void startup_follows_alpha(void **state) {
    (void)state;
    assert_int_equal(sr_startup_of(0.5), 7); /* 0.5^7 < 0.01 < 0.5^6 */
    assert_int_equal(sr_startup_of(0.1), 2); /* 0.1^2 is 0.01 */
    assert_int_equal(sr_startup_of(0.9), 44);
    assert_int_equal(sr_startup_of(0.95), 90);
    assert_int_equal(sr_startup_of(0), 1);
    assert_int_equal(sr_startup_of(1), 0);
    assert_int_equal(sr_startup_of(NAN), 0);
    expect_steps("half.h5", "", 8, STEPS);
    expect_steps("half.h5", "--burn-in 0", 1, STEPS);
    expect_steps("half.h5", "--burn-in 12", 13, STEPS);
    expect_steps("warm.h5", "", 1, STEPS);
    expect_steps("never.h5", "", 1, STEPS);
    expect_refusal("half.h5", "--burn-in few", "--burn-in: 'few' is not auto or a number");
    expect_refusal("half.h5", "--burn-in 40", "--burn-in 40: half.h5 has 40 steps");
    expect_refusal("half.h5", "--burn-in 20 --phase first-half",
                   "--burn-in 20: half.h5 has no later step in --phase first-half");
    expect_refusal("half.h5", "--burn-in -1", "--burn-in: '-1' is not auto or a number");
}

/* Every table reports the steps that it used. A run shorter than its burn-in has no steps left. */
static void tables_say_their_steps(void **state) {
    (void)state;
    program_result r = program_run("stat-scalar half.h5 slow.h5 --stat dist_mu");
    assert_non_null(strstr(r.out, "# steps: half.h5: 8 to 40 of 40; burn-in skipped: until step 7 "
                                  "running values hold over 1 % of initial ones"));
    assert_non_null(strstr(r.out, "# steps: slow.h5: none of 40; burn-in skipped: until step 90"));
    check_cell(&r, 1, "steps", 0);
    check_text(&r, 1, "median", "nan");
    program_free(&r);
    r = program_run("stat-scalar warm.h5 --stat rows");
    assert_non_null(strstr(r.out, "# steps: warm.h5: 1 to 40 of 40; no burn-in skipped: site a has "
                                  "no alpha (--burn-in N skips N steps)\n"));
    program_free(&r);
    r = program_run("statrec diagnose warm.h5");
    assert_non_null(strstr(r.out, "steps 1 to 40, no burn-in skipped (site a has no alpha)"));
    program_free(&r);
    r = program_run("stat-scalar warm.h5 --stat rows --phase second-half");
    assert_non_null(strstr(r.out, "# steps: warm.h5: 21 to 40 of 40; second half\n"));
    program_free(&r);
}

static void per_step_keeps_the_startup(void **state) {
    (void)state;
    const struct {
        const char *options;
        int rows;
    } of[] = {{"", 40}, {"--burn-in 5", 35}, {"--phase 2", 15}, {"--phase 2 --burn-in 20", 10}};
    for (int i = 0; i < 4; i++) {
        program_result r =
            program_run("stat-scalar half.h5 --stat dist_mu --per-step %s", of[i].options);
        assert_int_equal(table_rows(r.out), of[i].rows);
        program_free(&r);
    }
}

static void phases_of_the_learning_rate(void **state) {
    (void)state;
    expect_steps("half.h5", "--phase 1", 8, 15);
    expect_steps("half.h5", "--phase 2", 16, 30);
    expect_steps("half.h5", "--phase 3", 31, 40);
    expect_steps("half.h5", "--phase last", 31, 40);
    expect_steps("half.h5", "--phase 1 --burn-in 0", 1, 15);
    expect_steps("half.h5", "--phase first-half", 8, 20);
    expect_steps("half.h5", "--phase second-half", 21, 40);
    expect_steps("warm.h5", "--phase 1", 1, 10);
    expect_steps("warm.h5", "--phase 2", 11, 40);
    expect_steps("second.h5", "--phase 1 --burn-in 0", 1, 20);
    expect_steps("second.h5", "--phase 2", 21, 40);
    expect_steps("never.h5", "--phase 1", 1, 40);
    expect_refusal("half.h5", "--phase 4", "--phase 4: half.h5 has 3 phases");
    expect_refusal("half.h5", "--phase 0", "--phase: '0' is not all, first-half");
    expect_refusal("half.h5", "--phase late", "--phase: 'late' is not all, first-half");
    program_result r = program_run("stat-scalar half.h5 warm.h5 --stat rows --phase 1");
    assert_non_null(strstr(r.out, "phase 1 of 3, learning rate 0.1"));
    assert_non_null(strstr(r.out, "phase 1 of 2, learning rate rising from 0.1 to 1"));
    program_free(&r);
}

/* The other programs that summarise. */
static void other_programs(void **state) {
    (void)state;
    program_result r = program_run("stat-outlier half.h5 --stat dist_mu");
    check_cell(&r, 0, "median", 24);
    assert_non_null(strstr(r.out, "# steps: half.h5: 8 to 40 of 40"));
    program_free(&r);
    r = program_run("stat-outlier half.h5 --stat dist_mu --burn-in 0 --phase 2");
    check_cell(&r, 0, "median", 23);
    program_free(&r);
    r = program_run("stat-compare half.h5 second.h5 --stat dist_mu --phase second-half");
    check_text(&r, 0, "quantity", "median");
    check_cell(&r, 0, "value", 30.5);
    check_cell(&r, 0, "steps", 20);
    assert_non_null(strstr(r.out, "# steps: second.h5: 21 to 40 of 40; second half"));
    program_free(&r);
    r = program_run("stat-compare half.h5 second.h5 --stat dist_mu --burn-in 0");
    check_cell(&r, 0, "steps", 40);
    program_free(&r);
}

static int values_below(const double *value, int count, double limit) {
    int below = 0;
    for (int i = 0; i < count; i++) below += value[i] < limit;
    return below;
}

/* value [400]: each is a new draw, or repeated `repeat` times. Every `gap`-th step has no value; 0:
 * all have one. */
static void write_noise(const char *name, int repeat, int gap, double *value) {
    rng random = rng_create(5);
    sr_recorder *r = run_create(program_file(name), run_options());
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "a",
                              .norm = "bn",
                              .kind = "conv",
                              .family = SR_FAMILY_SIGMA,
                              .width = 2,
                              .eps = 1e-5,
                              .alpha = NAN});
    for (int step = 1, i = 0; i < 400; step++) {
        const bool missing = gap && step % gap == 0;
        if (!missing) value[i] = i % repeat ? value[i - 1] : 7 + rng_normal(&random);
        sr_begin_step(r, step);
        sr_put_scalar(r, 0, SR_SCALAR_dist_mu, missing ? NAN : value[i++]);
        run_end_step(r, step);
    }
    run_finish(r);
}

/* The interval of the median of 400 independent values reaches 1.96 sqrt(400)/2 = 19.6 ranks to
 * either side of the 200th. */
static void the_interval_of_a_median(void **state) {
    (void)state;
    double value[400];
    write_noise("noise.h5", 1, 0, value);
    program_result p = program_run("stat-scalar noise.h5 --stat dist_mu --intervals --burn-in 0");
    const int low = values_below(value, 400, table_real(p.out, 0, "median_low"));
    const int high = values_below(value, 400, table_real(p.out, 0, "median_high"));
    if (low < 174 || low > 187 || high < 213 || high > 226)
        fail_msg("the interval reaches from rank %d to %d, expected about 180 and 220", low, high);
    program_free(&p);
    p = program_run("stat-scalar noise.h5 --stat dist_mu");
    assert_null(table_cell(p.out, 0, "median_low"));
    program_free(&p);
}

/* Steps without a value are in no block. */
static void the_interval_beside_gaps(void **state) {
    (void)state;
    double value[400];
    write_noise("noise.h5", 1, 0, value);
    write_noise("gaps.h5", 1, 7, value);
    program_result whole =
        program_run("stat-scalar noise.h5 --stat dist_mu --intervals --burn-in 0");
    program_result gaps = program_run("stat-scalar gaps.h5 --stat dist_mu --intervals --burn-in 0");
    check_cell(&gaps, 0, "nonfinite", 66);
    check_cell(&gaps, 0, "median_low", table_real(whole.out, 0, "median_low"));
    check_cell(&gaps, 0, "median_high", table_real(whole.out, 0, "median_high"));
    program_free(&whole);
    program_free(&gaps);
}

/* With 20 independent values, each repeated 20 times, it reaches 20 * 1.96 sqrt(20)/2 = 88 ranks to
 * either side. */
static void blocks_are_as_long_as_the_dependence(void **state) {
    (void)state;
    double value[400];
    write_noise("slow.h5", 20, 0, value);
    program_result p = program_run("stat-scalar slow.h5 --stat dist_mu --intervals --burn-in 0");
    const int low = values_below(value, 400, table_real(p.out, 0, "median_low"));
    const int high = values_below(value, 400, table_real(p.out, 0, "median_high"));
    if (high - low < 100 || high - low > 260) fail_msg("%d ranks, expected about 176", high - low);
    program_free(&p);
}

/* Every step of the window is in exactly one of the equal parts; skipped steps are in none. */
static void parts_of_training(void **state) {
    (void)state;
    static const struct {
        const char *options;
        int first[4], last[4];
    } row[] = {{"--burn-in 0", {1, 15, 28}, {14, 27, 40}},
               {"--burn-in 10", {11, 21, 31}, {20, 30, 40}},
               {"--burn-in 0 --phase 5:10", {5, 7, 9}, {6, 8, 10}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        program_result r =
            program_run("stat-scalar half.h5 never.h5 --stat dist_mu --parts 3 %s", row[i].options);
        if (r.status != 0) fail_msg("%s: %s", row[i].options, r.err);
        for (int k = 0; k < 6; k++) {
            const int first = row[i].first[k % 3], last = row[i].last[k % 3];
            assert_string_equal(table_cell(r.out, k, "run"), k < 3 ? "half.h5" : "never.h5");
            check_cell(&r, k, "part", k % 3 + 1);
            check_cell(&r, k, "to", 100 * (k % 3 + 1) / 3.0);
            check_cell(&r, k, "steps", last - first + 1);
            check_cell(&r, k, "median", (first + last) / 2.0);
            check_cell(&r, k, "max", last);
        }
        program_free(&r);
    }
    program_result few =
        program_run("stat-scalar half.h5 --stat dist_mu --phase 9:10 --parts 4 --burn-in 0");
    static const int steps[] = {1, 0, 1, 0};
    for (int k = 0; k < 4; k++) check_cell(&few, k, "steps", steps[k]);
    program_free(&few);
    expect_refusal("half.h5", "--parts 2 --per-step", "--parts are summaries: not with --per-step");
    expect_refusal("half.h5", "--buckets 2", "--buckets goes with --per-step");
    expect_refusal("half.h5", "--parts 0", "parts");
    few = program_run("stat-scalar half.h5 --stat dist_mu");
    assert_null(table_cell(few.out, 0, "part"));
    program_free(&few);
}

/* A file may claim any step; sums of steps stay below 2^63. */
static void steps_have_a_bound(void **state) {
    (void)state;
    static const int64_t last[] = {(int64_t)1 << 53, ((int64_t)1 << 53) + 1, INT64_MAX - 1};
    for (int i = 0; i < 3; i++) {
        sr_recorder *r = run_create(program_file("far.h5"), run_options());
        run_add_ln(r, "b", 2, 0, 1e-5);
        for (int64_t step = last[i] - 3; step <= last[i]; step++) {
            sr_begin_step(r, step);
            sr_put_rows(r, 0, 4);
            sr_put_scalar(r, 0, SR_SCALAR_row_grad_var, 1);
            sr_end_step(r, &(sr_step){.size = sizeof(sr_step), step, 10, 1, 1, 0.1, 1});
        }
        run_finish(r);
        program_result p =
            program_run("stat-scalar far.h5 --stat row_grad_var --burn-in 0 --parts 3");
        const bool refused = strstr(p.err, "far.h5: its last step is ") != NULL;
        if (p.status != (i > 0) || refused != (i > 0)) fail_msg("%d: %s", p.status, p.err);
        for (int k = 0; k < 3 && i == 0; k++) check_cell(&p, k, "steps", k ? 1 : 2);
        program_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_have_a_bound),
                                       cmocka_unit_test(startup_follows_alpha),
                                       cmocka_unit_test(tables_say_their_steps),
                                       cmocka_unit_test(per_step_keeps_the_startup),
                                       cmocka_unit_test(phases_of_the_learning_rate),
                                       cmocka_unit_test(other_programs),
                                       cmocka_unit_test(parts_of_training),
                                       cmocka_unit_test(the_interval_of_a_median),
                                       cmocka_unit_test(the_interval_beside_gaps),
                                       cmocka_unit_test(blocks_are_as_long_as_the_dependence)};
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
