/* test_layouts.c -- positions of panels on pages of one and two columns, and visible differences
 * between the sample runs of a figure. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "few_runs.h"
#include "figure_values.h"
#include "testing/check.h"

enum { SIX = 6 };

static int write_runs(void **state) {
    (void)state;
    for (int i = 0; i < SIX; i++) {
        char name[16];
        snprintf(name, sizeof name, "run%d.h5", i + 1);
        write_few_run(
            &(few_run){.name = name, .norm = "bn", .alpha = 0.3, .scale = 1 + i, .seed = i});
    }
    program_result r = program_run("statrec copy run6.h5 --phase 1:8 -o short.h5");
    assert_int_equal(r.status, 0);
    program_free(&r);
    return 0;
}

/* Fails unless panels first .. last (from 1) are in rows of `columns`, from left to right. */
static void check_grid(const drawing *d, int first, int last, int columns) {
    for (int i = first; i < last; i++) {
        const svg_panel *a = &d->panel[i - 1], *b = &d->panel[i];
        const bool same_row = (i - first + 1) % columns != 0;
        if (same_row ? !(fabs(a->top - b->top) < 0.5 && b->left > a->right)
                     : !(b->top > a->bottom && b->left < a->right))
            fail_msg("%s: panel %d is not %s panel %d", d->command, i + 1,
                     same_row ? "right of" : "below", i);
    }
}

/* -- modes: six runs, one of them short ---------------------------------------------------- */

#define SIX_RUNS "run1.h5 run2.h5 run3.h5 run4.h5 run5.h5 short.h5"

/* Both panels of a run, its losses and their difference. */
static void check_run_of_modes(const drawing *d, int r) {
    char command[128], run[16];
    snprintf(run, sizeof run, r < SIX ? "run%d.h5" : "short.h5", r);
    snprintf(command, sizeof command, "stat-curve %s", run);
    program_result t = table_of(command);
    check_rows(d, r, MARK_LINE, 8, &t, "", cell("epoch"), cell("loss"));
    program_free(&t);
    snprintf(command, sizeof command, "stat-curve %s --evals --gap --metric valid_loss", run);
    t = table_of(command);
    check_rows(d, SIX + r, MARK_POINT, 3, &t, "", cell("epoch"), cell("valid_loss_gap"));
    program_free(&t);
    const svg_panel *loss = &d->panel[r - 1], *gap = &d->panel[SIX + r - 1];
    assert_true(fabs(loss->left - gap->left) < 0.5 && fabs(loss->right - gap->right) < 0.5);
    assert_true(gap->top > loss->bottom && gap->top < loss->bottom + 40);
    const double last = r < SIX ? 0.1 * FEW_STEPS : 0.1 * 8;
    assert_true(fabs(loss->high[AXIS_X] - 1.01 * last) < 0.02);
    assert_true(fabs(gap->high[AXIS_X] - 1.01 * last) < 0.02);
}

static void test_modes(void **state) {
    (void)state;
    const drawing *d = drawing_make("statplot modes " SIX_RUNS);
    assert_int_equal(d->panels, 2 * SIX);
    check_grid(d, 1, SIX, 3);
    check_grid(d, SIX + 1, 2 * SIX, 3);
    for (int r = 1; r <= SIX; r++) {
        check_run_of_modes(d, r);
        check_axes(d, SIX + r, r > 3 ? "epoch" : "", r % 3 == 1 ? "difference (nats)" : "");
    }
    d = drawing_make("statplot modes --size springer " SIX_RUNS);
    check_grid(d, 1, SIX, 2);
    for (int r = 1; r <= SIX; r++) check_run_of_modes(d, r);
}

/* -- compare, layers, theorem1 ------------------------------------------------------------- */

static void write_sites(const char *name, int sites) {
    sr_recorder *r = run_create(program_file(name), run_options());
    for (int i = 0; i < sites; i++) {
        char site[16];
        snprintf(site, sizeof site, "norm%d", i);
        run_add_bn(r, site, 1, i, 1);
    }
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < sites; i++) {
            sr_put_rows(r, i, 4);
            sr_put_scalar(r, i, SR_SCALAR_tid_var, step + i);
        }
        sr_end_step(r, &(sr_step){.size = sizeof(sr_step), step, 10, step, 1, 0.1, 1});
    }
    run_finish(r);
}

