/* stat-batch and stat-compare: ratios and intervals that follow by hand, and planted differences.
 * Also how often an interval misses when no difference exists, with single runs and several
 * seeds. */
#include "testing/programs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "room.h"
#include "testing/check.h"

/* -- runs of chosen numbers ------------------------------------------------------------------ */

typedef double (*series_of)(int site, int step, double *state);

/* Attributes that identify replicates. */
typedef struct identity {
    const char *config;
    uint64_t seed;
} identity;

/* Sites NAME0, NAME1, ... at depth 1, 2, ...; row_grad_var from `value`, row_grad_mean always 2. */
static void write_run_of(const identity *who, const char *path, const char *name, int sites,
                         int steps, series_of value) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    sr_failure why = {0};
    double state[64] = {0};
    char site[64][16];
    o.program = "statrec train";
    o.version = "1";
    o.force = true;
    o.config = who->config;
    o.seed = who->seed;
    sr_recorder *r = sr_create(path, &o, &why);
    if (!r) fail_msg("%s", why.text);
    for (int i = 0; i < sites; i++) {
        snprintf(site[i], sizeof site[i], "%s%d", name, i);
        run_add_ln(r, site[i], 2, i + 1, 0);
    }
    for (int step = 1; step <= steps; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < sites; i++) {
            sr_put_scalar(r, i, SR_SCALAR_row_grad_mean, 2);
            sr_put_scalar(r, i, SR_SCALAR_row_grad_var, value(i, step, &state[i]));
        }
        const sr_step row = {.size = sizeof(sr_step), step, 1, step, 1, 0.1, 1};
        assert_int_equal(sr_end_step(r, &row), SR_OK);
    }
    const sr_finish f = {.size = sizeof(sr_finish), .status = "complete"};
    check_ok(sr_close(r, &f, &why), &why);
}

/* Site a0 without a value of any statistic. */
static void write_bare(const char *path) {
    sr_recorder *r = run_create(path, run_options());
    run_add_ln(r, "a0", 2, 1, 0);
    for (int step = 1; step <= 20; step++) {
        sr_begin_step(r, step);
        run_end_step(r, step);
    }
    run_finish(r);
}

static void write_run(const char *path, const char *name, int sites, int steps, series_of value) {
    write_run_of(&(identity){0}, path, name, sites, steps, value);
}

static double count_up(int site, int step, double *state) {
    (void)site;
    (void)state;
    return step;
}

static double three_times(int site, int step, double *state) {
    (void)site;
    (void)state;
    return 3 * step;
}

static double flat(int site, int step, double *state) {
    (void)site;
    (void)step;
    (void)state;
    return 1;
}

static double three_spikes(int site, int step, double *state) {
    (void)site;
    (void)state;
    return step % 7 == 0 && step <= 21 ? 5 : 1;
}

static uint32_t random_state = 1;

static double uniform(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return (double)(random_state >> 8) / 16777216.0;
}

/* exp of a first-order autoregression, correlation 0.9 from step to step. */
static double correlated(int site, int step, double *state) {
    (void)site;
    double noise = 0;
    for (int i = 0; i < 6; i++) noise += uniform() - 0.5;
    *state = step == 1 ? 2.294 * noise * 1.414 : 0.9 * *state + noise * 1.414;
    return exp(0.3 * *state);
}

static double correlated_larger(int site, int step, double *state) {
    return 2 * correlated(site, step, state);
}

static double holes(int site, int step, double *state) {
    (void)site;
    (void)state;
    return step <= 2 ? NAN : step;
}

static double scale = 1;

static double scaled_up(int site, int step, double *state) {
    return scale * count_up(site, step, state);
}

/* Every site has its own level, and other seeds have others. The logarithm has standard deviation
 * 0.2, ten times the noise left by the steps of a run. */
static double seed_level(int site, int step, double *state) {
    (void)site;
    double noise = 0;
    for (int i = 0; i < 12; i++) noise += uniform() - 0.5;
    if (step == 1) *state = 0.2 * noise;
    return scale * exp(*state + 0.05 * (uniform() - 0.5));
}

enum { MANY = 40, STEPS = 1000, SEEDS = 3, SEED_STEPS = 60 };

