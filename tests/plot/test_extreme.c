/* test_extreme.c -- figures of extreme numbers: each is drawn, or rejected in one line, within
 * seconds. gnuplot ends with statplot. */
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plot/plot_process.h"
#include "testing/check.h"
#include "testing/programs.h"

enum { STEPS = 200, SITES = 3, SECONDS = 20 };

/* Every recorded number is value(i) of a shape, i < STEPS. */
typedef struct shape {
    const char *name;
    double (*value)(int i);
} shape;

static double billion(int i) {
    return i == 100 ? 1e9 : 5.0 / (1 + i);
}
static double flat_billion(int i) {
    return 1e9 + i % 10;
}
static double flat_huge(int i) {
    return 1e20 * (1 + 1e-8 * (i % 10));
}
static double huge(int i) {
    return i == 100 ? 1e20 : 1 + i;
}
static double float_largest(int i) {
    return i % 7 ? 3.4e38 / (1 + i) : 1e-38;
}
static double largest(int i) {
    return i % 2 ? DBL_MAX : -DBL_MAX;
}
static double smallest(int i) {
    return i * 5e-324;
}
static double all_decades(int i) {
    return pow(10, 3 * (i - 100));
}
static double far_from_zero(int i) {
    return 1e20 + 1e5 * i;
}
static double one_ulp(int i) {
    return i % 2 ? 1 : 1 + DBL_EPSILON;
}
static double not_finite(int i) {
    return i % 3 ? NAN : i % 2 ? INFINITY : -INFINITY;
}
static double zero(int i) {
    return 0 * i;
}
static double negative(int i) {
    return -1e12 * (i + 1);
}

static const shape shapes[] = {
    {"flat_billion", flat_billion},
    {"flat_huge", flat_huge},
    {"billion", billion},
    {"huge", huge},
    {"largest", largest},
    {"smallest", smallest},
    {"decades", all_decades},
    {"far", far_from_zero},
    {"ulp", one_ulp},
    {"not_finite", not_finite},
    {"zero", zero},
    {"negative", negative},
    {"float", float_largest},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void put_site(sr_recorder *r, int site, double v) {
    const double square = fabs(v), one = 1, zero_ = 0;
    sr_put_rows(r, site, 100);
    sr_put_vector(r, site, SR_mu_B, &v);
    sr_put_vector(r, site, SR_sigma2_B, &square);
    sr_put_vector(r, site, SR_mu, &zero_);
    sr_put_vector(r, site, SR_sigma2, &one);
    sr_put_vector(r, site, SR_gamma, &one);
    sr_put_vector(r, site, SR_sum_g, &v);
    sr_put_vector(r, site, SR_sum_gx, &v);
}

/* loss: only the loss has this shape; the other numbers are normal. */
static void write_run(const shape *s, bool loss) {
    char path[64];
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0, o.planned_steps = STEPS;
    snprintf(path, sizeof path, "%s%s.h5", loss ? "loss_" : "", s->name);
    sr_recorder *r = sr_create(program_file(path), &o, &why);
    if (!r) fail_msg("%s", why.text);
    for (int i = 0; i < SITES; i++) {
        const char *const name[SITES] = {"a", "b", "c"};
        sr_add_site(r, &SR_INIT(sr_site, .name = name[i], .norm = "bn", .depth = i, .width = 1,
                                .family = SR_FAMILY_SIGMA, .alpha = 0.9));
    }
    sr_add_metric(r, "valid_loss", "nats per token", "validation loss", SR_BETTER_LESS);
    for (int i = 1; i <= STEPS; i++) {
        const double v = s->value(i), other = loss ? 0.001 * (1 + i % 5) : v;
        const sr_step row = SR_INIT(sr_step, .update = i, .tokens = 10, .epoch = 0.01 * i,
                                    .loss = v, .lr = fabs(other), .grad_norm = fabs(other));
        sr_begin_step(r, i);
        for (int k = 0; k < SITES; k++) put_site(r, k, other);
        sr_end_step(r, &row);
        if (i % 20) continue;
        sr_begin_eval(r, i, 0.01 * i), sr_put_metric(r, "valid_loss", v), sr_end_eval(r);
    }
    const sr_finish complete = {sizeof(sr_finish), "complete", "", ""};
    check_ok(sr_close(r, &complete, &why), &why);
}

static int write_runs(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++) write_run(&shapes[i], false), write_run(&shapes[i], true);
    return 0;
}

/* Returns 0 if the figure is drawn without gnuplot errors, or rejected by statplot. */
static int draw(const char *figure, const char *run, const char *more) {
    program_result r =
        program_run("timeout %d statplot %s %s.h5 -o extreme.svg %s", SECONDS, figure, run, more);
    const bool gnuplot = strstr(r.err, "\" line ") != NULL;
    const int bad = (r.status != 0 && r.status != 1) || (r.status && (gnuplot || !r.err[0]));
    if (bad) print_error("statplot %s %s.h5 %s: exit %d: %s\n", figure, run, more, r.status, r.err);
    program_free(&r);
    return bad;
}

