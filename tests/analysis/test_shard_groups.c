/* test_shard_groups.c -- stat-distance --ranks with a small memory limit, so that the sites do not
 * fit together: against all at once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "room.h"
#include "testing/check.h"
#include "testing/programs.h"

/* The program under test, called with a memory limit that the test sets. */
int stat_distance_main(int argc, char **argv);

/* Sites of two, three and two shards. */
enum { SITES = 3, PUT = 7, STEPS = 600, WIDTH = 3, COLUMNS = 5 };
static const char *const names[PUT] = {"a", "b", "c", "a@1", "b@1", "c@1", "b@2"};

static sr_recorder *create(const char *path, int every) {
    sr_options o = run_options();
    o.vectors_every = every;
    sr_recorder *to = run_create(program_file(path), o);
    for (int i = 0; i < PUT; i++)
        sr_add_site(to, &(sr_site){.size = sizeof(sr_site),
                                   .name = names[i],
                                   .norm = "bn",
                                   .uses = "mu,sigma2",
                                   .kind = "conv",
                                   .family = SR_FAMILY_SIGMA,
                                   .width = WIDTH,
                                   .depth = i % SITES,
                                   .eps = 1,
                                   .alpha = 0.5});
    return to;
}

/* Few different values, so that ties occur; sometimes a shard without rows, or a value that is not
 * finite. */
static void put_site(sr_recorder *to, int site, int step, rng *r) {
    double mean[WIDTH], variance[WIDTH];
    const int64_t rows = rng_below(r, 20) ? 1 + (int64_t)rng_below(r, 3) : 0;
    for (int k = 0; k < WIDTH; k++) {
        mean[k] = (double)rng_below(r, 3);
        variance[k] = site % SITES == 2 ? exp(rng_normal(r)) : 1 + (double)rng_below(r, 2);
    }
    if (site == 4 && step % 50 == 0) mean[1] = step % 100 ? NAN : INFINITY;
    sr_put_rows(to, site, rows);
    if (!rows) return;
    sr_put_vector(to, site, SR_mu_B, mean);
    sr_put_vector(to, site, SR_sigma2_B, variance);
}

static sr_recorder *write_steps(const char *path, int every) {
    rng r = rng_create(1);
    sr_recorder *to = create(path, every);
    for (int step = 1; step <= STEPS; step++) {
        sr_begin_step(to, step);
        for (int i = 0; i < PUT; i++) put_site(to, i, step, &r);
        run_end_step(to, step);
    }
    return to;
}

static int write_runs(void **state) {
    (void)state;
    run_finish(write_steps("all.h5", 1));
    run_finish(write_steps("third.h5", 3));
    sr_recorder *r = write_steps("killed.h5", 1);
    assert_int_equal(sr_flush(r), SR_OK);
    sr_abandon(r);
    return 0;
}

/* Limits for blocks of one row and of several, and for the columns of one site and of two. */
static void expect_same(const char *options, int rows_least) {
    static const int64_t bytes[] = {1, 8 * SITES * COLUMNS * 7, 8 * COLUMNS * (STEPS + 1),
                                    2 * 8 * COLUMNS * (STEPS + 1)};
    char line[256], *words[16] = {(char[]){"stat-distance"}, (char[]){"--ranks"}};
    int count = 2;
    snprintf(line, sizeof line, "%s", options);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        words[count++] = strstr(word, ".h5") ? strdup(program_file(word)) : word;
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        expect_same_table(stat_distance_main, bytes[i], words, rows_least);
    for (int i = 2; i < count; i++)
        if (strstr(words[i], ".h5")) free(words[i]);
}

static void summaries_are_the_same(void **state) {
    (void)state;
    expect_same("all.h5", 1 + SITES);
    expect_same("third.h5 --phase 100:500", 1 + SITES);
    expect_same("killed.h5 --burn-in 7", 1 + SITES);
    expect_same("third.h5 all.h5 killed.h5 --site a,c", 1 + 2 * 3);
    expect_same("third.h5 --phase 2:2", 1 + SITES); /* no row of vectors */
}

static void steps_are_the_same(void **state) {
    (void)state;
    expect_same("all.h5 --per-step", 1 + 4 * STEPS);
    expect_same("third.h5 --per-step --phase 100:500", 1 + 4 * 133);
    expect_same("third.h5 killed.h5 --per-step --site b", 1 + STEPS / 3 + STEPS);
    expect_same("third.h5 --per-step --phase 2:2", 1);
}

static void parts_are_the_same(void **state) {
    (void)state;
    expect_same("all.h5 --per-step --buckets 7", 1 + 4 * 3 * 7);
    expect_same("third.h5 killed.h5 --per-step --buckets 1", 1 + 2 * 4 * 3);
    expect_same("all.h5 third.h5 --per-step --buckets 10 --phase second-half --site c",
                1 + 2 * 3 * 10);
}

/* Smallest and largest of a bucket are the extremes of its steps, for each site and for the median
 * over sites. */
static void parts_are_those_of_the_steps(void **state) {
    (void)state;
    program_result r = program_run(
        "of() { stat-distance --ranks all.h5 --per-step \"$@\" | grep -v '^#' | tail -n +2; }\n"
        "of --buckets 6 | awk -F '\\t' '{print $2, $9}' >parts.txt\n"
        "of | awk -F '\\t' '{p = int(($3 - 1) / 599 * 6); p = p < 6 ? p : 5; k = $2 \" \" p;\n"
        "  if ($9 == \"nan\") next; if (!(k in low) || $9 < low[k]) low[k] = $9;\n"
        "  if (!(k in high) || $9 > high[k]) high[k] = $9}\n"
        "  END {split(\"a b c (median)\", s, \" \"); for (i = 1; i < 5; i++)\n"
        "    for (p = 0; p < 6; p++) {print s[i], low[s[i] \" \" p]; print s[i], high[s[i] \" \" "
        "p]}}'"
        " >steps.txt\n"
        "awk 'NR %% 3 != 2' parts.txt | cmp - steps.txt && wc -l <steps.txt");
    if (r.status) fail_msg("exit %d: %s%s", r.status, r.out, r.err);
    assert_int_equal(atoi(r.out), 4 * 6 * 2);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summaries_are_the_same),
        cmocka_unit_test(steps_are_the_same),
        cmocka_unit_test(parts_are_the_same),
        cmocka_unit_test(parts_are_those_of_the_steps),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
