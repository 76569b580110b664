/* test_batchmix_terms.c -- the terms of a covariate by hand, and how memory grows with the
   steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/batchmix/batchmix.h"
#include "base/rng.h"
#include "testing/bounded.h"
#include "testing/check.h"
#include "testing/programs.h"

enum { STEPS = 7001, WIDTH = 2 }; /* three blocks of 2048 steps and a part */

/* Every eleventh step has no rows, every thirteenth no known samples. */
static void put_site(sr_recorder *to, int step, rng *r) {
    double mean[WIDTH], running[WIDTH], variance[WIDTH];
    const int samples = 20 + (int)rng_below(r, 10), valid = samples * 5 + (int)rng_below(r, 500);
    for (int k = 0; k < WIDTH; k++) {
        mean[k] = rng_normal(r) + 0.1 * valid / samples;
        running[k] = rng_normal(r) / 8;
        variance[k] = exp(rng_normal(r));
    }
    sr_put_rows(to, 0, step % 11 ? valid : 0);
    sr_put_scalar(to, 0, SR_SCALAR_samples, step % 13 ? samples : NAN);
    sr_put_scalar(to, 0, SR_SCALAR_padded, (double)rng_below(r, 200));
    sr_put_vector(to, 0, SR_mu_B, mean);
    sr_put_vector(to, 0, SR_mu, running);
    sr_put_vector(to, 0, SR_sigma2, variance);
}

static void write_run(const char *path, int steps, int every) {
    sr_options o = run_options();
    o.vectors_every = every, o.flush_seconds = 1e9;
    sr_recorder *to = run_create(path, o);
    rng r = rng_create(1);
    run_add_bn(to, "s", WIDTH, 1, 1e-5);
    for (int step = 1; step <= steps; step++) {
        sr_begin_step(to, step);
        put_site(to, step, &r);
        run_end_step(to, step);
    }
    run_finish(to);
}

/* The term of a covariate without bends, in the steps with vectors: the difference from its running
 * mean, scaled to a mean square of 1. The running mean starts at the mean of all steps and stays
 * unchanged at steps without rows. z [STEPS / every] */
static void term_by_hand(const double *value, int every, double *z) {
    double sum = 0, known = 0, square = 0, finite = 0;
    for (int i = 0; i < STEPS; i++)
        if (!isnan(value[i])) sum += value[i], known++;
    double running = sum / known;
    for (int i = 0; i < STEPS; i++) {
        const double moved = value[i] - running;
        if ((i + 1) % every == 0) z[(i + 1) / every - 1] = moved;
        if ((i + 1) % every == 0 && !isnan(moved)) square += moved * moved, finite++;
        if (!isnan(moved)) running += 0.1 * moved;
    }
    for (int i = 0; i < STEPS / every; i++) z[i] /= sqrt(square / finite);
}

static void terms_by_hand(void **state) {
    (void)state;
    enum { EVERY = 3, ROWS = STEPS / EVERY };
    static float n[STEPS], beside[2][STEPS];
    static double value[2][STEPS], want[2][ROWS];
    sr_failure why = {0};
    write_run(program_file("terms.h5"), STEPS, EVERY);
    sr_runfile *run = sr_run_open(program_file("terms.h5"), &why);
    assert_non_null(run);
    check_ok(sr_run_scalar(run, "rows", 0, 0, STEPS, n, &why), &why);
    check_ok(sr_run_scalar(run, "samples", 0, 0, STEPS, beside[0], &why), &why);
    check_ok(sr_run_scalar(run, "padded", 0, 0, STEPS, beside[1], &why), &why);
    for (int i = 0; i < STEPS; i++) {
        const double rows_of = (double)n[i], padded = (double)beside[1][i];
        value[0][i] = rows_of > 0 ? rows_of / (double)beside[0][i] : NAN;
        value[1][i] = rows_of > 0 ? padded / (rows_of + padded) : NAN;
    }
    for (int c = 0; c < 2; c++) term_by_hand(value[c], EVERY, want[c]);
    const step_window all = {.first = 1, .last = STEPS};
    mix_site m = {.run = run, .at = sr_run_get_site(run, 0)};
    check_ok(mix_site_read(&m, &(mix_wanted){&all, 1, 1}, &why), &why);
    assert_int_equal(m.rows, ROWS);
    assert_int_equal(m.length, 1);
    assert_int_equal(m.padding, 1);
    for (int i = 0; i < ROWS; i++) {
        check_equals(m.n[i], (double)n[(i + 1) * EVERY - 1]);
        for (int c = 0; c < 2; c++) {
            const double got = m.z[2 * i + c], right = want[c][i];
            if (isnan(right) ? !isnan(got) : !(fabs(got - right) < 1e-9))
                fail_msg("row %d, covariate %d: %.12g want %.12g", i, c, got, right);
        }
    }
    mix_site_free(&m);
    sr_run_close(run);
}

/* Memory holds one column of covariates and nothing else of all steps; the rest is the file's. */
static void memory_of_a_step(void **state) {
    (void)state;
    enum { FEW = 20000, MANY = 320000 };
    int64_t memory[2];
    for (int i = 0; i < 2; i++) {
        const int steps = i ? MANY : FEW;
        write_run(program_file("memory.h5"), steps, steps / 200);
        bounded_result r = bounded_run("stat-batchmix FILE", program_file("memory.h5"));
        if (r.status || r.signal) fail_msg("%s", r.text);
        memory[i] = r.memory;
        bounded_free(&r);
    }
    const double each = (double)(memory[1] - memory[0]) / (MANY - FEW);
    if (each > 48) fail_msg("%.1f bytes a step", each);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(terms_by_hand),
                                       cmocka_unit_test(memory_of_a_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
