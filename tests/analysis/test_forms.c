/* test_forms.c -- distances and gradient norms in comparable forms, by hand, and the warnings for
 * forms that cannot be compared. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "statrec/runfile.h"
#include "testing/check.h"
#include "testing/programs.h"

enum { STEPS = 24, WIDTH = 16 };

/* The properties that differ between the runs. */
typedef struct plan {
    const char *path, *reduction, *data;
    int width, rows, tokens;
    bool observed;
    const char *config; /* NULL: batching = bucketed */
    double alpha;       /* 0: 0.5 */
    int later_rows;     /* rows of a second site; 0: one site */
} plan;

/* g_mu 0.5, g_sigma2 0.25, dx_norm 40, dx_norm_bn 80 where observed, direct_norm 50. */
static void put_scalars(sr_recorder *r, const plan *p) {
    sr_put_rows(r, 0, p->rows);
    sr_put_scalar(r, 0, SR_SCALAR_dist_mu, 3);
    sr_put_scalar(r, 0, SR_SCALAR_dist_sigma2, 2);
    sr_put_scalar(r, 0, SR_SCALAR_tid_mean, 0.06);
    sr_put_scalar(r, 0, SR_SCALAR_tid_var, 0.04);
    sr_put_scalar(r, 0, SR_SCALAR_rel_sigma2, 0.08);
    sr_put_scalar(r, 0, SR_SCALAR_g_mu, 0.5);
    sr_put_scalar(r, 0, SR_SCALAR_g_sigma2, 0.25);
    sr_put_scalar(r, 0, SR_SCALAR_g_psi2, 0.125);
    sr_put_scalar(r, 0, SR_SCALAR_row_g_var, 6);
    sr_put_scalar(r, 0, SR_SCALAR_dx_norm, 40);
    sr_put_scalar(r, 0, SR_SCALAR_direct_norm, 50);
    if (!p->observed) return;
    sr_put_scalar(r, 0, SR_SCALAR_dx_norm_bn, 80);
    sr_put_scalar(r, 0, SR_SCALAR_direct_norm_bn, 100);
}

static void add_site(sr_recorder *r, const plan *p, const char *name) {
    const sr_family family = p->observed ? SR_FAMILY_ROW : SR_FAMILY_SIGMA;
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = name,
                              .norm = p->observed ? "ln" : "bn",
                              .kind = "conv",
                              .family = family,
                              .width = p->width,
                              .eps = 1e-5,
                              .alpha = p->alpha > 0 ? p->alpha : 0.5});
}

static void write_run(const plan *p) {
    sr_options o = run_options();
    o.loss_reduction = p->reduction;
    o.data = p->data;
    o.config = p->config ? p->config : "seed = 1\nbatching = bucketed\n";
    sr_recorder *r = run_create(program_file(p->path), o);
    add_site(r, p, "a");
    if (p->later_rows) add_site(r, p, "b");
    if (p->observed) sr_set_observed(r, 0);
    for (int step = 1; step <= STEPS; step++) {
        sr_begin_step(r, step);
        put_scalars(r, p);
        if (p->later_rows)
            sr_put_rows(r, 1, p->later_rows), sr_put_scalar(r, 1, SR_SCALAR_tid_mean, 0.06);
        sr_end_step(r, &(sr_step){.size = sizeof(sr_step), step, p->tokens, step, 1, 0.1, 1});
    }
    run_finish(r);
}

