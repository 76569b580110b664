/* test_feature_values.c -- stat-features --per-feature, --quantiles and --histogram on a run whose
 * vectors are known, against the definitions in plain loops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "testing/programs.h"

enum { D = 5, STEPS = 30, EVERY = 3, RECORDED = STEPS / EVERY, ROWS = 8 };
static const double EPS = 0.01, ALPHA = 0.9;

typedef enum { MU_B, SIGMA2_B, MU, SIGMA2, KINDS } kind;

/* float32, as in the file. Feature 3 is far from the others. Feature 1 has the largest mean in step
 * 15 only. Feature 4 is not finite in step 21. */
static double at(kind which, int step, int k) {
    static const double base[KINDS][D] = {{0.1, 0.2, 0.3, -4, 0.5},
                                          {1, 2, 0.5, 300, 1},
                                          {0.15, 0.1, 0.35, -3.5, 0.5},
                                          {1.5, 1, 0.5, 250, 1.25}};
    const double wave = 1 + 0.3 * ((step * 7 + k * 5 + (int)which * 3) % 11 - 5) / 5;
    if (step == 21 && k == 4) return NAN;
    if (step == 15 && k == 1 && which == MU_B) return (double)(float)-90;
    return (double)(float)(base[which][k] * wave);
}

static void put_site(sr_recorder *r, int site, int step, bool sigma) {
    static const sr_vector vector[KINDS] = {SR_mu_B, SR_sigma2_B, SR_mu, SR_sigma2};
    sr_put_rows(r, site, step % EVERY ? 5 * ROWS : ROWS); /* noise uses the recorded steps */
    for (int i = 0; i < KINDS; i++) {
        double value[D];
        if (!sigma && i % 2 == 1) continue;
        for (int k = 0; k < D; k++) value[k] = at((kind)i, step, k);
        assert_int_equal(sr_put_vector(r, site, vector[i], value), SR_OK);
    }
}

static int write_runs(void **state) {
    (void)state;
    sr_options o = run_options();
    o.vectors_every = EVERY;
    sr_recorder *r = run_create(program_file("run.h5"), o);
    for (int i = 0; i < 2; i++)
        sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = i ? "means" : "body",
                                  .norm = "bn",
                                  .kind = "conv",
                                  .family = SR_FAMILY_SIGMA,
                                  .width = D,
                                  .depth = i + 1,
                                  .eps = EPS,
                                  .alpha = ALPHA});
    for (int step = 1; step <= STEPS; step++) {
        sr_begin_step(r, step);
        put_site(r, 0, step, true);
        put_site(r, 1, step, false);
        run_end_step(r, step);
    }
    run_finish(r);
    write_ln_run(program_file("ln.h5"));
    return 0;
}

static double shift(int step, int k) {
    return (at(MU_B, step, k) - at(MU, step, k)) / sqrt(at(SIGMA2, step, k) + EPS);
}

static double ratio(int step, int k) {
    return sqrt((at(SIGMA2_B, step, k) + EPS) / (at(SIGMA2, step, k) + EPS));
}

static program_result table(const char *options) {
    program_result r = program_run("stat-features run.h5 %s", options);
    if (r.status) fail_msg("%s: exit %d: %s", options, r.status, r.err);
    return r;
}

static void check_number(const program_result *r, int row, const char *column, double want) {
    if (isfinite(want))
        check_cell(r, row, column, want);
    else
        check_text(r, row, column, "nan");
}

/* -- by step --------------------------------------------------------------------------------- */

