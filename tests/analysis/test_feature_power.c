/* test_feature_power.c -- stat-features, stat-depth and stat-amgm on runs whose vectors are known,
 * against the formulas in plain loops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

enum { D = 4, STEPS = 12, WINDOW = 3, STATISTICS = 6 };

/* Powers of step 1 .. STEPS; a spike of one feature in step 8, no finite value in step 10. */
static double psi2_at(int step, int k) {
    static const double base[D] = {1, 2, 4, 9};
    const double wave = 1 + 0.05 * ((step * 7 + k * 3) % 5);
    if (step == 10) return NAN;
    return base[k] * wave * (step == 8 && k == 1 ? 100 : 1);
}

static double mu_at(int step, int k) {
    return 0.25 * sqrt(psi2_at(step, k)) * (k % 2 ? -1 : 1);
}

static void put_site(sr_recorder *r, int site, int step, double scale, bool mean) {
    double psi2[D], mu[D], sigma2[D];
    for (int k = 0; k < D; k++) {
        psi2[k] = scale * psi2_at(step, k);
        mu[k] = sqrt(scale) * mu_at(step, k);
        sigma2[k] = psi2[k] - mu[k] * mu[k];
    }
    sr_put_rows(r, site, 5);
    sr_put_vector(r, site, SR_psi2_B, psi2);
    if (!mean) return;
    sr_put_vector(r, site, SR_mu_B, mu);
    sr_put_vector(r, site, SR_sigma2_B, sigma2);
}

/* bn, psi without mean, and ln, which has no batch statistics. */
static void write_powers(const char *path) {
    static const char *const name[] = {"first", "second", "third"}, *const norm[] = {"bn", "pnv",
                                                                                     "ln"};
    static const sr_family family[] = {SR_FAMILY_SIGMA, SR_FAMILY_PSI, SR_FAMILY_ROW};
    sr_options o = run_options();
    o.vectors_every = 1;
    sr_recorder *r = run_create(program_file(path), o);
    for (int i = 0; i < 3; i++)
        sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = name[i],
                                  .norm = norm[i],
                                  .kind = "conv",
                                  .family = family[i],
                                  .width = D,
                                  .depth = 2 * i + 1,
                                  .eps = 1,
                                  .alpha = i < 2 ? 0.9 : NAN});
    for (int step = 1; step <= STEPS; step++) {
        sr_begin_step(r, step);
        put_site(r, 0, step, 1, true);
        put_site(r, 1, step, 3, false);
        sr_put_rows(r, 2, 5);
        run_end_step(r, step);
    }
    run_finish(r);
}

static int write_runs(void **state) {
    (void)state;
    write_powers("powers.h5");
    write_ln_run(program_file("ln.h5"));
    write_small_run(program_file("small.h5"), 6, true);
    return 0;
}

/* -- by step --------------------------------------------------------------------------------- */

/* As float32 in the file. */
static double stored(double x) {
    return (double)(float)x;
}

static void reference(int step, double scale, double want[STATISTICS]) {
    double m2 = 0, m4 = 0, mean = 0, variance = 0, largest = 0, dead = 0;
    for (int k = 0; k < D; k++) {
        const double p = stored(scale * psi2_at(step, k));
        const double mu = stored(sqrt(scale) * mu_at(step, k));
        const double s = sqrt(p);
        m2 += s * s / D;
        m4 += s * s * s * s / D;
        mean += mu * mu;
        const double v = stored(scale * psi2_at(step, k) -
                                sqrt(scale) * mu_at(step, k) * sqrt(scale) * mu_at(step, k));
        variance += v / D;
        largest = v > largest || isnan(v) ? v : largest;
        dead += isnan(v) ? NAN : (v < 1) / (double)D;
    }
    want[0] = m4 / (m2 * m2);
    want[1] = mean / (D * m2);
    want[2] = m2;
    want[3] = variance;
    want[4] = largest;
    want[5] = dead;
}

static const char *const column[STATISTICS] = {"kurtosis", "mean_share", "power",
                                               "variance", "largest",    "dead"};

