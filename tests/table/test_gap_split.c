/* test_gap_split.c -- stat-gap --split: parts of a difference, pairs of seeds, intervals. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

enum { EVALUATIONS = 6, THIRD = 2 };
static const double t_of_3 = 4.302652729911275, t_of_2 = 12.706204736174698;

typedef struct split_run {
    const char *path, *norm;
    uint64_t seed;
    bool train, batch; /* declares train_loss_batch, valid_loss_batch */
    int without;       /* makes no evaluation after this step; 0: all */
    int lr;            /* a setting, which adds itself to all losses */
    int every;         /* 1, 2: evaluates after even, odd steps alone */
} split_run;

/* Training and validation loss of a run after evaluation e, from 1. Validation with running
 * statistics differs for bn alone. */
static double train_loss(bool bn, uint64_t seed, int e) {
    return 3 - 0.2 * e + 0.01 * (double)(seed * seed) - (bn ? 0.02 * e + 0.003 * (double)seed : 0);
}
static double batch_loss(bool bn, uint64_t seed, int e) {
    return train_loss(bn, seed, e) + 0.3 + 0.05 * e - (bn ? 0.01 * (double)(seed % 2) * e : 0);
}
static double valid_loss(bool bn, uint64_t seed, int e) {
    return batch_loss(bn, seed, e) + (bn ? 0.05 * e + 0.002 * (double)(seed * e) - 0.06 : 0);
}

static void write_run(const split_run *run) {
    const bool bn = strcmp(run->norm, "bn") == 0;
    sr_options o = run_options();
    char config[64];
    snprintf(config, sizeof config, "norm = %s\nlr = %d\n", run->norm, run->lr);
    o.config = config, o.seed = run->seed;
    sr_recorder *r = run_create(program_file(run->path), o);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "a",
                              .norm = run->norm,
                              .family = bn ? SR_FAMILY_SIGMA : SR_FAMILY_ROW,
                              .width = 1,
                              .eps = 1e-5,
                              .alpha = 0.9});
    sr_add_metric(r, "valid_loss", "nats", "", SR_BETTER_LESS);
    sr_add_metric(r, "valid_share", "1", "", SR_BETTER_MORE);
    sr_add_metric(r, "size", "MB", "", SR_BETTER_NEITHER);
    if (run->batch) sr_add_metric(r, "valid_loss_batch", "nats", "", SR_BETTER_LESS);
    if (run->batch) sr_add_metric(r, "valid_share_batch", "1", "", SR_BETTER_MORE);
    if (run->train) sr_add_metric(r, "train_loss_batch", "nats", "", SR_BETTER_LESS);
    for (int e = 1; e <= EVALUATIONS; e++) {
        const double v = valid_loss(bn, run->seed, e) + run->lr,
                     b = batch_loss(bn, run->seed, e) + run->lr,
                     t = train_loss(bn, run->seed, e) + run->lr;
        sr_begin_step(r, e);
        run_end_step(r, e);
        if (e == run->without || (run->every && e % 2 != run->every - 1)) continue;
        run_put_eval(r, e, e, "valid_loss valid_share size", v, -2 * v, 5.0);
        if (run->batch) run_put_eval(r, e, e, "valid_loss_batch valid_share_batch", b, -2 * b);
        if (run->train) run_put_eval(r, e, e, "train_loss_batch", t);
    }
    run_finish(r);
}

