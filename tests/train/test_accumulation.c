/* Gradient accumulation (docs/models.md 9.4): quantities that advance per micro-batch or per
 * update. Gradients of summed losses add up, so LN gives the same result however an update is
 * split. Statistics, nu and warm-ups of normalizations advance with every micro-batch, learning
 * rates with every update. */
#include <math.h>
#include <stdio.h>

#include "small_run.h"
#include "testing/check.h"

enum { UPDATES = 5, PASSES = 12, WIDTH = 16 };

/* -- LN: the same sentences in 1, 2 or 4 passes */

typedef struct course {
    double norm[UPDATES], lr[UPDATES], valid[UPDATES], train[UPDATES];
} course;

typedef struct heard {
    double *train;
    int count;
} heard;

static void hear_eval(void *context, const train_eval *e) {
    heard *h = context;
    assert_true(h->count < UPDATES);
    h->train[h->count++] = e->train_loss;
}

/* 8 pairs of four tokens an epoch, one update an epoch. */
static course cut(const char *passes, const char *max_tokens, int64_t each) {
    const char *const args[] = {"--norm=ln",
                                "--lr=0.01",
                                "--warmup-updates=3",
                                "--warmup-init-lr=0.002",
                                "--epochs=5",
                                "--update-freq",
                                passes,
                                "--max-tokens",
                                max_tokens,
                                NULL};
    double norm[4 * UPDATES], lr[4 * UPDATES];
    course c;
    heard h = {c.train, 0};
    const train_events events = {.context = &h, .eval = hear_eval};
    train_result r;
    sr_runfile *f = small_run(args, &events, &r);
    assert_int_equal(r.updates, UPDATES);
    assert_int_equal(r.steps, each * UPDATES);
    small_steps(f, "grad_norm", r.steps, norm);
    small_steps(f, "lr", r.steps, lr);
    small_evals(f, "valid_loss", UPDATES, c.valid);
    for (int u = 0; u < UPDATES; u++) {
        c.norm[u] = norm[(u + 1) * each - 1];
        c.lr[u] = lr[(u + 1) * each - 1];
    }
    sr_run_close(f);
    return c;
}

static void ln_does_not_see_the_cut(void **state) {
    (void)state;
    small_write_pairs(8);
    const course whole = cut("1", "32", 1), two = cut("2", "16", 2), four = cut("4", "8", 4);
    const course *const other[] = {&two, &four};
    for (int i = 0; i < 2; i++) {
        check_near_double("lr", other[i]->lr, whole.lr, UPDATES, 0, 0);
        check_near_double("grad_norm", other[i]->norm, whole.norm, UPDATES, 2e-4, 0);
        check_near_double("valid_loss", other[i]->valid, whole.valid, UPDATES, 2e-5, 0);
        check_near_double("train_loss", other[i]->train, whole.train, UPDATES, 2e-5, 0);
    }
    check_below(whole.valid[UPDATES - 1], 0.99 * whole.valid[0]); /* something is learnt */
}

/* -- statistics and nu */

static void read_vector(const sr_runfile *f, const char *name, float v[PASSES * WIDTH]) {
    sr_failure why = {0};
    check_ok(sr_run_vector(f, name, 0, 0, PASSES, v, &why), &why);
}

/* docs/norms.md 11, in every pass, those inside an update too. */
static void statistics_by_pass(void **state) {
    (void)state;
    const char *const args[] = {
        "--norm=pn",    "--record=all", "--epochs=3",     "--lr=0.01", "--update-freq=2",
        "--norm-alpha", "0.75",         "--pn-alpha-bkw", "0.5",       NULL};
    float own[PASSES * WIDTH], psi2[PASSES * WIDTH], nu[PASSES * WIDTH], gamma[PASSES * WIDTH],
        lambda[PASSES * WIDTH];
    double largest = 0;
    train_result r;
    small_write_pairs(8);
    sr_runfile *f = small_run(args, NULL, &r);
    assert_int_equal(r.steps, PASSES);
    read_vector(f, "psi2_B", own), read_vector(f, "psi2", psi2), read_vector(f, "nu", nu);
    read_vector(f, "Gamma_t", gamma), read_vector(f, "Lambda_t", lambda);
    for (int i = 0; i < (PASSES - 1) * WIDTH; i++) {
        const double next = 0.75 * (double)psi2[i] + 0.25 * (double)own[i];
        const double then = (double)nu[i] * (1 - 0.5 * (double)gamma[i]) + 0.5 * (double)lambda[i];
        const double size = fabs((double)nu[i]) + fabs((double)lambda[i]);
        if (!(fabs((double)psi2[i + WIDTH] - next) <= 1e-5 * next) ||
            !(fabs((double)nu[i + WIDTH] - then) <= 1e-5 * size))
            fail_msg("pass %d: psi2 %g, not %g; nu %g, not %g", i / WIDTH + 1,
                     (double)psi2[i + WIDTH], next, (double)nu[i + WIDTH], then);
        largest = fmax(largest, size);
    }
    check_above(largest, 1e-3);
    sr_run_close(f);
}

/* -- warm-ups of normalizations */

/* Losses of passes that learn nothing. */
static void warm_up(const char *calls, double loss[PASSES]) {
    const char *const args[] = {"--norm=pn-released",
                                "--lr=0",
                                "--warmup-updates=0",
                                "--epochs=3",
                                "--update-freq=4",
                                "--norm-warmup",
                                calls,
                                NULL};
    train_result r;
    sr_runfile *f = small_run(args, NULL, &r);
    assert_int_equal(r.steps, PASSES);
    small_steps(f, "loss", PASSES, loss);
    sr_run_close(f);
}

/* One call more of warm-up: nothing happens before it, something in it. */
static void warmup_by_pass(void **state) {
    (void)state;
    double shorter[PASSES], longer[PASSES];
    small_write_pairs(8);
    for (int calls = 1; calls < PASSES - 1; calls++) {
        char text[2][16];
        snprintf(text[0], sizeof text[0], "%d", calls);
        snprintf(text[1], sizeof text[1], "%d", calls + 1);
        warm_up(text[0], shorter);
        warm_up(text[1], longer);
        for (int i = 0; i < calls; i++) check_equals(shorter[i], longer[i]);
        check_differs(shorter[calls], longer[calls]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ln_does_not_see_the_cut),
                                       cmocka_unit_test(statistics_by_pass),
                                       cmocka_unit_test(warmup_by_pass)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
