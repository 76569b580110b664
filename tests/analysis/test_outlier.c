/* test_outlier.c -- medians, deviations and outliers of stat-outlier by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "room.h"
#include "statrec/format.h"
#include "testing/check.h"
#include "testing/programs.h"

enum { STEPS = 2003 };

static double first_value(int step, rng *r) {
    if (step % 401 == 0) return step % 802 ? NAN : -INFINITY;
    return rng_normal(r) * (step % 97 ? 1 : 50) * (step <= STEPS / 2 ? 1 : 3);
}

/* In the second statistic more than half of the values are equal, and two are the largest. */
static double second_value(int step) {
    if (step == 700 || step == 1300) return -8;
    return step % 3 ? 0.1 : step % 5;
}

static void write_run(const char *path) {
    rng r = rng_create(1);
    sr_recorder *to = run_create(path, run_options());
    run_add_ln(to, "s", 2, 0, 3);
    for (int step = 1; step <= STEPS; step++) {
        sr_begin_step(to, step);
        sr_put_rows(to, 0, 2);
        sr_put_scalar(to, 0, SR_SCALAR_row_grad_mean, first_value(step, &r));
        sr_put_scalar(to, 0, SR_SCALAR_row_grad_var, second_value(step));
        run_end_step(to, step);
    }
    run_finish(to);
}

/* Two deviations are largest: the first is reported. Noise of deviation 1 has a mad of 0.67, noise
 * of deviation 3 a mad of 2. */
static void numbers_are_right(void **state) {
    (void)state;
    write_run(program_file("long.h5"));
    program_result r = program_run("stat-outlier long.h5 --stat row_grad_var");
    check_cell(&r, 0, "steps", STEPS);
    check_cell(&r, 0, "median", (double)0.1f);
    check_cell(&r, 0, "mad", 0);
    check_cell(&r, 0, "outliers", 667 + 2);
    check_text(&r, 0, "largest", "-inf");
    check_cell(&r, 0, "largest_step", 700);
    program_free(&r);
    r = program_run("stat-outlier long.h5 --stat row_grad_mean --parts 4");
    static const int steps[] = {501, 501, 501, 500}, nonfinite[] = {1, 1, 1, 1};
    for (int i = 0; i < 4; i++) {
        check_cell(&r, i, "steps", steps[i]);
        check_cell(&r, i, "nonfinite", nonfinite[i]);
        check_within(table_real(r.out, i, "mad"), i < 2 ? 0.67 : 2, i < 2 ? 0.1 : 0.3);
        check_within(table_real(r.out, i, "largest"), 0, 1000);
    }
    program_free(&r);
}

static void write_long(const char *path, int steps) {
    sr_recorder *to = run_create(path, run_options());
    run_add_ln(to, "s", 2, 0, 3);
    run_add_ln(to, "t", 2, 1, 3);
    for (int step = 1; step <= steps; step++) {
        sr_begin_step(to, step);
        for (int i = 0; i < 2; i++) {
            sr_put_rows(to, i, 2);
            sr_put_scalar(to, i, SR_SCALAR_row_grad_mean, step == steps ? 4.0 * steps : step);
            sr_put_scalar(to, i, SR_SCALAR_row_grad_var, (i ? 3.0 : -3.0) * step);
        }
        run_end_step(to, step);
    }
    run_finish(to);
}

/* 1 .. n by hand, the last value far away. Rows are sorted by site although they are read by
 * statistic. */
static void long_series_by_hand(void **state) {
    (void)state;
    enum { LONG_STEPS = 70001, MIDDLE = 35001 };
    write_long(program_file("steps.h5"), LONG_STEPS);
    program_result r =
        program_run("stat-outlier steps.h5 --stat row_grad_var,row_grad_mean --deviations 3");
    assert_int_equal(table_rows(r.out), 4);
    for (int i = 0; i < 4; i++) {
        const double by = i % 2 ? 1 : i ? 3 : -3;
        check_text(&r, i, "site", i < 2 ? "s" : "t");
        check_text(&r, i, "statistic", i % 2 ? "row_grad_mean" : "row_grad_var");
        check_cell(&r, i, "median", by * MIDDLE);
        check_cell(&r, i, "mad", fabs(by) * (MIDDLE - 1) / 2);
        check_cell(&r, i, by < 0 ? "q75" : "q25", by * 17501);
        check_cell(&r, i, by < 0 ? "q01" : "q99", by * 69301);
        check_cell(&r, i, "outliers", i % 2);
    }
    check_cell(&r, 1, "largest_step", LONG_STEPS);
    program_free(&r);
}

/* The program under test, called with a memory limit that the test sets. */
int stat_outlier_main(int argc, char **argv);

static void write_sites(const char *path) {
    rng r = rng_create(2);
    sr_recorder *to = run_create(path, run_options());
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%d", i);
        run_add_ln(to, name, 2, i, 3);
    }
    for (int step = 1; step <= STEPS; step++) {
        sr_begin_step(to, step);
        for (int i = 0; i < 3; i++) {
            sr_put_rows(to, i, 2);
            sr_put_scalar(to, i, SR_SCALAR_row_grad_mean, (i + 1) * first_value(step, &r));
            if (i != 1) sr_put_scalar(to, i, SR_SCALAR_row_grad_var, second_value(step) - i);
        }
        run_end_step(to, step);
    }
    run_finish(to);
}

/* Series that do not fit into memory beside one column per thread: as many at a time as fit,
 * against all. */
static void some_series_at_a_time(void **state) {
    (void)state;
    char *name = "stat-outlier", *stat = "--stat", *both = "row_grad_mean,row_grad_var",
         *parts = "--parts", *three = "3", *list = "--list";
    char *run = strdup(program_file("sites.h5"));
    write_sites(run);
    for (int columns = 1; columns <= 12; columns++) {
        const int64_t room_of = columns * 8 * (STEPS + 200);
        expect_same_table(stat_outlier_main, room_of, (char *[]){name, run, stat, both, NULL}, 5);
        expect_same_table(stat_outlier_main, room_of,
                          (char *[]){name, run, stat, both, parts, three, NULL}, 15);
        expect_same_table(stat_outlier_main, room_of,
                          (char *[]){name, run, stat, both, parts, three, list, NULL}, 30);
    }
    free(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_right),
        cmocka_unit_test(long_series_by_hand),
        cmocka_unit_test(some_series_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