static int write_runs(void **state) {
    static const split_run run[] = {
        {"ln1.h5", "ln", 1, true, false, 0, 0, 0},     {"ln2.h5", "ln", 2, true, false, 0, 0, 0},
        {"ln3.h5", "ln", 3, true, false, 0, 0, 0},     {"bn1.h5", "bn", 1, true, true, 0, 0, 0},
        {"bn2.h5", "bn", 2, true, true, 0, 0, 0},      {"bn3.h5", "bn", 3, true, true, 0, 0, 0},
        {"plain.h5", "bn", 1, false, false, 0, 0, 0},  {"late.h5", "bn", 1, true, true, 3, 0, 0},
        {"ln1_far.h5", "ln", 1, true, false, 0, 2, 0}, {"bn1_far.h5", "bn", 1, true, true, 0, 2, 0},
        {"bn2_lone.h5", "bn", 2, true, true, 0, 4, 0}, {"bn2_far.h5", "bn", 2, true, true, 0, 2, 0},
        {"odd.h5", "ln", 1, true, true, 0, 0, 2},      {"even.h5", "bn", 1, true, true, 0, 0, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof run / sizeof run[0]; i++) write_run(&run[i]);
    return 0;
}

/* -- expected numbers -------------------------------------------------------------------------- */

enum { TRAINING, GENERALIZATION, DISCREPANCY, TOTAL, PARTS };
static const char *const part_name[PARTS] = {"training", "generalization", "discrepancy", "total"};

/* Difference between bn and ln of the same seed. */
static double part_of(int part, uint64_t seed, int e) {
    const double t = train_loss(true, seed, e) - train_loss(false, seed, e),
                 b = batch_loss(true, seed, e) - batch_loss(false, seed, e),
                 v = valid_loss(true, seed, e) - valid_loss(false, seed, e);
    return part == TRAINING ? t : part == GENERALIZATION ? b - t : part == DISCREPANCY ? v - b : v;
}

/* Mean of value [n], and half of its interval with Student's t. */
static double mean_of(const double *value, int n, double t, double *half) {
    double mean = 0, squares = 0;
    for (int i = 0; i < n; i++) mean += value[i] / n;
    for (int i = 0; i < n; i++) squares += (value[i] - mean) * (value[i] - mean);
    *half = t * sqrt(squares / (n - 1) / n);
    return mean;
}

static void check_part(const program_result *r, int row, int part, double mean, double half) {
    char low[32], high[32];
    snprintf(low, sizeof low, "%s_low", part_name[part]);
    snprintf(high, sizeof high, "%s_high", part_name[part]);
    check_cell(r, row, part_name[part], mean);
    if (isnan(half)) {
        check_text(r, row, low, "nan");
        check_text(r, row, high, "nan");
        return;
    }
    check_cell(r, row, low, mean - half);
    check_cell(r, row, high, mean + half);
}

/* -- tests --------------------------------------------------------------------------------------- */

/* Pairs by seed, whatever the order of the files. */
static void test_pairs(void **state) {
    (void)state;
    program_result r = program_run("stat-gap ln2.h5 bn1.h5 ln3.h5 bn3.h5 bn2.h5 ln1.h5 --split "
                                   "evaluations");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), EVALUATIONS);
    check_text(&r, 0, "run", "bn1.h5");
    check_text(&r, 0, "given", "2");
    check_text(&r, 0, "reference", "ln1.h5");
    check_text(&r, 0, "unit", "nats");
    assert_non_null(strstr(r.out, "# pair: bn3.h5 against ln3.h5\n"));
    for (int e = 1; e <= EVALUATIONS; e++) {
        check_cell(&r, e - 1, "step", e);
        check_cell(&r, e - 1, "pairs", 3);
        for (int p = 0; p < PARTS; p++) {
            const double value[3] = {part_of(p, 1, e), part_of(p, 2, e), part_of(p, 3, e)};
            double half;
            const double mean = mean_of(value, 3, t_of_3, &half);
            check_part(&r, e - 1, p, mean, half);
        }
    }
    program_free(&r);
}

static void test_one_pair(void **state) {
    (void)state;
    program_result r = program_run("stat-gap ln1.h5 bn1.h5 --split evaluations");
    for (int e = 1; e <= EVALUATIONS; e++)
        for (int p = 0; p < PARTS; p++) check_part(&r, e - 1, p, part_of(p, 1, e), NAN);
    program_free(&r);
}

/* First evaluation after which seed 1 stays worse. */
static int first_loss(void) {
    for (int e = EVALUATIONS; e > 0; e--)
        if (!(part_of(TOTAL, 1, e) > 0)) return e + 1;
    return 1;
}

