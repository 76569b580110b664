/* test_own_metrics.c -- custom metrics of a host program, without validation loss: analyses and
 * tables take their units and directions from the run files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

/* Three evaluations of f1 (more is better), wer (less) and size (neither). */
typedef struct own_run {
    const char *path, *norm, *unit;
    double f1[3], wer[3];
} own_run;

static void write_own(const own_run *run, bool wer_first, bool with_size) {
    sr_options o = run_options();
    char config[256];
    snprintf(config, sizeof config, "norm = %s\ndata-dir = /data/mine\n", run->norm);
    o.config = config, o.program = "statrec train", o.task = "tags", o.data = "tags";
    sr_recorder *r = run_create(program_file(run->path), o);
    const bool bn = strcmp(run->norm, "bn") == 0;
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "encoder.0.norm1",
                              .norm = run->norm,
                              .kind = "encoder",
                              .family = bn ? SR_FAMILY_SIGMA : SR_FAMILY_ROW,
                              .width = 1,
                              .depth = 1,
                              .eps = 1e-5,
                              .alpha = 0.9});
    if (wer_first) sr_add_metric(r, "wer", "percent", "wrong words", SR_BETTER_LESS);
    sr_add_metric(r, "f1", run->unit, "span F1", SR_BETTER_MORE);
    if (!wer_first) sr_add_metric(r, "wer", "percent", "wrong words", SR_BETTER_LESS);
    if (with_size) sr_add_metric(r, "size", "MB", "of the model", SR_BETTER_NEITHER);
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        run_end_step(r, step);
        run_put_eval(r, step, step, "wer f1", run->wer[step - 1], run->f1[step - 1]);
    }
    if (with_size) run_put_eval(r, 3, 3, "size", 3.0 + bn);
    run_finish(r);
}

/* Two validations, the second with this loss, and at its step an evaluation of the test split. */
static void write_tested(const char *path, double loss) {
    sr_options o = run_options();
    o.program = "statrec train", o.config = "norm = bn\ndata-dir = /data/mine\n", o.task = "tags",
    o.data = "tags";
    sr_recorder *r = run_create(program_file(path), o);
    run_add_bn(r, "a", 1, 1, 1e-5);
    sr_add_metric(r, "valid_loss", "nats per tag", "", SR_BETTER_LESS);
    sr_add_metric(r, "test_loss", "nats per tag", "", SR_BETTER_LESS);
    for (int step = 1; step <= 2; step++) {
        sr_begin_step(r, step);
        run_end_step(r, step);
        run_put_eval(r, step, step, "valid_loss", step == 2 ? loss : 1.0);
    }
    run_put_eval(r, 2, 2, "test_loss", isfinite(loss) ? 0.75 : NAN);
    run_finish(r);
}

/* Four evaluations; `apart`: the accuracy of a step has a row after its loss. */
static void write_picked(const char *path, const double *loss, const double *accuracy, bool apart) {
    sr_options o = run_options();
    o.config = "norm = bn\ndata-dir = /data/mine\n", o.task = "tags", o.data = "tags";
    sr_recorder *r = run_create(program_file(path), o);
    run_add_bn(r, "a", 1, 1, 1e-5);
    sr_add_metric(r, "valid_loss", "nats per tag", "", SR_BETTER_LESS);
    sr_add_metric(r, "valid_accuracy", "percent", "", SR_BETTER_MORE);
    for (int step = 1; step <= 4; step++) {
        const double x = loss[step - 1], y = accuracy[step - 1];
        sr_begin_step(r, step);
        run_end_step(r, step);
        if (!apart) run_put_eval(r, step, step, "valid_loss valid_accuracy", x, y);
        if (apart && isfinite(x)) run_put_eval(r, step, step, "valid_loss", x);
        if (apart) run_put_eval(r, step, step, "valid_accuracy", y);
    }
    run_finish(r);
}

static int write_runs(void **state) {
    (void)state;
    write_own(&(own_run){"ln.h5", "ln", "percent", {70, 80, 75}, {9, 4, 6}}, false, true);
    write_own(&(own_run){"bn.h5", "bn", "percent", {50, 60, 68}, {8, 7, 9}}, false, true);
    write_own(&(own_run){"wer.h5", "bn", "percent", {50, 60, 58}, {8, 7, 9}}, true, false);
    write_own(&(own_run){"one.h5", "bn", "1", {0.5, 0.6, 0.58}, {8, 7, 9}}, false, false);
    write_own(&(own_run){"nats.h5", "bn", "nats per tag", {0.5, 0.6, 0.58}, {8, 7, 9}}, false,
              false);
    write_tested("tested.h5", 0.5);
    write_tested("gone.h5", NAN);
    write_small_run(program_file("small.h5"), 6, true);
    return 0;
}

