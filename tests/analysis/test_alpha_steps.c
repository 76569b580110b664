/* test_alpha_steps.c -- the steps that stat-alpha skips, counted by hand. */
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "testing/check.h"
#include "testing/programs.h"

enum { STEPS = 3000, WIDTH = 3 };

/* In step 300 a mean is missing: all later distances are not finite. */
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

/* A skipped step does not count as a step without a finite distance. */
static void left_out_is_not_counted(void **state) {
    (void)state;
    write_run(program_file("long.h5"));
    program_result r = program_run("stat-alpha long.h5 --stat mu --alpha 0,0.5 --startup 100");
    for (int i = 0; i < 2; i++) {
        check_cell(&r, i, "steps", STEPS - 100);
        check_cell(&r, i, "nonfinite", STEPS - 299);
    }
    program_free(&r);
}

/* Until the initial value weighs less than 1 %: 0.5^7, 0.9^44. */
static void each_alpha_has_its_steps(void **state) {
    (void)state;
    write_run(program_file("long.h5"));
    program_result r = program_run("stat-alpha long.h5 --stat mu --alpha 0.5,0.9");
    check_cell(&r, 0, "steps", STEPS - 7);
    check_cell(&r, 1, "steps", STEPS - 44);
    program_free(&r);
    r = program_run("stat-alpha long.h5 --stat mu --alpha 0.5,0.9 --phase 21:650");
    check_cell(&r, 0, "steps", 630);
    check_cell(&r, 1, "steps", 650 - 44);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_out_is_not_counted),
        cmocka_unit_test(each_alpha_has_its_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
