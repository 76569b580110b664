/* test_time_figures.c -- what statplot amgm and alpha draw of runs whose vectors are known: gnuplot writes the
 * points of each panel as a table instead of drawing them. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "../programs.h"

enum { STEPS = 30, D = 2 };

/* Of numbers that look random, the same in every run. */
static double noise(int step, int k) {
    return (double)((step * 37 + k * 61 + step * step * (k + 3)) % 101) / 101 - 0.5;
}

static double lagging(int step, int k) {
    return step + noise(step, k);
}

/* As float32 in the file. */
static double stored(double x) {
    return (double)(float)x;
}

static int add_site(sr_recorder *r, const char *name, const char *norm, double alpha) {
    return sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                     .name = name,
                                     .norm = norm,
                                     .kind = "conv",
                                     .family = strcmp(norm, "ln") ? SR_FAMILY_SIGMA : SR_FAMILY_ROW,
                                     .width = D,
                                     .depth = 1,
                                     .eps = 1,
                                     .alpha = alpha});
}

/* Site `lags` follows a ramp, `rests` is noise about 0; sigma2 of the second is that of the first doubled. */
static void write_ramp(const char *name, double alpha, int every) {
    const double zero[D] = {0};
    sr_options o = run_options();
    o.vectors_every = every;
    sr_recorder *r = run_create(program_file(name), o);
    add_site(r, "lags", "bn", alpha);
    add_site(r, "rests", "bn", alpha);
    for (int step = 1; step <= STEPS * every; step++) {
        double value[2][D], square[2][D];
        sr_begin_step(r, step);
        for (int site = 0; site < 2; site++) {
            for (int k = 0; k < D; k++) {
                value[site][k] = site ? noise(step / every, k) : lagging(step / every, k);
                square[site][k] = (1 + site) * (40 - step / every + noise(step / every, k));
            }
            sr_put_rows(r, site, 5);
            sr_put_vector(r, site, SR_mu_B, value[site]);
            sr_put_vector(r, site, SR_mu, zero);
            sr_put_vector(r, site, SR_sigma2_B, square[site]);
            sr_put_vector(r, site, SR_sigma2, zero);
        }
        run_end_step(r, step);
    }
    run_finish(r);
}

/* Site `still`: the same in all features and steps until step 9, which V = 0 makes infinitely far; `wave` has a
 * spike in steps 12 and 21. */
static double wave(int step, int k) {
    return (k + 1) * (1 + 0.1 * noise(step, k)) * (k == 0 && step % 9 == 3 && step > 3 ? 60 : 1);
}

static void write_waves(const char *name, const char *norm) {
    sr_options o = run_options();
    o.vectors_every = 1;
    sr_recorder *r = run_create(program_file(name), o);
    const int first = add_site(r, "still", norm, 0.9);
    add_site(r, "wave", norm, 0.9);
    if (strcmp(norm, "ln") == 0) check_ok(sr_set_observed(r, first), sr_failed(r));
    for (int step = 1; step <= STEPS; step++) {
        const double still[D] = {1, step == 9 ? 2 : 1}, waves[D] = {wave(step, 0), wave(step, 1)};
        sr_begin_step(r, step);
        for (int site = 0; site < 2; site++) {
            sr_put_rows(r, site, 5);
            sr_put_vector(r, site, SR_psi2_B, site ? waves : still);
            sr_put_vector(r, site, SR_sigma2_B, waves);
        }
        run_end_step(r, step);
    }
    run_finish(r);
}

enum { WIDE = 64, LONG = 700 };

/* Independent batches about 0: sums of twelve uniform numbers. psi2_B of one feature is far away in step 303. */
static void write_noise(const char *name) {
    const double zero[WIDE] = {0};
    double value[WIDE], square[WIDE];
    uint32_t state = 1;
    sr_options o = run_options();
    o.vectors_every = 1;
    sr_recorder *r = run_create(program_file(name), o);
    run_add_bn(r, "noise", WIDE, 1, 1);
    for (int step = 1; step <= LONG; step++) {
        for (int k = 0; k < WIDE; k++) {
            value[k] = -6;
            for (int i = 0; i < 12; i++)
                value[k] += (state = state * 1664525u + 1013904223u) / 4294967296.0;
            square[k] = step == 303 && k == 5 ? 90 : 7 + value[k];
        }
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 5);
        sr_put_vector(r, 0, SR_mu_B, value);
        sr_put_vector(r, 0, SR_mu, zero);
        sr_put_vector(r, 0, SR_psi2_B, square);
        run_end_step(r, step);
    }
    run_finish(r);
}

