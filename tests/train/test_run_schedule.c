/* The learning rate of whole runs, from the options to the run file, compared with formulas worked
 * out by hand (docs/models.md 9.2). The length of a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"
#include "train/trainer.h"

enum { UPDATES = 6 };

/* 3 batches an epoch, 2 epochs; lr 0.8 */
static void expect(const char *const *more, const double want[UPDATES]) {
    const char *args[32] = {"--lr", "0.8", "--epochs", "2", "--warmup-updates", "0"};
    double lr[UPDATES];
    train_result r;
    int n = 6;
    for (; more[n - 6]; n++) args[n] = more[n - 6];
    small_write_pairs(6);
    sr_runfile *f = small_run(args, NULL, &r);
    assert_int_equal(sr_run_get_info(f)->steps, UPDATES);
    small_steps(f, "lr", UPDATES, lr);
    check_near_double(more[1], lr, want, UPDATES, 1e-12, 0);
    sr_run_close(f);
}

static void fixed(void **state) {
    (void)state;
    expect((const char *const[]){"--lr-scheduler", "fixed", NULL},
           (const double[]){0.8, 0.8, 0.8, 0.8, 0.8, 0.8});
    /* update u + 1 at u < 4: 0.4 + u (0.8 - 0.4)/4 */
    expect((const char *const[]){"--lr-scheduler", "fixed", "--warmup-updates", "4",
                                 "--warmup-init-lr", "0.4", NULL},
           (const double[]){0.4, 0.5, 0.6, 0.7, 0.8, 0.8});
}

static void inverse_sqrt(void **state) {
    (void)state;
    expect((const char *const[]){"--lr-scheduler", "inverse_sqrt", NULL},
           (const double[]){0.8, 0.8, 0.8 / sqrt(2), 0.8 / sqrt(3), 0.8 / 2, 0.8 / sqrt(5)});
    expect((const char *const[]){"--lr-scheduler", "inverse_sqrt", "--warmup-updates", "2",
                                 "--warmup-init-lr", "0", NULL},
           (const double[]){0, 0.4, 0.8, 0.8 * sqrt(2.0 / 3), 0.8 * sqrt(0.5), 0.8 * sqrt(0.4)});
}

/* cos(pi u/6); the warm-up does not shift it: at its end the rate falls from lr to the curve. */
static void cosine(void **state) {
    (void)state;
    const double a = 0.4, c = sqrt(3) / 2;
    expect((const char *const[]){"--lr-scheduler", "cosine", NULL},
           (const double[]){0.8, a * (1 + c), a * 1.5, a, a * 0.5, a * (1 - c)});
    expect((const char *const[]){"--lr-scheduler", "cosine", "--warmup-updates", "2",
                                 "--warmup-init-lr", "0.2", NULL},
           (const double[]){0.2, 0.5, a * 1.5, a, a * 0.5, a * (1 - c)});
}

static void cosine_to_another_end(void **state) {
    (void)state;
    const double a = 0.3, c = sqrt(3) / 2;
    expect((const char *const[]){"--lr-scheduler", "cosine", "--lr-min", "0.2", NULL},
           (const double[]){0.8, 0.2 + a * (1 + c), 0.2 + a * 1.5, 0.2 + a, 0.2 + a * 0.5,
                            0.2 + a * (1 - c)});
}

/* From the warm-up's end over the remaining updates: (6 - u)/(6 - W). */
static void linear(void **state) {
    (void)state;
    expect((const char *const[]){"--lr-scheduler", "linear", NULL},
           (const double[]){0.8, 0.8 * 5 / 6, 0.8 * 4 / 6, 0.4, 0.8 * 2 / 6, 0.8 / 6});
    expect((const char *const[]){"--lr-scheduler", "linear", "--warmup-updates", "2",
                                 "--warmup-init-lr", "0.4", NULL},
           (const double[]){0.4, 0.6, 0.8, 0.6, 0.4, 0.2});
}

static void inverse_sqrt_xl(void **state) {
    (void)state;
    expect((const char *const[]){"--lr-scheduler", "inverse_sqrt_xl", "--warmup-updates", "4",
                                 "--warmup-init-lr", "0", NULL},
           (const double[]){0, 0.1, 0.2, 0.3, 0.4, 0.8 / sqrt(5)});
}

/* A bound beyond the run's end bounds nothing. */
static void cosine_below_max_steps(void **state) {
    (void)state;
    const double a = 0.4, c = sqrt(3) / 2;
    expect((const char *const[]){"--lr-scheduler", "cosine", "--max-steps", "100", NULL},
           (const double[]){0.8, a * (1 + c), a * 1.5, a, a * 0.5, a * (1 - c)});
}

/* With --max-steps the curve ends there: cos(pi u/4) */
static void cosine_to_max_steps(void **state) {
    (void)state;
    const char *const args[] = {"--lr",
                                "0.8",
                                "--lr-scheduler",
                                "cosine",
                                "--warmup-updates",
                                "0",
                                "--epochs",
                                "2",
                                "--max-steps",
                                "4",
                                NULL};
    const double want[4] = {0.8, 0.4 * (1 + sqrt(0.5)), 0.4, 0.4 * (1 - sqrt(0.5))};
    double lr[4];
    train_result r;
    small_write_pairs(6);
    sr_runfile *f = small_run(args, NULL, &r);
    assert_int_equal(sr_run_get_info(f)->steps, 4);
    small_steps(f, "lr", 4, lr);
    check_near_double("lr", lr, want, 4, 1e-12, 0);
    sr_run_close(f);
}

