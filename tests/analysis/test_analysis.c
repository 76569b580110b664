/* The analyses' tables against numbers worked out by hand.
 *
 * write_small_run has two sites. Values of `stem` (d = 2, eps = 1, n = 4):
 *   mu_B = k (3, 4), k = 1 2 3 4 10 NaN by step, mu = 0: dist_mu = 5k/2
 *   sigma2_B = (3, 8), sigma2 = (0, 4): dist_sigma2 = ||(3, 4)||/2 = 2.5
 *   s = (2, 3), gamma/s = (1/2, 2/3), sum_g/n = (1, 3/2): c_mu = (1/2, 1), g_mu = sqrt(5/4)/2
 *   sum_gx/n = (2, -3/2): c_sig = (1, -1), Q = (3/4, 8/9), g_sigma2 = sqrt(59/36)/2
 * Values of `mid` (d = 1, eps = 0):
 *   psi2_B = 4, psi2 = 1: dist_psi2 = 3, dist_psi = 1, c_psi = 3/2 * 2 = 3 = g_psi2 */
#include "testing/programs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"

static int write_runs(void **state) {
    (void)state;
    write_small_run(program_file("small.h5"), 6, true);
    write_small_run(program_file("crashed.h5"), 5, false);
    write_ln_run(program_file("ln.h5"));
    return 0;
}

static void test_summary(void **state) {
    (void)state;
    program_result r = program_run("stat-distance --burn-in 0 small.h5 --stat mu --site stem");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 1);
    check_text(&r, 0, "run", "small.h5");
    check_text(&r, 0, "site", "stem");
    check_text(&r, 0, "norm", "bn");
    check_text(&r, 0, "statistic", "dist_mu");
    check_cell(&r, 0, "steps", 6);
    check_cell(&r, 0, "nonfinite", 1);
    check_cell(&r, 0, "median", 7.5);
    check_cell(&r, 0, "mean", 10);
    check_cell(&r, 0, "q01", 2.6);
    check_cell(&r, 0, "q25", 5);
    check_cell(&r, 0, "q75", 10);
    check_cell(&r, 0, "q99", 24.4);
    check_cell(&r, 0, "max", 25);
    assert_non_null(strstr(r.out, "# statistic: dist_mu: ||mu_B - mu||_2 / d\n"));
    assert_non_null(
        strstr(r.out, "# run: small.h5  model toy, norm bn, data numbers, seed 7, 6 steps"));
    program_free(&r);
}

static void test_all_statistics(void **state) {
    (void)state;
    program_result r = program_run("stat-distance --burn-in 0 small.h5");
    static const struct {
        const char *site, *statistic;
        double median;
    } want[] = {{"stem", "dist_mu", 7.5},
                {"stem", "dist_sigma", 0},
                {"stem", "dist_sigma2", 2.5},
                {"mid", "dist_psi", 1},
                {"mid", "dist_psi2", 3}};
    const double root = sqrt(3 + (sqrt(8) - 2) * (sqrt(8) - 2)) / 2;
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 5);
    for (int i = 0; i < 5; i++) {
        check_text(&r, i, "site", want[i].site);
        check_text(&r, i, "statistic", want[i].statistic);
        check_cell(&r, i, "median", i == 1 ? root : want[i].median);
    }
    assert_non_null(
        strstr(r.out, "# note: small.h5: no dist_mu at 2 of 3 sites (mid, norm pnv, ...)"));
    program_free(&r);
}

static void test_gradnorm(void **state) {
    (void)state;
    program_result r =
        program_run("stat-gradnorm --burn-in 0 small.h5 --stat g_mu,g_sigma2,g_psi2");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 3);
    check_cell(&r, 0, "mean", sqrt(1.25) / 2);
    check_cell(&r, 1, "mean", sqrt(59.0 / 36) / 2);
    check_text(&r, 2, "site", "mid");
    check_cell(&r, 2, "mean", 3);
    program_free(&r);
}

/* The lines that do not start with `#`. */
static const char *body(const char *table) {
    while (*table == '#') table = strchr(table, '\n') + 1;
    return table;
}

