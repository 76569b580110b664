/* test_run_frozen.c -- --freeze-stats: when it starts, which statistics stay, which are still
 * recorded. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"
#include "train/trainer.h"

enum { UPDATES = 8, WIDTH = 16 };

#define PLAIN                                                                                      \
    "--max-steps", "8", "--lr", "0.01", "--lr-scheduler", "fixed", "--update-freq", "2",           \
        "--dropout", "0.1", "--record", "all", "--warmup-updates", "0"

static sr_runfile *run_with(const char *norm, const char *share, const train_events *events,
                            train_result *r) {
    const char *const args[] = {PLAIN, "--norm", norm, "--freeze-stats", share, NULL};
    small_write_pairs(40);
    return small_run(args, events, r);
}

static void never(void **state) {
    (void)state;
    const char *const args[] = {PLAIN, "--norm", "bn", NULL};
    train_result r, whole;
    small_write_pairs(40);
    sr_run_close(small_run(args, NULL, &r));
    sr_run_close(run_with("bn", "1", NULL, &whole));
    assert_string_equal(r.digest, whole.digest);
}

static void vector_of(const sr_runfile *f, const char *name, int64_t step, float *value) {
    sr_failure why = {0};
    check_ok(sr_run_vector(f, name, 0, step, 1, value, &why), &why);
}

static double scalar_of(const sr_runfile *f, const char *name, int64_t step) {
    float value;
    sr_failure why = {0};
    check_ok(sr_run_scalar(f, name, 0, step, 1, &value, &why), &why);
    return (double)value;
}

/* Three eighths: updates 4 to 8, which are steps 7 to 16. Earlier steps are unchanged. From step 7
 * the running mean and the mean position keep their values; batch statistics are still recorded but
 * get no gradient. */
static void from_then_on(void **state) {
    (void)state;
    train_result r, frozen;
    double loss[2 * UPDATES], other[2 * UPDATES];
    sr_runfile *f = run_with("bn", "1", NULL, &r);
    small_steps(f, "loss", 2 * UPDATES, loss);
    sr_run_close(f);
    f = run_with("bn", "0.375", NULL, &frozen);
    small_steps(f, "loss", 2 * UPDATES, other);
    assert_memory_equal(loss, other, 6 * sizeof *loss);
    for (int i = 6; i < 2 * UPDATES; i++) check_differs(loss[i], other[i]);
    assert_string_not_equal(r.digest, frozen.digest);
    float first[WIDTH], mu[WIDTH], own[WIDTH], position[WIDTH], of_position[WIDTH];
    vector_of(f, "position", 6, position);
    vector_of(f, "mu", 6, first);
    for (int i = 0; i < 2 * UPDATES; i++) {
        vector_of(f, "mu", i, mu);
        vector_of(f, "mu_B", i, own);
        vector_of(f, "position", i, of_position);
        assert_true((i >= 6) == !memcmp(of_position, position, sizeof position));
        assert_true((i >= 6) == !memcmp(mu, first, sizeof mu));
        assert_true(memcmp(own, mu, sizeof mu) != 0 && isfinite(own[0]));
        assert_true(isfinite(scalar_of(f, "dist_mu", i)));
        check_equals(scalar_of(f, "nonfinite", i), 0);
        assert_true((i < 6) == isfinite(scalar_of(f, "g_mu", i)));
        assert_true((i < 6) == isfinite(scalar_of(f, "g_sigma2", i)));
    }
    sr_run_close(f);
}

static void warn(void *context, const char *text) {
    if (strstr(text, "--freeze-stats has no effect")) ++*(int *)context;
}

static void without_running_statistics(void **state) {
    (void)state;
    int warned = 0;
    const train_events events = {.context = &warned, .warn = warn};
    train_result r, frozen;
    sr_run_close(run_with("ln", "1", &events, &r));
    assert_int_equal(warned, 0);
    sr_run_close(run_with("ln", "0.5", &events, &frozen));
    assert_int_equal(warned, 1);
    assert_string_equal(r.digest, frozen.digest);
}

/* 0.07 * 100 is above 7 by rounding. */
static void from_a_whole_update_on(void **state) {
    (void)state;
    static const struct {
        double fraction;
        int64_t updates, from;
    } row[] = {{0.07, 100, 7}, {0.14, 50, 7}, {0.28, 100, 28}, {0.375, 8, 3},
               {0.5, 7, 4},    {0, 9, 0},     {1, 9, 9},       {0.0701, 100, 8}};
    static train_config c;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        c.freeze_stats = row[i].fraction;
        const trainer r = {.config = &c, .updates = row[i].updates};
        assert_int_equal(trainer_freeze_update(&r), row[i].from);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(never), cmocka_unit_test(from_then_on),
                                       cmocka_unit_test(without_running_statistics),
                                       cmocka_unit_test(from_a_whole_update_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
