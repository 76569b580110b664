/* Figures of a program's custom scalars: drawn by name, labelled with their unit. */
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/declared_run.h"
#include "testing/programs.h"

static int write_runs(void **state) {
    (void)state;
    write_declared_run(&(declared_run){.path = "a.h5",
                                       .unit = "mm",
                                       .another = "it's \"odd\" %d",
                                       .scale = 1,
                                       .seed = 1,
                                       .width = 2});
    write_declared_run(&(declared_run){
        .path = "b.h5", .unit = "mm", .another = "key", .scale = 2, .seed = 2, .width = 2});
    write_declared_run(&(declared_run){.path = "m.h5",
                                       .unit = "m",
                                       .another = "of its own: every_head and layer as long as "
                                                  "names may be",
                                       .scale = 0.001,
                                       .seed = 3,
                                       .width = 2});
    write_declared_run(&(declared_run){.path = "none.h5", .seed = 4, .width = 2});
    return 0;
}

static void check_says(const char *text, const char *what) {
    const char *seen = text ? text : "";
    if (!strstr(seen, what)) fail_msg("no '%s' in:\n%.2000s", what, seen);
}

static void check_silent(const char *text, const char *what) {
    if (strstr(text, what)) fail_msg("'%s' in the figure", what);
}

/* Returns the figure's SVG, after its warnings. */
static program_result draw(const char *arguments, const char *warnings) {
    program_result r = program_run("statplot %s -o x.svg && cat x.svg", arguments);
    if (r.status != 0) fail_msg("statplot %s: exit %d: %s", arguments, r.status, r.err);
    assert_string_equal(r.err, warnings);
    return r;
}

static void test_layers(void **state) {
    (void)state;
    program_result r = draw("layers a.h5 --stat g_clip", "");
    check_says(r.out, ">g_clip (mm): median<");
    check_says(r.out, ">g_clip (mm): largest<");
    check_says(r.out, ">stem<");
    program_free(&r);
    r = draw("layers a.h5 --stat net-cosine", "");
    check_says(r.out, ">net-cosine: median<"); /* its unit is 1 */
    check_says(r.out, ">-0.5<");               /* colours of both signs */
    check_silent(r.out, ">stem<");
    program_free(&r);
    r = draw("layers b.h5 --stat key", ""); /* every figure has a variable of this name */
    check_says(r.out, ">key (metres): median<");
    check_says(r.out, ">top<");
    program_free(&r);
    r = draw("layers a.h5 --stat \"it's \\\"odd\\\" %d\"", "");
    check_says(r.out, ">it's \"odd\" %d (metres): median<");
    program_free(&r);
    r = draw("layers m.h5 --stat 'of its own: every_head and layer as long as names may be'", "");
    check_says(r.out, ">of its own:… names may be (metres): median<");
    program_free(&r);
}

/* A program's own scalar is not marked as observed. */
static void test_observed(void **state) {
    (void)state;
    write_declared_run(&(declared_run){
        .path = "seen.h5", .unit = "mm", .scale = 1, .seed = 1, .width = 2, .observed = 1});
    program_result r = draw("layers seen.h5 --stat g_clip", "");
    check_says(r.out, ">g_clip (mm): median<");
    check_silent(r.out, "observed");
    program_free(&r);
}

static void test_compare(void **state) {
    (void)state;
    program_result r = draw("compare a.h5 none.h5 b.h5 --stat g_clip", "");
    check_says(r.out, ">g_clip (mm)<");
    check_says(r.out, ">seed 1<");
    check_says(r.out, ">seed 2<");
    check_silent(r.out, ">seed 4<");
    program_free(&r);
    r = draw("compare a.h5 m.h5 --stat g_clip",
             "statplot: warning: g_clip: its unit is 'mm' in a.h5 and 'm' in m.h5\n");
    check_says(r.out, ">g_clip (mm or m)<");
    program_free(&r);
    r = draw("compare a.h5 b.h5 --stat net-cosine", "");
    check_says(r.out, ">-0.5<");
    program_free(&r);
}