static const char plain[] = "norm = ln\nlr = 0.1\nseed = 1\nthreads = 1\n";
static const char same_plain[] = "norm = ln\nlr = 0.1\nseed = 2\nthreads = 8\n";

/* PREFIX1.h5 .. PREFIX3.h5: three seeds of one configuration. */
static void write_seeds(const char *prefix, const char *config, double by, series_of value) {
    char name[32];
    for (int k = 1; k <= SEEDS; k++) {
        snprintf(name, sizeof name, "%s%d.h5", prefix, k);
        scale = value == scaled_up ? by * k : by;
        write_run_of(&(identity){config, (uint64_t)k}, program_file(name), "a",
                     value == scaled_up ? 1 : MANY, value == scaled_up ? 20 : SEED_STEPS, value);
    }
}

static int write_runs(void **state) {
    (void)state;
    write_run(program_file("up.h5"), "a", 2, 20, count_up);
    write_bare(program_file("bare.h5"));
    write_run(program_file("three.h5"), "a", 2, 20, three_times);
    write_run(program_file("other.h5"), "b", 3, 20, three_times);
    write_run(program_file("flat.h5"), "a", 1, 21, flat);
    write_run(program_file("spikes.h5"), "a", 1, 21, three_spikes);
    write_run(program_file("short.h5"), "a", 1, 19, count_up);
    write_run(program_file("holes.h5"), "a", 1, 22, holes);
    write_run(program_file("null1.h5"), "a", MANY, STEPS, correlated);
    write_run(program_file("null2.h5"), "a", MANY, STEPS, correlated);
    write_run(program_file("large.h5"), "a", MANY, STEPS, correlated_larger);
    write_seeds("fixed", plain, 1, scaled_up);
    write_seeds("double", "norm = ln\nlr = 0.2\n", 2, scaled_up);
    write_seeds("one", plain, 1, seed_level);
    write_seeds("two", "norm = ln\nlr = 0.2\n", 1, seed_level);
    write_seeds("four", "norm = ln\nlr = 0.4\n", 4, seed_level);
    scale = 2;
    write_run_of(&(identity){same_plain, 4}, program_file("fixed4.h5"), "a", 1, 20, scaled_up);
    write_run_of(&(identity){plain, 1}, program_file("again.h5"), "a", 1, 20, scaled_up);
    return 0;
}

/* 1 .. 20: median 10.5, 99 % quantile 19 + 0.81, maximum 20. With a block as long as the series,
 * every resample is a rotation. All have the same quantiles, so the interval is the ratio alone. */
static void test_by_hand(void **state) {
    (void)state;
    static const char *const quantity[] = {"median", "q99", "max"};
    static const double first[] = {10.5, 19.81, 20};
    program_result r = program_run("stat-compare up.h5 three.h5 --stat grad --block 20");
    assert_int_equal(r.status, 2); /* no such statistic */
    program_free(&r);
    r = program_run("stat-compare up.h5 three.h5 --stat row_grad_var,row_grad_mean --block 20");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 12);
    for (int i = 0; i < 3; i++) {
        check_text(&r, i, "site", "a0");
        check_text(&r, i, "quantity", quantity[i]);
        check_cell(&r, i, "first_value", first[i]);
        check_cell(&r, i, "value", 3 * first[i]);
        check_cell(&r, i, "ratio", 3);
        check_cell(&r, i, "low", 3);
        check_cell(&r, i, "high", 3);
        check_text(&r, i, "verdict", "larger in these runs");
        check_cell(&r, i, "runs", 1);
        check_cell(&r, i, "first_runs", 1);
        check_cell(&r, i + 3, "ratio", 1); /* row_grad_mean */
        check_text(&r, i + 3, "verdict", "no difference shown");
    }
    program_free(&r);
    r = program_run("stat-compare three.h5 up.h5 --stat row_grad_var --block 20");
    check_cell(&r, 0, "high", 1.0 / 3);
    check_text(&r, 0, "verdict", "smaller in these runs");
    program_free(&r);
}