/* As few empty cells as possible. */
static void test_compare(void **state) {
    (void)state;
    static const struct {
        int sites, wide, narrow;
    } of[] = {{1, 1, 1}, {2, 2, 2}, {3, 3, 2}, {4, 4, 2},
              {6, 3, 2}, {7, 4, 2}, {8, 4, 2}, {9, 3, 2}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        char command[96];
        write_sites("sites.h5", of[i].sites);
        for (int wide = 0; wide < 2; wide++) {
            snprintf(command, sizeof command, "statplot compare sites.h5 --size springer%s",
                     wide ? "-wide" : "");
            const drawing *d = drawing_make(command);
            assert_int_equal(d->panels, of[i].sites);
            check_grid(d, 1, of[i].sites, wide ? of[i].wide : of[i].narrow);
        }
    }
    char says[64];
    double median[2];
    for (int r = 0; r < 2; r++) {
        program_result t = table_of(r ? "stat-scalar run5.h5 --site body --stat dist_mu"
                                      : "stat-scalar run1.h5 --site body --stat dist_mu");
        median[r] = table_real(t.out, 0, "median");
        program_free(&t);
    }
    const drawing *d =
        drawing_make("statplot compare run1.h5 run5.h5 --stat dist_mu --size springer");
    snprintf(says, sizeof says, "× %.3g", median[1] / median[0]);
    check_says(d, says);
}

static void test_below(void **state) {
    (void)state;
    static const char *const of[] = {"layers run1.h5", "theorem1 run1.h5 --site head",
                                     "theorem1 run1.h5 run2.h5 --site head"};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        char command[96];
        for (int wide = 0; wide < 2; wide++) {
            snprintf(command, sizeof command, "statplot %s --size springer%s", of[i],
                     wide ? "-wide" : "");
            const drawing *d = drawing_make(command);
            check_grid(d, 1, d->panels, wide ? 2 : 1);
        }
    }
}

/* -- names --------------------------------------------------------------------------------- */

static bool says(const drawing *d, const char *text) {
    for (int i = 0; i < d->texts; i++)
        if (strstr(d->text[i].text, text)) return true;
    return false;
}

/* On a page of one column, figures of sample runs cut no name. */
static void test_nothing_cut(void **state) {
    (void)state;
    program_result r = table_of("statrec list figures | grep -v 'table: ' | cut -f1");
    char *rest;
    for (char *name = strtok_r(r.out, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest)) {
        char command[96];
        snprintf(command, sizeof command, "statplot %s --size springer", name);
        if (says(drawing_make(command), "…")) fail_msg("%s: a name is cut", name);
    }
    program_free(&r);
    const drawing *d = drawing_make("statplot ablation --size springer");
    check_says(d, "rbn, lambda-mean 1,");
    check_says(d, "lambda-std 1");
    d = drawing_make("statplot tid --size springer");
    check_says(d, "stem");
    check_says(d, "stage2.1.norm1");
    check_says(d, "stage3.2.norm2");
    assert_false(says(d, "stage1.0.norm1"));
}

/* Site names that gnuplot, a table or a list of words would misread. */
enum { NAMES_STEPS = 60 }; /* longer than the burn-in */
static void write_names(void) {
    static const char *const name[] = {"a%b_c", "back\\slash", "sp ace"};
    sr_recorder *r = run_create(program_file("names.h5"), run_options());
    for (int i = 0; i < 3; i++) run_add_bn(r, name[i], 1, i, 1);
    for (int step = 1; step <= NAMES_STEPS; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < 3; i++) {
            sr_put_rows(r, i, 4);
            sr_put_scalar(r, i, SR_SCALAR_tid_mean, 0.1 * (i + 1));
            sr_put_scalar(r, i, SR_SCALAR_tid_var, 0.1 * (i + 1) * (1 + step % 4));
        }
        run_end_step(r, step);
    }
    run_finish(r);
}

