/* test_downsample.c -- the three rows of a bucket. Also tables per step whose sites are read one by
 * one under a small memory limit, against all at once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/downsample.h"
#include "analysis/frame/statistics_table.h"
#include "base/rng.h"
#include "room.h"
#include "testing/check.h"
#include "testing/programs.h"

static const statistic both[] = {{"mean", "row_grad_mean", NULL, 0, NULL, NULL},
                                 {"var", "row_grad_var", NULL, 0, NULL, NULL}};

static int steps_main(int argc, char **argv) {
    const analysis a = {.program = "stat-test",
                        .does = "both",
                        .stat = both,
                        .statistics = 2,
                        .default_stat = "mean,var",
                        .site = "*",
                        .source = FROM_SCALARS};
    return analysis_main(&a, argc, argv);
}

enum { STEPS = 3000, TEST_SITES = 3 };

static void put_sites(sr_recorder *to, int step, rng *r) {
    for (int i = 0; i < TEST_SITES; i++) {
        sr_put_rows(to, i, 2);
        sr_put_scalar(to, i, SR_SCALAR_row_grad_mean, step % 83 ? rng_normal(r) : NAN);
        if (i != 1) sr_put_scalar(to, i, SR_SCALAR_row_grad_var, (double)rng_below(r, 4));
    }
}

/* Half of the epochs have a tenth of the steps. */
static double epoch_of(int step) {
    return step <= STEPS / 10 ? step : STEPS / 10 + (step - STEPS / 10) / 9.0;
}

static sr_recorder *create(const char *path) {
    sr_recorder *to = run_create(path, run_options());
    for (int i = 0; i < TEST_SITES; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        run_add_ln(to, name, 2, i, 3);
    }
    return to;
}

static void write_long(const char *path) {
    rng r = rng_create(1);
    sr_recorder *to = create(path);
    for (int step = 1; step <= STEPS; step++) {
        const sr_step row = {.size = sizeof(sr_step),
                             step,
                             (int64_t)rng_below(&r, 100),
                             epoch_of(step),
                             step % 71 ? rng_normal(&r) : INFINITY,
                             step % 2 ? NAN : 1e-3 * step,
                             step > 1000 && step < 2500 ? NAN : exp(rng_normal(&r))};
        sr_begin_step(to, step);
        put_sites(to, step, &r);
        assert_int_equal(sr_end_step(to, &row), SR_OK);
    }
    run_finish(to);
}

/* Memory limits that fit these numbers of rows of the columns: less than a bucket, or a few
 * buckets. */
static void expect_same(program_main *program, int columns, char **words, int rows_least) {
    static const int64_t fit[] = {40, 250, 899};
    for (size_t i = 0; i < sizeof fit / sizeof fit[0]; i++)
        expect_same_table(program, 8 * columns * fit[i], words, rows_least);
}

static char buckets[] = "--buckets", one[] = "1", three[] = "3", forty[] = "40";

static void steps_are_the_same(void **state) {
    (void)state;
    static char name[] = "stat-test", per_step[] = "--per-step", site[] = "--site", s0[] = "s0",
                phase[] = "--phase", most[] = "300:2950";
    write_long(program_file("long.h5"));
    char *run = strdup(program_file("long.h5"));
    assert_non_null(run);
    expect_same(steps_main, 3, (char *[]){name, run, per_step, buckets, three, NULL}, 28);
    expect_same(steps_main, 3, (char *[]){name, run, per_step, buckets, one, NULL}, 10);
    expect_same(steps_main, 3, (char *[]){name, run, per_step, buckets, one, phase, most, NULL},
                10);
    expect_same(steps_main, 3, (char *[]){name, run, per_step, buckets, forty, site, s0, NULL},
                121);
    free(run);
}

/* Sites are grouped as if buckets had equal rows. Here nearly all rows are in the first of a
 * hundred buckets. */
static void uneven_parts_of_several_sites(void **state) {
    (void)state;
    static char name[] = "stat-test", per_step[] = "--per-step", hundred[] = "100";
    rng r = rng_create(1);
    char *run = strdup(program_file("uneven.h5"));
    assert_non_null(run);
    sr_recorder *to = create(run);
    for (int row = 1; row <= 15000; row++) {
        const int step = row <= 14700 ? row : 14700 + 14700 * (row - 14700);
        sr_begin_step(to, step);
        put_sites(to, row, &r);
        run_end_step(to, step);
    }
    run_finish(to);
    expect_same_table(steps_main, TEST_SITES * 8 * 3 * 9300,
                      (char *[]){name, run, per_step, buckets, hundred, NULL}, 700);
    free(run);
}

/* -- buckets --------------------------------------------------------------------------------- */

/* Two buckets of 15 rows, added in blocks of any size. Columns: the row number, and 1 for the first
 * ten rows, else 2. */
static void parts_have_three_rows(void **state) {
    (void)state;
    double number[30], common[30];
    for (int i = 0; i < 30; i++) number[i] = i, common[i] = i < 10 ? 1 : 2;
    for (int64_t block = 1; block <= 30; block++) {
        parts p;
        sr_failure why = {0};
        parts_begin(&p, 2, 2, 0, 30);
        for (int64_t at = 0; at < 30; at += block) {
            const double *const value[] = {number + at, common + at};
            check_ok(parts_add(&p, number + at, value, 30 - at < block ? 30 - at : block, &why),
                     &why);
        }
        check_ok(parts_end(&p, &why), &why);
        const double want[] = {0, 1, 7, 1, 14, 2, 15, 2, 22, 2, 29, 2};
        assert_int_equal(p.rows, 6);
        assert_memory_equal(p.row, want, sizeof want);
        parts_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_the_same),
        cmocka_unit_test(uneven_parts_of_several_sites),
        cmocka_unit_test(parts_have_three_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
