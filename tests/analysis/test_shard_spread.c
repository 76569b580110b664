/* test_shard_spread.c -- stat-distance --ranks on a run with known spread. Every other program
 * ignores the replicas. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "record/recorder_state.h"
#include "testing/check.h"
#include "testing/programs.h"

enum { STEM, WIDE, ROWS, STEM1, WIDE1, ROWS1, WIDE2, SITES, STEPS = 6, DIVERGED = 61 };

static void add_site(sr_recorder *r, const char *name, const char *norm, int depth, int width) {
    const bool bn = strcmp(norm, "bn") == 0;
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = name,
                              .norm = norm,
                              .uses = "mu,sigma2",
                              .kind = "conv",
                              .family = bn ? SR_FAMILY_SIGMA : SR_FAMILY_ROW,
                              .width = width,
                              .depth = depth,
                              .eps = 1,
                              .alpha = bn ? 0.5 : NAN});
}

static void put(sr_recorder *r, int site, int64_t rows, const double *mu, const double *sigma) {
    static const double zero[2] = {0, 0}, one[2] = {1, 1};
    const double sigma2[2] = {sigma[0] * sigma[0], sigma[1] * sigma[1]};
    sr_put_rows(r, site, rows);
    if (!rows) return;
    assert_int_equal(sr_put_vector(r, site, SR_mu_B, mu), SR_OK);
    sr_put_vector(r, site, SR_sigma2_B, sigma2);
    sr_put_vector(r, site, SR_mu, zero);
    sr_put_vector(r, site, SR_sigma2, one);
}

#define PAIR(a, b)                                                                                 \
    (const double[]) {                                                                             \
        a, b                                                                                       \
    }

/* Values of the two sites:
 *   stem, d = 2, R = 2, odd steps: means 1 +-0.3, 1 -+0.4, equal deviations
 *   stem, even steps: equal means, deviations (1, 2) and (3, 4); step 5: shard 1 has no rows
 *   wide, d = 1, R = 3: means t times 0, 3, 6, deviations 2, 2, 5
 *   n_r: 8 (in the last step 16) and 2; 1, 2 and 3 */
static void put_step(sr_recorder *r, int step) {
    const bool odd = step % 2;
    const double t = step;
    put(r, STEM, step < STEPS ? 8 : 16, odd ? PAIR(1.3, 0.6) : PAIR(7, 7),
        odd ? PAIR(1, 1) : PAIR(1, 2));
    put(r, STEM1, step == 5 ? 0 : 2, odd ? PAIR(0.7, 1.4) : PAIR(7, 7),
        odd ? PAIR(1, 1) : PAIR(3, 4));
    put(r, WIDE, 1, PAIR(step == DIVERGED ? NAN : 0, 0), PAIR(2, 0));
    put(r, WIDE1, 2, PAIR(3 * t, 0), PAIR(2, 0));
    put(r, WIDE2, 3, PAIR(step == DIVERGED - 1 ? NAN : 6 * t, 0), PAIR(5, 0));
    sr_put_rows(r, ROWS, 4);
    sr_put_rows(r, ROWS1, 4);
    sr_put_scalar(r, ROWS, SR_SCALAR_row_grad_var, 1);
    sr_put_scalar(r, ROWS1, SR_SCALAR_row_grad_var, 1);
}

/* The last site is a replica: a reader that takes the last site of the file is wrong. */
static void write_shared(const char *name, int width_of_replica, int steps, int every) {
    sr_options o = run_options();
    o.vectors_every = every;
    sr_failure why = {0};
    /* replicas of another width: a file of an earlier version */
    sr_recorder *r = recorder_create(program_file(name), &o, width_of_replica != 2, &why);
    if (!r) fail_msg("%s", why.text);
    run_add_metrics(r);
    add_site(r, "stem", "bn", 0, 2);
    add_site(r, "wide", "bn", 1, 1);
    add_site(r, "rows", "ln", 2, 1);
    add_site(r, "stem@1", "bn", 0, width_of_replica);
    add_site(r, "wide@1", "bn", 1, 1);
    add_site(r, "rows@1", "ln", 2, 1);
    add_site(r, "wide@2", "bn", 1, 1);
    for (int step = 1; step <= steps; step++) {
        sr_begin_step(r, step);
        put_step(r, step);
        run_end_step(r, step);
    }
    run_put_eval(r, steps, 1, "valid_loss", 2.0);
    run_finish(r);
}

