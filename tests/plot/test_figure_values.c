/* test_figure_values.c -- every figure draws the values of its analysis: figures of training.
 *
 * For each figure: every value that the stat-* program prints has a mark inside the panel. The
 * factor in the axis label scales it. Also the labels of the axes and the grey box of the burn-in.
 * Runs are so short that a bucket contains one step, or have few values per site.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "few_runs.h"
#include "figure_values.h"
#include "testing/check.h"

/* -- statistics through training --------------------------------------------------------------- */

static void test_tid(void **state) {
    (void)state;
    static const char *const site[] = {"site=stem", "site=body"};
    const drawing *d = drawing_make("statplot tid few.h5");
    program_result t = table_of("stat-tid few.h5 --per-step");
    for (int i = 0; i < 2; i++) {
        check_course(d, 1, ANY_LOOK, &t, site[i], 100, "tid_mean");
        check_course(d, 2, ANY_LOOK, &t, site[i], 100, "tid_var");
    }
    check_axes(d, 1, "training (%)", "mean TID (%)");
    check_axes(d, 2, "training (%)", "variance TID (%)");
    for (int panel = 1; panel <= 2; panel++)
        check_burn_in(d, panel, burn_in("few.h5"), burn_in("few.h5"));
    check_says(d, "burn-in");
    check_says(d, "stem");
    program_free(&t);
    /* The legend names seven sites; nineteen have a bar of their depths. */
    static const char *const named[] = {"encoder.0.norm1", "encoder.0.norm2", "encoder.1.norm1",
                                        "encoder.1.norm2", "encoder.2.norm1", "encoder.2.norm2",
                                        "encoder.final"};
    d = drawing_make("statplot tid " SAMPLE("nlp_bn"));
    for (int i = 0; i < 7; i++) check_says(d, named[i]);
    d = drawing_make("statplot tid " SAMPLE("cv_bn"));
    check_says(d, "depth 0");
    check_says(d, "depth 18");
}

static void test_fig2(void **state) {
    (void)state;
    static const struct {
        const char *form, *mu, *sigma2, *mu_label, *sigma2_label;
    } of[] = {
        {"paper", "dist_mu", "dist_sigma2", "‖μB − μ‖2 / d", "‖σB2 − σ2‖2 / d"},
        {"per-root", "dist_mu_per_root", "dist_sigma2_per_root", "‖μB − μ‖2 / √d",
         "‖σB2 − σ2‖2 / √d"},
        {"relative", "dist_mu_relative", "dist_sigma2_relative", "‖μB − μ‖2 / ‖σ‖2",
         "‖σB2 − σ2‖2 / ‖σ2‖2"},
    };
    static const char *const run[] = {"few.h5", "other.h5"};
    const double longest = burn_in("few.h5");
    assert_true(longest > burn_in("other.h5"));
    for (int i = 0; i < 3; i++) {
        char command[160];
        snprintf(command, sizeof command, "statplot fig2 few.h5 other.h5 --form %s", of[i].form);
        const drawing *d = drawing_make(command);
        for (int r = 0; r < 2; r++) {
            snprintf(command, sizeof command,
                     "stat-distance %s --site first --form %s --per-step --stat mu,sigma2", run[r],
                     of[i].form);
            program_result t = table_of(command);
            check_course(d, 1, r + 1, &t, "site=stem", 1, of[i].mu);
            check_course(d, 2, r + 1, &t, "site=stem", 1, of[i].sigma2);
            program_free(&t);
        }
        check_axes(d, 1, "training (%)", of[i].mu_label);
        check_axes(d, 2, "training (%)", of[i].sigma2_label);
        for (int panel = 1; panel <= 2; panel++)
            check_burn_in(d, panel, burn_in("other.h5"), longest);
        check_says(d, "seed 2 (stem)");
    }
}