/* Three of 21 values are 5, the others 1, drawn one by one. A resample misses all three with
 * probability (18/21)^21 = 0.039. So 1 is outside a 90 % interval of the maximum and inside a 95 %
 * one. A resample has median 5 if at least 11 of 21 are 5: practically never. */
static void test_interval_of_maximum(void **state) {
    (void)state;
    program_result r = program_run("stat-compare flat.h5 spikes.h5 --stat row_grad_var --block 1 "
                                   "--resamples 20000 --level 90");
    assert_int_equal(r.status, 0);
    check_cell(&r, 0, "low", 1);
    check_cell(&r, 0, "high", 1);
    check_text(&r, 0, "verdict", "no difference shown");
    check_cell(&r, 2, "ratio", 5);
    check_cell(&r, 2, "low", 5);
    check_cell(&r, 2, "high", 5);
    check_text(&r, 2, "verdict", "larger in these runs");
    program_free(&r);
    r = program_run("stat-compare flat.h5 spikes.h5 --stat row_grad_var --block 1 "
                    "--resamples 20000");
    check_cell(&r, 2, "low", 1);
    check_cell(&r, 2, "high", 5);
    check_text(&r, 2, "verdict", "no difference shown");
    program_free(&r);
}

static int count_verdicts(const program_result *r, const char *quantity, const char *verdict) {
    int count = 0;
    char cell[64];
    for (int i = 0; i < table_rows(r->out); i++) {
        snprintf(cell, sizeof cell, "%s", table_cell(r->out, i, "quantity"));
        if (strcmp(cell, quantity) != 0) continue;
        count += strcmp(table_cell(r->out, i, "verdict"), verdict) == 0;
    }
    return count;
}

/* 40 pairs of equal processes, correlation 0.9. A few of the 95 % intervals of the median may miss
 * 1. Blocks of single steps miss it far more often. A factor of 2 is detected. */
static void test_null_and_planted(void **state) {
    (void)state;
    program_result r = program_run("stat-compare null1.h5 null2.h5 --stat row_grad_var");
    assert_int_equal(r.status, 0);
    const int shown = MANY - count_verdicts(&r, "median", "no difference shown");
    assert_in_range(table_real(r.out, 0, "block"), 10, 100);
    assert_in_range(shown, 0, 6);
    program_free(&r);
    r = program_run("stat-compare null1.h5 null2.h5 --stat row_grad_var --block 1");
    assert_in_range(MANY - count_verdicts(&r, "median", "no difference shown"), 15, MANY);
    program_free(&r);
    r = program_run("stat-compare null1.h5 large.h5 --stat row_grad_var");
    assert_int_equal(count_verdicts(&r, "median", "larger in these runs"), MANY);
    program_free(&r);
}

/* -- several seeds --------------------------------------------------------------------------- */

/* Medians 10.5 (1, 2, 3) and 21 (1, 2, 3), blocks as long as the series. Three draws of three runs
 * give means of 1, 4/3, 5/3, 2, ... with 1, 3, 6, 7, ... chances in 27. Against one run, the 2.5 %
 * quantile of the mean is 1 and the 5 % quantile 4/3. Against three, ratios below 1/2 of the ratio
 * have (1 + 3 + 6 + 3)/729 = 1.8 %, and ratios up to 1/2 have 4 %, so the quantile is 1/2. The
 * widening by t = 4.302653 (two degrees of freedom) over z = 1.959964 and by sqrt(3/2) makes it
 * (1/2)^2.688633. */