static void test_curves(void **state) {
    (void)state;
    program_result r = draw("curves none.h5 a.h5 b.h5 --stat clip_share", "");
    check_says(r.out, ">clip_share (%)<");
    check_says(r.out, ">seed 2<");
    check_silent(r.out, ">seed 4<");
    check_silent(r.out, "loss");
    program_free(&r);
    r = draw("curves none.h5 a.h5 --stat grad_norm", "");
    check_says(r.out, ">gradient norm<");
    check_says(r.out, ">seed 4<");
    program_free(&r);
    r = draw("curves none.h5 a.h5", "");
    check_says(r.out, ">training loss (nats)<");
    program_free(&r);
}

static void check_refused(const char *arguments, const char *first, const char *then) {
    program_result r = program_run("statplot %s -o y.svg", arguments);
    if (r.status == 0) fail_msg("statplot %s draws something", arguments);
    check_says(r.err, first);
    check_says(r.err, then);
    program_free(&r);
}

static void test_refusals(void **state) {
    (void)state;
    check_refused("layers a.h5 --stat g_clop", "unknown statistic 'g_clop'",
                  "did you mean 'g_clip'?");
    check_refused("compare none.h5 a.h5 --stat g_clop", "unknown statistic 'g_clop'",
                  "declared by these runs: g_clip, net-cosine");
    check_refused("curves none.h5 a.h5 --stat clip_shar", "no column 'clip_shar' of steps",
                  "did you mean 'clip_share'?");
    check_refused("layers a.h5 --stat g_clip,net-cosine", "takes one statistic", "");
    check_refused("layers a.h5 --stat clip_share", "per step, not per site", "");
}

/* Validation losses have the unit of valid_loss; this program's training loss has none. */
static void test_units(void **state) {
    (void)state;
    static const struct {
        const char *figure, *says;
    } of[] = {{"curves square.h5", ">validation loss (m^2)<"},
              {"modes square.h5", ">loss (m^2)<"},
              {"modes square.h5", ">difference (m^2)<"},
              {"converge square.h5 square.h5", ">validation loss (m^2)<"},
              {"overview square.h5", ">loss (m^2)<"},
              {"tidloss square.h5", ">loss gap (m^2)<"}};
    sr_recorder *r = run_create(program_file("square.h5"), run_options());
    run_add_bn(r, "top", 1, 0, 1);
    sr_add_metric(r, "valid_loss", "m^2", "squared error", SR_BETTER_LESS);
    sr_add_metric(r, "valid_loss_batch", "m^2", "by batches", SR_BETTER_LESS);
    for (int step = 1; step <= 20; step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 4);
        sr_put_scalar(r, 0, SR_SCALAR_tid_var, 1.0 / step);
        run_end_step(r, step);
        if (step % 4 == 0)
            run_put_eval(r, step, step, "valid_loss valid_loss_batch", 1.0 / step, 0.9 / step);
    }
    run_finish(r);
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        program_result d = draw(of[i].figure, "");
        check_says(d.out, of[i].says);
        check_silent(d.out, "nats");
        program_free(&d);
    }
    program_result t = program_run("stat-table square.h5 | grep '^# column .*loss:'");
    assert_string_equal(t.out, "# column loss: mean training loss of the last tenth of the steps\n"
                               "# column valid_loss: of the last evaluation, m^2; nan: the run has "
                               "none\n"
                               "# column best_valid_loss: smallest of all evaluations, m^2\n");
    program_free(&t);
}

/* A report passes --stat to the figures that support it. */
static void test_report(void **state) {
    (void)state;
    program_result r = program_run("statplot report a.h5 b.h5 --stat clip_share -o steps && "
                                   "cat steps/curves.svg");
    assert_int_equal(r.status, 0);
    check_says(r.out, ">clip_share (%)<");
    program_free(&r);
    r = program_run("statplot report a.h5 b.h5 --stat g_clip -o sites && "
                    "cat sites/layers.1.svg sites/curves.svg");
    assert_int_equal(r.status, 0);
    check_says(r.out, ">g_clip (mm): median<");
    check_says(r.out, ">training loss (nats)<");
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),   cmocka_unit_test(test_observed),
        cmocka_unit_test(test_compare),  cmocka_unit_test(test_curves),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_report),
        cmocka_unit_test(test_units)};
    if (!have_gnuplot()) return 0;
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
