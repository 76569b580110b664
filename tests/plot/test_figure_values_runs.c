/* test_figure_values_runs.c -- continues test_figure_values.c: figures of sites and their features,
 * and of the ends of runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "few_runs.h"
#include "figure_values.h"
#include "testing/check.h"

/* -- sites ------------------------------------------------------------------------------------- */

static void test_tiddepth(void **state) {
    (void)state;
    static const struct {
        const char *command;
        int panel, look;
        double place;
    } of[] = {{"stat-tid few.h5 --stat mean", 1, 1, -0.125},
              {"stat-tid other.h5 --stat mean", 1, 2, 0.125},
              {"stat-tid few.h5 --stat var", 2, 1, -0.125},
              {"stat-tid other.h5 --stat var", 2, 2, 0.125}};
    const drawing *d = drawing_make("statplot tiddepth few.h5 other.h5");
    for (int i = 0; i < 4; i++) {
        const reading site = place_plus(of[i].place);
        program_result t = table_of(of[i].command);
        assert_int_equal(table_rows(t.out), 2);
        check_rows(d, of[i].panel, MARK_POINT, of[i].look, &t, "", site, percent_of("median"));
        check_rows(d, of[i].panel, MARK_LINE, of[i].look, &t, "", site, percent_of("q01"));
        check_rows(d, of[i].panel, MARK_LINE, of[i].look, &t, "", site, percent_of("q99"));
        program_free(&t);
    }
    check_axes(d, 1, "depth of the site, from the input", "mean TID (%)");
    check_axes(d, 2, "depth of the site, from the input", "variance TID (%)");
    check_says(d, "sites without values: head (depth 3)");
}

static void test_depth(void **state) {
    (void)state;
    static const char *const part[] = {"part=1", "part=2", "part=3", "part=4"};
    const drawing *d = drawing_make("statplot depth " SAMPLE("cv_bn_every") " --right kurtosis");
    program_result t = table_of("stat-depth " SAMPLE("cv_bn_every") " --parts 4");
    for (int i = 0; i < 4; i++) {
        check_rows(d, 1, MARK_LINE, i + 1, &t, part[i], cell("depth"), cell("power"));
        check_rows(d, 2, MARK_LINE, i + 1, &t, part[i], cell("depth"), cell("kurtosis"));
    }
    check_axes(d, 1, "depth of the site, from the input", "power, mean over features");
    check_axes(d, 2, "depth of the site, from the input", "kurtosis over features");
    program_free(&t);
    d = drawing_make("statplot depth " SAMPLE("nlp_bn"));
    t = table_of("stat-depth " SAMPLE("nlp_bn") " --parts 4");
    check_rows(d, 2, MARK_LINE, 2, &t, "part=2", cell("depth"), cell("variance"));
    check_axes(d, 2, "depth of the site, from the input", "variance, mean over features");
    check_says(d, "25 to 50 % of training");
    program_free(&t);
}

static void test_condition(void **state) {
    (void)state;
    static const char *const run[] = {SAMPLE("nlp_ln"), SAMPLE("nlp_bn")},
                             *const tensor[] = {"input", "gradient"},
                             *const of[] = {"statistic=C_max", "p=0.2", "p=0.5", "p=0.8"},
                             *const title[] = {"Cmax", "C0.2", "C0.5", "C0.8"};
    const drawing *d = drawing_make("statplot condition " SAMPLE("nlp_ln") " " SAMPLE("nlp_bn"));
    for (int r = 0; r < 2; r++) {
        char command[160], where[64];
        snprintf(command, sizeof command, "stat-condition %s --steps last --p 0.2,0.5,0.8", run[r]);
        program_result t = table_of(command);
        for (int i = 0; i < 8; i++) {
            snprintf(where, sizeof where, "tensor=%s %s", tensor[i / 4], of[i % 4]);
            check_rows(d, i + 1, MARK_POINT, r + 1, &t, where, (reading){"place", 1, -1},
                       cell("value"));
        }
        snprintf(where, sizeof where, "%s, N %s", r ? "bn" : "ln", table_cell(t.out, 0, "N"));
        check_says(d, where);
        program_free(&t);
    }
    for (int i = 0; i < 4; i++) {
        check_title(d, i + 1, title[i]);
        check_axes(d, i + 1, "", i ? "" : "of the input");
        check_axes(d, i + 5, "depth of the site", i ? "" : "of the gradient");
    }
}