static void test_groups_by_hand(void **state) {
    (void)state;
    const char *const rest = "--stat row_grad_var --block 20 --resamples 20000";
    program_result r = program_run("stat-compare up.h5 fixed[123].h5 %s", rest);
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 3);
    check_text(&r, 0, "run", "fixed1.h5");
    check_cell(&r, 0, "runs", 3);
    check_cell(&r, 0, "first_runs", 1);
    check_cell(&r, 0, "steps", 60);
    check_cell(&r, 0, "value", 21);
    check_cell(&r, 0, "ratio", 2);
    check_cell(&r, 0, "low", 1);
    check_cell(&r, 0, "high", 3);
    check_cell(&r, 2, "value", 40);
    check_text(&r, 0, "verdict", "no difference shown");
    assert_non_null(strstr(r.out, "# group: 3 runs of one configuration"));
    program_free(&r);
    r = program_run("stat-compare up.h5 fixed[123].h5 --level 90 %s", rest);
    check_cell(&r, 0, "low", 4.0 / 3);
    check_cell(&r, 0, "high", 8.0 / 3);
    check_text(&r, 0, "verdict", "larger in these runs");
    program_free(&r);
    r = program_run("stat-compare fixed[123].h5 double?.h5 %s", rest);
    const double widened = pow(2, 4.302653 / 1.959964 * sqrt(1.5));
    check_cell(&r, 0, "ratio", 2);
    check_cell(&r, 0, "low", 2 / widened);
    check_cell(&r, 0, "high", 2 * widened);
    check_text(&r, 0, "verdict", "no difference shown");
    assert_null(strstr(r.out, "where a side is one run"));
    program_free(&r);
}

static void write_signed(const char *path, double by) {
    sr_recorder *r = run_create(program_file(path), run_options());
    run_add_ln(r, "a0", 2, 1, 0);
    for (int step = 1; step <= 20; step++) {
        sr_begin_step(r, step);
        sr_put_scalar(r, 0, SR_SCALAR_row_grad_mean, by * (20 + step));
        run_end_step(r, step);
    }
    run_finish(r);
}

/* A ratio orders positive numbers alone: -2 is smaller than -1, and 1 is larger. */
static void test_signs(void **state) {
    (void)state;
    static const struct {
        double other, first;
        const char *verdict;
    } row[] = {{2, 1, "larger in these runs"}, {1, 2, "smaller in these runs"},
               {1, -1, "undefined"},           {-1, 1, "undefined"},
               {-2, -1, "undefined"},          {-1, -2, "undefined"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        write_signed("first.h5", row[i].first);
        write_signed("second.h5", row[i].other);
        program_result r = program_run("stat-compare first.h5 second.h5 --burn-in 0 --block 20 "
                                       "--stat row_grad_mean --groups none");
        assert_int_equal(r.status, 0);
        for (int k = 0; k < BOOTSTRAP_TAILS; k++) check_text(&r, k, "verdict", row[i].verdict);
        check_cell(&r, 0, "ratio", row[i].other / row[i].first);
        program_free(&r);
    }
}

/* A site that only the second run of the first group has, in either order. */
static void test_sites_of_the_group(void **state) {
    (void)state;
    const char *const other = "norm = ln\nlr = 0.2\n";
    scale = 1;
    write_run_of(&(identity){plain, 1}, program_file("ga1.h5"), "a", 1, 20, count_up);
    write_run_of(&(identity){plain, 2}, program_file("ga2.h5"), "a", 2, 20, count_up);
    write_run_of(&(identity){other, 1}, program_file("gb1.h5"), "a", 2, 20, three_times);
    write_run_of(&(identity){other, 2}, program_file("gb2.h5"), "a", 2, 20, three_times);
    for (int turn = 0; turn < 2; turn++) {
        program_result r = program_run("stat-compare ga%d.h5 ga%d.h5 gb1.h5 gb2.h5 --burn-in 0 "
                                       "--block 20 --stat row_grad_var",
                                       1 + turn, 2 - turn);
        assert_int_equal(r.status, 0);
        assert_int_equal(table_rows(r.out), 6);
        check_text(&r, 0, "first_site", "a0");
        check_cell(&r, 0, "first_runs", 2);
        check_text(&r, 3, "first_site", "a1");
        check_text(&r, 3, "first", "ga2.h5");
        check_cell(&r, 3, "first_runs", 1);
        check_cell(&r, 3, "runs", 2);
        check_cell(&r, 3, "ratio", 3);
        program_free(&r);
    }
}

/* The seeds differ more than the steps of a run. Compared run by run, nearly every site is larger
 * or smaller although the methods are equal. With three seeds a side, intervals miss 1 about as
 * often as their level allows, and they detect a factor of 4. */
static void test_seeds(void **state) {
    (void)state;
    program_result r = program_run("stat-compare one1.h5 two1.h5 --stat row_grad_var");
    assert_in_range(count_verdicts(&r, "median", "no difference shown"), 0, MANY / 4);
    assert_int_equal(count_verdicts(&r, "median", "larger"), 0);
    assert_int_equal(count_verdicts(&r, "median", "smaller"), 0);
    assert_non_null(strstr(r.out, "and no other seeds"));
    program_free(&r);
    r = program_run("stat-compare one?.h5 two?.h5 --stat row_grad_var");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 3 * MANY);
    assert_in_range(count_verdicts(&r, "median", "no difference shown"), MANY - 4, MANY);
    assert_in_range(count_verdicts(&r, "q99", "no difference shown"), MANY - 4, MANY);
    program_free(&r);
    r = program_run("stat-compare one?.h5 four?.h5 --stat row_grad_var");
    assert_in_range(count_verdicts(&r, "median", "larger"), MANY - 4, MANY);
    program_free(&r);
}