static void test_by_step(void **state) {
    (void)state;
    program_result r = program_run("stat-features powers.h5 --per-step");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 2 * STEPS);
    for (int row = 0; row < 2 * STEPS; row++) {
        double want[STATISTICS];
        const int step = row % STEPS + 1;
        reference(step, row < STEPS ? 1 : 3, want);
        check_text(&r, row, "site", row < STEPS ? "first" : "second");
        for (int c = 0; c < STATISTICS; c++) {
            const bool there = row < STEPS || c == 0 || c == 2;
            if (step == 10 || !there)
                check_text(&r, row, column[c], "nan");
            else
                check_cell(&r, row, column[c], want[c]);
        }
    }
    assert_non_null(strstr(r.out, "# note: powers.h5: no kurtosis at 1 of 3 sites"));
    program_free(&r);
}

/* Two steps of one site with these powers. */
static void write_two_steps(const char *path, const double power[2][D]) {
    sr_options o = run_options();
    o.vectors_every = 1;
    sr_recorder *r = run_create(program_file(path), o);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "site",
                              .norm = "pnv",
                              .kind = "conv",
                              .family = SR_FAMILY_PSI,
                              .width = D,
                              .depth = 0,
                              .eps = 1,
                              .alpha = 0.9});
    for (int step = 1; step <= 2; step++) {
        sr_begin_step(r, step);
        sr_put_vector(r, 0, SR_psi2_B, power[step - 1]);
        run_end_step(r, step);
    }
    run_finish(r);
}

static void write_nothing_finite(const char *path) {
    static const double power[2][D] = {{1, NAN, 2, 3}, {INFINITY, 1, 1, 1}};
    write_two_steps(path, power);
}

/* All power in one feature, and all features of one size: the ends of the range. */
static void test_ends(void **state) {
    (void)state;
    static const double power[2][D] = {{0, 0, 7, 0}, {3, 3, 3, 3}};
    write_two_steps("ends.h5", power);
    program_result p = program_run("stat-features ends.h5 --per-step --stat kurtosis");
    check_cell(&p, 0, "kurtosis", D);
    check_cell(&p, 1, "kurtosis", 1);
    program_free(&p);
}

static void test_without_statistics(void **state) {
    (void)state;
    static const char *const program[] = {"stat-features", "stat-depth", "stat-amgm"};
    for (int i = 0; i < 3; i++) {
        program_result r = program_run("%s ln.h5", program[i]);
        assert_int_equal(r.status, 1);
        assert_string_equal(r.out, "");
        assert_non_null(strstr(r.err, "ln.h5"));
        program_free(&r);
        r = program_run("%s small.h5", program[i]);
        assert_int_equal(r.status, 0);
        program_free(&r);
    }
}

/* -- by depth -------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of the finite values of steps first .. last. */
static double median_of(int c, int first, int last, double scale) {
    double value[STEPS], want[STATISTICS];
    int count = 0;
    for (int step = first; step <= last; step++) {
        reference(step, scale, want);
        if (isfinite(want[c])) value[count++] = want[c];
    }
    qsort(value, (size_t)count, sizeof *value, ascending);
    return count % 2 ? value[count / 2] : 0.5 * (value[count / 2 - 1] + value[count / 2]);
}

static void test_by_depth(void **state) {
    (void)state;
    program_result r = program_run("stat-depth powers.h5 --parts 3");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 6);
    for (int row = 0; row < 6; row++) {
        const int part = row / 2, site = row % 2;
        const double scale = site ? 3 : 1;
        check_cell(&r, row, "part", part + 1);
        check_cell(&r, row, "to", 100.0 * (part + 1) / 3);
        check_cell(&r, row, "depth", 2 * site + 1);
        check_cell(&r, row, "steps", 4);
        check_cell(&r, row, "nonfinite", part == 2);
        for (int c = 0; c < STATISTICS; c++) {
            if (site && c != 0 && c != 2)
                check_text(&r, row, column[c], "nan");
            else
                check_cell(&r, row, column[c], median_of(c, 4 * part + 1, 4 * part + 4, scale));
        }
    }
    program_free(&r);
    r = program_run("stat-depth powers.h5 --parts 1 --phase 9:11 --site first");
    assert_int_equal(table_rows(r.out), 1);
    check_cell(&r, 0, "steps", 3);
    check_cell(&r, 0, "power", median_of(2, 9, 11, 1));
    program_free(&r);
    r = program_run("stat-depth powers.h5 --parts 12 --phase 10:10");
    assert_int_equal(r.status, 0);
    check_text(&r, 0, "power", "nan");
    program_free(&r);
}

