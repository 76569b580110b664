/* Tables and figures mark runs whose batch statistics are only observed. */
#include <stdio.h>
#include <string.h>

#include "statrec/runfile.h"
#include "testing/check.h"
#include "testing/programs.h"

static void write_run(const char *name, const char *norm, sr_family family, bool observed) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.model = "toy";
    o.data = "none";
    o.force = true;
    sr_recorder *r = sr_create(program_file(name), &o, &why);
    if (!r) fail_msg("%s", why.text);
    const int site = sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                               .name = "top",
                                               .norm = norm,
                                               .kind = "x",
                                               .family = family,
                                               .width = 2,
                                               .depth = 1,
                                               .eps = 1,
                                               .alpha = 0.9});
    if (observed) check_ok(sr_set_observed(r, site), sr_failed(r));
    for (int step = 1; step <= 4; step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, site, 4);
        sr_put_scalar(r, site, SR_SCALAR_dist_mu, step);
        sr_put_scalar(r, site, SR_SCALAR_dist_sigma2, 2 * step);
        sr_put_scalar(r, site, SR_SCALAR_dist_psi, 3 * step);
        sr_put_scalar(r, site, SR_SCALAR_dist_psi2, 3 * step);
        sr_put_scalar(r, site, SR_SCALAR_tid_var, step);
        sr_put_scalar(r, site, SR_SCALAR_dist_sigma, step);
        sr_put_scalar(r, site, SR_SCALAR_g_mu, step);
        sr_put_scalar(r, site, SR_SCALAR_g_sigma2, step);
        sr_put_scalar(r, site, SR_SCALAR_g_psi2, step);
        sr_put_scalar(r, site, SR_SCALAR_row_grad_mean, step);
        sr_end_step(r, &(sr_step){.size = sizeof(sr_step), step, 10, step, 1, 0.1, 1});
    }
    check_ok(sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, &why),
             &why);
}

/* A site of bn, followed by an observed one. */
static void write_mixed(const char *name) {
    sr_recorder *r = run_create(program_file(name), run_options());
    for (int site = 0; site < 2; site++)
        sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = site ? "top" : "low",
                                  .norm = site ? "ln" : "bn",
                                  .family = site ? SR_FAMILY_ROW : SR_FAMILY_SIGMA,
                                  .width = 2,
                                  .depth = site,
                                  .alpha = 0.9});
    sr_set_observed(r, 1);
    for (int step = 1; step <= 4; step++) {
        sr_begin_step(r, step);
        for (int site = 0; site < 2; site++) {
            sr_put_rows(r, site, 4);
            sr_put_scalar(r, site, SR_SCALAR_dist_mu, step);
            sr_put_scalar(r, site, SR_SCALAR_tid_mean, step);
            sr_put_scalar(r, site, SR_SCALAR_tid_var, step);
        }
        run_end_step(r, step);
    }
    run_finish(r);
}

static int write_runs(void **state) {
    (void)state;
    write_run("ln.h5", "ln", SR_FAMILY_ROW, true);
    write_run("bn.h5", "bn", SR_FAMILY_SIGMA, true);
    write_run("pnv.h5", "pnv", SR_FAMILY_PSI, true);
    write_mixed("mixed.h5");
    write_run("plain.h5", "ln", SR_FAMILY_ROW, false);
    return 0;
}

static void test_whose(void **state) {
    (void)state;
    static const struct {
        const char *axis, *uses, *statistic;
        bool observed, want;
    } row[] = {
        {"row", "mu,sigma2", "dist_mu", true, true},
        {"row", "mu,sigma2", "dist_mu", false, false},
        {"row", "psi2", "g_psi2", true, true},
        {"row", "mu,sigma2", "row_grad_var", true, false},
        {"row", "mu,sigma2", "nonfinite", true, false},
        {"batch", "mu,sigma2", "tid_var", true, false},
        {"batch", "mu,sigma2", "mu", true, false},
        {"batch", "mu,sigma2", "g_sigma2", true, false},
        {"batch", "mu,sigma2", "dist_psi2", true, true},
        {"batch", "psi2", "dist_psi", true, false},
        {"batch", "psi2", "psi2", true, false},
        {"batch", "psi2", "dist_sigma2", true, true},
        {"batch", "psi2", "tid_mean", true, true},
        {"batch", "mu", "dist_mu", true, false},
        {"batch", "mu", "dist_sigma", true, true},
        {"batch", "sigma2", "g_mu", true, true},
        {"batch", "sigma2", "tid_var", true, false},
        {"-", "", "tid_mean", true, true},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        sr_run_site site = {.observed = row[i].observed};
        snprintf(site.axis, sizeof site.axis, "%s", row[i].axis);
        snprintf(site.uses, sizeof site.uses, "%s", row[i].uses);
        if (sr_run_only_observed(&site, row[i].statistic) != row[i].want)
            fail_msg("%s at %s over %s", row[i].statistic, row[i].uses, row[i].axis);
    }
}