static void test_fig6(void **state) {
    (void)state;
    const drawing *d = drawing_make("statplot fig6 " SAMPLE("nlp_ln") " " SAMPLE("nlp_pn"));
    program_result t = table_of("stat-svd " SAMPLE("nlp_ln")),
                   u = table_of("stat-svd " SAMPLE("nlp_pn"));
    check_rows(d, 1, MARK_LINE, 1, &t, "", cell("index"), cell("relative"));
    check_rows(d, 1, MARK_LINE, 2, &u, "", cell("index"), cell("relative"));
    check_axes(d, 1, "", "si / s1");
    for (int row = 0; row < table_rows(t.out); row++)
        check_mark(d, 2, MARK_LINE, 2, table_real(u.out, row, "index"),
                   table_real(u.out, row, "relative") - table_real(t.out, row, "relative"));
    check_axes(d, 2, "index", "difference to ln");
    program_free(&t), program_free(&u);
    d = drawing_make("statplot fig6 " SAMPLE("nlp_ln")); /* no second run to compare with */
    check_axes(d, 1, "index", "si / s1");
}

/* Boxes extend 0.275 to both sides of the site; the line at 1 from end to end. */
static void test_fig7(void **state) {
    (void)state;
    static const struct {
        const char *column;
        double to_side;
    } part[] = {{"min", 0}, {"max", 0}, {"q25", -0.275}, {"q75", 0.275}, {"median", 0.275}};
    const drawing *d = drawing_make("statplot fig7 " SAMPLE("nlp_pnv"));
    program_result t = table_of("stat-gamma " SAMPLE("nlp_pnv"));
    for (int i = 0; i < 5; i++)
        check_rows(d, 1, MARK_LINE, ANY_LOOK, &t, "", place_plus(-1 + part[i].to_side),
                   cell(part[i].column));
    check_mark(d, 1, MARK_LINE, 2, -0.7, 1);
    check_axes(d, 1, "", "|γ| / ψB");
    for (int row = 0; row < table_rows(t.out); row++) check_says(d, table_cell(t.out, row, "site"));
    program_free(&t);
}

static void test_pairs(void **state) {
    (void)state;
    const drawing *d = drawing_make("statplot pairs " SAMPLE("pairs_ln") " --site first");
    program_result t = table_of("stat-pairs " SAMPLE("pairs_ln") " --site first | head -n 60");
    check_rows(d, 1, MARK_POINT, ANY_LOOK, &t, "", cell("x"), cell("y"));
    check_axes(d, 1, "input", "output before gain and bias");
    check_title(d, 1, "encoder.0.norm1");
    program_free(&t);
}

/* Rows are 0.18 apart around the run's position; y is from the top. */
static void test_batchmix(void **state) {
    (void)state;
    static const struct {
        const char *part;
        int look;
        double row;
    } of[] = {{"part=none", 7, 0.64},
              {"part=position", 1, 0.82},
              {"part=length", 2, 1},
              {"part=padding", 6, 1.18},
              {"part=position+length+padding", 3, 1.36}};
    const drawing *d = drawing_make("statplot batchmix " SAMPLE("nlp_bn_bucketed"));
    program_result t = table_of("stat-batchmix " SAMPLE("nlp_bn_bucketed") " --site first");
    for (int i = 0; i < 5; i++) {
        const reading row = place_plus(of[i].row - 1); /* the only row of its part */
        check_rows(d, 2, MARK_POINT, of[i].look, &t, of[i].part, percent_of("tid"), row);
        if (i == 0) continue; /* its fraction is 0 by definition */
        check_rows(d, 1, MARK_POINT, of[i].look, &t, of[i].part, percent_of("share"), row);
        check_rows(d, 1, MARK_LINE, of[i].look, &t, of[i].part, percent_of("low"), row);
        check_rows(d, 1, MARK_LINE, of[i].look, &t, of[i].part, percent_of("high"), row);
    }
    check_axes(d, 1, "||μB − μ||2 explained (%)", "");
    check_axes(d, 2, "mean TID that is left (%)", "");
    program_free(&t);
    /* the control is a bar in the legend, too */
    t = program_run("statplot batchmix " SAMPLE(
        "nlp_bn_bucketed") " -o mix.svg && "
                           "! grep -q \"rgb(153, 153, 153)' stroke-dasharray\" mix.svg");
    assert_int_equal(t.status, 0);
    program_free(&t);
}

