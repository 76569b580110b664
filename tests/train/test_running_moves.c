/* test_running_moves.c -- mu_moved and mu_apart of each site and step, compared with the running
 * means of consecutive steps in the same file. Covers methods with a running mean, every shard,
 * frozen statistics and any number of threads. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"

enum { STEPS = 12, WIDTH = 16, SITES = 32 };

#define PLAIN                                                                                      \
    "--max-steps", "12", "--lr", "0.01", "--lr-scheduler", "fixed", "--record", "all",             \
        "--vectors-every", "1", "--warmup-updates", "0", "--norm-alpha", "0.75", "--decoder-norm", \
        "ln"

static double scalar(const sr_runfile *f, const char *name, int64_t site, int64_t row) {
    float value;
    sr_failure why = {0};
    check_ok(sr_run_scalar(f, name, site, row, 1, &value, &why), &why);
    return (double)value;
}

static void vector(const sr_runfile *f, const char *name, int64_t site, int64_t row,
                   float value[WIDTH]) {
    sr_failure why = {0};
    check_ok(sr_run_vector(f, name, site, row, 1, value, &why), &why);
}

/* From the vectors; their numbers are rounded to float. */
static void check_step(const sr_runfile *f, int64_t site, int64_t row) {
    float mu[WIDTH], next[WIDTH], mu_B[WIDTH];
    double moved = 0, apart = 0, rounded = 0;
    vector(f, "mu", site, row, mu);
    vector(f, "mu", site, row + 1, next);
    vector(f, "mu_B", site, row, mu_B);
    for (int k = 0; k < WIDTH; k++) {
        const double old = (double)mu[k], away = (double)mu_B[k] - old;
        moved += ((double)next[k] - old) * away;
        apart += away * away;
        rounded += 4e-7 * (fabs(old) + fabs(away)) * fabs(away);
    }
    check_within(scalar(f, "mu_moved", site, row), moved, rounded);
    check_within(scalar(f, "mu_apart", site, row), apart, rounded);
}

/* Sites that have both scalars; every one with a running mean, no other. */
static int check_run(const sr_runfile *f, int rows) {
    const sr_run_site *s;
    int with = 0;
    for (int64_t i = 0; (s = sr_run_get_site(f, i)); i++) {
        const bool has = isfinite(scalar(f, "mu_apart", i, 0));
        assert_int_equal(has, sr_run_over_batch(s) && sr_run_uses(s, "mu"));
        with += has;
        for (int64_t row = 0; row < rows; row++) {
            assert_int_equal(isfinite(scalar(f, "mu_moved", i, row)), has);
            if (has && row + 1 < rows) check_step(f, i, row);
        }
    }
    return with;
}

static sr_runfile *run_with(const char *key, const char *value, const char *more) {
    const char *const args[] = {PLAIN, key, value, more, NULL};
    train_result r;
    small_write_pairs(40);
    sr_runfile *f = small_run(args, NULL, &r);
    assert_int_equal(r.steps, STEPS);
    return f;
}

static void each_method(void **state) {
    (void)state;
    static const char *const norms[] = {"bn",  "bn(unbiased=1)", "rbn",         "rbn-released",
                                        "brn", "repbn",          "bn-powernorm"};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        sr_runfile *f = run_with("--norm", norms[i], NULL);
        assert_int_equal(check_run(f, STEPS), 3);
        sr_run_close(f);
    }
}

/* One update of alpha 0.75: a quarter of the way, at each step. */
static void one_update_a_step(void **state) {
    (void)state;
    sr_runfile *f = run_with("--norm", "bn", NULL);
    for (int row = 0; row < STEPS; row++)
        check_within(scalar(f, "mu_moved", 0, row) / scalar(f, "mu_apart", 0, row), 0.25, 1e-6);
    sr_run_close(f);
}

/* Methods without a running mean, and observers, have no such scalars. */
static void no_running_mean(void **state) {
    (void)state;
    static const char *const norms[] = {"ln", "pnv", "pn", "mabn", "un"};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        const char *const args[] = {
            "--max-steps", "2",         "--norm", norms[i], "--decoder-norm",
            "ln",          "--observe", "batch",  NULL};
        train_result r;
        small_write_pairs(6);
        sr_runfile *f = small_run(args, NULL, &r);
        if (sr_run_has_scalar(f, "mu_moved") || sr_run_has_scalar(f, "mu_apart"))
            fail_msg("%s has no running mean", norms[i]);
        for (int64_t k = 0; sr_run_get_declared(f, k); k++)
            fail_msg("%s declares %s", norms[i], sr_run_get_declared(f, k)->name);
        sr_run_close(f);
    }
}

/* Each shard has its own running mean. */
static void shards(void **state) {
    (void)state;
    const char *const args[] = {PLAIN, "--norm", "bn", "--shards", "2", "--record-shards", NULL};
    train_result r;
    small_write_pairs(40);
    sr_runfile *f = small_run(args, NULL, &r);
    assert_int_equal(check_run(f, STEPS), 6);
    const int64_t first = sr_run_find_site(f, "encoder.0.norm1"),
                  second = sr_run_find_site(f, "encoder.0.norm1@1");
    assert_true(first >= 0 && second > first);
    check_differs(scalar(f, "mu_apart", first, 5), scalar(f, "mu_apart", second, 5));
    sr_run_close(f);
}

/* Frozen running values do not move, and batches are still apart from them. */
static void frozen(void **state) {
    (void)state;
    sr_runfile *f = run_with("--norm=bn", "--freeze-stats", "0.5");
    for (int row = 0; row < STEPS; row++) {
        const double moved = scalar(f, "mu_moved", 0, row);
        assert_true(row < STEPS / 2 ? moved > 0 : moved == 0);
        assert_true(scalar(f, "mu_apart", 0, row) > 0);
    }
    sr_run_close(f);
}

static void read_all(const sr_runfile *f, float value[2][SITES][STEPS]) {
    static const char *const names[] = {"mu_moved", "mu_apart"};
    sr_failure why = {0};
    const int64_t sites = sr_run_get_info(f)->sites;
    memset(value, 0, 2 * SITES * STEPS * sizeof(float));
    for (int i = 0; i < 2; i++)
        for (int64_t s = 0; s < sites; s++)
            check_ok(sr_run_scalar(f, names[i], s, 0, STEPS, value[i][s], &why), &why);
}

static void any_number_of_threads(void **state) {
    (void)state;
    static float one[2][SITES][STEPS], more[2][SITES][STEPS];
    sr_runfile *f = run_with("--norm=bn", "--threads", "1");
    read_all(f, one);
    sr_run_close(f);
    f = run_with("--norm=bn", "--threads", "3");
    read_all(f, more);
    sr_run_close(f);
    assert_memory_equal(one, more, sizeof one);
}

/* Nothing of it without scalars. */
static void not_recorded(void **state) {
    (void)state;
    const char *const args[] = {"--max-steps", "2", "--norm", "bn", "--record", "none", NULL};
    train_result r;
    small_write_pairs(6);
    sr_runfile *f = small_run(args, NULL, &r);
    assert_null(sr_run_get_declared(f, 0));
    sr_run_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_method),     cmocka_unit_test(one_update_a_step),
        cmocka_unit_test(no_running_mean), cmocka_unit_test(shards),
        cmocka_unit_test(frozen),          cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(not_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
