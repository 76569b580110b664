/* test_tables_runs.c -- stat-table --layout on runs: settings that only some runs have, and the
 * discrepancy of the final pass. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "statrec/runfile.h"
#include "testing/check.h"
#include "testing/programs.h"

/* A translation run of one step and one evaluation, one site in its encoder. */
typedef struct toy {
    const char *path, *norm, *settings;
    double bleu, final_mean, final_var; /* NaN: no final pass */
    uint64_t seed;
} toy;

static void write_toy(const toy *t) {
    char config[512];
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    snprintf(config, sizeof config,
             "norm = %s\ndecoder-norm = ln\nplacement = pre\ndata-dir = /data/two\n%s", t->norm,
             t->settings);
    o.seed = t->seed;
    o.model = "toy", o.data = "parallel", o.task = "pairs";
    o.program = "statrec train";
    o.config = t->settings[0] == '-' ? "" : config;
    o.force = true, o.final = isfinite(t->final_mean);
    sr_recorder *r = sr_create(program_file(t->path), &o, &why);
    if (!r) fail_msg("%s", why.text);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "encoder.0.norm2",
                              .norm = t->norm,
                              .kind = "encoder",
                              .family = SR_FAMILY_SIGMA,
                              .width = 2,
                              .depth = 1,
                              .eps = 1e-5,
                              .alpha = 0.9});
    run_add_metrics(r);
    sr_begin_step(r, 1);
    sr_put_rows(r, 0, 4);
    sr_put_scalar(r, 0, SR_SCALAR_tid_mean, 0.5);
    sr_put_scalar(r, 0, SR_SCALAR_tid_var, 0.75);
    sr_end_step(r, &(sr_step){.size = sizeof(sr_step), 1, 10, 1, 1, 0.1, 1});
    run_put_eval(r, 1, 1, "valid_loss bleu", 2.0, t->bleu);
    if (o.final) sr_put_final(r, 3, (const double *const[]){&t->final_mean, &t->final_var});
    check_ok(sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, &why),
             &why);
}

static int write_runs(void **state) {
    (void)state;
    static const toy toys[] = {
        {"plain.h5", "bn", "lr = 0.1\n", 10, 0.25, 0.125, .seed = 0},
        {"plain2.h5", "bn", "lr = 0.1\n", 12, NAN, NAN, .seed = 0},
        {"drop.h5", "bn", "dropout = 0.5\nlr = 0.1\n", 20, NAN, NAN, .seed = 0},
        {"ln.h5", "ln", "lr = 0.1\n", 40, NAN, NAN, .seed = 0},
        {"ln-drop.h5", "ln", "lr = 0.1\ndropout = 0.5\n", 60, NAN, NAN, .seed = 0},
    };
    for (size_t i = 0; i < sizeof toys / sizeof toys[0]; i++) write_toy(&toys[i]);
    return 0;
}

/* Gaps of 3 and 5 are of the pairs: the runs alone deviate by 7. */
static void test_gap_of_seeds(void **state) {
    (void)state;
    static const toy toys[] = {
        {"bn-1.h5", "bn", "lr = 0.1\n", 10, NAN, NAN, .seed = 1},
        {"bn-2.h5", "bn", "lr = 0.1\n", 20, NAN, NAN, .seed = 2},
        {"ln-1.h5", "ln", "lr = 0.1\n", 13, NAN, NAN, .seed = 1},
        {"ln-2.h5", "ln", "lr = 0.1\n", 25, NAN, NAN, .seed = 2},
    };
    for (size_t i = 0; i < sizeof toys / sizeof toys[0]; i++) write_toy(&toys[i]);
    program_result r =
        program_run("stat-table bn-1.h5 bn-2.h5 ln-1.h5 ln-2.h5 --layout rbn-table1");
    const int row = 7;
    check_text(&r, row, "row", "Pre-BN: performance gap to Pre-LN");
    check_cell(&r, row, "two bleu ↑", -4);
    check_cell(&r, row, "two bleu sd", sqrt(2));
    program_free(&r);
    r = program_run("stat-table bn-1.h5 bn-2.h5 ln-1.h5 --layout rbn-table1"); /* 3, 7 */
    check_cell(&r, row, "two bleu ↑", 2);
    check_cell(&r, row, "two bleu sd", sqrt(50));
    program_free(&r);
}

#define NAME "two bleu"
#define BLEU NAME " ↑"