/* -- stat-gap -------------------------------------------------------------------------------- */

static void check_gap(const char *metric, const char *pick, const char *better, double gap) {
    program_result r = program_run("stat-gap ln.h5 bn.h5 --metric %s%s", metric, pick);
    assert_int_equal(r.status, 0);
    check_text(&r, 1, "reference", "ln.h5");
    check_text(&r, 1, "metric", metric);
    check_text(&r, 1, "better", better);
    if (isnan(gap))
        check_text(&r, 1, "gap", "nan");
    else
        check_cell(&r, 1, "gap", gap);
    program_free(&r);
}

/* Last values: f1 68 against 75, wer 9 against 6, size 4 against 3. Best: f1 68 against 80. */
static void test_gap(void **state) {
    (void)state;
    check_gap("f1", " --pick last", "more", -7);
    check_gap("wer", " --pick last", "less", -3);
    check_gap("size", "", "-", NAN);
    check_gap("f1", "", "more", -12);
    program_result r = program_run("stat-gap ln.h5 bn.h5 --metric bleu,wer");
    assert_int_equal(r.status, 0);
    check_text(&r, 1, "metric", "wer");
    check_text(&r, 1, "unit", "percent");
    assert_non_null(strstr(r.out, "# note: no run declares the metric bleu\n"));
    assert_null(strstr(r.out, "# warning"));
    program_free(&r);
}

/* An evaluation without a validation loss is never the best one. */
static void test_best_evaluation(void **state) {
    (void)state;
    static const struct {
        double loss[4], accuracy[4];
        double best;
    } row[] = {{{0.1, NAN, 0.9, 0.8}, {95, 10, 60, 65}, 95},  /* one that diverged for a moment */
               {{0.5, 0.125, NAN, NAN}, {70, 88, 10, 9}, 88}, /* one that diverged */
               {{NAN, 0.1, NAN, 0.3}, {30, 56, 60, 50}, 56},  /* a loss at every second one */
               {{0.5, 0.1, 0.9, 1.0}, {20, 30, 10, 5}, 30},
               {{NAN, NAN, NAN, NAN}, {20, 40, 30, 35}, 40}}; /* without any: the metric's own */
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int apart = 0; apart < 2; apart++) {
            write_picked("picked.h5", row[i].loss, row[i].accuracy, apart);
            program_result r = program_run("stat-gap picked.h5 --metric valid_accuracy");
            assert_int_equal(r.status, 0);
            check_cell(&r, 0, "value", row[i].best);
            program_free(&r);
        }
}

static void expect_refused(const char *command, int status, const char *part) {
    program_result r = program_run("%s", command);
    assert_int_equal(r.status, status);
    assert_string_equal(r.out, "");
    if (!strstr(r.err, part)) fail_msg("%s", r.err);
    program_free(&r);
}

static void test_refusals(void **state) {
    (void)state;
    expect_refused("stat-gap ln.h5 --metric f2", 2, "no run declares 'f2'");
    expect_refused("stat-gap ln.h5 --metric f2", 2, "did you mean 'f1'?");
    expect_refused("stat-gap ln.h5 --metric valid_loss", 2, "declared: f1, wer, size");
    expect_refused("stat-gap ln.h5", 2, "--metric (the default): no run declares 'valid_loss'");
    expect_refused("stat-gap ln.h5", 2, "declared: f1, wer, size");
    expect_refused("stat-batch ln.h5 --metric f1,wer", 2, "--metric");
    expect_refused("stat-curve ln.h5 --metric f1", 2, "goes with --evals");
    expect_refused("stat-curve ln.h5 --evals --metric f1,,wer", 2, "an empty name");
}

/* -- stat-curve, stat-batch, info ------------------------------------------------------------ */