static void test_alpha(void **state) {
    (void)state;
    const drawing *d = drawing_make("statplot alpha few.h5 --site stem");
    program_result t = table_of("stat-alpha few.h5 --site stem --stat mu --startup same --alpha "
                                "0,0.5,0.7,0.8,0.9,0.95,0.97,0.98,0.99,0.995,0.998,0.999");
    const double base = table_real(t.out, 0, "median");
    int drawn = 0;
    for (int row = 0; row < table_rows(t.out); row++) {
        const double y = table_real(t.out, row, "median") / base,
                     x = 1 / (1 - table_real(t.out, row, "alpha"));
        if (!isfinite(y)) continue;
        check_mark(d, 1, MARK_POINT, 1, x, y);
        check_mark(d, 1, MARK_LINE, 1, x, table_real(t.out, row, "q25") / base);
        check_mark(d, 1, MARK_LINE, 1, x, table_real(t.out, row, "q75") / base);
        drawn++;
    }
    assert_true(drawn >= 2);
    check_axes(d, 1, "memory 1/(1 − α), recorded steps (10: α 0.9)",
               "distance of μ, in units of that at α 0");
    program_free(&t);
}

/* -- runs -------------------------------------------------------------------------------------- */

/* nlp_ln and nlp_bn have no recorded training loss of fixed batches: two panels. */
static void test_gap(void **state) {
    (void)state;
    const drawing *d = drawing_make("statplot gap " SAMPLE("nlp_ln") " " SAMPLE("nlp_bn"));
    program_result t =
        table_of("stat-gap " SAMPLE("nlp_ln") " " SAMPLE("nlp_bn") " --split evaluations");
    check_rows(d, 1, MARK_POINT, 2, &t, "", cell("epoch"), cell("discrepancy"));
    check_rows(d, 2, MARK_POINT, 2, &t, "", cell("epoch"), cell("total"));
    check_title(d, 1, "discrepancy");
    check_title(d, 2, "difference");
    check_axes(d, 1, "epoch", "worse by (nats per token)");
    check_says(d,
               "Above 0 a run is worse than the reference, as in stat-gap --split; the column gap "
               "of stat-gap has the other sign.");
    check_says(d, "bn - ln");
    program_free(&t);
}

/* Two tasks without training loss: one row per run, the discrepancy 0.2 above the difference. */
static void test_parts(void **state) {
    (void)state;
#define TASKS SAMPLE("nlp_ln") " " SAMPLE("nlp_bn") " " SAMPLE("cv_ln") " " SAMPLE("cv_bn")
    const drawing *d = drawing_make("statplot parts " TASKS);
    program_result t = table_of("stat-gap " TASKS " --split last-third --same-settings");
    const reading above = place_plus(-0.1), below = place_plus(0.1);
    assert_int_equal(table_rows(t.out), 2);
    check_rows(d, 1, MARK_POINT, 3, &t, "", cell("discrepancy"), above);
    check_rows(d, 1, MARK_LINE, 3, &t, "", cell("discrepancy_low"), above);
    check_rows(d, 1, MARK_LINE, 3, &t, "", cell("discrepancy_high"), above);
    check_rows(d, 1, MARK_POINT, 1, &t, "", cell("total"), below);
    check_rows(d, 1, MARK_LINE, 1, &t, "", cell("total_low"), below);
    check_rows(d, 1, MARK_LINE, 1, &t, "", cell("total_high"), below);
    check_axes(d, 1, "worse by (nats)", "");
    check_says(d, "cifar10");
    check_says(d, "The bar of one pair of runs covers its evaluations, not other");
    program_free(&t);
    check_says(drawing_make("statplot parts --xrange -3:3 " TASKS), "-2");
    t = program_run("statplot parts " TASKS " few.h5 -o parts.svg");
    assert_int_equal(t.status, 0);
    assert_non_null(
        strstr(t.err, "warning: few.h5: no run of ln has its task and settings; not drawn\n"));
    program_free(&t);
}

