/* test_column_summary.c -- summaries against the definition of their quantiles. The groups of
 * columns read together: a program's table with groups of one column against all at once. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/column_summary.h"
#include "base/rng.h"
#include "base/sort.h"
#include "room.h"
#include "statrec/format.h"
#include "testing/check.h"
#include "testing/programs.h"

/* The program under test, called with a memory limit that the test sets. */
int stat_lngrad_main(int argc, char **argv);

/* -- columns --------------------------------------------------------------------------------- */

enum { MOST = 3001, KINDS = 13 };

static double any_bits(rng *r) {
    const uint64_t bits = rng_next(r);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double value_of_kind(int kind, int i, rng *r) {
    switch (kind) {
    case 0:
        return rng_normal(r);
    case 1:
        return (double)(float)rng_normal(r);
    case 2:
        return -2.5;
    case 3:
        return (double)rng_below(r, 3) - 1;
    case 4:
        return -exp(rng_normal(r));
    case 5:
        return i % 2 ? 0.0 : -0.0;
    case 6:
        return ldexp(rng_normal(r), -1060); /* denormal */
    case 7:
        return i % 5 ? i % 3 ? INFINITY : rng_normal(r) : -INFINITY;
    case 8:
        return i % 4 ? NAN : rng_normal(r);
    case 9:
        return i % 2 ? NAN : -INFINITY;
    case 10:
        return 1 + ldexp((double)rng_below(r, 9), -52); /* equal but for the last digit */
    case 11:
        return (i % 2 ? -1 : 1) * ldexp(1, (int)rng_below(r, 100)); /* only exponents differ */
    default:
        return any_bits(r);
    }
}

static void expect_number(double got, double want, const char *what, int kind, int rows) {
    if (got != want && !(isnan(got) && isnan(want)))
        fail_msg("%s, kind %d, %d rows: %a, not %a", what, kind, rows, got, want);
}

/* Linear between the order statistics around (n - 1) p: Hyndman and Fan's definition 7. Allows for
 * rounding, since the compiler may use fused operations in one of the two. */
static void expect_quantile(double got, const double *sorted, int n, double p, int kind) {
    if (n == 0) {
        assert_true(isnan(got));
        return;
    }
    const double h = (n - 1) * p;
    const int k = (int)floor(h), above = k + 1 < n ? k + 1 : k;
    const double want = sorted[k] + (h - k) * (sorted[above] - sorted[k]);
    const double rounding = 4 * DBL_EPSILON * fmax(fabs(sorted[k]), fabs(sorted[above]));
    if (got != want && !(fabs(got - want) <= rounding))
        fail_msg("quantile %g, kind %d, %d finite values: %a, not %a", p, kind, n, got, want);
}

static void expect_summary(int kind, int rows, rng *r) {
    static double value[MOST], sorted[MOST];
    summary all, range;
    int n = 0;
    double sum = 0;
    for (int i = 0; i < rows; i++) {
        value[i] = value_of_kind(kind, i, r);
        if (isfinite(value[i])) sum += sorted[n++] = value[i];
    }
    sort_reals(sorted, n);
    const double p[] = {0.01, 0.25, 0.5, 0.75, 0.99};
    double copy[MOST];
    memcpy(copy, value, sizeof copy);
    const column_quantiles q = quantiles_make(copy, rows, p, 5);
    memcpy(copy, value, sizeof copy);
    summary_range(copy, rows, &range);
    summary_make(value, rows, &all);
    assert_int_equal(all.values, rows);
    assert_int_equal(all.nonfinite, rows - n);
    assert_int_equal(range.nonfinite, rows - n);
    assert_int_equal(q.finite, n);
    expect_number(all.mean, n ? sum / n : NAN, "mean", kind, rows);
    expect_number(all.min, n ? sorted[0] : NAN, "least", kind, rows);
    expect_number(all.max, n ? sorted[n - 1] : NAN, "largest", kind, rows);
    expect_number(range.max, all.max, "largest of a range", kind, rows);
    expect_number(range.median, all.median, "median of a range", kind, rows);
    assert_true(isnan(range.q25));
    assert_true(isnan(range.mean));
    const double got[] = {all.q01, all.q25, all.median, all.q75, all.q99};
    for (int i = 0; i < 5; i++) {
        expect_quantile(got[i], sorted, n, p[i], kind);
        expect_number(q.at[i], got[i], "quantile alone", kind, rows);
    }
}

static void summaries_are_exact(void **state) {
    (void)state;
    static const int rows[] = {0, 1, 2, 3, 5, 8, 100, 101, 102, MOST};
    rng r = rng_create(3);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int kind = 0; kind < KINDS; kind++) expect_summary(kind, rows[i], &r);
}

