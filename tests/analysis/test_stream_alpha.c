/* test_stream_alpha.c -- stat-alpha with columns that do not fit into memory, by a room that is made small:
 * against itself, where all is kept, and what is left out by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "room.h"
#include "testing/check.h"
#include "testing/programs.h"

/* The program, to be called with a room of our own. */
int stat_alpha_main(int argc, char **argv);

enum { STEPS = 3000, WIDTH = 3 };

/* In step 300 a mean is missing: from then on no distance is finite. */
static void write_run(const char *path) {
    rng r = rng_create(1);
    sr_options o = run_options();
    o.vectors_every = 1;
    sr_recorder *to = run_create(path, o);
    run_add_bn(to, "s", WIDTH, 0, 1e-2);
    for (int step = 1; step <= STEPS; step++) {
        double mean[WIDTH], variance[WIDTH];
        for (int k = 0; k < WIDTH; k++) {
            mean[k] = step == 300 ? NAN : rng_normal(&r);
            variance[k] = exp(rng_normal(&r));
        }
        sr_begin_step(to, step);
        sr_put_rows(to, 0, 2);
        sr_put_vector(to, 0, SR_mu_B, mean);
        sr_put_vector(to, 0, SR_sigma2_B, variance);
        sr_put_vector(to, 0, SR_mu, variance);
        sr_put_vector(to, 0, SR_sigma2, variance);
        run_end_step(to, step);
    }
    run_finish(to);
}

/* Rooms for blocks of one row, of seven and of 80, of six alphas. */
static void expect_same(char **words, int rows_least) {
    static const int64_t block[] = {1, 7, 80};
    for (size_t i = 0; i < sizeof block / sizeof block[0]; i++)
        expect_same_table(stat_alpha_main, block[i] * 64 * 6, words, rows_least);
}

static char name[] = "stat-alpha", stat[] = "--stat", two[] = "mu,sigma2", startup[] = "--burn-in";

static void tables_are_the_same(void **state) {
    (void)state;
    static char phase[] = "--phase", most[] = "20:650", same[] = "same", kept[] = "--running-dtype",
                bf16[] = "bf16", last[] = "698";
    write_run(program_file("long.h5"));
    char *run = strdup(program_file("long.h5"));
    assert_non_null(run);
    expect_same((char *[]){name, run, stat, two, NULL}, 13);
    expect_same((char *[]){name, run, stat, two, phase, most, startup, same, NULL}, 13);
    expect_same((char *[]){name, run, stat, two, kept, bf16, startup, last, NULL}, 13);
    free(run);
}

/* Steps that are left out are no steps without a finite distance. */
static void left_out_is_not_counted(void **state) {
    (void)state;
    static char some[] = "100", alpha[] = "--alpha", list[] = "0,0.5", mu[] = "mu";
    write_run(program_file("long.h5"));
    char *run = strdup(program_file("long.h5"));
    assert_non_null(run);
    for (int64_t bytes = 128; bytes <= 64 << 20; bytes <<= 19) {
        print_with_room(stat_alpha_main, bytes,
                        (char *[]){name, run, stat, mu, alpha, list, startup, some, NULL},
                        program_file("of.tsv"));
        program_result r = program_run("cat of.tsv");
        for (int i = 0; i < 2; i++) {
            check_cell(&r, i, "steps", STEPS - 100);
            check_cell(&r, i, "nonfinite", STEPS - 299);
        }
        program_free(&r);
    }
    free(run);
}

/* Until what the average began with weighs less than 1 %: 0.5^7, 0.9^44. */
static void each_alpha_has_its_steps(void **state) {
    (void)state;
    static char alpha[] = "--alpha", list[] = "0.5,0.9", mu[] = "mu", phase[] = "--phase",
                part[] = "21:650";
    write_run(program_file("long.h5"));
    char *run = strdup(program_file("long.h5"));
    assert_non_null(run);
    print_with_room(stat_alpha_main, 128, (char *[]){name, run, stat, mu, alpha, list, NULL},
                    program_file("all.tsv"));
    print_with_room(stat_alpha_main, 128,
                    (char *[]){name, run, stat, mu, alpha, list, phase, part, NULL},
                    program_file("part.tsv"));
    program_result r = program_run("cat all.tsv");
    check_cell(&r, 0, "steps", STEPS - 7);
    check_cell(&r, 1, "steps", STEPS - 44);
    program_free(&r);
    r = program_run("cat part.tsv");
    check_cell(&r, 0, "steps", 630);
    check_cell(&r, 1, "steps", 650 - 44);
    program_free(&r);
    free(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_the_same),
        cmocka_unit_test(left_out_is_not_counted),
        cmocka_unit_test(each_alpha_has_its_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