static void test_fig3(void **state) {
    (void)state;
    static const struct {
        const char *loss, *mu, *sigma2, *mu_label, *sigma2_label;
    } of[] = {
        {"sum", "g_mu_sum", "g_sigma2_sum", "‖gμ‖2 / d", "‖gσ2‖2 / d"},
        {"mean", "g_mu_mean", "g_sigma2_mean", "‖gμ‖2 / d, mean loss", "‖gσ2‖2 / d, mean loss"},
        {"share", "g_mu_share", "g_sigma2_share", "√n ‖gμ‖2 / ‖dx‖F", "√n ‖gσ2‖2 / ‖dx‖F"},
    };
    static const char *const run[] = {"few.h5", "other.h5"};
    for (int i = 0; i < 3; i++) {
        char command[160];
        snprintf(command, sizeof command, "statplot fig3 few.h5 other.h5 --loss %s", of[i].loss);
        const drawing *d = drawing_make(command);
        for (int r = 0; r < 2; r++) {
            snprintf(command, sizeof command,
                     "stat-gradnorm %s --site first --loss %s --per-step --stat g_mu,g_sigma2",
                     run[r], of[i].loss);
            program_result t = table_of(command);
            check_course(d, 1, r + 1, &t, "site=stem", 1, of[i].mu);
            check_course(d, 2, r + 1, &t, "site=stem", 1, of[i].sigma2);
            program_free(&t);
        }
        check_axes(d, 1, "training (%)", of[i].mu_label);
        check_axes(d, 2, "training (%)", of[i].sigma2_label);
        check_burn_in(d, 1, 0, 0);
        check_burn_in(d, 2, 0, 0);
    }
}

static void test_fig4(void **state) {
    (void)state;
    static const struct {
        const char *reading, *bn, *pnv, *label, *legend[3];
    } of[] = {
        {"squares",
         "dist_sigma2",
         "dist_psi2",
         "‖σB² − σ²‖2 / d,  ‖ψB² − ψ²‖2 / d",
         {"bn: σ², gradient of σ²", "bn: gradient of μ", "pnv: ψ², gradient of ψ²"}},
        {"roots",
         "dist_sigma",
         "dist_psi",
         "‖σB − σ‖2 / d,  ‖ψB − ψ‖2 / d",
         {"bn: σ, gradient of σ²", "bn: gradient of μ", "pnv: ψ, gradient of ψ²"}},
    };
    program_result b = table_of("stat-distance few.h5 --per-step --stat sigma2,sigma"),
                   p = table_of("stat-distance pnv.h5 --per-step --stat psi2,psi"),
                   g = table_of("stat-gradnorm few.h5 --per-step"),
                   h = table_of("stat-gradnorm pnv.h5 --per-step");
    for (int i = 0; i < 2; i++) {
        char command[160];
        snprintf(command, sizeof command, "statplot fig4 few.h5 pnv.h5 --reading %s",
                 of[i].reading);
        const drawing *d = drawing_make(command);
        check_course(d, 1, 1, &b, "site=stem", 1, of[i].bn);
        check_course(d, 1, 2, &p, "site=stem", 1, of[i].pnv);
        check_course(d, 2, 1, &g, "site=stem", 1, "g_sigma2");
        check_course(d, 2, 3, &g, "site=stem", 1, "g_mu");
        check_course(d, 2, 2, &h, "site=stem", 1, "g_psi2");
        check_axes(d, 1, "training (%)", of[i].label);
        check_axes(d, 2, "training (%)", "‖g‖2 / d");
        check_burn_in(d, 1, burn_in("few.h5"), burn_in("few.h5"));
        check_burn_in(d, 2, 0, 0);
        for (int k = 0; k < 3; k++) check_says(d, of[i].legend[k]);
    }
    program_free(&b), program_free(&p), program_free(&g), program_free(&h);
}

static void test_fair(void **state) {
    (void)state;
    static const struct {
        const char *against, *column[4], *title[4];
    } of[] = {
        {"scale",
         {"dist_mu_relative", "dist_sigma_relative", "g_mu_share", "g_sigma2_share"},
         {"mean TID", "variance TID", "fraction of dx: gμ", "fraction of dx: gσ2"}},
        {"rows",
         {"dist_mu_excess", "dist_sigma_excess", "g_mu_excess", "g_sigma2_excess"},
         {"mean TID / noise", "variance TID / noise", "gμ / noise", "gσ2 / noise"}},
    };
    const double end = burn_in("few.h5");
    for (int k = 0; k < 2; k++) {
        char command[256];
        snprintf(command, sizeof command, "statplot fair few.h5 --against %s", of[k].against);
        const drawing *d = drawing_make(command);
        snprintf(command, sizeof command, "stat-scalar few.h5 --per-step --stat %s,%s,%s,%s",
                 of[k].column[0], of[k].column[1], of[k].column[2], of[k].column[3]);
        program_result t = table_of(command);
        for (int i = 0; i < 4; i++) {
            check_course(d, 2 * i + 1, 1, &t, "site=stem", 1, of[k].column[i]);
            check_course(d, 2 * i + 2, 1, &t, "site=body", 1, of[k].column[i]);
            check_axes(d, 2 * i + 1, "", i ? "" : "first BN site");
            check_axes(d, 2 * i + 2, "training (%)", i ? "" : "last BN layer");
            check_title(d, 2 * i + 1, of[k].title[i]);
            check_burn_in(d, 2 * i + 1, i < 2 ? end : 0, i < 2 ? end : 0);
            check_burn_in(d, 2 * i + 2, i < 2 ? end : 0, i < 2 ? end : 0);
        }
        check_says(d, "burn-in");
        program_free(&t);
    }
}