static void test_per_feature(void **state) {
    (void)state;
    program_result r = table("--per-feature --site body --stat "
                             "mu_B,sigma2_B,mu,sigma2,mu_difference,sigma2_difference,mu_shift,"
                             "sigma_ratio");
    assert_int_equal(table_rows(r.out), D * RECORDED);
    for (int row = 0; row < D * RECORDED; row++) {
        const int k = row / RECORDED, step = EVERY * (row % RECORDED + 1);
        check_text(&r, row, "site", "body");
        check_cell(&r, row, "feature", k);
        check_cell(&r, row, "step", step);
        check_cell(&r, row, "percent", 100.0 * step / STEPS);
        check_number(&r, row, "mu_B", at(MU_B, step, k));
        check_number(&r, row, "sigma2_B", at(SIGMA2_B, step, k));
        check_number(&r, row, "mu", at(MU, step, k));
        check_number(&r, row, "sigma2", at(SIGMA2, step, k));
        check_number(&r, row, "mu_difference", at(MU_B, step, k) - at(MU, step, k));
        check_number(&r, row, "sigma2_difference", at(SIGMA2_B, step, k) - at(SIGMA2, step, k));
        check_number(&r, row, "mu_shift", shift(step, k));
        check_number(&r, row, "sigma_ratio", ratio(step, k));
    }
    program_free(&r);
    r = table("--per-feature"); /* mu_B of both sites */
    assert_int_equal(table_rows(r.out), 2 * D * RECORDED);
    check_number(&r, 2 * D * RECORDED - 1, "mu_B", at(MU_B, STEPS, D - 1));
    check_text(&r, 2 * D * RECORDED - 1, "site", "means");
    program_free(&r);
    r = table("--per-feature --stat mu_B,sigma2_B --site means"); /* has no variance */
    check_text(&r, 0, "sigma2_B", "nan");
    program_free(&r);
}