static int write_runs(void **state) {
    (void)state;
    write_shared("shared.h5", 2, STEPS, 1);
    write_shared("uneven.h5", 1, STEPS, 1);
    write_shared("long.h5", 2, 60, 1);
    write_shared("diverged.h5", 2, DIVERGED, 1);
    write_shared("thin.h5", 2, STEPS, STEPS);
    write_small_run(program_file("small.h5"), 6, true);
    return 0;
}

/* 1/2 (1/2/8 + 1/2/2), 1/3 (2/3 + 2/3/2 + 2/3/3) */
#define EXPECTED_STEM sqrt(0.15625)
#define EXPECTED_WIDE sqrt(11.0 / 27)

static void known_scatter(void **state) {
    (void)state;
    program_result r = program_run("stat-distance --ranks shared.h5 --phase 1:4");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 2); /* rows has no batch statistics, replicas no rows */
    const double apart = 0.5 / sqrt(2), deviating = sqrt(2) / sqrt(13);
    check_text(&r, 0, "site", "stem");
    check_text(&r, 0, "norm", "bn");
    check_cell(&r, 0, "shares", 2);
    check_cell(&r, 0, "steps", 4);
    check_cell(&r, 0, "nonfinite", 0);
    check_cell(&r, 0, "rows", 5);
    check_cell(&r, 0, "spread_mean", apart / 2); /* 0, 0, apart, apart */
    check_cell(&r, 0, "spread_mean_q25", 0);
    check_cell(&r, 0, "spread_mean_q75", apart);
    check_cell(&r, 0, "spread_std", deviating / 2);
    check_cell(&r, 0, "spread_std_q25", 0);
    check_cell(&r, 0, "spread_std_q75", deviating);
    check_cell(&r, 0, "expected_mean", EXPECTED_STEM);
    check_cell(&r, 0, "ratio", apart / 2 / EXPECTED_STEM);
    check_text(&r, 1, "site", "wide");
    check_cell(&r, 1, "shares", 3);
    check_cell(&r, 1, "rows", 2);
    check_cell(&r, 1, "spread_mean", 2.5 * sqrt(6) / 3); /* |t| sqrt((9 + 0 + 9) / 3) / 3 */
    check_cell(&r, 1, "spread_std", sqrt(2) / 3);
    check_cell(&r, 1, "expected_mean", EXPECTED_WIDE);
    check_cell(&r, 1, "ratio", 2.5 * sqrt(6) / 3 / EXPECTED_WIDE);
    program_free(&r);
}

static void steps_and_medians(void **state) {
    (void)state;
    program_result r = program_run("stat-distance --ranks --per-step shared.h5");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 3 * STEPS);
    check_cell(&r, 0, "spread_mean", 0.5 / sqrt(2));
    check_cell(&r, 0, "spread_std", 0);
    check_cell(&r, 1, "spread_mean", 0);
    check_cell(&r, 1, "spread_std", sqrt(2) / sqrt(13));
    check_cell(&r, 1, "step", 2);
    check_cell(&r, 1, "percent", 100.0 / 3);
    check_text(&r, 4, "spread_mean", "nan");
    check_text(&r, 4, "expected_mean", "nan");
    check_text(&r, 4, "rows", "nan");
    check_text(&r, 2 * STEPS, "site", "(median)");
    check_cell(&r, 2 * STEPS, "spread_mean", (0.5 / sqrt(2) + sqrt(6) / 3) / 2);
    check_cell(&r, 2 * STEPS, "expected_mean", (EXPECTED_STEM + EXPECTED_WIDE) / 2);
    check_cell(&r, 2 * STEPS + 4, "spread_mean", 5 * sqrt(6) / 3); /* the site that has it */
    program_free(&r);
    r = program_run("stat-distance --ranks --per-step shared.h5 --site last-bn --buckets 1");
    assert_int_equal(r.status, 0);
    assert_int_equal(table_rows(r.out), 3); /* one site: no median over sites */
    check_text(&r, 0, "site", "wide");
    check_cell(&r, 0, "spread_mean", sqrt(6) / 3);
    check_cell(&r, 1, "spread_mean", 3.5 * sqrt(6) / 3);
    check_cell(&r, 2, "spread_mean", 6 * sqrt(6) / 3);
    program_free(&r);
    r = program_run("stat-distance --ranks --per-step thin.h5 --site stem"); /* few vectors */
    assert_int_equal(table_rows(r.out), 1);
    check_cell(&r, 0, "step", STEPS);
    check_cell(&r, 0, "rows", 9);
    check_cell(&r, 0, "expected_mean", 0.375); /* 1/4 (1/16 + 1/2) */
    program_free(&r);
    /* The burn-in of running values stays, unless its number is given. */
    r = program_run("stat-distance --ranks shared.h5 small.h5 --site stem --burn-in 1");
    assert_int_equal(r.status, 0);
    check_cell(&r, 0, "steps", 5);
    check_cell(&r, 0, "nonfinite", 1);
    check_cell(&r, 0, "spread_mean", 0); /* 0, apart, 0, 0 */
    assert_non_null(strstr(r.out, "small.h5: skipped: no statistics of several shards"));
    program_free(&r);
}