static void test_compare(void **state) {
    (void)state;
    static const char *const run[] = {"few.h5", "other.h5"}, *const site[] = {"stem", "body"};
    const drawing *d = drawing_make("statplot compare few.h5 other.h5 --stat dist_mu");
    for (int panel = 1; panel <= 2; panel++) {
        for (int r = 0; r < 2; r++) {
            char command[160], where[32];
            snprintf(command, sizeof command, "stat-scalar %s --per-step --stat dist_mu", run[r]);
            snprintf(where, sizeof where, "site=%s", site[panel - 1]);
            program_result t = table_of(command);
            check_course(d, panel, r + 1, &t, where, 1, "dist_mu");
            program_free(&t);
        }
        check_axes(d, panel, "training (%)", panel == 1 ? "distance of μ" : "");
        check_title(d, panel, site[panel - 1]);
        check_burn_in(d, panel, burn_in("other.h5"), burn_in("few.h5"));
        char command[96], says[64];
        double median[2];
        for (int r = 0; r < 2; r++) {
            snprintf(command, sizeof command, "stat-scalar %s --site %s --stat dist_mu", run[r],
                     site[panel - 1]);
            program_result t = table_of(command);
            median[r] = table_real(t.out, 0, "median");
            program_free(&t);
        }
        snprintf(says, sizeof says, "× %.3g", median[1] / median[0]);
        check_says(d, says);
    }
    check_says(d, "×: median of seed 2 over median of seed 1, after burn-in");
    check_says(d, "burn-in");
}

static void test_tidloss(void **state) {
    (void)state;
    static const char *const run[] = {"few.h5", "other.h5"};
    const drawing *d = drawing_make("statplot tidloss few.h5 other.h5");
    for (int r = 0; r < 2; r++) {
        char command[160];
        snprintf(command, sizeof command, "stat-tid %s --per-step --site last-bn", run[r]);
        program_result t = table_of(command);
        check_course(d, 1, r + 1, &t, "", 100, "tid_var");
        program_free(&t);
        snprintf(command, sizeof command,
                 "stat-curve %s --evals --metric valid_loss,valid_loss_batch", run[r]);
        t = table_of(command);
        assert_int_equal(table_rows(t.out), 5);
        for (int row = 0; row < 5; row++)
            check_mark(d, 2, MARK_POINT, r + 1, table_real(t.out, row, "percent"),
                       table_real(t.out, row, "valid_loss") -
                           table_real(t.out, row, "valid_loss_batch"));
        program_free(&t);
    }
    check_axes(d, 1, "", "variance TID (%)");
    check_axes(d, 2, "training (%)", "loss gap (nats)");
    check_burn_in(d, 1, burn_in("other.h5"), burn_in("few.h5"));
    check_burn_in(d, 2, 0, 0);
    check_says(d, "body");
    d = drawing_make("statplot tidloss few.h5 --stat tid_mean");
    program_result t = table_of("stat-tid few.h5 --per-step --site last-bn");
    check_course(d, 1, 1, &t, "", 100, "tid_mean");
    check_axes(d, 1, "", "mean TID (%)");
    program_free(&t);
}

static void test_theorem1(void **state) {
    (void)state;
    const drawing *d = drawing_make("statplot theorem1 few.h5 --site head");
    program_result t = table_of("stat-lngrad few.h5 --per-step --site head");
    check_course(d, 1, 8, &t, "", 1, "row_g_var");
    check_course(d, 1, 2, &t, "", 1, "row_free_var");
    check_course(d, 1, 1, &t, "", 1, "row_grad_var");
    check_mark(d, 1, MARK_POINT, ANY_LOOK, table_real(t.out, 0, "percent"),
               table_real(t.out, 0, "row_exact_var"));
    program_free(&t);
    t = table_of("stat-lngrad few.h5");
    const double free_var = table_real(t.out, 0, "free_var");
    check_mark(d, 2, MARK_POINT, 1, 3, table_real(t.out, 0, "grad_var") / free_var);
    check_mark(d, 2, MARK_POINT, ANY_LOOK, 3, table_real(t.out, 0, "exact_var") / free_var);
    check_axes(d, 1, "training (%)", "variance, head");
    check_axes(d, 2, "depth of the site, from the input", "variance of dx / (D_g / s²)");
    check_burn_in(d, 1, 0, 0);
    program_free(&t);
}