static void test_psi(void **state) {
    (void)state;
    write_small_run(program_file("small.h5"), 6, true);
    program_result r = program_run("stat-features small.h5 --per-feature --stat "
                                   "psi2_B,psi2,psi_ratio,psi2_difference --step last");
    assert_int_equal(r.status, 0);
    check_text(&r, 0, "site", "stem"); /* without running mean square */
    check_text(&r, 0, "psi_ratio", "nan");
    check_text(&r, 2, "site", "mid");
    check_cell(&r, 2, "psi2_B", 4);
    check_cell(&r, 2, "psi2", 1);
    check_cell(&r, 2, "psi_ratio", 2); /* eps 0 */
    check_cell(&r, 2, "psi2_difference", 3);
    program_free(&r);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(const double *value, int count) {
    double sorted[64];
    int n = 0;
    for (int i = 0; i < count; i++)
        if (isfinite(value[i])) sorted[n++] = value[i];
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

static double outlier_score(int k) {
    double sum = 0;
    int rows = 0;
    for (int step = EVERY; step <= STEPS; step += EVERY) {
        double value[D], from[D];
        for (int j = 0; j < D; j++) value[j] = at(MU_B, step, j);
        const double median = median_of(value, D);
        for (int j = 0; j < D; j++) from[j] = fabs(value[j] - median);
        if (!isfinite(from[k])) continue;
        sum += from[k] / median_of(from, D);
        rows++;
    }
    return sum / rows;
}

static double largest(int k) {
    double most = 0;
    for (int step = EVERY; step <= STEPS; step += EVERY)
        if (fabs(at(MU_B, step, k)) > most) most = fabs(at(MU_B, step, k));
    return most;
}

/* Features in the order of their rows; scores decrease. */
static void check_order(const char *word, double (*score)(int k), int first) {
    char options[96];
    snprintf(options, sizeof options, "--per-feature --site body --order %s", word);
    program_result r = table(options);
    double before = INFINITY;
    assert_int_equal(table_rows(r.out), D * RECORDED);
    check_cell(&r, 0, "feature", first);
    for (int place = 0; place < D; place++) {
        const int row = place * RECORDED, k = (int)table_real(r.out, row, "feature");
        if (score(k) > before) fail_msg("%s: feature %d after a smaller one", word, k);
        before = score(k);
        check_number(&r, row, "mu_B", at(MU_B, EVERY, k)); /* values go with their feature */
    }
    program_free(&r);
}

static void test_order(void **state) {
    (void)state;
    assert_true(outlier_score(3) > outlier_score(1) && largest(1) > largest(3));
    check_order("outlier", outlier_score, 3);
    check_order("largest", largest, 1);
}

/* Ten recorded steps in three parts: 3 .. 12, 15 .. 18, 21 .. 30, cut at 12 and 21. */
static void test_parts(void **state) {
    (void)state;
    static const int from[3] = {3, 12, 21}, to[3] = {9, 18, 30};
    program_result r = table("--per-feature --site body --buckets 3 --order largest");
    assert_int_equal(table_rows(r.out), D * 9);
    for (int part = 0; part < 3; part++) {
        double value[RECORDED];
        int n = 0;
        for (int step = from[part]; step <= to[part]; step += EVERY) value[n++] = at(MU_B, step, 1);
        qsort(value, (size_t)n, sizeof *value, compare);
        check_cell(&r, 3 * part, "mu_B", value[0]);
        check_cell(&r, 3 * part + 1, "mu_B", median_of(value, n));
        check_cell(&r, 3 * part + 2, "mu_B", value[n - 1]);
        check_cell(&r, 3 * part + 2, "feature", 1);
        check_cell(&r, 3 * part + 1, "step", (from[part] + to[part]) / 2.0);
    }
    program_free(&r);
    r = table("--per-feature --site body --buckets 4"); /* as many rows as three per bucket */
    assert_int_equal(table_rows(r.out), D * RECORDED);
    program_free(&r);
}

static void test_steps(void **state) {
    (void)state;
    program_result r = table("--per-feature --site body --step last,6,first,6,middle");
    static const int step[] = {3, 6, 15, 30};
    assert_int_equal(table_rows(r.out), 4 * D);
    for (int row = 0; row < 4 * D; row++) {
        check_cell(&r, row, "step", step[row % 4]);
        check_number(&r, row, "mu_B", at(MU_B, step[row % 4], row / 4));
    }
    program_free(&r);
    r = table("--per-feature --site body --phase 6:12");
    assert_int_equal(table_rows(r.out), 3 * D);
    check_cell(&r, 0, "step", 6);
    program_free(&r);
}

/* -- quantiles ------------------------------------------------------------------------------- */

static double quantile_of(const double *sorted, int n, double p) {
    const double h = (n - 1) * p;
    const int k = (int)h;
    return k + 1 < n ? sorted[k] + (h - k) * (sorted[k + 1] - sorted[k]) : sorted[k];
}

static void check_quantiles(const program_result *r, int first, double (*of)(int step, int k),
                            const char *name, double noise) {
    double before = -INFINITY;
    bool seen[D] = {false};
    for (int place = 0; place < D; place++) {
        const int row = first + place, k = (int)table_real(r->out, row, "feature");
        double value[RECORDED];
        int n = 0;
        for (int step = EVERY; step <= STEPS; step += EVERY)
            if (isfinite(of(step, k))) value[n++] = of(step, k);
        qsort(value, (size_t)n, sizeof *value, compare);
        check_text(r, row, "statistic", name);
        check_cell(r, row, "percent", 100 * (place + 0.5) / D);
        check_cell(r, row, "steps", RECORDED);
        check_cell(r, row, "nonfinite", RECORDED - n);
        check_cell(r, row, "q05", quantile_of(value, n, 0.05));
        check_cell(r, row, "q25", quantile_of(value, n, 0.25));
        check_cell(r, row, "median", quantile_of(value, n, 0.5));
        check_cell(r, row, "q75", quantile_of(value, n, 0.75));
        check_cell(r, row, "q95", quantile_of(value, n, 0.95));
        check_cell(r, row, "noise", noise);
        assert_true(quantile_of(value, n, 0.5) >= before);
        before = quantile_of(value, n, 0.5);
        assert_false(seen[k]);
        seen[k] = true;
    }
}

static void test_quantiles(void **state) {
    (void)state;
    const double noise = sqrt(2 / ((1 + ALPHA) * ROWS));
    program_result r = table("--quantiles --site body --burn-in 0");
    assert_int_equal(table_rows(r.out), 2 * D);
    check_quantiles(&r, 0, shift, "mu_shift", noise);
    check_quantiles(&r, D, ratio, "sigma_ratio", noise / sqrt(2));
    program_free(&r);
    r = table("--quantiles --site body --stat sigma2_B --phase 6:12 --burn-in 0"); /* any vector */
    assert_int_equal(table_rows(r.out), D);
    check_text(&r, 0, "noise", "nan");
    check_cell(&r, 0, "steps", 3);
    program_free(&r);
}

/* Without a number, quantiles skip the steps with initial running values: 44, here all. */
static void test_burn_in(void **state) {
    (void)state;
    program_result r = table("--quantiles --site body");
    check_cell(&r, 0, "steps", 0);
    check_text(&r, 0, "median", "nan");
    program_free(&r);
    r = table("--per-feature --site body");
    assert_int_equal(table_rows(r.out), D * RECORDED);
    program_free(&r);
}

/* -- histograms ------------------------------------------------------------------------------ */

static void check_histogram(const char *options, int bins, kind which, bool logarithmic) {
    program_result r = table(options);
    static const int step[2] = {3, 21};
    double low = INFINITY, high = -INFINITY;
    assert_int_equal(table_rows(r.out), 2 * bins);
    for (int s = 0; s < 2; s++)
        for (int k = 0; k < D; k++)
            low = fmin(low, at(which, step[s], k)), high = fmax(high, at(which, step[s], k));
    for (int s = 0; s < 2; s++) {
        int all = 0;
        for (int k = 0; k < D; k++) all += isfinite(at(which, step[s], k));
        for (int bin = 0; bin < bins; bin++) {
            const int row = s * bins + bin;
            const double from = logarithmic ? low * pow(high / low, (double)bin / bins)
                                            : low + (high - low) * bin / bins,
                         to = logarithmic ? low * pow(high / low, (bin + 1.0) / bins)
                                          : low + (high - low) * (bin + 1) / bins;
            int inside = 0;
            for (int k = 0; k < D; k++) {
                const double x = at(which, step[s], k);
                inside += (x >= from && x < to) || (bin == bins - 1 && x == high);
            }
            check_cell(&r, row, "step", step[s]);
            check_cell(&r, row, "bin", bin + 1);
            check_cell(&r, row, "from", from);
            check_cell(&r, row, "to", to);
            check_cell(&r, row, "features", inside);
            check_cell(&r, row, "share", (double)inside / all);
            check_cell(&r, row, "nonfinite", D - all);
        }
    }
    program_free(&r);
}

static void test_histogram(void **state) {
    (void)state;
    check_histogram("--histogram 4 --site body --step 3,21", 4, MU_B, false);
    check_histogram("--histogram 7 --site body --stat sigma2_B --step 3,21", 7, SIGMA2_B, true);
    check_histogram("--histogram 7 --site body --stat sigma2_B --step 3,21 --spacing linear", 7,
                    SIGMA2_B, false);
    program_result r = table("--histogram 3 --site body"); /* the last step */
    assert_int_equal(table_rows(r.out), 3);
    check_cell(&r, 0, "step", STEPS);
    program_free(&r);
}

/* -- rejected options ------------------------------------------------------------------------ */

static void test_refused(void **state) {
    (void)state;
    static const char *const of[][2] = {
        {"--per-feature --step 7", "--step 7: run.h5 has no vectors at this step"},
        {"--per-feature --step 7", "the nearest steps with vectors are 6 and 9"},
        {"--per-feature --step 99", "the nearest step with vectors is 30"},
        {"--per-feature --step 1", "the nearest step with vectors is 3"},
        {"--per-feature --step soon", "--step: 'soon' is not first, middle, last or a step"},
        {"--per-feature --step 3,", "--step: '' is not"},
        {"--step 3", "--step goes with --per-feature or --histogram"},
        {"--order outlier", "--order goes with --per-feature"},
        {"--per-feature --spacing log", "--spacing goes with --histogram"},
        {"--per-feature --quantiles", "--quantiles goes with no --per-feature"},
        {"--quantiles --histogram 3", "--histogram goes with no"},
        {"--per-feature --per-step", "--per-step goes with"},
        {"--per-feature --from scalars", "--from scalars goes with"},
        {"--per-feature --step 3 --phase 3:6", "--phase goes with no --step"},
        {"--histogram 3 --phase 3:6", "--phase goes with no --histogram"},
        {"--per-feature --stat kurtosis", "unknown statistic 'kurtosis'"},
        {"--per-feature --intervals", "--intervals need a summary: not with --per-feature"},
        {"--histogram 3 --spacing log --step 3", "--spacing log: mu_B has values down to -"},
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        program_result r = program_run("stat-features run.h5 %s", of[i][0]);
        if (r.status == 0 || !strstr(r.err, of[i][1]) || r.out[0])
            fail_msg("%s: exit %d: %s", of[i][0], r.status, r.err);
        program_free(&r);
    }
    program_result r = program_run("stat-features ln.h5 --per-feature");
    assert_int_not_equal(r.status, 0);
    assert_non_null(strstr(r.err, "has no mu_B at these sites"));
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_per_feature), cmocka_unit_test(test_psi),
        cmocka_unit_test(test_order),       cmocka_unit_test(test_parts),
        cmocka_unit_test(test_steps),       cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_burn_in),     cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