/* Runs with equal settings except seed and threads form a group. Runs with the same seed do not,
 * nor do runs without a configuration. Replicates alone are compared one by one. */
static void test_who_is_a_group(void **state) {
    (void)state;
    const char *const rest = "--stat row_grad_var --block 20";
    program_result r = program_run("stat-compare double1.h5 fixed1.h5 fixed4.h5 again.h5 %s", rest);
    assert_int_equal(table_rows(r.out), 6);
    check_text(&r, 0, "run", "fixed1.h5");
    check_cell(&r, 0, "runs", 2);
    check_cell(&r, 0, "value", 1.5 * 10.5);
    check_text(&r, 3, "run", "again.h5");
    check_cell(&r, 3, "runs", 1);
    program_free(&r);
    r = program_run("stat-compare up.h5 three.h5 fixed1.h5 --site a0 %s", rest);
    assert_int_equal(table_rows(r.out), 6);
    program_free(&r);
    r = program_run("stat-compare fixed1.h5 fixed2.h5 fixed3.h5 %s", rest);
    assert_int_equal(table_rows(r.out), 6);
    check_cell(&r, 0, "ratio", 2);
    check_text(&r, 0, "verdict", "larger in these runs");
    assert_non_null(strstr(r.out, "differences show the effect of a seed"));
    program_free(&r);
    r = program_run("stat-compare fixed1.h5 fixed2.h5 double1.h5 --groups none %s", rest);
    assert_int_equal(table_rows(r.out), 6);
    check_cell(&r, 0, "runs", 1);
    program_free(&r);
}

/* A single run of few blocks has intervals that are too short, and a line says so. */
static void test_few_blocks(void **state) {
    (void)state;
    static const char few[] = "# note: 3 of the intervals come from a single run of less than 20 ";
    const char *const command = "stat-compare up.h5 three.h5 --site a0 --stat row_grad_var --block";
    program_result r = program_run("%s 20", command);
    if (!strstr(r.out, few)) fail_msg("%s%s", r.out, r.err);
    program_free(&r);
    r = program_run("%s 1", command);
    assert_null(strstr(r.out, "of the intervals come"));
    program_free(&r);
    r = program_run("%s 20 --format json | python3 -m json.tool >/dev/null", command);
    assert_int_equal(r.status, 0);
    program_free(&r);
}

static void test_matching(void **state) {
    (void)state;
    program_result r = program_run("stat-compare up.h5 other.h5 --stat row_grad_var");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.out, "");
    assert_non_null(
        strstr(r.err, "no site has the same name in up.h5 (a0, a1) and in other.h5 (b0, "));
    assert_non_null(strstr(r.err, "--match depth, first or last"));
    program_free(&r);
    r = program_run("stat-compare bare.h5 up.h5 --stat row_grad_var");
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "bare.h5 shares no statistic with the others"));
    program_free(&r);
    r = program_run("stat-compare up.h5 other.h5 three.h5 --stat row_grad_var --match depth");
    assert_int_equal(table_rows(r.out), 12);
    check_text(&r, 0, "run", "other.h5");
    check_text(&r, 0, "site", "b0");
    check_text(&r, 3, "run", "three.h5");
    check_text(&r, 6, "first_site", "a1");
    check_text(&r, 6, "site", "b1");
    program_free(&r);
    r = program_run("stat-compare up.h5 other.h5 --stat row_grad_var --match last");
    assert_int_equal(table_rows(r.out), 3);
    check_text(&r, 0, "first_site", "a1");
    check_text(&r, 0, "site", "b2");
    program_free(&r);
    r = program_run("stat-compare up.h5 other.h5 --stat row_grad_var --match first");
    assert_int_equal(table_rows(r.out), 3);
    check_text(&r, 0, "site", "b0");
    program_free(&r);
}

