/* stat-tid, stat-lngrad, stat-outlier, stat-gamma, stat-svd and stat-alpha against numbers by hand,
 * from the run of write_small_run (see test_analysis.c). */
#include "testing/programs.h"

#include <math.h>
#include <string.h>

#include "base/bf16_number.h"
#include "testing/check.h"

static int write_runs(void **state) {
    (void)state;
    write_small_run(program_file("small.h5"), 6, true);
    write_small_run(program_file("five.h5"), 5, true);
    write_ln_run(program_file("ln.h5"));
    return 0;
}

/* sigma2 = (0, 4), so ||sigma|| = 2: tid_mean = 5k/2, tid_var = sqrt(3 + (sqrt 8 - 2)^2) / 2. */
static void test_tid(void **state) {
    (void)state;
    static const char *const from[] = {"scalars", "vectors"};
    for (int i = 0; i < 2; i++) {
        program_result r =
            program_run("stat-tid --burn-in 0 small.h5 --site last --from %s", from[i]);
        assert_int_equal(r.status, 0);
        assert_int_equal(table_rows(r.out), 3);
        check_text(&r, 0, "statistic", "tid_mean");
        check_cell(&r, 0, "mean", 10);
        check_cell(&r, 0, "nonfinite", 1);
        const double var = sqrt(3 + pow(sqrt(8) - 2, 2)) / 2;
        check_cell(&r, 1, "mean", var);
        check_text(&r, 2, "statistic", "tid_total");
        check_cell(&r, 2, "nonfinite", 1);
        check_cell(&r, 2, "mean", 10 + var);
        check_cell(&r, 2, "median", 7.5 + var);
        program_free(&r);
        r = program_run("stat-tid --burn-in 0 small.h5 --stat total --per-step --from %s", from[i]);
        assert_int_equal(table_rows(r.out), 6);
        check_cell(&r, 0, "tid_total", 2.5 + var);
        check_text(&r, 5, "tid_total", "nan");
        program_free(&r);
    }
}

/* mu_B - mu = (3k, 4k), sigma2_B = (3, 8), sigma2 = (0, 4), alpha 0.9, mean of k 4. After the
 * update 0.9 of the difference remains, and sigma2 is (0.3, 4.4). */
static void test_tid_released(void **state) {
    (void)state;
    program_result r =
        program_run("stat-tid --burn-in 0 small.h5 --site last --definition released");
    assert_int_equal(r.status, 0);
    const double mean = 1.8 * (sqrt(3) + sqrt(2)), var = 1 - (sqrt(0.3 / 3) + sqrt(4.4 / 8)) / 2;
    assert_int_equal(table_rows(r.out), 3);
    check_text(&r, 0, "statistic", "tid_mean_released");
    check_cell(&r, 0, "mean", mean);
    check_cell(&r, 1, "mean", var);
    check_text(&r, 2, "statistic", "tid_total_released");
    check_cell(&r, 2, "mean", mean + var);
    assert_non_null(strstr(r.out, "# source: /vectors"));
    program_free(&r);
}

static void write_final_run(const char *path) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.final = true;
    sr_recorder *r = sr_create(path, &o, &why);
    run_add_bn(r, "stem", 2, 1, 1);
    run_add_bn(r, "next", 2, 2, 1);
    run_add_ln(r, "top", 3, 3, 1e-5);
    sr_begin_step(r, 1);
    sr_end_step(r, &(sr_step){.size = sizeof(sr_step), 1, 10, 1, 1, 0.1, 1});
    const double mean[] = {0.5, 0.25, NAN}, var[] = {2, 4, NAN};
    sr_put_final(r, 9, (const double *const[]){mean, var});
    check_ok(sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, &why),
             &why);
}

