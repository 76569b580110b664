/* test_stream_depth.c -- stat-depth, and the median of /steps/tokens, with columns that do not fit into
 * memory, by a room that is made small: against themselves, where all is kept. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/step_range.h"
#include "base/rng.h"
#include "room.h"
#include "testing/check.h"
#include "testing/programs.h"

/* The program, to be called with a room of our own. */
int stat_depth_main(int argc, char **argv);

enum { STEPS = 800, TEST_SITES = 2, WIDTH = 3 };

static sr_recorder *create(const char *path) {
    sr_options o = run_options();
    o.vectors_every = 1;
    sr_recorder *to = run_create(path, o);
    for (int i = 0; i < TEST_SITES; i++) run_add_bn(to, i ? "late" : "early", WIDTH, i, 1e-2);
    return to;
}

/* The late site has no psi2_B and a variance of 2; of the early one a variance is infinite in step 7, and in steps 300 to
 * 309 a mean is missing. */
static void put_site(sr_recorder *to, int site, int step, rng *r) {
    double mean[WIDTH], variance[WIDTH], power[WIDTH];
    for (int k = 0; k < WIDTH; k++) {
        mean[k] = rng_normal(r);
        variance[k] = site ? 2 : exp(3 * rng_normal(r));
        power[k] = mean[k] * mean[k] + variance[k];
    }
    if (!site && step == 7) variance[1] = INFINITY;
    if (!site && step / 10 == 30) mean[0] = NAN;
    sr_put_rows(to, site, 2);
    sr_put_vector(to, site, SR_mu_B, mean);
    sr_put_vector(to, site, SR_sigma2_B, variance);
    if (!site) sr_put_vector(to, site, SR_psi2_B, power);
}

static void write_run(const char *path) {
    rng r = rng_create(1);
    sr_recorder *to = create(path);
    for (int step = 1; step <= STEPS; step++) {
        const sr_step row = {
            .size = sizeof(sr_step), step, (int64_t)rng_below(&r, 1000), step, 1, 1, 1};
        sr_begin_step(to, step);
        for (int i = 0; i < TEST_SITES; i++) put_site(to, i, step, &r);
        assert_int_equal(sr_end_step(to, &row), SR_OK);
    }
    run_finish(to);
}

/* Rooms for blocks of one row, of seven and of as many as a part has. */
static void expect_same(char **words, int rows_least) {
    static const int64_t block[] = {1, 7, STEPS / 4};
    for (size_t i = 0; i < sizeof block / sizeof block[0]; i++)
        expect_same_table(stat_depth_main, block[i] * 64 * FEATURE_STATISTICS, words, rows_least);
}

static char name[] = "stat-depth", cut[] = "--parts";

static void tables_are_the_same(void **state) {
    (void)state;
    static char one[] = "1", many[] = "1000", phase[] = "--phase", half[] = "second-half";
    write_run(program_file("long.h5"));
    char *run = strdup(program_file("long.h5"));
    assert_non_null(run);
    expect_same((char *[]){name, run, NULL}, 9);
    expect_same((char *[]){name, run, cut, one, phase, half, NULL}, 3);
    expect_same((char *[]){name, run, cut, many, NULL}, 2001);
    free(run);
}

/* However often the rows are read. */
static void rows_are_counted_once(void **state) {
    (void)state;
    write_run(program_file("long.h5"));
    char *run = strdup(program_file("long.h5"));
    assert_non_null(run);
    for (int64_t bytes = 64; bytes <= 64 << 20; bytes <<= 20) {
        print_with_room(stat_depth_main, bytes, (char *[]){name, run, NULL},
                        program_file("of.tsv"));
        program_result r = program_run("cat of.tsv");
        const int nonfinite[] = {1, 0, 10, 0, 0, 0, 0, 0}; /* [parts, sites] */
        for (int i = 0; i < 8; i++) {
            check_cell(&r, i, "steps", STEPS / 4);
            check_cell(&r, i, "nonfinite", nonfinite[i]);
        }
        assert_true(isnan(table_real(r.out, 1, "power")));
        check_cell(&r, 1, "variance", 2);
        check_cell(&r, 1, "largest", 2);
        program_free(&r);
    }
    free(run);
}

static void tokens_are_the_same(void **state) {
    (void)state;
    sr_failure why = {0};
    summary of[2];
    char *path[] = {strdup(program_file("long.h5"))};
    run_set set;
    assert_non_null(path[0]);
    write_run(path[0]);
    check_ok(run_set_open(&set, 1, path, &why), &why);
    for (int i = 0; i < 2; i++) {
        room = i ? 64 << 20 : 64;
        check_ok(run_tokens(set.run[0], &of[i], &why), &why);
    }
    assert_int_equal(of[0].values, STEPS);
    assert_true(of[0].median == of[1].median && of[0].max == of[1].max && of[0].mean == of[1].mean);
    assert_true(of[0].median > 400 && of[0].median < 600);
    run_set_close(&set);
    free(path[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_the_same),
        cmocka_unit_test(rows_are_counted_once),
        cmocka_unit_test(tokens_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