static void test_repeatable(void **state) {
    (void)state;
    program_result r =
        program_run("c='stat-compare null1.h5 null2.h5 --stat row_grad_var --site a0'\n"
                    "$c >x1 && $c >x2 && cmp x1 x2 && $c --seed 2 | grep -v '^#' >x3\n"
                    "grep -v '^#' x1 | cmp -s - x3; echo $?\n"
                    "grep -c '^# seed: 1$' x1");
    assert_string_equal(r.out, "1\n1\n");
    program_free(&r);
}

/* 3 .. 22: NaN is counted and left out; after 50 % of 22 steps the values are 11 .. 22. */
static void test_too_few(void **state) {
    (void)state;
    program_result r = program_run("stat-compare short.h5 holes.h5 --stat row_grad_var");
    assert_int_equal(r.status, 0);
    check_cell(&r, 0, "steps", 20);
    check_cell(&r, 0, "nonfinite", 2);
    check_cell(&r, 0, "value", 12.5);
    check_cell(&r, 0, "first_steps", 19);
    check_text(&r, 0, "verdict", "too few steps");
    check_text(&r, 0, "low", "nan");
    program_free(&r);
    r = program_run("stat-compare holes.h5 holes.h5 --stat row_grad_var --after 50");
    check_cell(&r, 0, "steps", 12);
    check_cell(&r, 0, "value", 16.5);
    program_free(&r);
    r = program_run("stat-compare up.h5");
    assert_int_equal(r.status, 2);
    program_free(&r);
}

/* -- long series ----------------------------------------------------------------------------- */

enum { LONG_STEPS = 70000, LONG_SITES = 3 };

int stat_compare_main(int argc, char **argv);

static double drifting(int site, int step, double *state) {
    *state = 0.9 * (step == 1 ? 0 : *state) + uniform() - 0.5;
    return exp(*state) + site + (step > LONG_STEPS / 2);
}

/* Two runs of equal values are drawn independently; sites of one run share their draws. The
 * interval of a site does not depend on the other requested sites. */
static void test_long(void **state) {
    (void)state;
    write_run(program_file("long0.h5"), "a", LONG_SITES, LONG_STEPS, drifting);
    program_result r = program_run("cp long0.h5 long1.h5 && stat-compare long0.h5 long1.h5 "
                                   "--burn-in 0 --stat row_grad_var,row_grad_mean");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 6 * LONG_SITES);
    for (int i = 0; i < 6 * LONG_SITES; i += 6)
        for (int tail = 0; tail < 2; tail++) {
            assert_true(table_real(r.out, i + tail, "low") < 0.999999);
            assert_true(table_real(r.out, i + tail, "low") > 0.8);
            assert_true(table_real(r.out, i + tail, "high") > 1.000001);
            assert_true(table_real(r.out, i + tail, "high") < 1.25);
            check_cell(&r, i + 3 + tail, "low", 1); /* row_grad_mean is always 2 */
        }
    program_free(&r);
    r = program_run(
        "compare() { stat-compare long0.h5 long1.h5 --burn-in 0 \"$@\" | grep -v '^#'; }\n"
        "both=row_grad_mean,row_grad_var\n"
        "compare --stat $both | grep '\ta1\t.*\trow_grad_var\t' >all &&\n"
        "compare --site a1 --stat row_grad_var | tail -n +2 >one && cmp all one &&\n"
        "compare --stat $both --seed 2 | grep '\ta1\t.*\trow_grad_var\t' >other &&\n"
        "! cmp -s all other && wc -l <all");
    if (r.status || atoi(r.out) != 3) fail_msg("exit %d: %s%s", r.status, r.out, r.err);
    program_free(&r);
}

/* Series that do not fit into memory together are read in equal groups per statistic; against
 * all. */