static void test_from_vectors_agrees(void **state) {
    (void)state;
    static const char *const program[] = {"stat-distance", "stat-gradnorm"};
    for (int i = 0; i < 2; i++) {
        program_result a = program_run("%s small.h5 --per-step --from scalars", program[i]);
        program_result b = program_run("%s small.h5 --per-step --from vectors", program[i]);
        static const char *const column[] = {"dist_mu", "dist_sigma", "dist_psi2",
                                             "g_mu",    "g_sigma2",   "g_psi2"};
        assert_int_equal(a.status | b.status, 0);
        assert_int_equal(table_rows(a.out), 12);
        assert_int_equal(table_rows(b.out), 12);
        for (int row = 0; row < 12; row++)
            for (int c = 3 * i; c < 3 * i + 3; c++) {
                const double x = table_real(a.out, row, column[c]);
                check_cell(&b, row, column[c], x);
            }
        program_free(&a);
        program_free(&b);
    }
}

/* Its list has no scalar that vectors give, so it does not offer to compute them. */
static void test_from_vectors_where_something_can_be_computed(void **state) {
    (void)state;
    program_result r = program_run("stat-scalar --from vectors small.h5");
    assert_int_equal(r.status, 2);
    assert_non_null(strstr(r.err, "unknown option '--from'"));
    program_free(&r);
    r = program_run("stat-scalar --help; stat-tid --help");
    assert_null(strstr(strstr(r.out, "--from") + 1, "--from"));
    program_free(&r);
}

static void test_per_step(void **state) {
    (void)state;
    program_result r =
        program_run("stat-distance --burn-in 0 small.h5 --per-step --site first --stat mu,sigma2");
    assert_int_equal(r.status, 0);
    assert_string_equal(body(r.out), "run\tsite\tstep\tpercent\tdist_mu\tdist_sigma2\n"
                                     "small.h5\tstem\t1\t16.6666667\t2.5\t2.5\n"
                                     "small.h5\tstem\t2\t33.3333333\t5\t2.5\n"
                                     "small.h5\tstem\t3\t50\t7.5\t2.5\n"
                                     "small.h5\tstem\t4\t66.6666667\t10\t2.5\n"
                                     "small.h5\tstem\t5\t83.3333333\t25\t2.5\n"
                                     "small.h5\tstem\t6\t100\tnan\t2.5\n");
    program_free(&r);
}

static void test_sites(void **state) {
    (void)state;
    program_result first =
        program_run("stat-distance --burn-in 0 small.h5 --site first --stat psi");
    program_result last =
        program_run("stat-distance --burn-in 0 small.h5 --site last --stat mu,psi");
    program_result none = program_run("stat-distance --burn-in 0 small.h5 --site 'x*'");
    check_text(&first, 0, "site", "mid");
    check_text(&last, 0, "site", "mid");
    assert_int_equal(none.status, 1);
    assert_string_equal(none.out, "");
    assert_string_equal(none.err, "stat-distance: --site: no site of small.h5 matches 'x*'\n"
                                  "stat-distance: hint: its sites are stem, mid, top\n");
    program_free(&first);
    program_free(&last);
    program_free(&none);
}

static void test_no_batch_statistics(void **state) {
    (void)state;
    program_result r = program_run("stat-distance --burn-in 0 ln.h5 --stat mu,sigma2");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.out, "");
    assert_non_null(strstr(r.err, "stat-distance: ln.h5 has no dist_mu or dist_sigma2"));
    assert_non_null(strstr(r.err, "ln at 1 site (encoder.0.norm1)"));
    assert_non_null(strstr(r.err, "hint: "));
    program_free(&r);
    r = program_run("stat-distance --burn-in 0 small.h5 ln.h5 --stat mu");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 1);
    assert_non_null(strstr(r.out, "# note: ln.h5: no dist_mu at 1 of 1 sites"));
    program_free(&r);
}

static void test_unfinished(void **state) {
    (void)state;
    program_result r = program_run("stat-distance crashed.h5 --per-step --stat mu --site stem");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 5);
    check_cell(&r, 4, "percent", 100);
    assert_non_null(
        strstr(r.out, "# note: crashed.h5 does not exist yet: read from crashed.h5.part"));
    assert_non_null(strstr(r.out, "# note: crashed.h5 is unfinished"));
    program_free(&r);
}

