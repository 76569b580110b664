/* Every figure's axes are right: each tick label is the value at its position. gnuplot reports the
 * panels' boxes and ends; the SVG contains the drawing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drawing.h"
#include "testing/check.h"
#include "testing/programs.h"

static svg_figure figure;

/* command: statplot FIGURE RUN..., in the tests' directory. */
static const char *fault_in(const char *command) {
    program_result r;
    const char *svg = drawing_svg(command, &r);
    figure.labels = figure.panels = 0;
    svg_read_panels(&figure, r.out);
    svg_read_labels(&figure, svg);
    program_free(&r);
    if (!figure.panels) fail_msg("%s: no panel", command);
    return svg_fault(&figure);
}

/* Prints a figure's fault; returns 1 for one, else 0. */
static int faults(const char *command) {
    const char *fault = fault_in(command);
    if (!fault[0] && figure.labels < 2) fault = "no labels";
    if (fault[0]) print_error("%s: %s\n", command, fault);
    return fault[0] != 0;
}

/* All figures of `statplot list`, with the sample runs; tables are excluded. */
static void test_every_figure(void **state) {
    (void)state;
    char command[256], *rest;
    int figures = 0, wrong = 0;
    if (!have_gnuplot()) skip();
    program_result r = program_run("statrec list figures | cut -f1");
    for (char *name = strtok_r(r.out, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest)) {
        snprintf(command, sizeof command, "statplot %s", name);
        wrong += faults(command);
        figures++;
    }
    assert_int_equal(wrong, 0);
    assert_true(figures > 20);
    program_free(&r);
}

/* Panels with different scales in sequence; choices that change an axis. */
static void test_other_scales(void **state) {
    (void)state;
    static const char *const command[] = {
        "statplot theorem1 \"$STATREC_SAMPLES\"/nlp_ln.h5",
        "statplot theorem1 \"$STATREC_SAMPLES\"/nlp_ln.h5 \"$STATREC_SAMPLES\"/nlp_ln_simple.h5",
        "statplot theorem1 --site last",
        "statplot overview \"$STATREC_SAMPLES\"/cv_bn.h5",
        "statplot overview \"$STATREC_SAMPLES\"/nlp_ln.h5",
        "statplot overview \"$STATREC_SAMPLES\"/nlp_pn.h5",
        "statplot fig2 --axes log",
        "statplot fig3 --axes log --loss share",
        "statplot fair --against rows",
        "statplot layers --stat g_mu",
        "statplot compare --stat g_sigma2",
        ("cd \"$STATREC_SAMPLES\"; s=$PWD; cd - >&2; "
         "statplot modes $s/cv_bn.h5 $s/nlp_bn.h5 $s/nlp_ln.h5 $s/nlp_rbn.h5"),
        "statplot results --published",
        "statplot tid --linear",
        "statplot curves --log --xrange 0.3:0.7",
        "statplot layers --linear",
        "statplot fig6 --log",
        "statplot fig2 --steps 100:140 --yrange 0:0.037",
        "statplot tiddepth --linear --size 5x4",
        "statplot compare --linear --yrange 0.01:0.9",
        "statplot ablation --published-table rbn-ptb-* --metric valid_ppl",
        "statplot tidgap --published",
        "statplot tidloss --stat tid_mean",
        "statplot depth --right mean_share",
        "statplot depth --right kurtosis --linear --parts 2",
        "statplot features --quantity mean_share",
        "statplot amgm --yrange 0.01:2",
        "statplot amgm --linear --xrange 20:60",
        "statplot amgm \"$STATREC_SAMPLES\"/cv_bn_every.h5 --stat sigma2_B --steps 20:90",
        "statplot alpha --site last",
        "statplot alpha --linear --stat sigma2",
        "statplot alpha \"$STATREC_SAMPLES\"/cv_bn_every.h5 --xrange 1:8 --steps 1:100",
        "statplot features \"$STATREC_SAMPLES\"/cv_bn_every.h5 --quantity power --steps 20:90",
    };
    int wrong = 0;
    if (!have_gnuplot()) skip();
    for (size_t i = 0; i < sizeof command / sizeof command[0]; i++) wrong += faults(command[i]);
    assert_int_equal(wrong, 0);
}