static void test_some_at_a_time(void **state) {
    (void)state;
    char *first = strdup(program_file("long0.h5")), *other = strdup(program_file("null1.h5"));
    char *name = "stat-compare", *stat = "--stat", *both = "row_grad_var,row_grad_mean";
    char *match = "--match", *depth = "depth", *again = strdup(program_file("long1.h5"));
    for (int columns = 3; columns <= 12; columns += 3)
        expect_same_table(stat_compare_main, columns * 8 * LONG_STEPS,
                          (char *[]){name, first, again, other, stat, both, match, depth, NULL},
                          6 * LONG_SITES + 1);
    free(first), free(other), free(again);
}

/* 100,000 resamples let ten series into memory at once. The 24 sites take three turns, and each
 * turn has all rows in their order. */
static void test_turns(void **state) {
    (void)state;
    write_run(program_file("many0.h5"), "site", 24, 24, count_up);
    write_run(program_file("many1.h5"), "site", 24, 30, count_up);
    program_result r =
        program_run("compare() { stat-compare many0.h5 many1.h5 --burn-in 0 --stat row_grad_var "
                    "--resamples $1 | "
                    "grep -v '^#' | cut -f1-17; }; compare 100 >once; compare 100000 >turns; "
                    "cmp once turns && wc -l <turns");
    assert_string_equal(r.err, "");
    assert_int_equal(r.status, 0);
    assert_int_equal(atoi(r.out), 1 + 24 * 3);
    program_free(&r);
}

/* Runs as in test_analysis.c: five and six steps of ten tokens, evaluated once at valid_loss 2. The
 * size is the median of the tokens, since the runs have no configuration. */
static void test_batch(void **state) {
    (void)state;
    write_small_run(program_file("s5.h5"), 5, true);
    write_small_run(program_file("s6.h5"), 6, true);
    write_ln_run(program_file("ln.h5"));
    program_result r = program_run("stat-batch s6.h5 ln.h5 s5.h5 --metric valid_loss");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 1);
    check_text(&r, 0, "norm", "bn");
    check_cell(&r, 0, "micro_batch", 10);
    check_cell(&r, 0, "runs", 2);
    check_cell(&r, 0, "mean", 2);
    assert_non_null(strstr(r.out, "# note: ln.h5: no finite valid_loss: left out"));
    program_free(&r);
    r = program_run("stat-batch ln.h5");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.out, "");
    program_free(&r);
    r = program_run("stat-batch s5.h5 --metric loss");
    assert_int_equal(r.status, 2);
    program_free(&r);
    r = program_run(
        "cd \"$STATREC_SAMPLES\" && stat-batch nlp_ln.h5 nlp_ln_256.h5 nlp_bn.h5 nlp_bn_256.h5");
    assert_int_equal(table_rows(r.out), 4);
    check_text(&r, 0, "norm", "bn");
    check_cell(&r, 0, "micro_batch", 256);
    check_cell(&r, 1, "micro_batch", 1024);
    check_text(&r, 2, "norm", "ln");
    check_cell(&r, 2, "micro_batch", 256);
    assert_null(strstr(r.out, "# warning"));
    program_free(&r);
    r = program_run("cd \"$STATREC_SAMPLES\" && stat-batch nlp_bn_bucketed.h5 nlp_bn_random.h5");
    assert_int_equal(table_rows(r.out), 1);
    assert_non_null(strstr(r.out, "# warning: runs of a row differ beyond the seed"));
    program_free(&r);
    r = program_run("cd \"$STATREC_SAMPLES\" && stat-batch nlp_pn.h5"); /* after a layer scale */
    check_text(&r, 0, "norm", "pn+ls");
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_interval_of_maximum),
        cmocka_unit_test(test_null_and_planted),
        cmocka_unit_test(test_groups_by_hand),
        cmocka_unit_test(test_signs),
        cmocka_unit_test(test_sites_of_the_group),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_who_is_a_group),
        cmocka_unit_test(test_few_blocks),
        cmocka_unit_test(test_matching),
        cmocka_unit_test(test_repeatable),
        cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_some_at_a_time),
        cmocka_unit_test(test_batch),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