static void test_usage(void **state) {
    (void)state;
    static const char *const wrong[] = {"stat-distance", "stat-distance small.h5 --stat nu",
                                        "stat-distance small.h5 --nope", "stat-curve",
                                        "stat-distance small.h5 --from memory"};
    for (int i = 0; i < 5; i++) {
        program_result r = program_run("%s", wrong[i]);
        assert_int_equal(r.status, 2);
        assert_string_equal(r.out, "");
        assert_true(strlen(r.err) > 0);
        program_free(&r);
    }
    program_result r = program_run("stat-distance missing.h5");
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "missing.h5"));
    program_free(&r);
    r = program_run("stat-gradnorm --help");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "c_mu = gamma/s * sum_g/n"));
    program_free(&r);
}

/* Every program stat-*, future ones included: --help, no run, a full disk, a missing file. */
static void test_every_analysis(void **state) {
    (void)state;
    program_result r = program_run(
        "for path in '%s'/stat-*; do\n"
        "  name=${path##*/}\n"
        "  $name --help | grep -q \"^usage: $name RUN\" || echo \"$name: --help\"\n"
        "  $name 2>message; test $? = 2 || echo \"$name without a run: exit $?\"\n"
        "  grep -q \"^$name: no run file given\" message || echo \"$name without a run: message\"\n"
        "  $name --help >/dev/full 2>message; test $? = 1 || echo \"$name: full disk\"\n"
        "  $name ln.h5.nope 2>message; test $? = 1 || echo \"$name: missing file\"\n"
        "  test $(grep -vc ': hint: ' message) = 1 || echo \"$name: more than one line\"\n"
        "done",
        program_directory());
    assert_string_equal(r.out, "");
    assert_int_equal(r.status, 0);
    program_free(&r);
}

static void test_curve(void **state) {
    (void)state;
    program_result r = program_run("stat-curve small.h5");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 6);
    check_cell(&r, 2, "step", 3);
    check_cell(&r, 2, "percent", 50);
    check_cell(&r, 2, "epoch", 1.5);
    check_cell(&r, 2, "loss", 2);
    check_cell(&r, 2, "tokens", 10);
    program_free(&r);
    r = program_run("stat-curve small.h5 --evals");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 1);
    check_cell(&r, 0, "step", 3);
    check_cell(&r, 0, "percent", 50);
    check_cell(&r, 0, "valid_ppl", exp(1));
    check_cell(&r, 0, "valid_accuracy", 50);
    program_free(&r);
    r = program_run("stat-curve ln.h5 --evals");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.err, "stat-curve: ln.h5 has no evaluations\n");
    program_free(&r);
}

/* Percent and epoch refer to the whole run; the evaluation is at step 3. */
static void test_curve_phase(void **state) {
    (void)state;
    program_result r = program_run("stat-curve small.h5 --phase 2:4");
    assert_int_equal(table_rows(r.out), 3);
    check_cell(&r, 0, "step", 2);
    check_cell(&r, 1, "percent", 50);
    check_cell(&r, 2, "epoch", 2);
    assert_non_null(strstr(r.out, "# steps: small.h5: 2 to 4 of 6; as asked for\n"));
    program_free(&r);
    r = program_run("stat-curve small.h5 --phase 2:6 --buckets 1"); /* more than 3 rows: 3 */
    assert_int_equal(table_rows(r.out), 3);
    check_cell(&r, 0, "step", 2);
    check_cell(&r, 1, "step", 4);
    check_cell(&r, 2, "step", 6);
    program_free(&r);
    r = program_run("stat-curve small.h5 --evals --phase first-half");
    assert_int_equal(table_rows(r.out), 1);
    program_free(&r);
    r = program_run("stat-curve small.h5 --evals --phase 4:9");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.out, "");
    assert_string_equal(r.err, "stat-curve: small.h5 has no evaluations in --phase 4:9\n");
    program_free(&r);
    r = program_run("stat-curve small.h5 --phase 7:9");
    assert_int_equal(r.status, 2);
    program_free(&r);
    r = program_run("stat-curve small.h5 | grep -c '^# steps'"); /* all steps: no such line */
    assert_string_equal(r.out, "0\n");
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_all_statistics),
        cmocka_unit_test(test_gradnorm),
        cmocka_unit_test(test_from_vectors_agrees),
        cmocka_unit_test(test_from_vectors_where_something_can_be_computed),
        cmocka_unit_test(test_per_step),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_no_batch_statistics),
        cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_curve),
        cmocka_unit_test(test_curve_phase),
        cmocka_unit_test(test_every_analysis),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