/* Figures with axes of every kind: linear, logarithmic, colours, rows of points. */
static void test_shapes(void **state) {
    (void)state;
    static const char *const figure[] = {"overview", "curves", "fig2", "fig3", "layers"};
    int bad = 0;
    if (!have_gnuplot()) skip();
    for (int i = 0; i < SHAPES; i++)
        for (size_t k = 0; k < sizeof figure / sizeof *figure; k++)
            bad += draw(figure[k], shapes[i].name, "");
    assert_int_equal(bad, 0);
}

static void test_scales(void **state) {
    (void)state;
    static const char *const more[] = {"--log",
                                       "--linear",
                                       "--yrange 0:1e15",
                                       "--yrange 1e15:1.000000001e15",
                                       "--yrange 1e-300:1e300",
                                       "--xrange 0:1e30"};
    int bad = 0;
    if (!have_gnuplot()) skip();
    for (size_t k = 0; k < sizeof more / sizeof *more; k++) {
        bad += draw("curves", "billion", more[k]);
        bad += draw("fig2", "float", more[k]);
    }
    assert_int_equal(bad, 0);
}

static void test_loss_alone(void **state) {
    (void)state;
    char run[32];
    int bad = 0;
    if (!have_gnuplot()) skip();
    for (int i = 0; i < SHAPES; i++) {
        snprintf(run, sizeof run, "loss_%s", shapes[i].name);
        bad += draw("overview", run, "");
    }
    assert_int_equal(bad, 0);
}

/* -- gnuplot itself -------------------------------------------------------------------------- */

static void test_time_limit(void **state) {
    (void)state;
    sr_failure why = {0};
    char *const argv[] = {"sleep", "1000", NULL};
    const plot_process p = {.argv = argv, .errors = program_file("errors"), .seconds = 0.3};
    const time_t began = time(NULL);
    assert_int_equal(plot_process_run(&p, &why), SR_LIBRARY);
    check_failure(&why, SR_LIBRARY, "sleep was not done after 0.3 seconds");
    assert_true(time(NULL) - began < 20);
}

/* A gnuplot that does not end, and a killed statplot. */
static void test_gnuplot_ends_with_us(void **state) {
    (void)state;
    program_result r = program_run(
        "mkdir fake && printf '#!/bin/sh\\necho $$ >\"$PIDFILE\"\\nexec sleep 1000\\n' "
        ">fake/gnuplot && "
        "chmod +x fake/gnuplot && export PIDFILE=$PWD/pid && "
        "{ PATH=$PWD/fake:$PATH statplot fig2 zero.h5 -o never.pdf & }; "
        "i=0; until [ -s pid ] || [ $((i += 1)) -gt 300 ]; do sleep 0.05; done; "
        "kill -0 $(cat pid) && kill -9 $! && wait $!; "
        "i=0; while kill -0 $(cat pid) && [ $((i += 1)) -lt 100 ]; do sleep 0.05; done; "
        "echo $i");
    if (atoi(r.out) >= 100 || !r.out[0]) fail_msg("gnuplot is still there: %s%s", r.out, r.err);
    program_free(&r);
}

/* A terminated report terminates its processes once; they remove their directories. */
static void test_report_told_to_end(void **state) {
    (void)state;
    program_result r = program_run(
        "mkdir -p fake scratch && rm -f pid && "
        "printf '#!/bin/sh\\necho $$ >\"$PIDFILE\"\\nexec sleep 1000\\n' >fake/gnuplot && "
        "chmod +x fake/gnuplot && export PIDFILE=$PWD/pid TMPDIR=$PWD/scratch && "
        "{ PATH=$PWD/fake:$PATH statplot report zero.h5 -o never & }; "
        "i=0; until [ -s pid ] || [ $((i += 1)) -gt 600 ]; do sleep 0.05; done; "
        "kill -TERM $!; wait $!; echo $?; ls scratch; "
        "i=0; while kill -0 $(cat pid) 2>/dev/null && [ $((i += 1)) -lt 100 ]; do sleep 0.05; "
        "done; "
        "[ $i -lt 100 ] || echo gnuplot is there");
    assert_string_equal(r.out, "143\n");
    program_free(&r);
}

/* -- bytes ----------------------------------------------------------------------------------- */

static void test_bytes_in_any_zone(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = program_run(
        "for zone in UTC0 Asia/Kathmandu XXX-5:30 America/New_York; do "
        "TZ=$zone statplot fig2 far.h5 -o z.pdf && cksum <z.pdf; done | sort -u | wc -l");
    assert_int_equal(r.status, 0);
    assert_int_equal(atoi(r.out), 1);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_loss_alone),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_gnuplot_ends_with_us),
        cmocka_unit_test(test_report_told_to_end),
        cmocka_unit_test(test_bytes_in_any_zone),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