static void test_fig5(void **state) {
    (void)state;
#define FOUR SAMPLE("nlp_bn_256") " " SAMPLE("nlp_bn") " " SAMPLE("nlp_ln_256") " " SAMPLE("nlp_ln")
    static const char *const norm[] = {"norm=bn", "norm=ln"};
    const reading size = cell("micro_batch");
    const drawing *d = drawing_make("statplot fig5 " FOUR);
    program_result t = table_of("stat-batch " FOUR " --metric valid_ppl");
    for (int i = 0; i < 2; i++) {
        check_rows(d, 1, MARK_LINE, i + 1, &t, norm[i], size, cell("mean"));
        check_rows(d, 1, MARK_LINE, i + 1, &t, norm[i], size, cell("least"));
        check_rows(d, 1, MARK_LINE, i + 1, &t, norm[i], size, cell("largest"));
    }
    check_axes(d, 1, "micro-batch (tokens or images)", "validation perplexity ↓");
    program_free(&t);
    d = drawing_make(
        "statplot fig5 few.h5 other.h5 " SAMPLE("nlp_bn_256")); /* two seeds of one size */
    t = table_of("stat-batch few.h5 other.h5 " SAMPLE("nlp_bn_256") " --metric valid_ppl");
    check_rows(d, 1, MARK_POINT, 1, &t, "model=toy", size, cell("mean"));
    check_rows(d, 1, MARK_LINE, 1, &t, "model=toy", size, cell("least"));
    check_rows(d, 1, MARK_LINE, 1, &t, "model=toy", size, cell("largest"));
    assert_true(table_real(t.out, 0, "least") < table_real(t.out, 0, "mean"));
    program_free(&t);
}

/* Writes a run whose only evaluation has the same value for every name. */
static void write_evaluation(const char *path, const char *names, double value) {
    sr_recorder *r = run_create(program_file(path), run_options());
    run_add_metrics(r);
    run_put_step(r, 1);
    run_put_eval(r, 1, 1, names, value);
    run_finish(r);
}

/* An axis of percents ends at 100; other axes do not. */
static void check_ends_of_percents(void) {
    write_evaluation("sure.h5", "valid_accuracy", 100);
    write_evaluation("loss.h5", "valid_loss", 100);
    const drawing *d = drawing_make("statplot results sure.h5 --metric valid_accuracy");
    assert_float_equal(d->panel[0].low[AXIS_X], 90, 1e-9);
    assert_float_equal(d->panel[0].high[AXIS_X], 100, 1e-9);
    d = drawing_make("statplot results loss.h5 --metric valid_loss");
    assert_float_equal(d->panel[0].high[AXIS_X], 110, 1e-9);
}

static void test_results(void **state) {
    (void)state;
    check_ends_of_percents();
    const drawing *d = drawing_make("statplot results few.h5 other.h5 --metric valid_ppl");
    program_result t = table_of("stat-gap few.h5 other.h5 --metric valid_ppl");
    check_rows(d, 1, MARK_POINT, 1, &t, "", cell("value"), cell("task"));
    check_axes(d, 1, "validation perplexity ↓", "");
    check_says(d, "bn");
    program_free(&t);
}

static void test_ablation(void **state) {
    (void)state;
    const reading row = place_plus(0);
    const drawing *d = drawing_make("statplot ablation few.h5 other.h5");
    program_result t = table_of("stat-gap few.h5 other.h5");
    check_rows(d, 1, MARK_POINT, 1, &t, "", cell("tid_mean"), row);
    check_rows(d, 1, MARK_POINT, 2, &t, "", cell("tid_var"), row);
    check_rows(d, 2, MARK_POINT, 7, &t, "", cell("value"), row);
    check_axes(d, 1, "TID of the last BN site (%)", "");
    check_axes(d, 2, "validation loss (nats) ↓", "");
    program_free(&t);
}