/* A template of three panels: an axis of many powers of ten, one with a linear step, and
   `third`. */
static void write_template(const char *third) {
    FILE *out = fopen(program_file("three.gp"), "w");
    assert_non_null(out);
    fprintf(out,
            "#: title three\n#: runs 1 RUN.h5\n#: size 9 2\n#: table t stat-table {run}\n"
            "set xrange [0:10]\nset multiplot\n"
            "eval panel(1, 3, 1, 1)\neval log_y(1e-7, 1e-2)\nplot 1e-5\n"
            "eval panel(2, 3, 1, 1)\neval linear_y(0.895, 1.002)\nplot 0.9 + 0.01 * x\n"
            "eval panel(3, 3, 1, 1)\n%s\nplot 4e-6 + 1e-6 * x\nunset multiplot\n",
            third);
    assert_int_equal(fclose(out), 0);
}

#define THREE "statplot ./three.gp \"$STATREC_SAMPLES\"/nlp_ln.h5"

/* The third axis keeps nothing from the first two: a range with no power of ten, one, two and
 * many. */
static void test_left_over(void **state) {
    (void)state;
    static const char *const third[] = {
        "log_y(3.5e-6, 8e-6)",
        "log_y(3.5e-6, 2.2e-5)",
        "log_y(3.5e-6, 4e-5)",
        "log_y(9e-7, 1.2e-5)",
        "log_y(3.5e-6, 2e-3)",
        "log_y(0.35, 0.8)",
        "log_y(3e-12, 0.7)",
        "log_y(0.00095, 15000)",
        "log_y(3.4e-6, 3.5e-6)",
        "log_y(3.5e-6, 3.5e-6)",
        "linear_y(0, 1.7)",
        "linear_y(2e-6, 2e-6)",
        "axis_y('log', 3.5e-6, 2.2e-5)",
        "axis_y('linear', 3.5e-6, 2.2e-5)",
    };
    int wrong = 0;
    if (!have_gnuplot()) skip();
    for (size_t i = 0; i < sizeof third / sizeof third[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "eval %s", third[i]);
        write_template(line);
        if (!faults(THREE)) continue;
        print_error("%s\n", third[i]);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* Ends too close for different labels: the axis is longer, and no number occurs twice on it. */
static void test_least_length(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    write_template("eval ends_y('linear', 5, 5 + 1e-9)");
    const char *fault = fault_in(THREE);
    if (fault[0] && !strstr(fault, "y axis from 4.99975 to 5.00025")) fail_msg("%s", fault);
}

/* Such faults are found: an earlier panel's tick step starts at the end of the axis; labels show
 * only the power of ten. */
static void test_finds_lies(void **state) {
    (void)state;
    static const char *const third[][2] = {
        {"set logscale y; set yrange [3.5e-6:8e-5]; set format y '10^{%L}'; unset ytics; set ytics "
         "out nomirror; "
         "set ytics add ('10^{-5}' 1e-5)",
         "'10^-6' is not what its place means"},
        {"set yrange [0:2e-5]; set ytics ('0' 0, '10^{-6}' 3.5e-6, '10^{-5}' 1e-5)",
         "'10^-6' is not what its place means"},
        {"set yrange [0:2e-5]; set ytics ('0' 0, '0' 1e-6)", "stands twice"},
        {"set yrange [0:2e-5]; set ytics ('10^{-5}' 1e-5)", "is the only number"},
        {"set yrange [0:2e-5]; set ytics ('0' 0, '0.0000123456' 0.0000123456)", "too many digits"},
        {"set yrange [0:2e-5]; unset ytics", "has no label"},
        {"set xtics 1.25, 0.25", "lies upon another"},
    };
    if (!have_gnuplot()) skip();
    for (size_t i = 0; i < sizeof third / sizeof third[0]; i++) {
        write_template(third[i][0]);
        const char *fault = fault_in(THREE);
        if (!strstr(fault, third[i][1])) fail_msg("%s: '%s'", third[i][0], fault);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_figure), cmocka_unit_test(test_other_scales),
        cmocka_unit_test(test_left_over),    cmocka_unit_test(test_finds_lies),
        cmocka_unit_test(test_least_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