static void test_last_third(void **state) {
    (void)state;
    program_result r = program_run("stat-gap ln1.h5 bn1.h5 --split last-third"),
                   all = program_run("stat-gap ln1.h5 ln2.h5 ln3.h5 bn1.h5 bn2.h5 bn3.h5 --split "
                                     "last-third");
    assert_int_equal(table_rows(r.out), 1);
    check_cell(&r, 0, "step", EVALUATIONS - THIRD + 1);
    for (int p = 0; p < PARTS; p++) {
        double half, of_seed[3];
        for (uint64_t seed = 1; seed <= 3; seed++)
            of_seed[seed - 1] = (part_of(p, seed, 5) + part_of(p, seed, 6)) / 2;
        const double last[THIRD] = {part_of(p, 1, 5), part_of(p, 1, 6)};
        const double mean = mean_of(last, THIRD, t_of_2, &half);
        check_part(&r, 0, p, mean, half);
        const double mean_of_all = mean_of(of_seed, 3, t_of_3, &half);
        check_part(&all, 0, p, mean_of_all, half);
    }
    assert_in_range(first_loss(), 2, EVALUATIONS); /* else the next line would test nothing */
    check_cell(&r, 0, "loses_from", first_loss());
    program_free(&r), program_free(&all);
}

/* Pairs that share references are not independent: Cochran and Cox's interval, and
 * none for a single reference, without --split too. */
static void check_interval(const char *runs, int row, const char *part, const char *note,
                           double low, double high) {
    char name[64];
    program_result r = program_run("stat-gap %s", runs);
    assert_int_equal(r.status, 0);
    if (!strstr(r.out, note)) fail_msg("%s", r.out);
    snprintf(name, sizeof name, "%s_low", part);
    if (isnan(low))
        check_text(&r, row, name, "nan");
    else
        check_cell(&r, row, name, low);
    snprintf(name, sizeof name, "%s_high", part);
    if (isnan(high))
        check_text(&r, row, name, "nan");
    else
        check_cell(&r, row, name, high);
    program_free(&r);
}

/* bn 1, 2, 3 against ln 1, 2, 1 after the last evaluation, by the formula of docs/definitions.md. */
static void shared_interval(double *low, double *high) {
    static const uint64_t of[3] = {1, 2, 1};
    double run[3], reference[2], half[2], mean = 0;
    for (int i = 0; i < 3; i++) {
        run[i] = valid_loss(true, (uint64_t)i + 1, EVALUATIONS);
        if (i < 2) reference[i] = valid_loss(false, of[i], EVALUATIONS);
        mean += (run[i] - valid_loss(false, of[i], EVALUATIONS)) / 3;
    }
    mean_of(run, 3, 1, &half[0]);
    mean_of(reference, 2, 1, &half[1]);
    const double a = half[0] * half[0], b = 2 * half[1] * half[1] * (4 + 1) / 9;
    const double t = (a * t_of_3 + b * t_of_2) / (a + b); /* of 3 runs, of 2 references */
    *low = mean - t * sqrt(a + b), *high = mean + t * sqrt(a + b);
}

static void test_shared_references(void **state) {
    (void)state;
    double low, high;
    const char *one =
                   "bn1.h5: its 3 pairs share one reference, ln1.h5, whose seed does not average "
                   "out: no intervals",
               *two = "bn1.h5: its 3 pairs share 2 references: intervals of Cochran and Cox";
    shared_interval(&low, &high);
    check_interval("ln1.h5 bn1.h5 bn2.h5 bn3.h5 --split evaluations", 0, "total", one, NAN, NAN);
    check_interval("ln1.h5 bn1.h5 bn2.h5 bn3.h5 --split last-third", 0, "total", one, NAN, NAN);
    check_interval("ln1.h5 ln2.h5 bn1.h5 bn2.h5 bn3.h5 --split evaluations", EVALUATIONS - 1,
                   "total", two, low, high);
    check_interval("ln1.h5 bn1.h5 bn2.h5 bn3.h5", 1, "gap", one, NAN, NAN);
    check_interval("ln1.h5 ln2.h5 bn1.h5 bn2.h5 bn3.h5 --pick last", 2, "gap", two, -high, -low);
    program_result r = program_run("stat-gap ln1.h5 ln2.h5 bn1.h5 bn2.h5 --split evaluations && "
                                   "stat-gap ln1.h5 ln2.h5 bn1.h5 bn2.h5");
    assert_null(strstr(r.out, "# intervals"));
    program_free(&r);
}