/* 61 sites of a million steps in three passes of about the same size. */
static void columns_go_together(void **state) {
    (void)state;
    room = 192 << 20;
    assert_int_equal(columns_together(100, 400), 400);
    assert_int_equal(columns_together(1000000, 61), 21);
    assert_int_equal(columns_together(40000000, 1), 1);
    assert_int_equal(columns_together(40000000, 1000), 1);
    assert_int_equal(columns_together(0, 0), 1);
    room = 1;
    assert_int_equal(columns_together(100, 3), 1);
    room = 64 << 20;
}

/* -- a program ------------------------------------------------------------------------------- */

enum { STEPS = 5000, TEST_SITES = 3 };

static void write_long(const char *path) {
    rng r = rng_create(1);
    sr_recorder *to = run_create(program_file(path), run_options());
    for (int i = 0; i < TEST_SITES; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        run_add_ln(to, name, 2, i, 3);
    }
    for (int step = 1; step <= STEPS; step++) {
        const double rate = step < 1000 ? 1e-3 * step : step < 4098 ? 1 : 2;
        const sr_step row = {.size = sizeof(sr_step),
                             step,
                             step % 500 && step != 4097 ? 10 : 1,
                             1e-3 * step,
                             step,
                             rate,
                             1};
        sr_begin_step(to, step);
        for (int i = 0; i < TEST_SITES; i++) {
            const double exact = exp(rng_normal(&r));
            sr_put_rows(to, i, 2);
            sr_put_scalar(to, i, SR_SCALAR_row_grad_mean, rng_normal(&r));
            sr_put_scalar(to, i, SR_SCALAR_row_grad_var, step % 997 ? exact * 1.01 : INFINITY);
            sr_put_scalar(to, i, SR_SCALAR_row_exact_mean, 0);
            sr_put_scalar(to, i, SR_SCALAR_row_exact_var, exact);
            sr_put_scalar(to, i, SR_SCALAR_row_g_mean, rng_normal(&r));
            if (i) sr_put_scalar(to, i, SR_SCALAR_row_g_var, i == 2 && step == 9 ? NAN : exact);
        }
        assert_int_equal(sr_end_step(to, &row), SR_OK);
    }
    run_finish(to);
}

static void programs_print_the_same(void **state) {
    (void)state;
    static char name[] = "stat-lngrad", stat[] = "--stat", two[] = "grad_mean,g_var",
                phase[] = "--phase", last[] = "last";
    write_long("long.h5");
    char *run = strdup(program_file("long.h5"));
    assert_non_null(run);
    expect_same_table(stat_lngrad_main, 1000, (char *[]){name, run, run, NULL}, TEST_SITES + 1);
    expect_same_table(stat_lngrad_main, 1000, (char *[]){name, run, stat, two, phase, last, NULL},
                      TEST_SITES + 1);
    free(run);
    program_result r = program_run("stat-lngrad --startup 0 long.h5");
    check_cell(&r, 0, "steps", STEPS);
    check_cell(&r, 0, "nonfinite", 5);
    check_cell(&r, 2, "nonfinite", 6);
    check_text(&r, 0, "g_var", "nan");
    assert_non_null(strstr(r.out, "11 of 5000 passes have less than half of the usual 10 "));
    assert_non_null(strstr(r.out, "includes 3 learning-rate phases"));
    program_free(&r);
    r = program_run("stat-lngrad --startup 0 --phase last long.h5");
    assert_non_null(strstr(r.out, ": 4098 to 5000 of 5000; phase 3 of 3, learning rate 2"));
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summaries_are_exact),
        cmocka_unit_test(columns_go_together),
        cmocka_unit_test(programs_print_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
