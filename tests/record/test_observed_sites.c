/* test_observed_sites.c -- sites whose batch statistics are observed, not used: derived values,
 * values from sr_take_*, and /sites/observed in current and older files. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statrec/moments.h"
#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { WIDTH = 5, ROWS = 40, STEPS = 4 };

static void derive_by_hand(void **state) {
    (void)state;
    const double mu_B[] = {3}, sigma2_B[] = {16}, psi2_B[] = {25}, mu[] = {1}, sigma2[] = {4},
                 psi2[] = {9}, gamma[] = {2}, sum_g[] = {2}, sum_gx[] = {1}, nu[] = {6},
                 Gamma[] = {4};
    const double *v[SR_VECTOR_COUNT] = {
        [SR_mu_B] = mu_B,   [SR_sigma2_B] = sigma2_B, [SR_psi2_B] = psi2_B,
        [SR_mu] = mu,       [SR_sigma2] = sigma2,     [SR_psi2] = psi2,
        [SR_gamma] = gamma, [SR_sum_g] = sum_g,       [SR_sum_gx] = sum_gx};
    static const sr_family families[] = {SR_FAMILY_NONE, SR_FAMILY_ROW, SR_FAMILY_SIGMA,
                                         SR_FAMILY_PSI, SR_FAMILY_PN};
    const struct {
        sr_scalar which;
        double want;
    } expected[] = {{SR_SCALAR_rows, 4},         {SR_SCALAR_dist_mu, 2},  {SR_SCALAR_dist_sigma, 2},
                    {SR_SCALAR_dist_psi2, 16},   {SR_SCALAR_tid_mean, 1}, {SR_SCALAR_tid_var, 1},
                    {SR_SCALAR_g_mu, 0.25},      /* 2/4 * 2/4 */
                    {SR_SCALAR_g_sigma2, 0.125}, /* 2/4 * 1/4 */
                    {SR_SCALAR_g_psi2, 0.2}};    /* sum g x = 4 + 6: 2/25 * 10/4 */
    for (int i = 0; i < 5; i++) {
        double s[SR_SCALAR_COUNT];
        bool pn = families[i] == SR_FAMILY_PN;
        for (int k = 0; k < SR_SCALAR_COUNT; k++) s[k] = NAN;
        v[SR_nu] = pn ? nu : NULL, v[SR_Gamma_t] = pn ? Gamma : NULL;
        sr_derive_observed(families[i], 1, 0, 4, v, s);
        for (int k = 0; k < 9; k++) {
            double want = expected[k].want;
            if (pn && expected[k].which == SR_SCALAR_g_psi2) want = 4; /* |nu|/psi sqrt(Gamma) */
            check_near_double("scalar", &s[expected[k].which], &want, 1, 1e-14, 0);
        }
        v[SR_sum_gx] = NULL;
        for (int k = 0; k < SR_SCALAR_COUNT; k++) s[k] = NAN;
        sr_derive_observed(SR_FAMILY_ROW, 1, 0, 4, v, s);
        assert_true(isnan(s[SR_SCALAR_g_psi2]) && isnan(s[SR_SCALAR_g_sigma2]));
        v[SR_sum_gx] = sum_gx;
    }
}

/* A run of raw tensors at one site. */
static const char *raw_run(const char *name, sr_family family, bool observed) {
    const char *path = sample_path(name);
    float x[ROWS * WIDTH], dy[ROWS * WIDTH], gamma[WIDTH] = {1, -2, 0, 0.5f, 3};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    sr_recorder *r = run_create(path, o);
    int site = sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                         .name = "site",
                                         .norm = "x",
                                         .family = family,
                                         .width = WIDTH,
                                         .eps = 1e-3,
                                         .alpha = 0.75});
    if (observed) check_ok(sr_set_observed(r, site), sr_failed(r));
    for (int64_t step = 0; step < STEPS; step++) {
        for (int i = 0; i < ROWS * WIDTH; i++) {
            x[i] = (float)(sin(1.7 * (double)step + 0.9 * i) + i % WIDTH);
            dy[i] = (float)cos(0.3 * (double)step + 1.1 * i + i % WIDTH);
        }
        sr_begin_step(r, step);
        sr_take_forward(r, site,
                        &(sr_tensor){sizeof(sr_tensor), x, SR_FLOAT32, ROWS, WIDTH, 1, NULL, 0},
                        gamma);
        sr_take_backward(r, site,
                         &(sr_tensor){sizeof(sr_tensor), dy, SR_FLOAT32, ROWS, WIDTH, 1, NULL, 0});
        check_ok(sr_end_step(r, &(sr_step){.size = sizeof(sr_step), .update = step}), sr_failed(r));
    }
    run_finish(r);
    return path;
}

/* One of a group's columns in every step, of two files. */
static void compare(const char *got_path, const char *want_path, const char *names, double rtol) {
    sr_runfile *got = sample_open(got_path), *want = sample_open(want_path);
    char list[512];
    sr_failure why = {0};
    snprintf(list, sizeof list, "%s", names);
    for (char *at, *name = strtok_r(list, " ", &at); name; name = strtok_r(NULL, " ", &at)) {
        bool vector = sr_run_has_vector(want, name);
        int count = vector ? STEPS * WIDTH : STEPS;
        float a[STEPS * WIDTH], b[STEPS * WIDTH];
        double wanted[STEPS * WIDTH];
        check_ok((vector ? sr_run_vector : sr_run_scalar)(got, name, 0, 0, STEPS, a, &why), &why);
        check_ok((vector ? sr_run_vector : sr_run_scalar)(want, name, 0, 0, STEPS, b, &why), &why);
        for (int i = 0; i < count; i++) {
            assert_true(isfinite(b[i]));
            wanted[i] = (double)b[i];
        }
        check_near_float(name, a, wanted, count, rtol, 0);
    }
    sr_run_close(got);
    sr_run_close(want);
}