/* The columns cover the metrics of all runs; a run without a metric prints nan there. */
static void test_curve(void **state) {
    (void)state;
    program_result r = program_run("stat-curve --evals small.h5 ln.h5");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 5);
    check_text(&r, 0, "f1", "nan");
    check_cell(&r, 0, "valid_ppl", exp(1));
    check_cell(&r, 2, "f1", 80);
    check_cell(&r, 2, "wer", 4);
    check_text(&r, 2, "valid_ppl", "nan");
    check_cell(&r, 4, "size", 3);
    check_text(&r, 3, "size", "nan");
    assert_non_null(strstr(r.out, "# column f1: span F1 (percent); more is better\n"));
    assert_non_null(strstr(r.out, "# column wer: wrong words (percent); less is better\n"));
    assert_non_null(strstr(r.out, "# column size: of the model (MB)\n"));
    program_free(&r);
    r = program_run("stat-curve --evals ln.h5 --metric wer,bleu");
    check_cell(&r, 1, "wer", 4);
    check_text(&r, 1, "bleu", "nan");
    assert_null(table_cell(r.out, 1, "f1"));
    assert_non_null(strstr(r.out, "# column bleu: declared by no run\n"));
    program_free(&r);
}

static void test_batch(void **state) {
    (void)state;
    program_result r = program_run("stat-batch bn.h5 ln.h5 --metric f1");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "# metric: f1, percent, more is better: span F1\n"));
    check_cell(&r, 0, "mean", 68);
    check_text(&r, 0, "unit", "percent");
    check_text(&r, 0, "better", "more");
    program_free(&r);
}

static void test_info(void **state) {
    (void)state;
    program_result r = program_run("statrec info ln.h5 | grep -A9 ^evaluations | tr -s ' '");
    assert_non_null(strstr(r.out, "\n f1 70 80 75 nan percent, more is better\n"));
    assert_non_null(strstr(r.out, "\n wer 9 4 6 nan percent, less is better\n"));
    assert_non_null(strstr(r.out, "\n size nan nan nan 3 MB\n"));
    program_free(&r);
}

/* -- stat-table ------------------------------------------------------------------------------ */

static void test_table(void **state) {
    (void)state;
    program_result r = program_run("stat-table small.h5 ln.h5");
    assert_int_equal(r.status, 0);
    check_cell(&r, 0, "valid_loss", 2);
    check_text(&r, 0, "size", "nan");
    check_text(&r, 1, "valid_loss", "nan");
    check_text(&r, 1, "best_valid_loss", "nan");
    check_cell(&r, 1, "f1", 75); /* the last step has two evaluations: this, and of the size */
    check_cell(&r, 1, "size", 3);
    assert_null(table_cell(r.out, 0, "bleu")); /* declared but not measured */
    program_free(&r);
    r = program_run("stat-table wer.h5");
    check_cell(&r, 0, "f1", 58);
    assert_non_null(
        strstr(r.out, "# column f1: of the last evaluation: span F1 (percent); more is better\n"));
    program_free(&r);
}

/* A task that the layout lacks shows the metric that its runs declare first. Its own direction
 * selects the best value, since no run has a validation loss. */
static void test_layout(void **state) {
    (void)state;
    program_result r = program_run("stat-table ln.h5 bn.h5 --layout pn-table1");
    assert_int_equal(r.status, 0);
    check_cell(&r, 4, "mine f1 ↑", 80);
    check_cell(&r, 5, "mine f1 ↑", 68);
    assert_non_null(strstr(r.out, "# column mine f1 ↑: span F1 (percent)\n"));
    program_free(&r);
    r = program_run("stat-table wer.h5 --layout pn-table1");
    check_cell(&r, 4, "mine wer ↓", 7);
    program_free(&r);
    r = program_run("stat-table wer.h5 --layout pn-table1 --pick last");
    check_cell(&r, 4, "mine wer ↓", 9);
    program_free(&r);
    r = program_run("stat-table tested.h5 --layout pn-table1 --pick last");
    check_cell(&r, 4, "mine valid_loss ↓", 0.5); /* has not diverged */
    program_free(&r);
    r = program_run("stat-table tested.h5 gone.h5");
    check_cell(&r, 0, "valid_loss", 0.5);
    check_cell(&r, 0, "test_loss", 0.75);
    check_text(&r, 1, "valid_loss", "nan");
    program_free(&r);
    r = program_run("stat-table gone.h5 --layout pn-table1 --pick last");
    check_text(&r, 4, "mine valid_loss ↓", "Div.");
    program_free(&r);
}