static void test_tid_final(void **state) {
    (void)state;
    write_final_run(program_file("final.h5"));
    program_result r = program_run("stat-tid final.h5 small.h5 --final");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 2);
    check_text(&r, 0, "site", "stem");
    check_cell(&r, 0, "batches", 9);
    check_cell(&r, 0, "tid_mean", 0.5);
    check_cell(&r, 1, "tid_var", 4);
    check_cell(&r, 1, "tid_total", 4.25);
    assert_non_null(strstr(r.out, "# note: small.h5: no final pass"));
    program_free(&r);
    r = program_run("stat-tid final.h5 --final --site last");
    assert_int_equal(table_rows(r.out), 1);
    check_text(&r, 0, "site", "next");
    program_free(&r);
    r = program_run("stat-tid small.h5 --final");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.out, "");
    program_free(&r);
    r = program_run("stat-tid final.h5 --final --per-step");
    assert_int_equal(r.status, 2);
    program_free(&r);
}

static void test_lngrad(void **state) {
    (void)state;
    program_result r = program_run("stat-lngrad --burn-in 0 small.h5 --stat grad_mean,grad_var");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 2);
    check_text(&r, 1, "site", "top");
    check_text(&r, 1, "statistic", "row_grad_var");
    check_cell(&r, 0, "max", 0);
    check_cell(&r, 1, "median", 3);
    check_cell(&r, 1, "max", 10);
    program_free(&r);
}

/* dist_mu is 2.5 5 7.5 10 25 nan: median 7.5, deviations 5 2.5 0 2.5 17.5, so mad 2.5. Beyond 1.5
 * mad are 2.5 and 25. Quantiles are at (5 - 1) p = 0.04, 1, 3 and 3.96. */
static void test_outlier(void **state) {
    (void)state;
    program_result r = program_run(
        "stat-outlier --burn-in 0 small.h5 --stat dist_mu,row_grad_var --deviations 1.5");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 2);
    check_cell(&r, 0, "part", 1);
    check_cell(&r, 0, "to", 100);
    check_cell(&r, 0, "steps", 6);
    check_cell(&r, 0, "nonfinite", 1);
    check_cell(&r, 0, "median", 7.5);
    check_cell(&r, 0, "mad", 2.5);
    check_cell(&r, 0, "min", 2.5);
    check_cell(&r, 0, "q01", 2.6);
    check_cell(&r, 0, "q25", 5);
    check_cell(&r, 0, "q75", 10);
    check_cell(&r, 0, "q99", 24.4);
    check_cell(&r, 0, "max", 25);
    check_cell(&r, 0, "outliers", 2);
    check_cell(&r, 0, "share", 0.4);
    check_cell(&r, 0, "largest", 7);
    check_cell(&r, 0, "largest_step", 5);
    program_free(&r);
    r = program_run("stat-outlier --burn-in 0 small.h5 --stat dist_mu --deviations 1.5 --list");
    assert_int_equal(table_rows(r.out), 2);
    check_cell(&r, 0, "step", 1);
    check_cell(&r, 0, "deviation", -2);
    check_cell(&r, 1, "step", 5);
    check_cell(&r, 1, "value", 25);
    check_cell(&r, 1, "deviation", 7);
    program_free(&r);
}

/* Steps 1 to 3 are 2.5 5 7.5, steps 4 to 6 are 10 25 nan. With seven parts, step s is in part 1 +
 * floor(7 (s - 1)/6). The first six have one step each, the seventh has none. */