/* With several settings, pairs have equal settings and equal seeds. */
static void test_same_settings(void **state) {
    (void)state;
    program_result r = program_run("stat-gap ln2.h5 bn1_far.h5 ln1.h5 bn1.h5 bn2_lone.h5 bn2.h5 "
                                   "ln1_far.h5 --split last-third --same-settings");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 2);
    check_text(&r, 0, "run", "bn1_far.h5");
    check_text(&r, 0, "reference", "ln1_far.h5");
    check_cell(&r, 0, "pairs", 1);
    check_text(&r, 1, "run", "bn1.h5");
    check_text(&r, 1, "reference", "ln1.h5");
    check_cell(&r, 1, "pairs", 2);
    assert_non_null(strstr(r.out, "# pair: bn2.h5 against ln2.h5\n"));
    assert_non_null(strstr(r.out, "# alone: bn2_lone.h5: no run of ln has its task and settings"));
    for (int p = 0; p < PARTS; p++) {
        const double one = (part_of(p, 1, 5) + part_of(p, 1, 6)) / 2,
                     two = (part_of(p, 2, 5) + part_of(p, 2, 6)) / 2;
        check_cell(&r, 0, part_name[p], one);
        check_cell(&r, 1, part_name[p], (one + two) / 2);
    }
    program_free(&r);
}

/* The other way round the first run is the worse one. */
static void test_never_loses(void **state) {
    (void)state;
    program_result r = program_run("stat-gap bn1.h5 ln1.h5 --split last-third");
    check_text(&r, 0, "loses_from", "nan");
    check_cell(&r, 0, "total", -(part_of(TOTAL, 1, 5) + part_of(TOTAL, 1, 6)) / 2);
    program_free(&r);
}

/* valid_share is -2 valid_loss, and more of it is better: worse by twice as much. */
static void test_direction(void **state) {
    (void)state;
    program_result r = program_run("stat-gap ln1.h5 bn1.h5 --split evaluations --metric "
                                   "valid_share");
    check_cell(&r, 3, "discrepancy", 2 * part_of(DISCREPANCY, 1, 4));
    check_cell(&r, 3, "total", 2 * part_of(TOTAL, 1, 4));
    check_text(&r, 3, "training", "nan");
    program_free(&r);
}

/* Unrecorded parts print nan; ln needs no second validation. */
static void test_not_recorded(void **state) {
    (void)state;
    program_result r = program_run("stat-gap ln1.h5 plain.h5 --split evaluations");
    for (int p = 0; p < TOTAL; p++) check_text(&r, 0, part_name[p], "nan");
    check_cell(&r, 0, "total", part_of(TOTAL, 1, 1));
    program_free(&r);
}

static void test_common_steps(void **state) {
    (void)state;
    program_result r = program_run("stat-gap ln1.h5 late.h5 --split evaluations");
    assert_int_equal(table_rows(r.out), EVALUATIONS - 1);
    check_cell(&r, 2, "step", 4);
    check_cell(&r, 2, "total", part_of(TOTAL, 1, 4));
    assert_non_null(strstr(r.out,
                           "# evaluations: late.h5: 5 of 6 steps are used: those after which "
                           "all pairs and their references evaluated; the last step is 6, "
                           "the last that is used 6\n"));
    program_free(&r);
}

