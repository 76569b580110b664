/* test_stream.c -- summaries of columns that do not fit into memory, by a room that is made small: against
 * summary_make of the same values, and a program's table against itself. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/column_summary.h"
#include "base/rng.h"
#include "room.h"
#include "statrec/format.h"
#include "testing/check.h"
#include "testing/programs.h"

/* The program, to be called with a room of our own. */
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
        return 1 + ldexp((double)rng_below(r, 9), -52); /* alike but for the last digit */
    case 11:
        return (i % 2 ? -1 : 1) * ldexp(1, (int)rng_below(r, 100)); /* the first digit alone */
    default:
        return any_bits(r);
    }
}

/* columns [KINDS][rows] */
typedef struct memory_columns {
    const double *value;
    int64_t rows, asked, largest;
} memory_columns;

static sr_status read_memory(void *context, int64_t first, int64_t count, double *const *value,
                             sr_failure *why) {
    memory_columns *m = context;
    (void)why;
    m->asked += count;
    m->largest = count > m->largest ? count : m->largest;
    for (int k = 0; k < KINDS; k++)
        memcpy(value[k], m->value + k * m->rows + first, (size_t)count * sizeof *value[k]);
    return SR_OK;
}

/* NaN has no bits that matter. */
static void expect_same(const summary *got, const summary *want, int kind, int rows) {
    const double a[] = {got->mean,   got->min, got->q01, got->q25,
                        got->median, got->q75, got->q99, got->max};
    const double b[] = {want->mean,   want->min, want->q01, want->q25,
                        want->median, want->q75, want->q99, want->max};
    assert_int_equal(got->values, want->values);
    assert_int_equal(got->nonfinite, want->nonfinite);
    for (int i = 0; i < 8; i++)
        if (memcmp(&a[i], &b[i], sizeof a[i]) != 0 && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("kind %d, %d rows, number %d: %a, not %a", kind, rows, i, a[i], b[i]);
}

/* What parts of figures are made of. */
static void expect_ranges(memory_columns *m) {
    const size_t rows = (size_t)m->rows;
    double *copy = malloc(rows * sizeof *copy);
    bucket_range got[KINDS];
    column_space space = {0};
    sr_failure why = {0};
    const column_source source = {KINDS, m->rows, true, read_memory, m};
    assert_non_null(copy);
    check_ok(ranges_stream(&source, &space, got, &why), &why);
    for (int k = 0; k < KINDS; k++) {
        memcpy(copy, m->value + k * m->rows, rows * sizeof *copy);
        const bucket_range want = bucket_measure(copy, m->rows);
        if (memcmp(&got[k], &want, sizeof want) != 0 && !(isnan(got[k].least) && isnan(want.least)))
            fail_msg("kind %d, %d rows: %a %a %a, not %a %a %a", k, (int)m->rows, got[k].least,
                     got[k].median, got[k].largest, want.least, want.median, want.largest);
    }
    column_space_free(&space);
    free(copy);
}

static void expect_summaries(memory_columns *m, bool range) {
    const int rows = (int)m->rows;
    double *copy = malloc((size_t)rows * sizeof *copy);
    summary got[KINDS], want;
    column_space space = {0};
    sr_failure why = {0};
    const column_source source = {KINDS, rows, range, read_memory, m};
    assert_non_null(copy);
    check_ok(summary_read(&source, &space, got, &why), &why);
    for (int k = 0; k < KINDS; k++) {
        memcpy(copy, m->value + k * rows, (size_t)rows * sizeof *copy);
        (range ? summary_range : summary_make)(copy, rows, &want);
        expect_same(&got[k], &want, k, rows);
    }
    column_space_free(&space);
    free(copy);
}

/* Rooms for blocks of 1, 7 and all rows, none for the columns as a whole. */
static void expect_kinds(int rows) {
    static const int64_t block[] = {1, 7, MOST};
    rng r = rng_create(3);
    double *value = malloc(KINDS * (size_t)rows * sizeof *value);
    assert_non_null(value);
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < rows; i++) value[k * rows + i] = value_of_kind(k, i, &r);
    for (int i = 0; i < 2 * 3; i++) {
        memory_columns m = {.value = value, .rows = rows};
        room = block[i / 2] * 64 * KINDS;
        if (room / (8 * (rows + 1)) >= KINDS) room = 8 * (rows + 1) * KINDS - 1;
        expect_summaries(&m, i % 2);
        assert_true(m.asked >= 3 * rows);
        expect_ranges(&m);
        assert_true(m.largest <= block[i / 2]);
    }
    free(value);
    room = 64 << 20;
}