/* Runs without `dropout` are not replicates of one that has it. */
static void test_absent_setting(void **state) {
    (void)state;
    program_result r = program_run("stat-table plain.h5 plain2.h5 drop.h5 --layout pn-table1");
    assert_int_equal(r.status, 0);
    check_text(&r, 1, "row", "BN");
    check_text(&r, 1, "settings", "-");
    check_cell(&r, 1, BLEU, 11);
    check_cell(&r, 1, NAME " runs", 2);
    check_text(&r, 2, "row", "BN");
    check_text(&r, 2, "settings", "dropout=0.5");
    check_cell(&r, 2, BLEU, 20);
    program_free(&r);
}

/* References have the run's settings, even if one of the two lacks a setting. */
static void test_gap_of_absent_setting(void **state) {
    (void)state;
    program_result r = program_run("stat-table plain.h5 drop.h5 ln.h5 ln-drop.h5 --layout rbn-tid");
    assert_int_equal(r.status, 0);
    const int last = table_rows(r.out) - 1;
    check_text(&r, last, "settings", "dropout=0.5");
    check_cell(&r, last, BLEU, 20 - 60);
    check_cell(&r, last - 1, BLEU, 10 - 40);
    program_free(&r);
}

/* The discrepancy of the final pass, 25 and 12.5 percent, not the last step's 50 and 75. */
static void test_final_discrepancy(void **state) {
    (void)state;
    program_result r = program_run("stat-table plain.h5 --layout rbn-table1");
    assert_int_equal(r.status, 0);
    check_cell(&r, 8, BLEU, 25);
    check_cell(&r, 9, BLEU, 12.5);
    assert_non_null(strstr(r.out, ", from the final pass\n"));
    program_free(&r);
}

/* An observed ln site after a bn site; both have a discrepancy. */
static void write_observed(const char *path) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    sr_recorder *r = sr_create(program_file(path), &o, &why);
    if (!r) fail_msg("%s", why.text);
    run_add_bn(r, "early", 2, 1, 1e-5);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "late",
                              .norm = "ln",
                              .kind = "encoder",
                              .family = SR_FAMILY_ROW,
                              .width = 2,
                              .depth = 2,
                              .eps = 1e-5,
                              .alpha = 0.9});
    run_add_metrics(r);
    sr_begin_step(r, 1);
    for (int i = 0; i < 2; i++) {
        sr_put_scalar(r, i, SR_SCALAR_tid_mean, 0.1 * (i + 1));
        sr_put_scalar(r, i, SR_SCALAR_tid_var, 0.3 * (i + 1));
    }
    sr_end_step(r, &(sr_step){.size = sizeof(sr_step), 1, 10, 1, 1, 0.1, 1});
    run_put_eval(r, 1, 1, "valid_loss", 2.0);
    check_ok(sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, &why),
             &why);
}

/* stat-gap uses the last site with batch statistics, stat-table the last site. */
static void test_site_of_discrepancy(void **state) {
    (void)state;
    write_observed("observed.h5");
    program_result r = program_run("stat-gap observed.h5");
    assert_int_equal(r.status, 0);
    check_text(&r, 0, "tid_site", "early");
    check_text(&r, 0, "tid_from", "steps");
    check_cell(&r, 0, "tid_mean", 10);
    check_cell(&r, 0, "tid_var", 30);
    assert_non_null(strstr(r.out, "# steps: observed.h5: losses and discrepancies over the "));
    program_free(&r);
    r = program_run("stat-table observed.h5");
    check_text(&r, 0, "tid_site", "late");
    assert_non_null(strstr(r.out, "# steps: observed.h5: losses and discrepancies over the "));
    check_cell(&r, 0, "tid_var", 60);
    program_free(&r);
}

/* A pre-norm encoder of bn with its final norm, and an observed decoder of ln. Discrepancies: 0.1,
 * 0.2, 0.3, 0.4; of the final pass a tenth of that. */