/* Returns a percent inside a step's field, shortly after its start; the field ends at the step's
 * end. */
static double field_of(const program_result *t, int row) {
    return table_real(t->out, row, "percent") - 80.0 / FEW_STEPS;
}

static void test_layers(void **state) {
    (void)state;
    const drawing *d = drawing_make("statplot layers few.h5 --site stem --stat g_mu");
    program_result t = table_of("stat-scalar few.h5 --per-step --site stem --stat g_mu");
    check_axes(d, 1, "training (%)", "");
    check_axes(d, 2, "training (%)", "");
    check_title(d, 1, "gradient through μ: median");
    check_title(d, 2, "gradient through μ: largest");
    assert_int_equal(table_rows(t.out), FEW_STEPS);
    for (int row = 0; row < FEW_STEPS; row++)
        for (int panel = 1; panel <= 2; panel++)
            check_heat(d, panel, field_of(&t, row), 1, table_real(t.out, row, "g_mu"));
    program_free(&t);
}

/* Panels of single.h5: losses, gradient norm, learning rate; then a map for each statistic. */
static void test_overview(void **state) {
    (void)state;
    static const struct {
        const char *column, *title;
    } map[] = {{"dist_mu", "distance of μ (in units of x)"},
               {"dist_sigma2", "distance of σ² (in units of x²)"},
               {"g_mu", "gradient through μ (in units of dx)"},
               {"g_sigma2", "gradient through σ² (in units of dx)"},
               {"tid_var", "variance TID (fraction)"}};
    const drawing *d = drawing_make("statplot overview single.h5");
    program_result t = table_of("stat-curve single.h5"),
                   v = table_of("stat-curve single.h5 --evals"),
                   s = table_of("stat-scalar single.h5 --per-step --stat "
                                "dist_mu,dist_sigma2,g_mu,g_sigma2,tid_var");
    const reading epoch = cell("epoch");
    check_rows(d, 1, MARK_LINE, 1, &t, "", epoch, cell("loss"));
    check_rows(d, 1, MARK_POINT, 2, &v, "", epoch, cell("valid_loss"));
    check_rows(d, 2, MARK_LINE, 1, &t, "", epoch, cell("grad_norm"));
    check_rows(d, 3, MARK_LINE, 1, &t, "", epoch, cell("lr"));
    check_title(d, 1, "loss (nats)");
    check_title(d, 2, "gradient norm");
    check_title(d, 3, "learning rate");
    for (int panel = 1; panel <= 3; panel++) check_axes(d, panel, "epoch", "");
    for (int i = 0; i < 5; i++) {
        check_title(d, 4 + i, map[i].title);
        check_axes(d, 4 + i, "training (%)", "depth of the site");
        for (int row = 0; row < FEW_STEPS; row++)
            check_heat(d, 4 + i, field_of(&s, row), 1, table_real(s.out, row, map[i].column));
    }
    check_says(d, "toy, bn, numbers, seed 4");
    program_free(&t), program_free(&v), program_free(&s);
    d = drawing_make("statplot overview bare.h5"); /* values that are not recorded have no panel */
    check_title(d, 2, "learning rate");
    check_title(d, 3, map[0].title);
}

static void test_features(void **state) {
    (void)state;
    const drawing *d = drawing_make("statplot features " SAMPLE("nlp_bn"));
    program_result t = table_of("stat-features " SAMPLE("nlp_bn") " --per-step --stat kurtosis");
    check_course(d, 1, ANY_LOOK, &t, "", 1, "kurtosis");
    check_axes(d, 1, "training (%)", "kurtosis over features");
    program_free(&t);
    d = drawing_make("statplot features " SAMPLE("nlp_bn") " --quantity mean_share");
    t = table_of("stat-features " SAMPLE("nlp_bn") " --per-step --stat mean_share");
    check_course(d, 1, ANY_LOOK, &t, "", 1, "mean_share");
    check_axes(d, 1, "training (%)", "fraction of power in the mean");
    program_free(&t);
}