static void raw_tensors(void **state) {
    (void)state;
    static const char bn[] = "mu_B sigma2_B psi2_B mu sigma2 psi2 gamma sum_g sum_gx rows dist_mu "
                             "dist_sigma dist_sigma2 tid_mean tid_var g_mu g_sigma2";
    static const char pn[] = "nu Gamma_t Lambda_t Gamma_max g_psi2";
    static const sr_family families[] = {SR_FAMILY_NONE, SR_FAMILY_ROW, SR_FAMILY_SIGMA,
                                         SR_FAMILY_PSI, SR_FAMILY_PN};
    const char *sigma = raw_run("sigma.h5", SR_FAMILY_SIGMA, false);
    const char *psi = raw_run("psi.h5", SR_FAMILY_PSI, false);
    const char *power = raw_run("pn.h5", SR_FAMILY_PN, false);
    for (int i = 0; i < 5; i++) {
        const char *path = raw_run("observed.h5", families[i], true);
        sr_runfile *f = sample_open(path);
        assert_int_equal(sr_run_get_site(f, 0)->observed, 1);
        sr_run_close(f);
        compare(path, sigma, bn, 0);
        compare(path, psi, "dist_psi dist_psi2", 0);
        if (families[i] != SR_FAMILY_PN)
            compare(path, psi, "g_psi2", 1e-6);
        else
            compare(path, power, pn, 1e-6);
    }
    sr_runfile *f = sample_open(sigma);
    assert_int_equal(sr_run_get_site(f, 0)->observed, 0);
    assert_false(sr_run_has_scalar(f, "g_psi2"));
    sr_run_close(f);
}

/* Files older than the dataset can be read; no site in them is observed. */
static void file_without(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = raw_run("before.h5", SR_FAMILY_ROW, true);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    assert_true(H5Ldelete(file, "/sites/observed", H5P_DEFAULT) >= 0);
    H5Fclose(file);
    sr_runfile *f = sample_open(path);
    assert_int_equal(sr_run_get_site(f, 0)->observed, 0);
    assert_int_equal(sr_run_get_info(f)->steps, STEPS);
    sr_run_close(f);
    check_ok(sr_run_check(path, &why), &why);
}

static void recovered(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery result = {.size = sizeof(sr_recovery)};
    const char *from = raw_run("from.h5", SR_FAMILY_ROW, true), *to = sample_path("to.h5");
    check_ok(sr_run_recover(from, to, false, -1, &result, &why), &why);
    assert_int_equal(result.steps, STEPS);
    sr_runfile *f = sample_open(to);
    assert_int_equal(sr_run_get_site(f, 0)->observed, 1);
    sr_run_close(f);
    compare(to, from, "mu_B sum_gx g_psi2 tid_mean", 0);
}

/* Sums with two kinds of xhat cannot go into one file. */
static void copy_refused(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *from = raw_run("from2.h5", SR_FAMILY_ROW, true);
    sr_recorder *r = sr_create(sample_path("to2.h5"), NULL, &why);
    assert_non_null(r);
    sr_add_site(
        r, &(sr_site){
               .size = sizeof(sr_site), .name = "site", .family = SR_FAMILY_ROW, .width = WIDTH});
    assert_int_equal(sr_copy_rows(r, from, -1, -1, NULL), SR_USAGE);
    sr_abandon(r);
}

static void refusals(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recorder *r = sr_create(sample_path("late.h5"), NULL, &why);
    assert_non_null(r);
    int site = sr_add_site(
        r, &(sr_site){.size = sizeof(sr_site), .name = "s", .family = SR_FAMILY_ROW, .width = 2});
    sr_begin_step(r, 1);
    assert_int_equal(sr_set_observed(r, site), SR_STATE);
    check_failure(sr_failed(r), SR_STATE, "after the first step");
    sr_abandon(r);
    r = sr_create(sample_path("none.h5"), NULL, &why);
    assert_non_null(r);
    assert_int_equal(sr_set_observed(r, 0), SR_USAGE);
    sr_abandon(r);
    assert_int_equal(sr_set_observed(NULL, 0), SR_STATE);
}

/* The projected size includes the vectors that observing adds. */
static void projected(void **state) {
    (void)state;
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.planned_steps = 1000;
    sr_recorder *r = run_create(sample_path("size.h5"), o);
    int site = sr_add_site(
        r,
        &(sr_site){.size = sizeof(sr_site), .name = "s", .family = SR_FAMILY_ROW, .width = 1000});
    int64_t before = sr_projected_bytes(r);
    check_ok(sr_set_observed(r, site), sr_failed(r));
    int64_t more = sr_projected_bytes(r) - before;
    assert_true(more >= 6 * 4000000 && more < 6 * 4100000);
    sr_abandon(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derive_by_hand), cmocka_unit_test(raw_tensors),
        cmocka_unit_test(file_without),   cmocka_unit_test(recovered),
        cmocka_unit_test(copy_refused),   cmocka_unit_test(refusals),
        cmocka_unit_test(projected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