static int write_runs(void **state) {
    (void)state;
    write_ramp("ramp.h5", 0.7, 1);
    write_ramp("other.h5", 0.5, 1);
    write_ramp("sparse.h5", 0.7, 2);
    write_waves("waves.h5", "bn");
    write_waves("watched.h5", "ln");
    write_small_run(program_file("one.h5"), 1, true);
    write_ln_run(program_file("ln.h5"));
    write_noise("noise.h5");
    return 0;
}

/* -- what is drawn --------------------------------------------------------------------------- */

/* The points of all panels, and the arrows of the last one; figure.svg is there too. */
static program_result drawn(const char *arguments) {
    program_result r = program_run(
        "statplot %s -o figure.svg --keep 2>kept || { cat kept >&2; exit 1; }\n"
        "d=$(sed -n 's/^statplot: kept //p' kept)\n"
        "cd \"$d\" && sed -i 's/^set multiplot/set table \"points\"/; s/^unset multiplot/unset "
        "table/; "
        "s/^eval LEGEND_DRAW/show arrow\\n&/; s/^ *eval .plot/show bmargin\\nset format xy "
        "\"%%.9g\"\\n&/' "
        "template.gp && gnuplot figure.gp && cat points && cd - >/dev/null && rm -r \"$d\"",
        arguments);
    if (r.status) fail_msg("%s: %s", arguments, r.err);
    return r;
}

/* The numbers of a row (from 0) of a curve (from 0, the empty one) of a panel (from 1). */
static int point(const program_result *r, int panel, int curve, int row, double number[4]) {
    int at_panel = 0, at_curve = -1, at_row = -1;
    for (const char *at = r->out; at && *at; at = strchr(at, '\n'), at += at != NULL) {
        if (sscanf(at, "# Curve %d", &at_curve) == 1) {
            at_panel += at_curve == 0;
            at_row = -1;
        } else if (*at != '#' && *at != '\n' && at_panel == panel && at_curve == curve &&
                   ++at_row == row) {
            return sscanf(at, "%lf %lf %lf %lf", number, number + 1, number + 2, number + 3);
        }
    }
    return 0;
}

static void check_point(const program_result *r, int panel, int curve, int row, double x,
                        double y) {
    double number[4];
    if (point(r, panel, curve, row, number) < 2)
        fail_msg("no row %d of curve %d in panel %d of:\n%s", row, curve, panel, r->out);
    const bool same = isnan(y) ? isnan(number[1]) : fabs(number[1] - y) <= 1e-5 * fabs(y);
    if (!(fabs(number[0] - x) <= 1e-5 * x) || !same)
        fail_msg("row %d of curve %d in panel %d: %g, %g instead of %g, %g", row, curve, panel,
                 number[0], number[1], x, y);
}

static void check_svg(const char *text, bool there) {
    program_result r = program_run("grep -q -- '%s' figure.svg", text);
    if ((r.status == 0) != there) fail_msg("'%s' is %sin the figure", text, there ? "not " : "");
    program_free(&r);
}

static void check_refused(const char *arguments, const char *part) {
    program_result r = program_run("rm -f none.svg; statplot %s -o none.svg; test ! -e none.svg || "
                                   "echo drawn",
                                   arguments);
    const char *end = strchr(r.err, '\n');
    if (!strstr(r.err, part) || r.out[0] || !end || end[1])
        fail_msg("%s: not '%s' alone: %s%s", arguments, part, r.err, r.out);
    program_free(&r);
}

/* -- alpha ----------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Distances of steps behind `left_out`, sorted; how many. */
static int distances(double alpha, int left_out, bool rests, double value[STEPS]) {
    double r[D] = {0};
    int count = 0;
    for (int step = 1; step <= STEPS; step++) {
        double sum = 0;
        for (int k = 0; k < D; k++) {
            const double b = stored(rests ? noise(step, k) : lagging(step, k));
            sum += (b - r[k]) * (b - r[k]);
            r[k] = alpha * r[k] + (1 - alpha) * b;
        }
        if (step > left_out) value[count++] = sqrt(sum) / D;
    }
    qsort(value, (size_t)count, sizeof *value, ascending);
    return count;
}