static int write_runs(void **state) {
    (void)state;
    static const plan runs[] = {
        {"sum.h5", "sum", "d", WIDTH, 100, 20, false, NULL, 0, 0},
        {"mean.h5", "mean", "d", WIDTH, 100, 20, false, NULL, 0, 0},
        {"seen.h5", "sum", "d", WIDTH, 100, 20, true, NULL, 0, 0},
        {"wide.h5", "sum", "d", 64, 100, 20, false, NULL, 0, 0},
        {"long.h5", "sum", "d", WIDTH, 100, 50, false, NULL, 0, 0},
        {"rows.h5", "sum", "d", WIDTH, 400, 20, false, NULL, 0, 0},
        {"same.h5", "sum", "d", WIDTH, 105, 21, false, NULL, 0, 0},
        {"bag.h5", "sum", "d", WIDTH, 100, 20, false, "seed = 1\nbatching = random\n", 0, 0},
        {"alpha.h5", "sum", "d", WIDTH, 100, 20, false, NULL, 0.6, 0},
        {"other.h5", "sum", "e", WIDTH, 100, 20, false, NULL, 0, 0},
        {"pooled.h5", "sum", "d", WIDTH, 400, 20, false, NULL, 0, 100},
        {"pooled2.h5", "sum", "d", WIDTH, 400, 20, false, NULL, 0, 100},
        {"pooled3.h5", "sum", "d", WIDTH, 400, 20, false, NULL, 0, 50}};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) write_run(&runs[i]);
    return 0;
}

static void expect(const char *command, const char *statistic, double want) {
    program_result r = program_run("%s", command);
    if (r.status != 0) fail_msg("%s: %s", command, r.err);
    check_text(&r, 0, "statistic", statistic);
    check_cell(&r, 0, "median", want);
    program_free(&r);
}

static void distances(void **state) {
    (void)state;
    expect("stat-distance sum.h5 --stat mu", "dist_mu", 3);
    expect("stat-distance sum.h5 --stat mu --form per-root", "dist_mu_per_root", 12);
    expect("stat-distance sum.h5 --stat mu --form relative", "dist_mu_relative", 0.06);
    expect("stat-distance sum.h5 --stat sigma --form relative", "dist_sigma_relative", 0.04);
    expect("stat-distance sum.h5 --stat sigma2 --form per-root", "dist_sigma2_per_root", 8);
    expect("stat-distance sum.h5 --stat sigma2 --form relative", "dist_sigma2_relative", 0.08);
    expect("stat-scalar sum.h5 --stat dist_mu_excess", "dist_mu_excess",
           0.06 * sqrt(100 * 1.5 / 2));
    expect("stat-scalar sum.h5 --stat dist_sigma_excess", "dist_sigma_excess",
           0.04 * sqrt(100 * 1.5));
}

static void gradients(void **state) {
    (void)state;
    static const char g[] = "stat-gradnorm %s.h5 --stat %s --loss %s";
    const struct {
        const char *run, *stat, *loss, *name;
        double want;
    } row[] = {{"sum", "g_mu", "recorded", "g_mu", 0.5},
               {"sum", "g_mu", "sum", "g_mu_sum", 0.5},
               {"sum", "g_mu", "mean", "g_mu_mean", 0.025},
               {"mean", "g_mu", "recorded", "g_mu", 0.5},
               {"mean", "g_mu", "sum", "g_mu_sum", 10},
               {"mean", "g_mu", "mean", "g_mu_mean", 0.5},
               {"sum", "g_sigma2", "mean", "g_sigma2_mean", 0.0125},
               {"sum", "g_mu", "share", "g_mu_share", 10 * 16 * 0.5 / 40},
               {"mean", "g_mu", "share", "g_mu_share", 10 * 16 * 0.5 / 40},
               {"sum", "g_sigma2", "share", "g_sigma2_share", 10 * 16 * 0.25 / 40},
               {"wide", "g_mu", "share", "g_mu_share", 10 * 64 * 0.5 / 40},
               {"rows", "g_mu", "share", "g_mu_share", 20 * 16 * 0.5 / 40},
               {"seen", "g_mu", "share", "g_mu_share", 10 * 16 * 0.5 / 80},
               {"sum", "g_psi2", "share", "g_psi2_share", 10 * 16 * 0.125 / 40}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char command[160];
        snprintf(command, sizeof command, g, row[i].run, row[i].stat, row[i].loss);
        expect(command, row[i].name, row[i].want);
    }
    expect("stat-scalar sum.h5 --stat g_mu_excess", "g_mu_excess", 100 * 16 * 0.5 / 50);
    expect("stat-scalar seen.h5 --stat g_sigma2_excess", "g_sigma2_excess", 100 * 16 * 0.25 / 100);
}