static void summaries_of_columns_that_are_not_kept(void **state) {
    (void)state;
    static const int rows[] = {1, 2, 3, 5, 8, 100, 101, 102, MOST};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) expect_kinds(rows[i]);
}

/* Once is enough where they fit; no rows are no reason to ask. */
static void columns_that_fit_are_read_once(void **state) {
    (void)state;
    double value[KINDS * 50] = {0};
    memory_columns m = {.value = value, .rows = 50};
    expect_summaries(&m, false);
    assert_int_equal(m.asked, 50);
    summary got;
    column_space space = {0};
    sr_failure why = {0};
    const column_source none = {1, 0, false, read_memory, &m};
    check_ok(summary_read(&none, &space, &got, &why), &why);
    assert_int_equal(m.asked, 50);
    assert_int_equal(got.values, 0);
    assert_true(isnan(got.median) && isnan(got.max));
    column_space_free(&space);
}

/* float32 in three passes, double in five. */
static sr_status read_kind(void *context, int64_t first, int64_t count, double *const *value,
                           sr_failure *why) {
    (void)first, (void)why;
    int64_t *asked = context;
    const double third = 1.0 / 3, tenth = (double)0.1f;
    for (int64_t i = 0; i < count; i++) value[0][i] = asked[1] ? -third : -tenth;
    asked[0] += count;
    return SR_OK;
}

static void float32_takes_three_passes(void **state) {
    (void)state;
    sr_failure why = {0};
    room = 64;
    for (int kind = 0; kind < 2; kind++) {
        int64_t asked[2] = {0, kind};
        summary s;
        column_space space = {0};
        const column_source source = {1, 100, true, read_kind, asked};
        check_ok(summary_read(&source, &space, &s, &why), &why);
        assert_true(s.median == (kind ? -1.0 / 3 : -(double)0.1f));
        assert_int_equal(asked[0], kind ? 500 : 300);
        column_space_free(&space);
    }
    room = 64 << 20;
}

/* A failure is passed on, from the first pass and from a later one. */
static sr_status read_until(void *context, int64_t first, int64_t count, double *const *value,
                            sr_failure *why) {
    int *left = context;
    (void)first;
    if ((*left)-- == 0) return sr_fail(why, SR_IO, "no more");
    for (int64_t i = 0; i < count; i++) value[0][i] = 0.1;
    return SR_OK;
}

static void failures_are_passed_on(void **state) {
    (void)state;
    room = 64;
    for (int until = 0; until < 12; until += 11) {
        int left = until;
        summary s;
        column_space space = {0};
        sr_failure why = {0};
        const column_source source = {1, 10, true, read_until, &left};
        assert_int_equal(summary_read(&source, &space, &s, &why), SR_IO);
        check_failure(&why, SR_IO, "no more");
        column_space_free(&space);
    }
    room = 64 << 20;
}

static void columns_go_together(void **state) {
    (void)state;
    assert_int_equal(columns_together(100, 400, false), 400);
    assert_int_equal(columns_together(100000, 61, false), 61);
    assert_int_equal(columns_together(100000, 200, false), 83); /* kept, in three turns */
    assert_int_equal(columns_together(5000000, 61, false), 61); /* one would fit */
    assert_int_equal(columns_together(40000000, 1, false), 1);
    assert_int_equal(columns_together(40000000, 1000, true), 512);
    room = 1;
    assert_int_equal(columns_together(100, 3, false), 1);
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
    program_result r = program_run("stat-lngrad --burn-in 0 long.h5");
    check_cell(&r, 0, "steps", STEPS);
    check_cell(&r, 0, "nonfinite", 5);
    check_cell(&r, 2, "nonfinite", 6);
    check_text(&r, 0, "g_var", "nan");
    assert_non_null(strstr(r.out, "11 of 5000 passes have less than half of the usual 10 "));
    assert_non_null(strstr(r.out, "3 phases of the learning rate"));
    program_free(&r);
    r = program_run("stat-lngrad --burn-in 0 --phase last long.h5");
    assert_non_null(strstr(r.out, ": 4098 to 5000 of 5000; phase 3 of 3, learning rate 2"));
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summaries_of_columns_that_are_not_kept),
        cmocka_unit_test(columns_that_fit_are_read_once),
        cmocka_unit_test(float32_takes_three_passes),
        cmocka_unit_test(failures_are_passed_on),
        cmocka_unit_test(columns_go_together),
        cmocka_unit_test(programs_print_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
