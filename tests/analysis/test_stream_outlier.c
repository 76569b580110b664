/* test_stream_outlier.c -- stat-outlier with columns that do not fit into memory, by a room that is made
 * small: its table against itself, and against what is counted by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "room.h"
#include "statrec/format.h"
#include "testing/check.h"
#include "testing/programs.h"

/* The program, to be called with a room of our own. */
int stat_outlier_main(int argc, char **argv);

enum { STEPS = 2003 };

static double first_value(int step, rng *r) {
    if (step % 401 == 0) return step % 802 ? NAN : -INFINITY;
    return rng_normal(r) * (step % 97 ? 1 : 50);
}

/* Of the second statistic more than half of the values are equal, and the largest are two. */
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

/* Rooms for one row, for seven, for no part as a whole and for some. */
static void expect_same(char **words, int rows_least) {
    static const int64_t rooms[] = {16, 7 * 16, 333 * 16, STEPS * 8 + 7};
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++)
        expect_same_table(stat_outlier_main, rooms[i], words, rows_least);
}

static void tables_are_the_same(void **state) {
    (void)state;
    static char name[] = "stat-outlier", stat[] = "--stat", both[] = "row_grad_mean,row_grad_var",
                cut[] = "--parts", ten[] = "10", many[] = "3000", list[] = "--list",
                startup[] = "--burn-in", seven[] = "7", k[] = "--deviations", zero[] = "0";
    char *run = strdup(program_file("long.h5"));
    assert_non_null(run);
    write_run(run);
    expect_same((char *[]){name, run, stat, both, NULL}, 3);
    expect_same((char *[]){name, run, stat, both, cut, ten, startup, seven, NULL}, 21);
    expect_same((char *[]){name, run, stat, both, cut, many, NULL}, 6001);
    expect_same((char *[]){name, run, stat, both, list, NULL}, 20);
    expect_same((char *[]){name, run, stat, both, list, k, zero, cut, ten, NULL}, 2000);
    free(run);
}

/* Of two largest deviations the first; noise of deviation 1 has a mad of 0.67. */
static void numbers_are_right(void **state) {
    (void)state;
    static char name[] = "stat-outlier", stat[] = "--stat", var[] = "row_grad_var",
                mean[] = "row_grad_mean", cut[] = "--parts", four[] = "4";
    write_run(program_file("long.h5"));
    char *run = strdup(program_file("long.h5"));
    assert_non_null(run);
    print_with_room(stat_outlier_main, 16, (char *[]){name, run, stat, var, NULL},
                    program_file("var.tsv"));
    print_with_room(stat_outlier_main, 16, (char *[]){name, run, stat, mean, cut, four, NULL},
                    program_file("mean.tsv"));
    program_result r = program_run("cat var.tsv");
    check_cell(&r, 0, "steps", STEPS);
    check_cell(&r, 0, "median", (double)0.1f);
    check_cell(&r, 0, "mad", 0);
    check_cell(&r, 0, "outliers", 667 + 2);
    check_text(&r, 0, "largest", "-inf");
    check_cell(&r, 0, "largest_step", 700);
    program_free(&r);
    r = program_run("cat mean.tsv");
    static const int steps[] = {501, 501, 501, 500}, nonfinite[] = {1, 1, 1, 1};
    for (int i = 0; i < 4; i++) {
        check_cell(&r, i, "steps", steps[i]);
        check_cell(&r, i, "nonfinite", nonfinite[i]);
        assert_true(fabs(table_real(r.out, i, "mad") - 0.67) < 0.1);
        assert_true(fabs(table_real(r.out, i, "largest")) < 1000);
    }
    program_free(&r);
    free(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_the_same),
        cmocka_unit_test(numbers_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