static void refuses(const char *command, int status, const char *first, const char *hint) {
    program_result r = program_run("%s", command);
    if (r.status != status || r.out[0] || !strstr(r.err, first) || !strstr(r.err, hint))
        fail_msg("%s: exit %d: %s%s", command, r.status, r.out, r.err);
    program_free(&r);
}

static void refusals(void **state) {
    (void)state;
    refuses("stat-distance --ranks small.h5", 1, "small.h5 has statistics of one shard alone",
            "--record-shards");
    refuses("stat-distance --ranks shared.h5 --site rows", 1, "several shards at 'rows'",
            "--observe batch");
    refuses("stat-distance --ranks shared.h5 --site 'stem@*'", 1, "several shards at 'stem@*'", "");
    refuses("stat-distance --ranks uneven.h5", 1, "site stem@1 has 1 features, not 2 as stem", "");
    refuses("stat-distance --ranks shared.h5 --stat mu", 2, "--ranks has no other", "");
    refuses("stat-distance --ranks shared.h5 --form relative", 2, "--ranks has no other", "");
    refuses("stat-distance --ranks shared.h5 --from vectors", 2, "--ranks has no other", "");
    refuses("stat-distance --ranks shared.h5 --intervals", 2, "not with --ranks", "");
    refuses("stat-tid --ranks shared.h5", 2, "--ranks", "");
}

/* -- replicas elsewhere ---------------------------------------------------------------------- */

static void no_sites_of_the_model(void **state) {
    (void)state;
    program_result r = program_run("stat-distance shared.h5 --stat mu --burn-in 0");
    assert_int_equal(table_rows(r.out), 2);
    check_text(&r, 1, "site", "wide");
    program_free(&r);
    r = program_run("stat-distance shared.h5 --stat mu --burn-in 0 --site '*@2,stem'");
    assert_int_equal(table_rows(r.out), 2);
    check_text(&r, 0, "site", "stem");
    check_text(&r, 1, "site", "wide@2");
    program_free(&r);
    r = program_run("stat-tid shared.h5 --stat mean --burn-in 0 --site last");
    check_text(&r, 0, "site", "wide");
    program_free(&r);
    r = program_run("stat-gap shared.h5");
    check_cell(&r, 0, "sites", 3);
    check_cell(&r, 0, "batch_sites", 2);
    check_text(&r, 0, "tid_site", "wide");
    program_free(&r);
    r = program_run("stat-table shared.h5");
    check_text(&r, 0, "tid_site", "wide");
    program_free(&r);
    refuses("stat-distance shared.h5 --site nowhere", 1, "its sites are stem, wide, rows\n", "");
    refuses("stat-scalar shared.h5 --stat g_psi2 --burn-in 0", 1,
            "it has norm bn at 2 sites, ln at 1 site (stem, wide, rows)", "");
}

static void told_and_diagnosed(void **state) {
    (void)state;
    program_result r = program_run("statrec info shared.h5");
    assert_non_null(strstr(r.out, "3 sites, and 4 of other shards (NAME@1 ...)\n"));
    assert_non_null(strstr(r.out, " wide "));
    assert_null(strstr(r.out, "wide@"));
    program_free(&r);
    r = program_run("statrec info small.h5");
    assert_non_null(strstr(r.out, "sites         3\n"));
    program_free(&r);
    /* TID is largest at wide@2; its first NaN comes a step before the NaN of wide. */
    r = program_run("statrec diagnose long.h5 diverged.h5");
    assert_non_null(strstr(r.out, "3, 2 with statistics over the batch, 0 where"));
    assert_non_null(strstr(r.out, "of 2 sites"));
    assert_non_null(strstr(r.out, "not finite is at wide, step 61"));
    if (strchr(r.out, '@')) fail_msg("%s", r.out);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_scatter),      cmocka_unit_test(steps_and_medians),
        cmocka_unit_test(refusals),           cmocka_unit_test(no_sites_of_the_model),
        cmocka_unit_test(told_and_diagnosed),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