/* An observed site has no recorded ||dx|| of pnv. */
static void no_share_without_its_norm(void **state) {
    (void)state;
    program_result r = program_run("stat-gradnorm seen.h5 --loss share --stat g_psi2");
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "has no g_psi2_share"));
    program_free(&r);
}

/* The forms from vectors equal the ones from scalars. */
static void forms_from_vectors(void **state) {
    (void)state;
    write_small_run(program_file("small.h5"), 6, true);
    static const char *const form[] = {"paper", "per-root", "relative"};
    for (int i = 0; i < 3; i++) {
        program_result a = program_run("stat-distance small.h5 --burn-in 0 --form %s", form[i]);
        program_result b =
            program_run("stat-distance small.h5 --burn-in 0 --form %s --from vectors", form[i]);
        assert_true(table_rows(a.out) >= 4 && table_rows(a.out) == table_rows(b.out));
        for (int k = 0; k < table_rows(a.out); k++) {
            check_text(&b, k, "statistic", table_cell(a.out, k, "statistic"));
            check_cell(&b, k, "mean", table_real(a.out, k, "mean"));
        }
        program_free(&a);
        program_free(&b);
    }
}

/* -- comparable forms ------------------------------------------------------------------------ */

static void expect_warning(const char *other, const char *stat, const char *part) {
    program_result r = program_run("stat-compare sum.h5 %s.h5 --stat %s", other, stat);
    if (r.status != 0) fail_msg("%s: %s", other, r.err);
    const char *line = strstr(r.out, "# warning: ");
    if (part ? !line || !strstr(line, part) : line != NULL)
        fail_msg("%s, %s: not '%s' but %.200s", other, stat, part ? part : "", line ? line : "-");
    program_free(&r);
}

static void tables_warn(void **state) {
    (void)state;
    expect_warning("same", "dist_mu,g_mu,tid_mean,g_mu_share,dx_norm", NULL);
    expect_warning("wide", "dist_mu",
                   "dist_mu is not comparable between these runs (different width)");
    expect_warning("wide", "dist_mu", "comparable: dist_mu_relative\n");
    expect_warning("wide", "dist_mu_per_root", NULL);
    expect_warning("other", "dist_mu_per_root", "different model or data");
    expect_warning("wide", "dist_mu_relative,tid_var,g_mu_share", NULL);
    expect_warning("long", "g_mu", "different loss reduction or tokens of a pass");
    expect_warning("long", "g_mu", "comparable: g_mu_share\n");
    expect_warning("mean", "g_sigma2", "comparable: g_sigma2_share\n");
    expect_warning("mean", "g_mu_mean", NULL);
    expect_warning("long", "dist_mu,tid_mean,g_mu_share", NULL);
    expect_warning("rows", "tid_mean", "different rows of a batch");
    expect_warning("rows", "g_mu_share", "holds sampling noise");
    expect_warning("rows", "g_mu_excess", "is against independent rows");
    expect_warning("rows", "dist_mu_excess", "different rows of a batch");
    expect_warning("rows", "dist_mu",
                   "dist_mu is not comparable between these runs (different rows");
    expect_warning("rows", "dist_mu", "; better: dist_mu_relative (still different: rows");
    expect_warning("bag", "tid_var,dist_mu_excess", "different batching");
    expect_warning("bag", "g_mu,g_mu_mean", NULL);
    expect_warning("alpha", "tid_mean", "different alpha");
    expect_warning("alpha", "g_mu_share", NULL);
    expect_warning("long", "row_g_var", "different loss reduction or tokens");
    expect_warning("wide", "rows", NULL);
}