/* 17 of them: the start-up of 0.7, the greatest of 30 steps, is 13. */
static double quantile(double alpha, bool rests, int quarter) {
    double value[STEPS];
    assert_int_equal(distances(alpha, 13, rests, value), 17);
    return value[4 * quarter];
}

/* 0.8 would leave 9 of 30 steps, less than a third. Bars and line of the first site, then of the second. */
static void test_alpha_points(void **state) {
    (void)state;
    static const double alpha[] = {0, 0.5, 0.7};
    if (!have_gnuplot()) skip();
    program_result r = drawn("alpha ramp.h5");
    for (int rests = 0; rests < 2; rests++) {
        const double base = quantile(0, rests, 2);
        for (int i = 0; i < 3; i++) {
            double number[4];
            const double x = (rests ? 1.03 : 1) / (1 - alpha[i]);
            check_point(&r, 1, 2 + 2 * rests, i, x, quantile(alpha[i], rests, 2) / base);
            assert_int_equal(point(&r, 1, 1 + 2 * rests, i, number), 4);
            assert_float_equal(number[2], quantile(alpha[i], rests, 1) / base, 1e-5);
            assert_float_equal(number[3], quantile(alpha[i], rests, 3) / base, 1e-5);
        }
        check_point(&r, 1, 2 + 2 * rests, 3, (rests ? 1.03 : 1) / (1 - 0.8), NAN);
    }
    program_free(&r);
    check_svg("α 0.7, 17 steps<", true);
    check_svg("vectors every", false);
    check_svg(">rests<", true);
    check_svg("bar: quartiles", true);
}

/* Of independent batches d^2 is 1 + (1 - alpha)/(1 + alpha) times their variance. */
static void test_alpha_noise(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("alpha ramp.h5 --xrange 0.5:50");
    double number[4];
    int below = 0, above = 0;
    for (int row = 0; point(&r, 1, 5, row, number) >= 2; row++) {
        const double alpha = 1 - 1 / number[0];
        if (number[0] < 1) {
            assert_true(isnan(number[1]));
            below++;
        } else {
            const double d2 = 1 + (1 - alpha) / (1 + alpha);
            assert_float_equal(number[1], sqrt(d2 / 2), 1e-5);
            above++;
        }
    }
    assert_true(below > 10 && above > 10);
    program_free(&r);
}

/* The control: of such batches the curve is that line. 0.99 would leave 241 of 700 steps, more than a third. */
static void test_alpha_is_noise(void **state) {
    (void)state;
    static const double alpha[] = {0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99};
    double number[4];
    if (!have_gnuplot()) skip();
    program_result r = drawn("alpha noise.h5");
    for (int row = 0; row < 9; row++) {
        assert_true(point(&r, 1, 2, row, number) >= 2);
        assert_float_equal(number[1], 1 / sqrt(1 + alpha[row]), 0.03);
    }
    assert_true(point(&r, 1, 2, 9, number) >= 2 && isnan(number[1]));
    program_free(&r);
    check_svg("α 0.9, 241 steps<", true);
}

/* The run's alpha is that of one step: over two of them it is squared. */
static void test_alpha_of_run(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("alpha ramp.h5");
    assert_non_null(strstr(r.err, "from (3.33333, graph 0, 0) to (3.33333, graph 1, 0)"));
    program_free(&r);
    r = drawn("alpha sparse.h5");
    assert_non_null(strstr(r.err, "from (1.96078, graph 0, 0)"));
    program_free(&r);
    check_svg("α 0.7, 17 steps, vectors every 2<", true);
    r = drawn("alpha ramp.h5 --xrange 1:3");
    assert_null(strstr(r.err, "graph 0, 0"));
    program_free(&r);
}