static void test_ranks(void **state) {
    (void)state;
    const drawing *d = drawing_make("statplot ranks " SAMPLE("shares_bn"));
    program_result t = table_of("stat-distance " SAMPLE("shares_bn") " --ranks --per-step");
    check_course(d, 1, 1, &t, "site=(median)", 100, "spread_mean");
    check_course(d, 1, ANY_LOOK, &t, "", 100, "spread_mean");
    check_course(d, 1, ANY_LOOK, &t, "site=(median)", 100, "expected_mean");
    program_free(&t);
    t = table_of("stat-distance " SAMPLE("shares_bn") " --ranks --phase second-half");
    for (int row = 0; row < 2; row++) { /* encoder.0.norm1 and encoder.final */
        const double depth = 4 * row, q25 = 100 * table_real(t.out, row, "spread_mean_q25"),
                     q75 = 100 * table_real(t.out, row, "spread_mean_q75");
        check_mark(d, 2, MARK_POINT, 1, depth, 100 * table_real(t.out, row, "spread_mean"));
        check_mark(d, 2, MARK_LINE, 1, depth, q25);
        check_mark(d, 2, MARK_LINE, 1, depth, q75);
        check_mark(d, 2, MARK_LINE, ANY_LOOK, depth - 0.42,
                   100 * table_real(t.out, row, "expected_mean"));
    }
    check_axes(d, 1, "training (%)", "scatter of μB (% of σB)");
    check_axes(d, 2, "depth of the site, from the input", "scatter of μB (% of σB)");
    check_burn_in(d, 1, 0, 0);
    program_free(&t);
}

/* Excesses of one step each; the infinite one belongs to no step. */
static void test_amgm(void **state) {
    (void)state;
    const drawing *d = drawing_make("statplot amgm few.h5 --stat sigma2_B --site stem");
    program_result t = table_of("stat-amgm few.h5 --stat sigma2_B --site stem --per-step");
    check_course(d, 1, 1, &t, "", 1, "excess");
    program_free(&t);
    t = table_of("stat-amgm few.h5 --stat sigma2_B --site stem");
    check_rows(d, 2, MARK_POINT, 1, &t, "", place_plus(0), percent_of("share"));
    check_axes(d, 1, "training (%)", "largest (AM − GM) / (M V)");
    check_axes(d, 2, "depth of the site, from the input", "outliers (% of steps)");
    program_free(&t);
}

/* -- losses ----------------------------------------------------------------------------------- */

static void test_curves(void **state) {
    (void)state;
    static const char *const run[] = {"few.h5", "other.h5"};
    const reading epoch = cell("epoch");
    const drawing *d = drawing_make("statplot curves few.h5 other.h5");
    for (int r = 0; r < 2; r++) {
        char command[160];
        snprintf(command, sizeof command, "stat-curve %s", run[r]);
        program_result t = table_of(command);
        check_rows(d, 1, MARK_LINE, r + 1, &t, "", epoch, cell("loss"));
        program_free(&t);
        snprintf(command, sizeof command, "stat-curve %s --evals --metric valid_loss", run[r]);
        t = table_of(command);
        check_rows(d, 2, MARK_POINT, r + 1, &t, "", epoch, cell("valid_loss"));
        program_free(&t);
    }
    check_axes(d, 1, "epoch", "training loss (nats)");
    check_axes(d, 2, "epoch", "validation loss (nats)");
}

/* Epochs after the first tenth: 0.1 + 0.19. The last panel shows the second run's evaluations minus
 * the first's. */
static void test_converge(void **state) {
    (void)state;
    const drawing *d = drawing_make("statplot converge few.h5 other.h5");
    program_result few = table_of("stat-curve few.h5"), other = table_of("stat-curve other.h5"),
                   v = table_of("stat-curve few.h5 --evals --metric valid_loss"),
                   w = table_of("stat-curve other.h5 --evals --metric valid_loss");
    for (int row = 2; row < FEW_STEPS; row++) {
        const double epoch = table_real(few.out, row, "epoch");
        check_mark(d, 1, MARK_LINE, 1, epoch, table_real(few.out, row, "loss"));
        check_mark(d, 1, MARK_LINE, 2, epoch, table_real(other.out, row, "loss"));
    }
    assert_float_equal(d->panel[0].low[AXIS_X], 0.29, 1e-9);
    for (int row = 0; row < 4; row++) {
        const double epoch = table_real(v.out, row, "epoch"),
                     first = table_real(v.out, row, "valid_loss"),
                     second = table_real(w.out, row, "valid_loss");
        check_mark(d, 2, MARK_POINT, 1, epoch, first);
        check_mark(d, 2, MARK_POINT, 2, epoch, second);
        check_mark(d, 3, MARK_POINT, 2, epoch, second - first);
    }
    check_axes(d, 1, "epoch", "training loss (nats)");
    check_axes(d, 2, "epoch", "validation loss (nats)");
    check_axes(d, 3, "epoch", "more than the first (nats)");
    program_free(&few), program_free(&other), program_free(&v), program_free(&w);
}