static void test_replaced(void **state) {
    (void)state;
#define THREE SAMPLE("nlp_ln") " " SAMPLE("nlp_bn_first1") " " SAMPLE("nlp_bn")
    const reading sites = cell("batch_sites");
    const drawing *d = drawing_make("statplot replaced " THREE);
    program_result t = table_of("stat-gap " THREE);
    check_rows(d, 1, MARK_POINT, 1, &t, "", sites, cell("tid_mean"));
    check_rows(d, 2, MARK_POINT, 1, &t, "", sites, cell("tid_var"));
    check_rows(d, 3, MARK_POINT, 1, &t, "", sites, cell("gap"));
    check_axes(d, 1, "sites with batch statistics", "mean TID (%)");
    check_axes(d, 2, "sites with batch statistics", "variance TID (%)");
    check_axes(d, 3, "sites with batch statistics",
               "gap (above 0: better), validation loss (nats)");
    program_free(&t);
}

static void test_tidgap(void **state) {
    (void)state;
    static const char *const stat[][2] = {{"tid_total", "total TID of the last BN site (%)"},
                                          {"tid_mean", "mean TID of the last BN site (%)"}};
    program_result t = table_of("stat-gap " SAMPLE("nlp_ln") " " SAMPLE("nlp_bn"));
    for (int i = 0; i < 2; i++) {
        char command[160];
        snprintf(command, sizeof command, "statplot tidgap %s %s --stat %s", SAMPLE("nlp_ln"),
                 SAMPLE("nlp_bn"), stat[i][0]);
        const drawing *d = drawing_make(command);
        check_rows(d, 1, MARK_POINT, 2, &t, "", cell(stat[i][0]), cell("gap"));
        check_axes(d, 1, stat[i][1], "gap (above 0: better), validation loss (nats)");
    }
    program_free(&t);
}

/* -- single features --------------------------------------------------------------------------- */

static void test_heatmap(void **state) {
    (void)state;
    static const char *const order[] = {"feature", "outlier", "largest"},
                             *const label[] = {"feature", "feature, by outlier score",
                                               "feature, by largest value"};
    for (int i = 0; i < 3; i++) {
        char command[160];
        snprintf(command, sizeof command, "statplot heatmap few.h5 --site stem,body --order %s",
                 order[i]);
        const drawing *d = drawing_make(command);
        snprintf(command, sizeof command,
                 "stat-features few.h5 --per-feature --site stem,body --order %s", order[i]);
        program_result t = table_of(command);
        assert_int_equal(table_rows(t.out), 2 * 3 * FEW_STEPS);
        for (int row = 0; row < table_rows(t.out); row++)
            check_heat(d, 1 + row / (3 * FEW_STEPS), table_real(t.out, row, "percent"),
                       1 + row / FEW_STEPS % 3, table_real(t.out, row, "mu_B"));
        check_axes(d, 1, "training (%)", label[i]);
        check_title(d, 1, "stem: batch mean μB");
        check_title(d, 2, "body: batch mean μB");
        program_free(&t);
    }
    const drawing *d = drawing_make("statplot heatmap few.h5 --stat mu_difference"); /* signed */
    assert_float_equal(d->panel[0].low[AXIS_COLOUR], -d->panel[0].high[AXIS_COLOUR], 1e-9);
    assert_true(d->panel[0].high[AXIS_COLOUR] > 0);
}

/* Four steps share a field: 5 to 23.75 % and so on. */
static void test_shared_fields(void **state) {
    (void)state;
    static const char *const show[] = {"smallest", "median", "largest"};
    program_result r = program_run("cp \"$STATREC_PLOTS\"/style.gp . && sed 's/buckets 200/buckets "
                                   "5/' \"$STATREC_PLOTS\"/heatmap.gp >five.gp");
    assert_int_equal(r.status, 0);
    program_free(&r);
    program_result t = table_of("stat-features few.h5 --per-feature --site stem --buckets 5");
    for (int i = 0; i < 3; i++) {
        char command[128];
        snprintf(command, sizeof command,
                 "statplot ./five.gp few.h5 --site stem --order feature --linear --show %s",
                 show[i]);
        const drawing *d = drawing_make(command);
        for (int row = i; row < table_rows(t.out); row += 3)
            check_heat(d, 1, 5 + 95 * (row / 3 % 5 + 0.5) / 5, 1 + row / 15,
                       table_real(t.out, row, "mu_B"));
    }
    program_free(&t);
}