/* A panel for each run; runs of one site each in one panel, beside each other. */
static void test_alpha_runs(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("alpha ramp.h5 other.h5");
    check_point(&r, 2, 2, 2, 1 / 0.3, quantile(0.7, false, 2) / quantile(0, false, 2));
    program_free(&r);
    check_svg("α 0.5, 17 steps<", true);
    check_svg(">last site<", true);
    r = drawn("alpha ramp.h5 other.h5 --site rests");
    const double y = quantile(0.7, true, 2) / quantile(0, true, 2);
    check_point(&r, 1, 2, 2, pow(1.03, -0.5) / 0.3, y);
    check_point(&r, 1, 4, 2, pow(1.03, 0.5) / 0.3, y);
    assert_non_null(strstr(r.err, "from (3.33333, graph 0"));
    assert_non_null(strstr(r.err, "from (2.00000, graph 0"));
    program_free(&r);
    check_svg("(α 0.5, 17 steps)<", true);
    check_svg(">last site<", false);
    r = drawn("alpha ramp.h5 --stat sigma2 --steps 1:15");
    program_free(&r);
    check_svg("distance of σ²", true);
    check_svg("α 0.7, 8 steps<", true); /* the start-up of 0.5 is 7, that of 0.7 leaves 2 */
}

static void test_alpha_refused(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_refused("alpha one.h5", "no two alphas to compare: too few recorded steps");
    check_refused("alpha \"$STATREC_SAMPLES\"/nlp_bn.h5", "no two alphas to compare");
    check_refused("alpha ln.h5", "ln.h5 has no dist_mu");
    check_refused("alpha ramp.h5 --stat psi2", "has no dist_psi2");
    check_refused("alpha ramp.h5 --stat gamma",
                  "unknown statistic 'gamma'; known: mu, sigma2, psi2");
    check_refused("alpha ramp.h5 --stat mu,sigma2", "--stat is one of mu, sigma2, psi2");
    check_refused("alpha ramp.h5 --xrange -1:5", "logarithmic and begins above 0");
}

/* -- amgm ------------------------------------------------------------------------------------ */

/* The table by itself, whose numbers test_feature_power.c checks. */
static double excess_at(const program_result *table, int row) {
    return table_real(table->out, row, "excess");
}

/* Steps 5 to 30. The infinite one is a mark at the upper edge, in the first panel alone. */
static void test_amgm_points(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result table = program_run("stat-amgm waves.h5 --per-step"), r = drawn("amgm waves.h5");
    const int tested = STEPS - 4;
    double high = 1, number[4];
    for (int row = 0; row < tested; row++) high = fmax(high, excess_at(&table, tested + row));
    assert_true(high > 1);
    for (int row = 0; row < tested; row++) {
        const double x = 100.0 * (row + 5) / STEPS;
        assert_true(point(&r, 1, 3, row, number) >= 2);
        check_point(&r, 1, 3, row, x, excess_at(&table, tested + row));
        check_point(&r, 1, 2, row, x, row + 5 == 9 ? 1.15 * high : NAN);
        check_point(&r, 1, 4, row, x, NAN);
    }
    for (int row = 0; point(&r, 1, 5, row, number) >= 2; row++) assert_float_equal(number[1], 1, 0);
    program_free(&table);
    table = program_run("stat-amgm waves.h5");
    const double share = table_real(table.out, 1, "share");
    assert_true(share > 0);
    check_cell(&table, 0, "infinite", 1);
    check_cell(&table, 1, "infinite", 0);
    check_point(&r, 2, 1, 0, 1, 100.0 / tested);
    check_point(&r, 2, 1, 1, 2, 100 * share);
    check_point(&r, 2, 3, 1, 2, 100 * share);
    program_free(&table);
    program_free(&r);
    check_svg(">infinite (V = 0): 1 of 52 tested steps<", true);
}

/* Of parts of many steps the largest; of the chosen steps alone. */
static void test_amgm_steps(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("amgm noise.h5"), table = program_run("stat-amgm noise.h5");
    double number[4], high = 0;
    int rows = 0;
    for (; point(&r, 1, 1, rows, number) >= 2; rows++) high = fmax(high, number[1]);
    assert_int_equal(rows, 100);
    check_cell(&table, 0, "excess_step", 303);
    check_cell(&table, 0, "excess", high);
    program_free(&r);
    program_free(&table);
    r = drawn("amgm waves.h5 --steps 10:20");
    table = program_run("stat-amgm waves.h5 --phase 10:20 --site wave");
    const double share = table_real(table.out, 0, "share");
    check_point(&r, 2, 3, 1, 2, 100 * share);
    assert_true(point(&r, 1, 3, 0, number) >= 2 && fabs(number[0] - 100.0 * 10 / STEPS) < 1e-5);
    program_free(&r);
    program_free(&table);
}