/* Two steps and their validation loss, without batch statistics. */
static void write_validated(const char *path, bool rows) {
    sr_recorder *r = run_create(program_file(path), run_options());
    (rows ? run_add_ln : run_add_bn)(r, "top", 2, 0, 1e-5);
    run_add_metrics(r);
    for (int step = 1; step <= 2; step++) {
        run_put_step(r, step);
        run_put_eval(r, step, step, "valid_loss", 3.0 - step);
    }
    run_finish(r);
}

static void test_modes(void **state) {
    (void)state;
    const reading epoch = cell("epoch");
    const drawing *d = drawing_make("statplot modes few.h5");
    program_result t = table_of("stat-curve few.h5"),
                   v = table_of("stat-curve few.h5 --evals --metric valid_loss,valid_loss_batch");
    check_rows(d, 1, MARK_LINE, 8, &t, "", epoch, cell("loss"));
    check_rows(d, 1, MARK_POINT, 1, &v, "", epoch, cell("valid_loss"));
    check_rows(d, 1, MARK_POINT, 2, &v, "", epoch, cell("valid_loss_batch"));
    check_axes(d, 1, "", "loss (nats)");
    check_says(d, "validation, running statistics");
    check_says(d, "validation, batch statistics");
    program_free(&t), program_free(&v);
    v = table_of("stat-curve few.h5 --evals --gap --metric valid_loss");
    check_rows(d, 2, MARK_POINT, 3, &v, "", epoch, cell("valid_loss_gap"));
    check_rows(d, 2, MARK_LINE, 3, &v, "", epoch, cell("valid_loss_gap_mean"));
    check_rows(d, 2, MARK_AREA, 3, &v, "", epoch, cell("valid_loss_gap_low"));
    check_rows(d, 2, MARK_AREA, 3, &v, "", epoch, cell("valid_loss_gap_high"));
    check_axes(d, 2, "epoch", "difference (nats)");
    char mean[96];
    snprintf(
        mean, sizeof mean, "mean %.3g [%.3g, %.3g]", table_real(v.out, 3, "valid_loss_gap_mean"),
        table_real(v.out, 3, "valid_loss_gap_low"), table_real(v.out, 3, "valid_loss_gap_high"));
    check_says(d, mean);
    program_free(&v);
    write_validated("ln.h5", true), write_validated("bn.h5", false);
    d = drawing_make("statplot modes ln.h5 bn.h5");
    check_says(d, "validation, of methods without running statistics");
    check_says(d,
               "No evaluation has finite values of both metrics valid_loss and valid_loss_batch: "
               "what running statistics cost is not measured.");
    d = drawing_make("statplot modes ln.h5");
    check_says(d, "validation");
    check_says(d, "These methods have no running statistics: there is no cost of them.");
}

/* -- all of them ------------------------------------------------------------------------------- */

#define NAME(figure) #figure,
static void test_every_figure(void **state) {
    (void)state;
    static const char *const tested[] = {FIGURES_OF_TRAINING(NAME) FIGURES_OF_RUNS(NAME)};
    char *rest;
    program_result r = table_of("statrec list figures | grep -v 'table: ' | cut -f1");
    for (char *name = strtok_r(r.out, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest)) {
        bool found = false;
        for (size_t i = 0; i < sizeof tested / sizeof tested[0]; i++)
            found = found || strcmp(tested[i], name) == 0;
        if (!found) fail_msg("no test compares figure %s with its analysis", name);
    }
    program_free(&r);
}

#define TEST(figure) {#figure, test_##figure, NULL, NULL, NULL},
int main(void) {
    const struct CMUnitTest tests[] = {FIGURES_OF_TRAINING(TEST)
                                           cmocka_unit_test(test_every_figure)};
    if (!have_gnuplot()) return 0;
    return cmocka_run_group_tests(tests, figure_runs, NULL);
}