static void write_stack(const char *path) {
    static const char *const name[] = {"encoder.0.norm1", "encoder.0.norm2", "encoder.final",
                                       "decoder.0.self"};
    const double final[] = {0.01, 0.02, 0.03, 0.04};
    sr_options o = run_options();
    o.final = true;
    sr_recorder *r = run_create(program_file(path), o);
    for (int i = 0; i < 4; i++)
        sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = name[i],
                                  .norm = i < 3 ? "bn" : "ln",
                                  .kind = "encoder",
                                  .family = i < 3 ? SR_FAMILY_SIGMA : SR_FAMILY_ROW,
                                  .width = 2,
                                  .depth = i,
                                  .eps = 1e-5,
                                  .alpha = 0.9});
    run_add_metrics(r);
    sr_begin_step(r, 1);
    for (int i = 0; i < 4; i++) {
        sr_put_rows(r, i, 4);
        sr_put_scalar(r, i, SR_SCALAR_tid_mean, 0.1 * (i + 1));
        sr_put_scalar(r, i, SR_SCALAR_tid_var, 0.1 * (i + 1));
    }
    run_end_step(r, 1);
    run_put_eval(r, 1, 1, "valid_loss", 2.0);
    sr_put_final(r, 3, (const double *const[]){final, final});
    run_finish(r);
}

/* The last BN layer of the RBN paper is inside of an encoder layer; `last` and `first` stay. */
static void test_last_bn(void **state) {
    (void)state;
    static const char *const choice[] = {"first", "last-bn", "last"}, *const site[] = {
                                                                          "encoder.0.norm1",
                                                                          "encoder.0.norm2",
                                                                          "decoder.0.self"};
    write_stack("stack.h5");
    for (int i = 0; i < 3; i++)
        for (int final = 0; final < 2; final++) {
            program_result r = program_run("stat-tid stack.h5 --site %s %s", choice[i],
                                           final ? "--final" : "--stat mean --per-step");
            assert_int_equal(r.status, 0);
            assert_int_equal(table_rows(r.out), 1);
            check_text(&r, 0, "site", site[i]);
            program_free(&r);
        }
    program_result r = program_run("stat-gap stack.h5");
    check_text(&r, 0, "tid_site", "encoder.0.norm2");
    check_cell(&r, 0, "tid_mean", 2);
    program_free(&r);
    r = program_run("stat-tid observed.h5 --site last-bn");
    check_text(&r, 0, "site", "early"); /* only an observed ln follows it */
    program_free(&r);
}

static void write_norms(const char *path, const char *const *norm, int sites) {
    static const char *const name[] = {"a", "b", "c"};
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    sr_recorder *r = sr_create(program_file(path), &o, &why);
    if (!r) fail_msg("%s", why.text);
    for (int i = 0; i < sites; i++)
        sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = name[i],
                                  .norm = norm[i],
                                  .kind = "conv",
                                  .family = SR_FAMILY_NONE,
                                  .width = 2,
                                  .depth = i,
                                  .eps = 1e-5,
                                  .alpha = NAN});
    run_add_metrics(r);
    sr_begin_step(r, 1);
    sr_end_step(r, &(sr_step){.size = sizeof(sr_step), 1, 10, 1, 1, 0.1, 1});
    run_put_eval(r, 1, 1, "valid_loss", 2.0);
    check_ok(sr_close(r, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, &why),
             &why);
}

/* A run is called by the first of its sites that has a normalization. */
static void test_main_norm(void **state) {
    (void)state;
    static const char *const norm[] = {"none", "ln", "bn"};
    for (int sites = 1; sites <= 3; sites += 2) {
        const char *want = sites == 1 ? "none" : "ln", *run = sites == 1 ? "one.h5" : "three.h5";
        sr_failure why = {0};
        write_norms(run, norm, sites);
        sr_runfile *f = sr_run_open(program_file(run), &why);
        assert_non_null(f);
        assert_string_equal(sr_run_main_norm(f), want);
        sr_run_close(f);
        program_result r = program_run("stat-gap %s", run);
        assert_int_equal(r.status, 0);
        check_text(&r, 0, "norm", want);
        assert_non_null(strstr(r.out, sites == 1 ? ", norm none," : ", norm ln,"));
        program_free(&r);
    }
    program_result r = program_run("stat-table three.h5 --published-table rbn-iwslt14-pre");
    check_cell(&r, 0, "published", 35.5);
    program_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gap_of_seeds),
                                       cmocka_unit_test(test_absent_setting),
                                       cmocka_unit_test(test_gap_of_absent_setting),
                                       cmocka_unit_test(test_final_discrepancy),
                                       cmocka_unit_test(test_site_of_discrepancy),
                                       cmocka_unit_test(test_last_bn),
                                       cmocka_unit_test(test_main_norm)};
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