/* -- outliers in time ------------------------------------------------------------------------ */

typedef struct finding {
    bool tested, outlier;
    double ratio, excess;
} finding;

/* The released code in plain loops: a buffer of WINDOW rows; the running value replaces an
 * outlier. */
static void find_outliers(double scale, finding found[STEPS + 1]) {
    double buffer[WINDOW][D], running[D], v[D];
    int seen = 0;
    for (int step = 1; step <= STEPS; step++) {
        finding *f = &found[step];
        *f = (finding){.ratio = 0, .excess = 0};
        double mean = 0, variance = 0;
        const bool full = seen >= WINDOW;
        if (!isfinite(psi2_at(step, 0))) continue;
        for (int k = 0; k < D; k++) v[k] = stored(scale * psi2_at(step, k));
        for (int i = 0; i < WINDOW * D && full; i++) mean += sqrt(buffer[i / D][i % D]);
        mean /= WINDOW * D;
        for (int i = 0; i < WINDOW * D && full; i++)
            variance += pow(sqrt(buffer[i / D][i % D]) - mean, 2) / (WINDOW * D - 1);
        double *place = buffer[seen % WINDOW];
        for (int k = 0; k < D; k++) place[k] = v[k];
        for (int k = 0; k < D && seen == 0; k++) running[k] = v[k];
        seen++;
        f->tested = full;
        double gm[D];
        for (int k = 0; k < D && full; k++) {
            double product = 1, am = 0;
            for (int i = 0; i < WINDOW; i++) product *= buffer[i][k], am += buffer[i][k] / WINDOW;
            gm[k] = pow(product, 1.0 / WINDOW);
            f->ratio = fmax(f->ratio, am / gm[k]);
            f->excess = fmax(f->excess, (am - gm[k]) / (WINDOW * variance));
        }
        f->outlier = f->tested && f->excess > 1;
        if (f->outlier) memcpy(place, running, sizeof running);
        for (int k = 0; k < D; k++)
            running[k] = 0.9 * running[k] + 0.1 * (full && !f->outlier ? gm[k] : v[k]);
    }
}

static void test_outliers(void **state) {
    (void)state;
    finding found[STEPS + 1];
    int tested = 0, outliers = 0, row = 0;
    find_outliers(1, found);
    program_result r = program_run("stat-amgm powers.h5 --window 3 --per-step --site first");
    assert_int_equal(r.status, 0);
    for (int step = 1; step <= STEPS; step++) {
        if (!found[step].tested) continue;
        check_cell(&r, row, "step", step);
        check_cell(&r, row, "ratio", found[step].ratio);
        check_cell(&r, row, "excess", found[step].excess);
        check_cell(&r, row++, "outlier", found[step].outlier);
        tested++;
        outliers += found[step].outlier;
    }
    assert_int_equal(table_rows(r.out), tested);
    program_free(&r);
    assert_true(found[8].outlier && !found[7].outlier && !found[9].outlier && outliers == 1);
    r = program_run("stat-amgm powers.h5 --window 3");
    assert_int_equal(table_rows(r.out), 2);
    check_cell(&r, 0, "steps", tested);
    check_cell(&r, 0, "nonfinite", 1);
    check_cell(&r, 0, "outliers", 1);
    check_cell(&r, 0, "share", 1.0 / tested);
    check_cell(&r, 0, "excess", found[8].excess);
    check_cell(&r, 0, "excess_step", 8);
    check_cell(&r, 0, "ratio", found[8].ratio);
    check_cell(&r, 0, "infinite", 0);
    check_cell(&r, 0, "spacing", 1);
    program_free(&r);
    r = program_run("stat-amgm powers.h5 --window 3 --stat sigma2_B");
    assert_int_equal(table_rows(r.out), 1);
    program_free(&r);
    r = program_run("stat-amgm powers.h5 --window 40");
    check_cell(&r, 0, "steps", 0);
    check_text(&r, 0, "excess", "nan");
    check_cell(&r, 0, "excess_step", -1);
    program_free(&r);
}