/* At a milestone the factor applies: counted in completed updates, or in epochs, also fractions of
 * an epoch. */
static void step(void **state) {
    (void)state;
    expect((const char *const[]){"--lr-scheduler", "step", "--lr-steps", "2,5", "--lr-steps-in",
                                 "updates", "--lr-factor", "0.5", NULL},
           (const double[]){0.8, 0.8, 0.4, 0.4, 0.4, 0.2});
    expect((const char *const[]){"--lr-scheduler", "step", "--lr-steps", "1", "--lr-factor", "0.25",
                                 NULL},
           (const double[]){0.8, 0.8, 0.8, 0.2, 0.2, 0.2});
    expect((const char *const[]){"--lr-scheduler", "step", "--lr-steps", "0.5,1.5", NULL},
           (const double[]){0.8, 0.8, 0.08, 0.08, 0.08, 0.008});
    expect((const char *const[]){"--lr-scheduler", "step", NULL},
           (const double[]){0.8, 0.8, 0.8, 0.8, 0.8, 0.8});
}

/* 1 + 9/25 is below 1.36 by rounding. */
static void milestone_at_a_batch(void **state) {
    (void)state;
    static const int64_t batches[] = {10, 20, 25, 40, 50, 100, 200, 1000};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        for (int64_t hundredths = 1; hundredths < 1200; hundredths++) {
            if (hundredths * batches[i] % 100) continue;
            schedule s = {.kind = SCHEDULE_STEP, .lr = 1, .factor = 0.5, .milestones = 1};
            s.milestone[0] = (double)hundredths / 100;
            const int64_t at = hundredths * batches[i] / 100, epoch = at / batches[i];
            const double part = (double)(at % batches[i]) / (double)batches[i];
            check_equals(schedule_lr(&s, at, (double)epoch + part), 0.5);
            check_equals(schedule_lr(&s, at - 1, (double)(at - 1) / (double)batches[i]), 1);
        }
}

/* A milestone inside the warm-up has been passed at its end. */
static void milestone_in_warmup(void **state) {
    (void)state;
    expect((const char *const[]){"--lr-scheduler", "step", "--lr-steps", "1", "--lr-steps-in",
                                 "updates", "--warmup-updates", "2", "--warmup-init-lr", "0", NULL},
           (const double[]){0, 0.4, 0.08, 0.08, 0.08, 0.08});
}

static void no_milestone(void **state) {
    (void)state;
    const char *const wrong[] = {"0", "-1", "2,x", "2;3", "nan"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *args[] = {"--record=none", "--lr-scheduler=step", "--lr-steps", (char *)wrong[i],
                        NULL};
        static train_config c;
        int positional;
        sr_failure why = {0};
        assert_int_equal(train_config_parse(&c, 4, args, 0, &positional, &why), SR_USAGE);
        check_failure(&why, SR_USAGE, "is not a list of positive numbers");
    }
}

/* Updates and passes of 3 batches an epoch. */
static void lengths(void **state) {
    (void)state;
    static const struct {
        const char *epochs, *update_freq, *max_steps;
        int updates, steps;
    } row[] = {{"2", "1", "0", 6, 6},   {"2", "2", "0", 4, 6}, {"2", "5", "0", 2, 6},
               {"2", "3", "0", 2, 6},   {"2", "2", "3", 3, 5}, {"2", "2", "2", 2, 3},
               {"1", "1", "100", 3, 3}, {"9", "2", "1", 1, 2}};
    small_write_pairs(6);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *const args[] = {"--epochs",
                                    row[i].epochs,
                                    "--update-freq",
                                    row[i].update_freq,
                                    strcmp(row[i].max_steps, "0") ? "--max-steps" : NULL,
                                    row[i].max_steps,
                                    NULL};
        train_result r;
        sr_runfile *f = small_run(args, NULL, &r);
        assert_int_equal(r.updates, row[i].updates);
        assert_int_equal(r.steps, row[i].steps);
        assert_int_equal(sr_run_get_info(f)->steps, row[i].steps);
        assert_string_equal(sr_run_get_info(f)->status, "complete");
        sr_run_close(f);
        const train_config c = {.update_freq = atoi(row[i].update_freq)};
        const trainer planned = {.config = &c, .batches = 3, .updates = row[i].updates};
        assert_int_equal(trainer_planned_steps(&planned), row[i].steps);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fixed),
                                       cmocka_unit_test(inverse_sqrt),
                                       cmocka_unit_test(cosine),
                                       cmocka_unit_test(cosine_to_another_end),
                                       cmocka_unit_test(linear),
                                       cmocka_unit_test(inverse_sqrt_xl),
                                       cmocka_unit_test(cosine_to_max_steps),
                                       cmocka_unit_test(cosine_below_max_steps),
                                       cmocka_unit_test(step),
                                       cmocka_unit_test(milestone_at_a_batch),
                                       cmocka_unit_test(milestone_in_warmup),
                                       cmocka_unit_test(no_milestone),
                                       cmocka_unit_test(lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