/* A group's evaluations are those that all its pairs have, not those before the first other one. */
static void test_a_pair_without_a_step(void **state) {
    (void)state;
    const int steps[] = {1, 2, 4, 5, 6};
    program_result r = program_run("stat-gap ln1.h5 ln2.h5 late.h5 bn2.h5 --split evaluations");
    assert_int_equal(table_rows(r.out), EVALUATIONS - 1);
    for (int i = 0; i < EVALUATIONS - 1; i++) {
        check_cell(&r, i, "step", steps[i]);
        check_cell(&r, i, "pairs", 2);
        check_cell(&r, i, "total", (part_of(TOTAL, 1, steps[i]) + part_of(TOTAL, 2, steps[i])) / 2);
    }
    assert_non_null(strstr(r.out, "# evaluations: bn2.h5: 5 of 6 steps"));
    program_free(&r);
    r = program_run("stat-gap ln1.h5 bn1.h5 --split last-third");
    assert_null(strstr(r.out, "# evaluations:"));
    program_free(&r);
}

/* No common evaluation step. */
static void test_nothing_in_common(void **state) {
    (void)state;
    program_result r = program_run("stat-gap odd.h5 even.h5 --split last-third");
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(
        r.err, "odd.h5: no step after which all runs that are compared evaluated valid_loss"));
    program_free(&r);
}

/* Without --split a run is paired with the reference of its seed, even if the configuration does
 * not name the seed. */
static void test_reference_of_the_seed(void **state) {
    (void)state;
    program_result r = program_run("stat-gap ln1.h5 ln2.h5 ln3.h5 bn1.h5 bn2.h5 bn3.h5");
    for (int seed = 1; seed <= 3; seed++) {
        char name[16];
        snprintf(name, sizeof name, "ln%d.h5", seed);
        check_text(&r, 2 + seed, "reference", name);
    }
    program_free(&r);
}

/* The figure labels a group of pairs by their common settings, and a single pair by its runs. */
static void check_legend(const char *runs, const char *legend) {
    program_result r = program_run("statplot gap %s -o gap.svg && grep -o 'bn[^<]*' gap.svg", runs);
    if (!strstr(r.out, legend)) fail_msg("%s%s: not \"%s\"", r.out, r.err, legend);
    program_free(&r);
}

static void test_legend(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_legend("ln1.h5 ln2.h5 ln3.h5 bn1.h5 bn2.h5 bn3.h5", "bn - ln, 3 seeds\n");
    check_legend("ln1.h5 bn2.h5", "bn - ln\n");
    check_legend("ln1.h5 ln2.h5 bn1.h5 bn2.h5 bn1_far.h5 bn2_far.h5", "bn, lr 2 - ln, 2 seeds\n");
}

static void check_refused(const char *command, int status, const char *part) {
    program_result r = program_run("%s", command);
    assert_int_equal(r.status, status);
    if (!strstr(r.err, part)) fail_msg("%s", r.err);
    program_free(&r);
}

static void test_refusals(void **state) {
    (void)state;
    check_refused("stat-gap ln1.h5 bn1.h5 --split thirds", 2, "not 'thirds'");
    check_refused("stat-gap ln1.h5 ln2.h5 --split evaluations", 2, "no other run is given");
    check_refused("stat-gap ln1.h5 bn1.h5 --split evaluations --metric size", 1, "direction");
    check_refused("stat-gap ln1.h5 bn1_far.h5 --split last-third --same-settings", 2,
                  "no run has the settings of another");
    check_refused("stat-gap ln1.h5 bn1.h5 --same-settings", 2, "goes with --split");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_one_pair),
        cmocka_unit_test(test_last_third),
        cmocka_unit_test(test_shared_references),
        cmocka_unit_test(test_same_settings),
        cmocka_unit_test(test_never_loses),
        cmocka_unit_test(test_direction),
        cmocka_unit_test(test_not_recorded),
        cmocka_unit_test(test_common_steps),
        cmocka_unit_test(test_a_pair_without_a_step),
        cmocka_unit_test(test_nothing_in_common),
        cmocka_unit_test(test_reference_of_the_seed),
        cmocka_unit_test(test_legend),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