static void test_outlier_parts(void **state) {
    (void)state;
    program_result r = program_run("stat-outlier --burn-in 0 small.h5 --stat dist_mu --parts 2");
    assert_int_equal(table_rows(r.out), 2);
    check_cell(&r, 0, "to", 50);
    check_cell(&r, 0, "steps", 3);
    check_cell(&r, 0, "median", 5);
    check_cell(&r, 0, "mad", 2.5);
    check_cell(&r, 0, "largest", -1);
    check_cell(&r, 0, "largest_step", 1);
    check_cell(&r, 1, "part", 2);
    check_cell(&r, 1, "nonfinite", 1);
    check_cell(&r, 1, "median", 17.5);
    check_cell(&r, 1, "mad", 7.5);
    check_cell(&r, 1, "largest_step", 4);
    program_free(&r);
    r = program_run("stat-outlier --burn-in 0 small.h5 --stat dist_mu --parts 7");
    assert_int_equal(table_rows(r.out), 7);
    check_cell(&r, 4, "median", 25);
    check_cell(&r, 4, "mad", 0);
    check_cell(&r, 4, "share", 0);
    check_cell(&r, 4, "largest", 0);
    check_cell(&r, 5, "nonfinite", 1);
    check_text(&r, 5, "share", "nan");
    check_cell(&r, 5, "largest_step", -1);
    check_cell(&r, 6, "steps", 0);
    check_text(&r, 6, "median", "nan");
    program_free(&r);
}

/* stem at step 5 (k = 10), eps 1: ratios 1/sqrt(903 + 1) and 2/sqrt(1608 + 1); mid: 3/sqrt(4). */
static void test_gamma(void **state) {
    (void)state;
    program_result r = program_run("stat-gamma five.h5");
    const double a = 1 / sqrt(904), b = 2 / sqrt(1609);
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 2);
    check_cell(&r, 0, "step", 5);
    check_cell(&r, 0, "features", 2);
    check_cell(&r, 0, "min", a);
    check_cell(&r, 0, "median", (a + b) / 2);
    check_cell(&r, 0, "q90", a + 0.9 * (b - a));
    check_cell(&r, 0, "max", b);
    check_cell(&r, 0, "above", 0);
    check_cell(&r, 1, "max", 1.5);
    check_cell(&r, 1, "above", 1);
    program_free(&r);
    r = program_run("stat-gamma small.h5 --steps all --per-feature --site stem");
    assert_int_equal(table_rows(r.out), 12);
    check_cell(&r, 9, "step", 5);
    check_cell(&r, 9, "feature", 1);
    check_cell(&r, 9, "ratio", b);
    check_text(&r, 10, "ratio", "nan");
    program_free(&r);
}

static void test_svd(void **state) {
    (void)state;
    program_result r = program_run("stat-svd small.h5 ln.h5");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 2);
    check_text(&r, 0, "embedding", "word");
    check_cell(&r, 1, "step", 5);
    check_cell(&r, 1, "index", 2);
    check_cell(&r, 1, "value", 3);
    check_cell(&r, 1, "relative", 0.5);
    assert_non_null(strstr(r.out, "# note: ln.h5: no singular values"));
    assert_non_null(strstr(r.out, "# method: small.h5: word: by hand"));
    program_free(&r);
    r = program_run("stat-svd small.h5 --all");
    assert_int_equal(table_rows(r.out), 4);
    check_cell(&r, 1, "relative", 0.25);
    program_free(&r);
    r = program_run("stat-svd ln.h5");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.out, "");
    program_free(&r);
}

/* In units of 5/2, b = 1 2 3 4 10 and alpha = 1/2: r = 0 1/2 5/4 17/8 49/16, so the distances are 1
 * 3/2 7/4 15/8 111/16. With alpha = 1 the average never moves. With alpha = 0 it is the last batch:
 * 1 1 1 1 6. */