static void test_names(void **state) {
    (void)state;
    write_names();
    const drawing *d = drawing_make("statplot layers names.h5");
    check_says(d, "a%b_c");
    check_says(d, "back\\slash");
    d = drawing_make("statplot tiddepth names.h5");
    for (int i = 0; i < 3; i++) check_mark(d, 1, MARK_POINT, 1, i, 10 * (i + 1));
    assert_false(says(d, "sites without values"));
    d = drawing_make("statplot overview names.h5");
    for (int step = 1; step <= NAMES_STEPS; step++)
        for (int i = 0; i < 3; i++)
            check_heat(d, d->panels, 100 * (step - 0.8) / NAMES_STEPS, i,
                       0.1 * (i + 1) * (1 + step % 4));
    assert_true(d->panel[d->panels - 1].low[AXIS_Y] > -1);
    assert_false(says(drawing_make("statplot compare run1.h5 names.h5"), "median of"));
}

/* -- burn-in, line styles, tick labels ----------------------------------------------------- */

static const drawing_text *text_of(const drawing *d, const char *text) {
    for (int i = 0; i < d->texts; i++)
        if (strcmp(d->text[i].text, text) == 0) return &d->text[i];
    fail_msg("%s does not say '%s'", d->command, text);
    return NULL;
}

static const char all_and_some[] =
    "Grey: burn-in of all runs; light grey: of some. Vertical lines: "
    "where the burn-in of a run ends.";

/* Each run's burn-in ends at its line; its label is inside the grey if no space is beside it. */
static void test_burn_in(void **state) {
    (void)state;
    write_few_run(&(few_run){.name = "slow.h5", .norm = "bn", .alpha = 0.99, .scale = 1});
    const drawing *d = drawing_make("statplot tidloss slow.h5");
    const double right = d->panel[0].right;
    check_burn_in(d, 1, 100, 100);
    assert_true(text_of(d, "burn-in")->x < right);
    d = drawing_make("statplot fig2 run1.h5 slow.h5");
    const double end = burn_in("run1.h5");
    check_burn_in(d, 1, end, 100);
    check_says(d, all_and_some);
    const svg_panel panel = d->panel[0];
    const double x = panel.left + 0.01 * end * (panel.right - panel.left);
    program_result r =
        program_run("statplot fig2 run1.h5 slow.h5 -o x.svg 2>x && grep -q "
                    "\"rgb(  0, 114, 178)'  d='M%d[.0-9]*,[.0-9]* L%d[.0-9]*,\" x.svg",
                    (int)x, (int)x);
    if (r.status) fail_msg("no line at %.2f, where the burn-in of run1.h5 ends", x);
    program_free(&r);
    assert_false(says(drawing_make("statplot fig2 run1.h5 run2.h5"), "light grey"));
}

static void test_looks(void **state) {
    (void)state;
    for (int runs = 24; runs <= 25; runs++) {
        char command[320] = "statplot curves";
        for (int i = 0; i < runs; i++) strcat(command, " run1.h5");
        assert_int_equal(says(drawing_make(command), "There are 24 line styles"), runs > 24);
    }
}

/* Beside labels like 1.5 x 10^19 the axis name is not cut. */
static void test_wide_tics(void **state) {
    (void)state;
    static const char *const figure[] = {"curves", "modes", "tidloss"};
    enum { LETTER = 8 }; /* least height in pixels */
    write_few_run(&(few_run){.name = "huge.h5", .norm = "bn", .alpha = 0.3, .scale = 3e19});
    for (int i = 0; i < 3; i++) {
        char command[64];
        snprintf(command, sizeof command, "statplot %s huge.h5", figure[i]);
        const drawing *d = drawing_make(command);
        for (int k = 0; k < d->texts; k++)
            if (d->text[k].turned && d->text[k].x < LETTER)
                fail_msg("%s: '%s' at %g", command, d->text[k].text, d->text[k].x);
    }
}