static void test_tables(void **state) {
    (void)state;
    program_result r =
        program_run("stat-scalar --burn-in 0 bn.h5 ln.h5 plain.h5 --stat dist_mu,dist_psi,"
                    "row_grad_mean");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(
        r.out, "# note: ln.h5: dist_mu is the observer's at 1 site (top), not used by norm ln"));
    assert_non_null(strstr(r.out, "# note: ln.h5: dist_psi is the observer's"));
    assert_non_null(strstr(r.out, "# note: bn.h5: dist_psi is the observer's"));
    assert_null(strstr(r.out, "bn.h5: dist_mu is"));
    assert_null(strstr(r.out, "row_grad_mean is"));
    assert_null(strstr(r.out, "plain.h5: dist"));
    program_free(&r);
}

/* "last-bn" is an observed site if no site is normalized over the batch, with a warning. */
static void test_last_bn(void **state) {
    (void)state;
    static const char warning[] = "no site is normalized over the batch; last-bn is ";
    program_result r =
        program_run("stat-scalar --burn-in 0 mixed.h5 --site last-bn --stat dist_mu");
    assert_int_equal(table_rows(r.out), 1);
    check_text(&r, 0, "site", "low");
    assert_null(strstr(r.out, warning));
    program_free(&r);
    r = program_run("stat-scalar --burn-in 0 ln.h5 --site last-bn --stat dist_mu");
    check_text(&r, 0, "site", "top");
    assert_non_null(strstr(r.out, warning));
    program_free(&r);
    r = program_run("stat-scalar --burn-in 0 ln.h5 --site last --stat dist_mu");
    assert_null(strstr(r.out, warning));
    program_free(&r);
}

/* Checks the script: the picture depends on the machine's fonts. */
static void check_script(const char *arguments, const char *label, const char *full) {
    program_result r = program_run("dir=$(statplot %s -o x.svg --keep 2>&1 | sed 's/.*kept //'); "
                                   "cat $dir/*.gp; rm -r $dir",
                                   arguments);
    assert_int_equal(r.status, 0);
    if (!strstr(r.out, label)) fail_msg("%s: no %s in %s", arguments, label, r.out);
    if (!strstr(r.out, full)) fail_msg("%s: no %s", arguments, full);
    program_free(&r);
}

static void test_figures(void **state) {
    (void)state;
    static const char observed[] = "run_full[2] = 'toy, ln, none, seed 0 (observed)'";
    check_script("fig2 bn.h5 ln.h5", "run_label[2] = 'ln (observed)'", observed);
    check_script("fig2 bn.h5 ln.h5", "run_label[1] = 'bn'\n", observed);
    check_script("fig2 bn.h5 ln.h5 --labels a,b", "run_label[2] = 'b'\n", observed);
    check_script("fig2 bn.h5 plain.h5", "run_label[2] = 'ln'\n", "");
    check_script("compare bn.h5 ln.h5", "run_label[2] = 'ln (observed)'", observed);
    check_script("compare bn.h5 ln.h5 --stat row_grad_mean", "run_label[2] = 'ln'\n", "");
    check_script("compare bn.h5 ln.h5 --stat dist_psi", "run_label[1] = 'bn (observed)'", observed);
    /* sigma of the first run, psi of the second. */
    check_script("fig4 bn.h5 ln.h5", "run_label[1] = 'bn'\n", "run_label[2] = 'ln (observed)'");
    check_script("fig4 ln.h5 bn.h5", "run_label[1] = 'ln (observed)'",
                 "run_label[2] = 'bn (observed)'");
    check_script("fig4 bn.h5 pnv.h5", "run_label[1] = 'bn'\n", "run_label[2] = 'pnv'\n");
    /* a site's name where another site is not observed */
    check_script("tid mixed.h5", "d_observed[1] = 0\n", "d_observed[2] = 1\n");
    check_script("converge bn.h5 ln.h5", "run_label[2] = 'ln'\n", "");
}