/* A table by step of runs without tested steps would be empty: it is rejected, unless another run
 * has some. */
static void test_too_few_recorded(void **state) {
    (void)state;
    program_result r = program_run("stat-amgm powers.h5 --window 12 --per-step");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.out, "");
    assert_non_null(strstr(r.err, "powers.h5: no test in steps 1 to 12: it needs 13 recorded "
                                  "steps, vectors are at 12 of 12 steps"));
    program_free(&r);
    r = program_run("stat-amgm powers.h5 --window 11 --per-step --site first");
    assert_int_equal(r.status, 0);
    program_free(&r);
    r = program_run("stat-amgm small.h5 powers.h5 --window 8 --per-step --site 's*,first'");
    assert_int_equal(r.status, 0);
    check_text(&r, 0, "run", "powers.h5");
    program_free(&r);
    r = program_run("stat-amgm powers.h5 --window 3 --per-step --phase 2:3");
    assert_int_equal(r.status, 1);
    program_free(&r);
}

/* All features equal until the last step: V is 0. A feature that was 0 in the previous step has GM
 * 0. */
static void test_infinite(void **state) {
    (void)state;
    sr_options o = run_options();
    o.vectors_every = 2;
    sr_recorder *r = run_create(program_file("flat.h5"), o);
    run_add_bn(r, "top", D, 1, 1);
    for (int step = 1; step <= 12; step++) {
        const double value[D] = {4, 4, 4, step == 8 ? 9 : step == 10 ? 0 : 4};
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 5);
        sr_put_vector(r, 0, SR_psi2_B, value);
        run_end_step(r, step);
    }
    run_finish(r);
    program_result t = program_run("stat-amgm flat.h5 --window 3 --per-step");
    check_cell(&t, 0, "step", 8);
    check_cell(&t, 0, "infinite", 1);
    check_cell(&t, 0, "outlier", 1);
    check_text(&t, 0, "excess", "inf");
    check_text(&t, 1, "ratio", "inf"); /* the outlier was replaced: V is 0 again */
    check_cell(&t, 1, "infinite", 1);
    program_free(&t);
    t = program_run("stat-amgm flat.h5 --window 3");
    check_cell(&t, 0, "infinite", 2);
    check_cell(&t, 0, "spacing", 2);
    program_free(&t);
}

/* -- figures --------------------------------------------------------------------------------- */

static void check_drawn(const char *arguments) {
    program_result r = program_run("statplot %s -o drawn.svg && test -s drawn.svg", arguments);
    if (r.status) fail_msg("%s: %s", arguments, r.err);
    program_free(&r);
}

/* NaN in the middle, one site, one step, one and many runs, every choice. */
static void test_figures(void **state) {
    (void)state;
    static const char *const arguments[] = {
        "depth powers.h5",
        "depth powers.h5 small.h5 powers.h5 small.h5 powers.h5",
        "depth powers.h5 --site first --parts 8",
        "depth powers.h5 --right kurtosis --parts 1",
        "depth powers.h5 --right mean_share --steps 3:9",
        "depth powers.h5 small.h5 --steps 2:3",
        "features powers.h5",
        "features powers.h5 small.h5 powers.h5 small.h5 powers.h5",
        "features powers.h5 --site first --quantity mean_share",
        "features powers.h5 --quantity largest",
        "features powers.h5 --quantity dead",
        "features small.h5 --quantity dead",
        "features powers.h5 --steps 7:8 --quantity power",
        "features powers.h5 small.h5 --quantity variance --linear",
    };
    if (!have_gnuplot()) skip();
    for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) check_drawn(arguments[i]);
    write_nothing_finite("wild.h5");
    program_result r = program_run("statplot depth wild.h5 -o none.svg");
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "no finite value of power"));
    program_free(&r);
    r = program_run("statplot features wild.h5 -o none.svg");
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "kurtosis"));
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_step),          cmocka_unit_test(test_ends),
        cmocka_unit_test(test_by_depth),         cmocka_unit_test(test_without_statistics),
        cmocka_unit_test(test_outliers),         cmocka_unit_test(test_figures),
        cmocka_unit_test(test_too_few_recorded), cmocka_unit_test(test_infinite),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