/* -- sample runs --------------------------------------------------------------------------- */

enum { ZERO = 8 }; /* the line style of the line at 0 in a panel of differences */

/* Returns the largest vertical distance of two lines at one x, as a fraction of the panel's height.
 * panel 0: any. */
static double apart(const drawing *d, int panel, int look_a, int look_b) {
    static const unsigned colour[] = {[1] = 0x0072B2, 0xD55E00, 0x009E73, [ZERO] = 0x999999};
    double most = 0;
    for (int i = 0; i < d->marks; i++) {
        const drawing_mark *a = &d->mark[i];
        if (a->kind == MARK_AREA || a->colour != colour[look_a]) continue;
        for (int k = 0; k < d->marks; k++) {
            const drawing_mark *b = &d->mark[k];
            if (b->kind != a->kind || b->colour != colour[look_b] || fabs(a->x - b->x) > 0.3)
                continue;
            for (int p = panel ? panel - 1 : 0; p < (panel ? panel : d->panels); p++) {
                const svg_panel *in = &d->panel[p];
                if (a->y < in->top || a->y > in->bottom || b->y < in->top || b->y > in->bottom ||
                    a->x < in->left || a->x > in->right)
                    continue;
                most = fmax(most, fabs(a->y - b->y) / (in->bottom - in->top));
            }
        }
    }
    return most;
}

/* The sample runs show a figure's purpose: no two of them coincide. */
static void test_samples_differ(void **state) {
    (void)state;
    static const struct {
        const char *figure;
        int runs, panel; /* 0: any */
    } of[] = {{"curves", 2, 2}, {"converge", 3, 3}, {"compare", 2, 7}, {"tidloss", 2, 1},
              {"fig2", 2, 2},   {"fig4", 2, 1},     {"fig5", 2, 1},    {"fig6", 3, 2},
              {"depth", 2, 1},  {"condition", 3, 0}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        char command[64];
        /* the lower panel of fig6: minus the first run, which is the line at 0 */
        const bool differences = strcmp(of[i].figure, "fig6") == 0;
        snprintf(command, sizeof command, "statplot %s", of[i].figure);
        const drawing *d = drawing_make(command);
        for (int a = 1; a <= of[i].runs; a++)
            for (int b = a + 1; b <= of[i].runs; b++)
                if (apart(d, of[i].panel, a == 1 && differences ? ZERO : a, b) < 0.12)
                    fail_msg("%s: runs %d and %d coincide", of[i].figure, a, b);
    }
}

/* Three micro-batch sizes, and the course of a text model's features. */
static void test_enough_points(void **state) {
    (void)state;
    const drawing *d = drawing_make("statplot fig5");
    for (int look = 1; look <= 2; look++) {
        program_result t =
            table_of("stat-batch " SAMPLE("figures/bn_128") " " SAMPLE("nlp_bn_256") " " SAMPLE(
                "nlp_bn") " " SAMPLE("figures/ln_128") " " SAMPLE("nlp_ln_256") " " SAMPLE("nlp_"
                                                                                           "ln"));
        assert_int_equal(table_rows(t.out), 6);
        check_rows(d, 1, MARK_POINT, look, &t, look == 1 ? "norm=bn" : "norm=ln",
                   cell("micro_batch"), cell("mean"));
        program_free(&t);
    }
    d = drawing_make("statplot features");
    program_result t = table_of("stat-features " SAMPLE("figures/bn_features") " --per-step");
    assert_true(table_rows(t.out) >= 3 * 20);
    check_rows(d, 2, MARK_LINE, ANY_LOOK, &t, "site=encoder.final", cell("percent"),
               cell("kurtosis"));
    program_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modes),          cmocka_unit_test(test_compare),
        cmocka_unit_test(test_below),          cmocka_unit_test(test_nothing_cut),
        cmocka_unit_test(test_samples_differ), cmocka_unit_test(test_enough_points),
        cmocka_unit_test(test_names),          cmocka_unit_test(test_burn_in),
        cmocka_unit_test(test_looks),          cmocka_unit_test(test_wide_tics),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