static void test_alpha(void **state) {
    (void)state;
    program_result r = program_run("stat-alpha --burn-in 0 small.h5 --stat mu --alpha 0.5,1,0");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 3);
    check_cell(&r, 0, "run_alpha", 0.9);
    check_cell(&r, 0, "nonfinite", 1);
    check_cell(&r, 0, "median", 2.5 * 7 / 4);
    check_cell(&r, 0, "max", 2.5 * 111 / 16);
    check_cell(&r, 1, "mean", 10);
    check_cell(&r, 2, "median", 2.5);
    check_cell(&r, 2, "max", 15);
    program_free(&r);
    r = program_run("stat-alpha --burn-in 0 small.h5 --stat mu --alpha 0.5 --phase first-half");
    check_cell(&r, 0, "steps", 3);
    check_cell(&r, 0, "median", 2.5 * 3 / 2);
    program_free(&r);
    r = program_run("stat-alpha --burn-in 0 small.h5 --stat mu --alpha 0.5 --phase second-half");
    check_cell(&r, 0, "nonfinite", 1);
    check_cell(&r, 0, "median", 2.5 * (15.0 / 8 + 111.0 / 16) / 2);
    program_free(&r);
    r = program_run("stat-alpha --burn-in 2 small.h5 --stat mu --alpha 0.5 --phase first-half");
    check_cell(&r, 0, "steps", 1); /* the average starts at the first step all the same */
    check_cell(&r, 0, "median", 2.5 * 7 / 4);
    program_free(&r);
    r = program_run("stat-alpha --burn-in 0 small.h5 --alpha 0.5,2");
    assert_int_equal(r.status, 2);
    program_free(&r);
}

/* Six rows, the last with NaN. Alpha 0, 0.1, 0.3, 0.4 have burn-ins of 1, 2, 4, 6 steps. The
 * burn-in of 0.3 leaves two of six rows, a third. alpha 1 never forgets. r of 0.3 in step 5: 0,
 * 7/10, 161/100, 2583/1000, 35749/10000. */
static void test_alpha_same_steps(void **state) {
    (void)state;
    program_result r =
        program_run("stat-alpha --burn-in same small.h5 --stat mu --site stem --alpha "
                    "0.4,0,1,0.3,0.1");
    static const int steps[] = {0, 2, 0, 2, 2};
    for (int row = 0; row < 5; row++) {
        check_cell(&r, row, "steps", steps[row]);
        check_cell(&r, row, "spacing", 1);
    }
    check_text(&r, 0, "median", "nan");
    check_cell(&r, 1, "median", 15);
    check_cell(&r, 3, "median", 2.5 * (10 - 3.5749));
    assert_non_null(strstr(r.out, "# steps: the same recorded steps for every alpha"));
    program_free(&r);
    r = program_run("stat-alpha --burn-in same small.h5 --stat mu --site stem --alpha 0,0.1,0.3 "
                    "--phase first-half");
    check_cell(&r, 0, "steps", 1);
    check_cell(&r, 0, "median", 2.5); /* step 3, after the burn-in of 0.1 */
    check_cell(&r, 2, "steps", 0);
    program_free(&r);
    r = program_run("stat-alpha --burn-in same small.h5 --stat mu --site stem --alpha 0,0.3 "
                    "--phase second-half");
    check_cell(&r, 0, "steps", 2); /* of three: the average started long before */
    program_free(&r);
    r = program_run("stat-alpha --burn-in some small.h5");
    assert_int_equal(r.status, 2);
    assert_non_null(strstr(r.err, "--burn-in: 'some' is not auto, same or a number of steps"));
    program_free(&r);
}

/* ||b - r||/d = 5/2 |b - r|: a distance in units of the first feature's. A bfloat16 r is rounded:
 * the features, 3b and 4b, are then averaged separately. */