static bool in_two_rows(const program_result *r) {
    const char *first = strstr(r->err, "bmargin is set"),
               *other = strstr(first + 1, "bmargin is set");
    for (; other; other = strstr(other + 1, "bmargin is set"))
        if (strncmp(first, other, strcspn(first, "\n"))) return true;
    return false;
}

/* Four panels stand in two rows, three in one. */
static void test_rows_of_panels(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("alpha ramp.h5 other.h5 sparse.h5 ramp.h5");
    assert_true(in_two_rows(&r));
    check_point(&r, 4, 2, 2, 1 / 0.3, quantile(0.7, false, 2) / quantile(0, false, 2));
    program_free(&r);
    r = drawn("alpha ramp.h5 other.h5 sparse.h5");
    assert_false(in_two_rows(&r));
    program_free(&r);
    r = drawn("amgm waves.h5 sparse.h5 waves.h5 --stat sigma2_B");
    assert_true(in_two_rows(&r));
    program_free(&r);
}

/* A panel for each run and one for the shares of all. */
static void test_amgm_runs(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("amgm waves.h5 sparse.h5 --stat sigma2_B");
    program_result table = program_run("stat-amgm waves.h5 --stat sigma2_B --per-step --site wave");
    check_point(&r, 1, 2, 7, 40, excess_at(&table, 7)); /* no marks: still, wave, the line */
    program_free(&r);
    program_free(&table);
    r = drawn("amgm waves.h5 sparse.h5 --stat sigma2_B --site first");
    program_free(&r);
    check_svg(">vectors every 2 steps<", true);
    check_svg("infinite", false);
    check_svg("last panel: ", true);
    r = drawn("amgm waves.h5 watched.h5 --site still");
    program_free(&r);
    check_svg(">ln (observed)<", true);
    check_svg(">bn (observed)<", false);
}

/* The ends of --yrange are those of the excess; shares keep theirs. */
static void test_amgm_axes(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = drawn("amgm \"$STATREC_SAMPLES\"/cv_bn_every.h5 --yrange 0.002:0.5");
    program_free(&r);
    check_svg(">0.8<", true);
    check_svg(">infinite", false);
    r = drawn("amgm waves.h5 --yrange 0.01:3");
    check_point(&r, 1, 2, 4, 30, 3);
    program_free(&r);
}

static void test_amgm_refused(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    check_refused("amgm \"$STATREC_SAMPLES\"/nlp_bn.h5", "vectors are at 2 of 240 steps");
    check_refused("amgm waves.h5 --steps 2:4", "none of steps 2 to 4 has vectors and 4 recorded");
    check_refused("amgm ln.h5", "ln.h5");
    check_refused("amgm waves.h5 --stat mu_B", "is not one of psi2_B|sigma2_B");
}

/* A report gives --stat to figures of its kind: a scalar of sites does not reach these, nor `sigma2` the others. */
static void test_report(void **state) {
    (void)state;
    if (!have_gnuplot()) skip();
    program_result r = program_run(
        "statplot report ramp.h5 waves.h5 --stat g_mu -o report && cat report/alpha.svg "
        "report/amgm.svg");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "distance of μ,"));
    program_free(&r);
    r = program_run("statplot report ramp.h5 waves.h5 --stat sigma2 --force -o report && cat "
                    "report/alpha.svg && "
                    "! grep 'unknown statistic' report/index.html");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "distance of σ²,"));
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alpha_points),   cmocka_unit_test(test_alpha_noise),
        cmocka_unit_test(test_alpha_of_run),   cmocka_unit_test(test_alpha_runs),
        cmocka_unit_test(test_alpha_refused),  cmocka_unit_test(test_amgm_points),
        cmocka_unit_test(test_amgm_runs),      cmocka_unit_test(test_amgm_steps),
        cmocka_unit_test(test_rows_of_panels), cmocka_unit_test(test_amgm_refused),
        cmocka_unit_test(test_amgm_axes),      cmocka_unit_test(test_alpha_is_noise),
        cmocka_unit_test(test_report),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