/* The overview draws statistics of both kinds and marks each separately. */
static void test_overview(void **state) {
    (void)state;
    static const struct {
        const char *run, *one, *other;
    } row[] = {{"bn.h5", "σ² (in units of x²)<", "ψ² (in units of x²) (observed)<"},
               {"pnv.h5", "ψ² (in units of x²)<", "σ² (in units of x²) (observed)<"},
               {"ln.h5", "μ (in units of x) (observed)<", "ψ² (in units of x²) (observed)<"}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        program_result r = program_run("statplot overview %s -o o.svg && cat o.svg", row[i].run);
        assert_int_equal(r.status, 0);
        if (!strstr(r.out, row[i].one)) fail_msg("%s: no %s", row[i].run, row[i].one);
        if (!strstr(r.out, row[i].other)) fail_msg("%s: no %s", row[i].run, row[i].other);
        program_free(&r);
    }
}

/* A site of each kind, with equal vectors and one step. */
static void write_kinds(const char *name) {
    static const sr_site site[] = {
        {.size = sizeof(sr_site),
         .name = "observed",
         .norm = "x",
         .family = SR_FAMILY_ROW,
         .width = 1},
        {.size = sizeof(sr_site),
         .name = "own",
         .norm = "bn",
         .family = SR_FAMILY_OWN,
         .width = 1,
         .uses = "mu,sigma2"},
        {.size = sizeof(sr_site), .name = "psi", .norm = "x", .family = SR_FAMILY_PSI, .width = 1},
        {.size = sizeof(sr_site),
         .name = "sigma",
         .norm = "x",
         .family = SR_FAMILY_SIGMA,
         .width = 1},
        {.size = sizeof(sr_site), .name = "pn", .norm = "pnv", .family = SR_FAMILY_PN, .width = 1},
    };
    static const sr_vector all[] = {SR_mu_B, SR_sigma2_B, SR_psi2_B, SR_gamma, SR_sum_g, SR_sum_gx};
    const double value = 4;
    sr_recorder *r = run_create(program_file(name), run_options());
    for (int i = 0; i < 5; i++) sr_add_site(r, &site[i]);
    sr_set_observed(r, 0);
    sr_begin_step(r, 1);
    for (int i = 0; i < 5; i++) {
        sr_put_rows(r, i, 2);
        for (size_t v = 0; v < sizeof all / sizeof *all; v++) sr_put_vector(r, i, all[v], &value);
    }
    run_end_step(r, 1);
    run_finish(r);
}

/* From vectors where the formula applies: bn's formula at observed sites. 4/sqrt(4) * 4/2 = 4. */
static void test_from_vectors(void **state) {
    (void)state;
    write_kinds("kinds.h5");
    program_result r = program_run("stat-gradnorm --burn-in 0 kinds.h5 --from vectors --per-step "
                                   "--stat g_mu,g_psi2");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 3);
    check_text(&r, 0, "site", "observed");
    check_cell(&r, 0, "g_mu", 4);
    check_text(&r, 0, "g_psi2", "nan");
    check_text(&r, 1, "site", "psi");
    check_text(&r, 1, "g_mu", "nan");
    check_cell(&r, 1, "g_psi2", 4);
    check_text(&r, 2, "site", "sigma");
    check_cell(&r, 2, "g_mu", 4);
    check_text(&r, 2, "g_psi2", "nan");
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_bn),  cmocka_unit_test(test_whose),
        cmocka_unit_test(test_tables),   cmocka_unit_test(test_figures),
        cmocka_unit_test(test_overview), cmocka_unit_test(test_from_vectors)};
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