/* Programs that put several runs into one table. */
static void expect_table_warning(const char *command, const char *part) {
    program_result r = program_run("%s", command);
    if (r.status != 0) fail_msg("%s: %s", command, r.err);
    const char *line = strstr(r.out, "# warning: ");
    if (part ? !line || !strstr(line, part) : line != NULL)
        fail_msg("%s: not '%s' but %.200s", command, part ? part : "", line ? line : "-");
    program_free(&r);
}

static void tables_of_runs_warn(void **state) {
    (void)state;
    expect_table_warning("stat-distance sum.h5 same.h5", NULL);
    expect_table_warning("stat-distance sum.h5 wide.h5 --stat mu",
                         "comparable: dist_mu_relative\n");
    expect_table_warning("stat-distance wide.h5", NULL);
    expect_table_warning("stat-distance sum.h5 wide.h5 --stat mu --form relative", NULL);
    expect_table_warning("stat-gradnorm sum.h5 long.h5 --stat g_mu", "comparable: g_mu_share\n");
    expect_table_warning("stat-scalar sum.h5 rows.h5 --stat tid_mean", "different rows of a batch");
    expect_table_warning("stat-outlier sum.h5 rows.h5 --stat tid_mean",
                         "different rows of a batch");
    expect_table_warning("stat-tid sum.h5 alpha.h5 --stat mean", "different alpha");
}

static void expect_drawing(const char *command, const char *warning) {
    program_result r = program_run("%s -o x.svg && test -s x.svg", command);
    if (r.status != 0) fail_msg("%s: %s", command, r.err);
    if (warning ? !strstr(r.err, warning) : r.err[0] != 0)
        fail_msg("%s: not '%s' but: %s", command, warning ? warning : "", r.err);
    program_free(&r);
}

/* The table is statplot's internal file: the user sees the name of the program that wrote it. */
static void unknown_statistic_of_a_figure(void **state) {
    (void)state;
    program_result r = program_run("statplot tidloss sum.h5 --stat mean -o x.svg");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.err, "statplot: the table of stat-tid has no column mean\n");
    program_free(&r);
}

static void figures_warn(void **state) {
    (void)state;
    expect_drawing("statplot fig2 sum.h5 same.h5", NULL);
    expect_drawing("statplot tiddepth sum.h5 same.h5", NULL);
    expect_drawing("statplot tiddepth sum.h5 rows.h5", "tid_mean is not comparable");
    expect_drawing("statplot fig2 sum.h5 wide.h5",
                   "statplot: warning: dist_sigma2 is not comparable between these runs");
    expect_drawing("statplot fig2 sum.h5 wide.h5 --form relative", NULL);
    expect_drawing("statplot fig2 sum.h5 rows.h5 --form relative --axes log",
                   "dist_mu_relative is not comparable");
    expect_drawing("statplot fig3 sum.h5 long.h5", "g_mu_sum is not comparable");
    expect_drawing("statplot fig3 sum.h5 long.h5 --loss mean", NULL);
    expect_drawing("statplot fig3 sum.h5 wide.h5 --loss share", NULL);
    expect_drawing("statplot compare pooled.h5 pooled2.h5 --stat tid_mean", NULL);
    expect_drawing("statplot compare pooled.h5 pooled3.h5 --stat tid_mean", "different rows of a");
    expect_drawing("statplot fair sum.h5 wide.h5", NULL);
    expect_drawing("statplot fair sum.h5 rows.h5 --against rows", "is against independent rows");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(distances),
                                       cmocka_unit_test(gradients),
                                       cmocka_unit_test(no_share_without_its_norm),
                                       cmocka_unit_test(forms_from_vectors),
                                       cmocka_unit_test(tables_warn),
                                       cmocka_unit_test(tables_of_runs_warn),
                                       cmocka_unit_test(unknown_statistic_of_a_figure),
                                       cmocka_unit_test(figures_warn)};
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
