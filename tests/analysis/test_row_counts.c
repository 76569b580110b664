/* test_row_counts.c -- the valid rows n of a step, which /vectors takes from /scalars: the values
 * from any first row, and how many rows of /steps are read for them. */
#include <math.h>
#include <stdlib.h>

#include "analysis/series/series.h"
#include "base/rng.h"
#include "statrec/runfile.h"
#include "testing/check.h"
#include "testing/programs.h"

static int64_t looked; /* rows of /steps/step */

static sr_status look_at_steps(const sr_runfile *f, const char *name, int64_t first, int64_t count,
                               int64_t *value, sr_failure *why) {
    looked += count;
    return sr_run_step_ints(f, name, first, count, value, why);
}

#define sr_run_step_ints look_at_steps
#include "../../src/analysis/series/series_steps.c"   /* NOLINT */
#include "../../src/analysis/series/series_vectors.c" /* NOLINT */
#undef sr_run_step_ints

enum { SITES = 2, EVERY = 3, STEPS = 60000, TABLE_ROWS = 4096, PLACES = 100, WIDE = 128 };

/* Steps are 5, 12, 19 ...: no step equals its row index. */
static int64_t step_of(int64_t row) {
    return 5 + 7 * row;
}

/* Some steps do not record rows. */
static bool has_rows(int64_t row) {
    return row % 11 != 4;
}

static void write_run(const char *path, int64_t steps, int width) {
    sr_options o = run_options();
    o.vectors_every = EVERY, o.flush_seconds = 1e9, o.flush_steps = 4096;
    sr_recorder *r = run_create(path, o);
    const double gamma[WIDE] = {1};
    run_add_bn(r, "a", width, 0, 0);
    run_add_bn(r, "b", width, 1, 0);
    for (int64_t row = 0; row < steps; row++) {
        sr_begin_step(r, step_of(row));
        for (int i = 0; i < SITES; i++) {
            if (has_rows(row)) sr_put_rows(r, i, 1 + 2 * row + i);
            sr_put_vector(r, i, SR_gamma, gamma);
        }
        run_end_step(r, (int)step_of(row));
    }
    run_finish(r);
}

static double rows_of_step(const vector_row *r) {
    return r->rows;
}

static const statistic counts = {"n", "n", "", NEEDS(gamma) | NEEDS_ROWS, rows_of_step, NULL};

static sr_runfile *open_run(const char *name, int64_t steps, int width) {
    sr_failure why = {0};
    write_run(program_file(name), steps, width);
    sr_runfile *f = sr_run_open(program_file(name), &why);
    if (!f) fail_msg("%s", why.text);
    return f;
}

static void expect_counts(const sr_runfile *f, int64_t first, int64_t count) {
    static double value[SITES][STEPS];
    static int64_t step[STEPS];
    sr_failure why = {0};
    const series s[SITES] = {{f, 0, &counts, FROM_VECTORS}, {f, 1, &counts, FROM_VECTORS}};
    double *into[SITES] = {value[0], value[1]};
    check_ok(series_read_all(s, SITES, first, count, into, step, &why), &why);
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (step[i] - step_of(0)) / 7;
        assert_int_equal(step_of(row), step[i]);
        for (int k = 0; k < SITES; k++) {
            const double want = has_rows(row) ? (double)(1 + 2 * row + k) : NAN;
            if (value[k][i] != want && !(isnan(want) && isnan(value[k][i])))
                fail_msg("row %d of %d from %d: %g, not %g", (int)i, (int)count, (int)first,
                         value[k][i], want);
        }
    }
}

/* Reads all rows, as a table by steps does. */
static int64_t look_through(const sr_runfile *f) {
    const int64_t rows = sr_run_get_info(f)->vectors;
    looked = 0;
    for (int64_t first = 0; first < rows; first += TABLE_ROWS)
        expect_counts(f, first, rows - first < TABLE_ROWS ? rows - first : TABLE_ROWS);
    return looked;
}

/* Each block searches its first step with one row per halving of the length. It then reads up to
 * its last step, at most one window too far. */
static void rows_are_looked_at_once(void **state) {
    (void)state;
    sr_runfile *f = open_run("long.h5", STEPS, 1), *half = open_run("half.h5", STEPS / 2, 1);
    const int64_t blocks = (STEPS / EVERY + TABLE_ROWS - 1) / TABLE_ROWS;
    const int64_t of_all = look_through(f), of_half = look_through(half);
    assert_int_equal(sr_run_get_info(f)->vectors, STEPS / EVERY);
    assert_in_range(of_all, STEPS - EVERY, STEPS + blocks * (WINDOW + 17));
    assert_in_range(of_half, STEPS / 2 - EVERY, STEPS / 2 + (blocks + 1) / 2 * (WINDOW + 17));
    sr_run_close(half);
    sr_run_close(f);
}

/* So wide that all rows exceed one chunk. */
static void counts_are_those_of_the_step(void **state) {
    (void)state;
    sr_runfile *f = open_run("any.h5", STEPS / 2, WIDE);
    const int64_t rows = sr_run_get_info(f)->vectors;
    rng random = rng_create(3);
    assert_true(rows * WIDE * (int64_t)sizeof(float) > CHUNK_BYTES);
    expect_counts(f, 0, rows);
    expect_counts(f, rows - 1, 1);
    for (int i = 0; i < PLACES; i++) {
        const int64_t first = (int64_t)rng_below(&random, (uint64_t)rows);
        const int64_t most = rows - first < 2000 ? rows - first : 2000;
        expect_counts(f, first, 1 + (int64_t)rng_below(&random, (uint64_t)most));
    }
    sr_run_close(f);
}

static void rows_are_found_by_step(void **state) {
    (void)state;
    sr_runfile *f = open_run("find.h5", 100, 1);
    const series s = {.run = f, .source = FROM_SCALARS};
    sr_failure why = {0};
    for (int64_t step = 0; step < step_of(100) + 9; step++) {
        int64_t row = -1, want = 0;
        while (want < 100 && step_of(want) < step) want++;
        check_ok(series_find_row(&s, step, &row, &why), &why);
        assert_int_equal(row, want);
    }
    sr_run_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_looked_at_once),
        cmocka_unit_test(counts_are_those_of_the_step),
        cmocka_unit_test(rows_are_found_by_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