static void test_alpha_kept_in(void **state) {
    (void)state;
    static const int b[] = {1, 2, 3, 4, 10};
    double r[2] = {0, 0}, mean = 0, exact = 0, smooth = 0;
    for (int i = 0; i < 5; i++) {
        double sum = 0;
        for (int k = 0; k < 2; k++) {
            const double batch = (3 + k) * b[i];
            sum += (batch - r[k]) * (batch - r[k]);
            r[k] = (double)bf16_nearest((float)(0.9 * r[k] + 0.1 * batch));
        }
        mean += sqrt(sum) / 2 / 5;
        exact += 2.5 * fabs(b[i] - smooth) / 5;
        smooth = 0.9 * smooth + 0.1 * b[i];
    }
    check_apart(mean, exact, 1e-3);
    program_result p = program_run("stat-alpha --burn-in 0 small.h5 --stat mu --alpha 0.9 "
                                   "--running-dtype bf16,double,float32");
    assert_int_equal(table_rows(p.out), 3);
    check_text(&p, 0, "kept_in", "bf16");
    check_cell(&p, 0, "mean", mean);
    check_text(&p, 1, "kept_in", "double");
    check_cell(&p, 1, "mean", exact);
    check_text(&p, 2, "kept_in", "float32");
    check_cell(&p, 2, "mean", exact);
    program_free(&p);
    p = program_run("stat-alpha small.h5 --running-dtype bf1");
    assert_int_equal(p.status, 2);
    assert_non_null(strstr(p.err, "'bf1' is not a list of double, float32, bf16"));
    program_free(&p);
}

/* The last tenth of six steps is the last one: loss 6/6, epoch 3, tid_mean NaN. Evaluated once,
 * after step 3. Five steps: tid_mean 25, tid_var as in test_tid. */
static void test_table(void **state) {
    (void)state;
    program_result r = program_run("stat-table small.h5 five.h5 ln.h5");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 3);
    check_text(&r, 0, "model", "toy");
    check_text(&r, 0, "norm", "bn,pnv,ln");
    check_cell(&r, 0, "seed", 7);
    check_cell(&r, 0, "steps", 6);
    check_cell(&r, 0, "epoch", 3);
    check_cell(&r, 0, "loss", 1);
    check_cell(&r, 0, "valid_ppl", exp(1));
    check_cell(&r, 0, "best_valid_loss", 2);
    check_cell(&r, 0, "best_step", 3);
    check_text(&r, 0, "tid_site", "stem");
    check_text(&r, 0, "tid_mean", "nan");
    check_cell(&r, 1, "loss", 1.2);
    check_cell(&r, 1, "tid_mean", 2500);
    check_cell(&r, 1, "tid_var", 50 * sqrt(3 + pow(sqrt(8) - 2, 2)));
    check_text(&r, 2, "valid_loss", "nan");
    check_cell(&r, 2, "best_step", -1);
    check_text(&r, 2, "tid_site", "-");
    program_free(&r);
}

static void test_published(void **state) {
    (void)state;
    program_result r = program_run("stat-table small.h5 ln.h5 --published $STATREC_PLOTS/"
                                   "published.tsv --published-table rbn-iwslt14-pre");
    assert_int_equal(r.status, 0);
    check_cell(&r, 0, "published", 34.8);
    check_cell(&r, 1, "published", 35.5);
    check_text(&r, 1, "published_metric", "bleu");
    program_free(&r);
    r = program_run("printf 'a\\tpage 3\\tpn\\tbleu\\t9\\n' >p.tsv; stat-table small.h5 "
                    "--published p.tsv --published-table a");
    check_text(&r, 0, "published", "nan");
    check_text(&r, 0, "published_source", "-");
    program_free(&r);
    r = program_run("stat-table small.h5 --published p.tsv --published-table b");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.err, "stat-table: p.tsv has no table b\n");
    program_free(&r);
    r = program_run("stat-table small.h5 --published p.tsv");
    assert_int_equal(r.status, 2);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tid_released),  cmocka_unit_test(test_tid_final),
        cmocka_unit_test(test_tid),           cmocka_unit_test(test_lngrad),
        cmocka_unit_test(test_outlier),       cmocka_unit_test(test_outlier_parts),
        cmocka_unit_test(test_gamma),         cmocka_unit_test(test_svd),
        cmocka_unit_test(test_alpha),         cmocka_unit_test(test_alpha_same_steps),
        cmocka_unit_test(test_alpha_kept_in), cmocka_unit_test(test_table),
        cmocka_unit_test(test_published),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