static void test_histogram(void **state) {
    (void)state;
    const drawing *d =
        drawing_make("statplot histogram few.h5 --site body --step 3,20 --stat sigma2_B");
    program_result t =
        table_of("stat-features few.h5 --histogram 12 --site body --step 3,20 --stat sigma2_B");
    check_rows(d, 1, MARK_LINE, 1, &t, "step=3", cell("from"), percent_of("share"));
    check_rows(d, 1, MARK_LINE, 2, &t, "step=20", cell("from"), percent_of("share"));
    check_axes(d, 1, "batch variance σB2", "features (%)");
    check_title(d, 1, "body");
    check_says(d, "step 3");
    check_says(d, "step 20");
    program_free(&t);
    d = drawing_make(
        "statplot histogram " SAMPLE("nlp_bn") " --stat sigma2_B --spacing log --bins 24");
    t = table_of("stat-features " SAMPLE(
        "nlp_bn") " --histogram 24 --spacing log --site first --stat sigma2_B "
                  "--step first,middle,last");
    check_rows(d, 1, MARK_LINE, 1, &t, "step=120", cell("from"), percent_of("share"));
    check_rows(d, 1, MARK_LINE, 2, &t, "step=240", cell("from"), percent_of("share"));
    program_free(&t);
}

/* 1.6449 is the 95 % quantile of the normal distribution. */
static void test_quantiles(void **state) {
    (void)state;
    static const char *const quantile[] = {"q05", "q25", "q75", "q95"};
    static const char *const where[] = {"statistic=mu_shift", "statistic=sigma_ratio"};
    const drawing *d = drawing_make("statplot quantiles " SAMPLE("nlp_bn_bucketed"));
    program_result t =
        table_of("stat-features " SAMPLE("nlp_bn_bucketed") " --quantiles --site first");
    for (int panel = 1; panel <= 2; panel++) {
        check_course(d, panel, 1, &t, where[panel - 1], 1, "median");
        for (int i = 0; i < 4; i++)
            check_rows(d, panel, MARK_AREA, 1, &t, where[panel - 1], cell("percent"),
                       cell(quantile[i]));
        for (int sign = -1; sign <= 1; sign += 2)
            check_rows(d, panel, MARK_LINE, ANY_LOOK, &t, where[panel - 1], cell("percent"),
                       (reading){"noise", sign * 1.644853627, panel - 1});
        check_rows(d, panel, MARK_LINE, 1, &t, where[panel - 1], cell("percent"),
                   (reading){"noise", 1.644853627, panel - 1}); /* in the colour of the run */
        check_axes(d, panel, "features, in the order of their medians (%)",
                   panel == 1 ? "(μB − μ) / σ" : "σB / σ");
    }
    check_says(d, "encoder.0.norm1");
    check_says(d, "dotted: 90 % of independent rows");
    check_says(d, "Line: median over the steps. Dark band: half of the steps; light band: 90 % of "
                  "them.");
    program_free(&t);
    d = drawing_make("statplot quantiles " SAMPLE("nlp_pnv"));
    t = table_of("stat-features " SAMPLE("nlp_pnv") " --quantiles --site first");
    check_rows(d, 1, MARK_LINE, 1, &t, "statistic=psi_ratio", cell("percent"), cell("median"));
    check_axes(d, 1, "features, in the order of their medians (%)", "ψB / ψ");
    program_free(&t);
}

#define TEST(figure) {#figure, test_##figure, NULL, NULL, NULL},
int main(void) {
    const struct CMUnitTest tests[] = {FIGURES_OF_RUNS(TEST) cmocka_unit_test(test_shared_fields)};
    if (!have_gnuplot()) return 0;
    return cmocka_run_group_tests(tests, figure_runs, NULL);
}
