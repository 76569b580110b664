/* Programs against recorded.h5, and cases by hand that need no file: |gamma|/psi_B with negative
 * gains (docs/norms.md 18.5), and the TID that RBN's release logs (18.3). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "testing/oracle_file.h"
#include "testing/programs.h"

enum { WIDTH_CAPACITY = 64 };

/* -- gamma/psi_B */

static void write_gamma_run(const char *path, int64_t d, double eps, const double *gamma,
                            const double *psi2_B) {
    sr_recorder *r = run_create(path, run_options());
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "norm",
                              .norm = "pnv",
                              .kind = "encoder",
                              .family = SR_FAMILY_PSI,
                              .width = d,
                              .depth = 1,
                              .eps = eps,
                              .alpha = 0.95});
    sr_begin_step(r, 1);
    sr_put_rows(r, 0, 4);
    sr_put_vector(r, 0, SR_gamma, gamma);
    sr_put_vector(r, 0, SR_psi2_B, psi2_B);
    run_end_step(r, 1);
    run_finish(r);
}

/* Gains -3, -1/2, 1 over psi_B 2, 2, 4. With signs, two of the ratios would be below every other,
 * and the ratio above 1 would not be counted. */
static void negative_gains(void **state) {
    (void)state;
    const double gamma[] = {-3, -0.5, 1}, psi2_B[] = {4, 4, 16}, want[] = {1.5, 0.25, 0.25};
    write_gamma_run(program_file("negative.h5"), 3, 0, gamma, psi2_B);
    program_result r = program_run("stat-gamma negative.h5");
    assert_int_equal(r.status, 0);
    check_cell(&r, 0, "min", 0.25);
    check_cell(&r, 0, "median", 0.25);
    check_cell(&r, 0, "max", 1.5);
    check_cell(&r, 0, "above", 1.0 / 3);
    program_free(&r);
    r = program_run("stat-gamma negative.h5 --per-feature");
    for (int k = 0; k < 3; k++) check_cell(&r, k, "ratio", want[k]);
    program_free(&r);
}

static double *read_number(const oracle_file *f, int k, const char *name, int64_t *count) {
    double *value = oracle_read(f, k, name, NULL, count);
    if (!value) fail_msg("case %d has no %s", k, name);
    return value;
}

/* The file's gains are positive. Half of them change sign here, which must change nothing. */
static void check_lemma2(const oracle_file *f, int k) {
    int64_t d, count;
    double psi2_B[WIDTH_CAPACITY] = {0}, eps = oracle_number(f, k, "eps", NAN);
    double *gamma = read_number(f, k, "in/gamma", &d), *x = read_number(f, k, "in/x", &count);
    double *ratio = read_number(f, k, "out/ratio", NULL);
    assert_true(d <= WIDTH_CAPACITY);
    for (int64_t i = 0; i < count; i++) psi2_B[i % d] += x[i] * x[i] / (double)(count / d);
    for (int64_t i = 1; i < d; i += 2) gamma[i] = -gamma[i];
    write_gamma_run(program_file("lemma2.h5"), d, eps, gamma, psi2_B);
    program_result r = program_run("stat-gamma lemma2.h5 --per-feature");
    for (int64_t i = 0; i < d; i++) check_cell(&r, (int)i, "ratio", ratio[i]);
    program_free(&r);
    free(gamma), free(x), free(ratio);
}

/* -- TID with the batch's deviation below */

/* alpha 1: no pass moves the running values, so they stay as in the file. */
static void check_tid(const oracle_file *f, int k) {
    int64_t d, count;
    double *mu = read_number(f, k, "in/mu", &d), *sigma2 = read_number(f, k, "in/sigma2", NULL);
    double *mu_B = read_number(f, k, "in/mu_B", &count),
           *sigma2_B = read_number(f, k, "in/sigma2_B", NULL);
    double *mean = read_number(f, k, "out/tid_mean_batchscale", NULL),
           *var = read_number(f, k, "out/tid_var_batchscale", NULL);
    sr_recorder *r = run_create(program_file("tid.h5"), run_options());
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "norm",
                              .norm = "bn",
                              .kind = "encoder",
                              .family = SR_FAMILY_SIGMA,
                              .width = d,
                              .depth = 1,
                              .eps = 1e-5,
                              .alpha = 1});
    for (int64_t s = 0; s < count / d; s++) {
        sr_begin_step(r, s + 1);
        sr_put_rows(r, 0, 4);
        sr_put_vector(r, 0, SR_mu, mu);
        sr_put_vector(r, 0, SR_sigma2, sigma2);
        sr_put_vector(r, 0, SR_mu_B, mu_B + s * d);
        sr_put_vector(r, 0, SR_sigma2_B, sigma2_B + s * d);
        run_end_step(r, (int)s + 1);
    }
    run_finish(r);
    program_result p =
        program_run("stat-tid tid.h5 --definition released --stat mean,var --per-step");
    assert_int_equal(p.status, 0);
    assert_int_equal(table_rows(p.out), count / d);
    for (int64_t s = 0; s < count / d; s++) {
        check_cell(&p, (int)s, "tid_mean_released", mean[s]);
        check_cell(&p, (int)s, "tid_var_released", var[s]);
    }
    program_free(&p);
    free(mu), free(sigma2), free(mu_B), free(sigma2_B), free(mean), free(var);
}

static void recorded_file(void **state) {
    (void)state;
    const char *path = check_shared("reference/vectors/recorded.h5");
    if (!path) skip();
    oracle_file *f = oracle_open(path);
    assert_non_null(f);
    int tid = 0, lemma2 = 0;
    for (int k = 0; k < oracle_cases(f); k++) {
        const char *kind = oracle_text(f, k, "kind");
        if (!strcmp(kind, "tid")) {
            check_tid(f, k);
            tid++;
        } else if (!strcmp(kind, "lemma2")) {
            check_lemma2(f, k);
            lemma2++;
        }
    }
    assert_int_equal(tid, 2);
    assert_int_equal(lemma2, 2);
    oracle_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(negative_gains),
                                       cmocka_unit_test(recorded_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