/* Two decimals of percent, three of nats. */
static void test_digits(void **state) {
    (void)state;
    program_result r = program_run("stat-table ln.h5 --layout pn-table1 --format markdown");
    assert_non_null(strstr(r.out, " 80.00 |"));
    program_free(&r);
    r = program_run("stat-table nats.h5 --layout pn-table1 --format markdown");
    assert_non_null(strstr(r.out, " 0.600 |"));
    program_free(&r);
}

static const char layout[] =
    "own\\ttable\\tOwn\\tsource=none\\n"
    "own\\trow\\tgap\\tnorm=bn\\tquantity=gap\\n"
    "own\\tcolumn\\tA\\ttable=t\\tmetric=ppl\\t%smeasured=wer\\ttasks=mine\\n";
static const char published[] = "table\\tsource\\tnorm\\tmetric\\tvalue\\n"
                                "t\\tPaper\\tbn\\tppl\\t30\\nt\\tPaper\\tln\\tppl\\t25.5\\n";

static void check_layout_gap(const char *better, const char *column, const char *want) {
    char text[512];
    snprintf(text, sizeof text, layout, better);
    program_result r = program_run("printf '%s' >own.tsv; printf '%s' >values.tsv; stat-table "
                                   "ln.h5 bn.h5 --layouts own.tsv --published values.tsv "
                                   "--layout own",
                                   text, published);
    if (r.status) fail_msg("%s", r.err);
    check_text(&r, 0, column, want);
    check_cell(&r, 0, "mine wer ↓", -3); /* best: 7 against 4 */
    program_free(&r);
}

/* The run file gives the direction of measured metrics; the layout gives it for published ones. */
static void test_layout_gaps(void **state) {
    (void)state;
    check_layout_gap("better=less\\t", "A published ppl ↓", "-4.5");
    check_layout_gap("better=more\\t", "A published ppl ↑", "4.5");
    check_layout_gap("", "A published ppl", "-");
    char text[512];
    snprintf(text, sizeof text, layout, "better=most\\t");
    program_result r =
        program_run("printf '%s' >own.tsv; stat-table --layouts own.tsv --layout own", text);
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "own.tsv:3: better=most is neither less nor more"));
    program_free(&r);
}

/* -- figures --------------------------------------------------------------------------------- */

/* The axis label shows the better direction. */
static void test_figures(void **state) {
    (void)state;
    static const char *const figure[] = {"results", "results", "ablation", "fig5", "fig5"};
    static const char *const metric[] = {"f1", "wer", "f1", "f1", "wer"};
    static const char *const want[] = {"F1 (%) ↑", "wer (%) ↓", "F1 (%) ↑", "F1 (%) ↑",
                                       "wer (%) ↓"};
    if (!have_gnuplot()) skip();
    for (int i = 0; i < 5; i++) {
        program_result r =
            program_run("statplot %s ln.h5 bn.h5 --metric %s -o own.svg && grep -c '%s' own.svg",
                        figure[i], metric[i], want[i]);
        if (r.status) fail_msg("%s: %s", figure[i], r.err);
        program_free(&r);
    }
}

/* -- runs that do not agree ------------------------------------------------------------------ */

static void test_units(void **state) {
    (void)state;
    static const char *const command[][2] = {{"stat-gap --metric f1", ""},
                                             {"stat-batch --metric f1", ""},
                                             {"stat-curve --evals", ""},
                                             {"stat-table", ""},
                                             {"stat-table", "--layout pn-table1"}};
    const char *want = "# warning: f1: in percent in bn.h5, in 1 in one.h5\n";
    for (size_t i = 0; i < sizeof command / sizeof command[0]; i++)
        for (int mixed = 0; mixed < 2; mixed++) {
            program_result r = program_run("%s bn.h5 %s %s", command[i][0],
                                           mixed ? "one.h5" : "ln.h5", command[i][1]);
            assert_int_equal(r.status, 0);
            if (!!strstr(r.out, want) != mixed) fail_msg("%s: %s", command[i][0], r.out);
            program_free(&r);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gap),      cmocka_unit_test(test_best_evaluation),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_curve),
        cmocka_unit_test(test_batch),    cmocka_unit_test(test_info),
        cmocka_unit_test(test_table),    cmocka_unit_test(test_layout),
        cmocka_unit_test(test_digits),   cmocka_unit_test(test_layout_gaps),
        cmocka_unit_test(test_figures),  cmocka_unit_test(test_units),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
