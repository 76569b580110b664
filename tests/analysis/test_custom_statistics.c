/* Custom scalars in the tables and in statrec info, check, recover and export. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/npz/npz.h"
#include "statrec/runfile.h"
#include "testing/check.h"
#include "testing/declared_run.h"
#include "testing/programs.h"

static int write_runs(void **state) {
    (void)state;
    write_declared_run(
        &(declared_run){.path = "a.h5", .unit = "mm", .scale = 1, .seed = 1, .width = 2});
    write_declared_run(
        &(declared_run){.path = "b.h5", .unit = "mm", .scale = 2, .seed = 2, .width = 2});
    write_declared_run(
        &(declared_run){.path = "m.h5", .unit = "m", .scale = 0.001, .seed = 3, .width = 2});
    write_declared_run(&(declared_run){.path = "none.h5", .seed = 4, .width = 2});
    return 0;
}

static void check_says(const char *text, const char *what) {
    if (!strstr(text, what)) fail_msg("no '%s' in:\n%s", what, text);
}

static void check_silent(const char *text, const char *what) {
    if (strstr(text, what)) fail_msg("'%s' in:\n%s", what, text);
}

static program_result run_well(const char *command) {
    program_result r = program_run("%s", command);
    if (r.status != 0) fail_msg("%s: exit %d: %s", command, r.status, r.err);
    return r;
}

static void check_refused(const char *command, int status, const char *first, const char *then) {
    program_result r = program_run("%s", command);
    if (r.status != status) fail_msg("%s: exit %d: %s", command, r.status, r.err);
    assert_string_equal(r.out, "");
    check_says(r.err, first);
    check_says(r.err, then);
    program_free(&r);
}

/* -- per site -------------------------------------------------------------------------------- */

static void test_summary(void **state) {
    (void)state;
    program_result r = run_well("stat-scalar a.h5 --stat g_clip,net-cosine,rows");
    check_says(r.out, "# statistic: g_clip: what was cut off (mm)\n");
    check_says(r.out, "# statistic: net-cosine: of two gradients (1)\n");
    check_says(r.out, "no net-cosine at 1 of 2 sites (stem, norm mine)");
    assert_int_equal(table_rows(r.out), 5);
    check_text(&r, 0, "statistic", "g_clip"), check_text(&r, 2, "statistic", "g_clip");
    check_cell(&r, 0, "median", 20.5), check_cell(&r, 2, "max", 80);
    check_text(&r, 3, "statistic", "net-cosine"), check_cell(&r, 3, "mean", 0);
    program_free(&r);
}

static void test_steps(void **state) {
    (void)state;
    program_result r = run_well("stat-scalar a.h5 --stat net-cosine,g_clip --per-step --site top");
    check_says(r.out, "# column g_clip: what was cut off (mm)\n");
    assert_int_equal(table_rows(r.out), DECLARED_STEPS);
    check_cell(&r, 6, "g_clip", 14), check_cell(&r, 6, "net-cosine", 1);
    check_cell(&r, 7, "net-cosine", -1);
    program_free(&r);
}

static void test_outliers(void **state) {
    (void)state;
    program_result r = run_well("stat-outlier a.h5 --stat g_clip");
    check_says(r.out, "# statistic: g_clip: what was cut off (mm)\n");
    check_cell(&r, 0, "median", 20.5);
    program_free(&r);
}

static void test_refusals(void **state) {
    (void)state;
    check_refused("stat-scalar none.h5 a.h5 --stat g_clop", 2, "unknown statistic 'g_clop'",
                  "did you mean 'g_clip'? --help lists all 61; declared by these runs: g_clip, "
                  "net-cosine\n");
    check_refused("stat-scalar none.h5 --stat g_clip", 2, "unknown statistic 'g_clip'",
                  "--help lists all 61\n");
    check_refused("stat-compare a.h5 b.h5 --stat clip_share", 2,
                  "'clip_share' is a number per step, not per site", "stat-curve prints it");
    check_refused("stat-distance a.h5 --stat g_clip", 2, "unknown statistic 'g_clip'; known: mu",
                  "");
    check_refused("stat-curve a.h5 --stat g_clip", 2, "'g_clip' is a number per site, not per step",
                  "stat-scalar prints it");
    check_refused("stat-curve a.h5 --stat clip_shar", 2,
                  "no column 'clip_shar' of steps; there are step, update, tokens, epoch, loss, "
                  "lr, grad_norm, seconds, clip_share",
                  "did you mean 'clip_share'?");
    check_refused("stat-curve a.h5 --stat loss,,lr", 2, "an empty name in 'loss,,lr'", "");
    check_refused("stat-curve a.h5 --evals --stat loss", 2, "does not go with --evals", "");
}

/* -- two runs -------------------------------------------------------------------------------- */

static void test_one_declares(void **state) {
    (void)state;
    program_result r = run_well("stat-scalar none.h5 a.h5 --stat g_clip");
    check_says(r.out, "# note: none.h5: no g_clip at 2 of 2 sites");
    assert_int_equal(table_rows(r.out), 2);
    check_text(&r, 0, "run", "a.h5");
    program_free(&r);
    check_refused("stat-compare a.h5 none.h5 --stat g_clip", 1,
                  "shares no statistic with the others", "units of g_clip differ");
}

static void test_units(void **state) {
    (void)state;
    program_result r = run_well("stat-scalar a.h5 b.h5 m.h5 --stat g_clip");
    check_says(r.out, "# warning: g_clip: its unit is 'mm' in a.h5 and 'm' in m.h5\n");
    assert_int_equal(table_rows(r.out), 6);
    program_free(&r);
    r = run_well("stat-scalar a.h5 b.h5 --stat g_clip");
    check_silent(r.out, "# warning");
    program_free(&r);
    r = run_well("stat-compare a.h5 b.h5 m.h5 --stat g_clip --groups none");
    check_says(r.out, "# note: m.h5: skipped: g_clip has another unit than in a.h5\n");
    check_says(r.out, "# statistic: g_clip: what was cut off (mm)\n");
    assert_int_equal(table_rows(r.out), 6); /* two sites, three quantities, b.h5 alone */
    check_text(&r, 0, "run", "b.h5"), check_cell(&r, 0, "ratio", 2);
    program_free(&r);
    check_refused("stat-compare a.h5 m.h5 --stat g_clip", 1, "shares no statistic with the others",
                  "units of g_clip differ");
}

/* The resamples of a scalar do not depend on the other requested ones. */
static void test_same_intervals(void **state) {
    (void)state;
    program_result one = run_well("stat-compare a.h5 b.h5 --stat g_clip --site stem");
    program_result two = run_well("stat-compare a.h5 b.h5 --stat rows,g_clip --site stem");
    char low[64];
    snprintf(low, sizeof low, "%s", table_cell(one.out, 0, "low"));
    assert_string_not_equal(low, "nan");
    check_text(&two, 3, "statistic", "g_clip");
    check_text(&two, 3, "low", low);
    program_free(&one), program_free(&two);
}

/* Nothing is assumed about their dependence on sizes, whatever prefix their names have. */
static void test_comparable(void **state) {
    (void)state;
    sr_instead other = SR_INIT(sr_instead, .reason = "");
    static const char *const nothing[] = {"g_clip", "dist_moved",  "row_entropy", "rel_x",
                                          "tid_x",  "g_clip_mean", "dx_norm_mine"};
    static const char *const something[] = {"g_mu",      "g_sigma2_rowmean_share", "dist_psi2",
                                            "tid_total", "dist_sigma_per_root",    "row_grad_var",
                                            "tid_var",   "direct_norm_bn",         "dx_norm"};
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++)
        if (sr_depends(nothing[i], &other)) fail_msg("%s depends on something", nothing[i]);
    for (size_t i = 0; i < sizeof something / sizeof something[0]; i++)
        if (!sr_depends(something[i], &other)) fail_msg("%s depends on nothing", something[i]);
    write_declared_run(
        &(declared_run){.path = "wide.h5", .unit = "mm", .scale = 1, .seed = 1, .width = 5});
    program_result r = run_well("stat-scalar a.h5 wide.h5 --stat g_clip");
    check_silent(r.out, "comparable");
    program_free(&r);
}

static void test_observed(void **state) {
    (void)state;
    write_declared_run(&(declared_run){
        .path = "seen.h5", .unit = "mm", .scale = 1, .seed = 1, .width = 2, .observed = 1});
    program_result r = run_well("stat-scalar seen.h5 --stat g_clip");
    check_silent(r.out, "the observer's");
    program_free(&r);
}

/* A form that statrec defines keeps its name; a warning reports the run's statistic of that
 * name. */
static void test_name_of_a_form(void **state) {
    (void)state;
    write_declared_run(&(declared_run){
        .path = "form.h5", .unit = "mm", .another = "tid_total", .scale = 1, .width = 2});
    program_result r = run_well("stat-scalar form.h5 --stat tid_total,g_clip");
    check_says(r.out, "# warning: form.h5 declares another tid_total; this one is "
                      "tid_mean + tid_var\n");
    assert_int_equal(table_rows(r.out), 2);
    program_free(&r);
}

/* -- per step -------------------------------------------------------------------------------- */

static void test_columns_of_steps(void **state) {
    (void)state;
    program_result r = run_well("stat-curve none.h5 a.h5");
    check_says(r.out, "# column clip_share: steps cut so far (percent)\n");
    check_says(r.out, "# note: none.h5 does not declare clip_share\n");
    assert_int_equal(table_rows(r.out), 2 * DECLARED_STEPS);
    check_text(&r, 3, "clip_share", "nan");
    check_cell(&r, DECLARED_STEPS + 3, "clip_share", 4);
    check_cell(&r, 3, "loss", 1);
    program_free(&r);
    r = run_well("stat-curve a.h5 --stat clip_share,lr --buckets 2");
    assert_null(table_cell(r.out, 0, "loss"));
    check_cell(&r, 0, "clip_share", 1), check_cell(&r, 5, "clip_share", 40);
    program_free(&r);
    r = run_well("stat-curve a.h5 --stat loss,g_clip");
    check_says(r.out, "# column g_clip: a number per site\n");
    program_free(&r);
    r = run_well("stat-curve none.h5 --stat loss,clip_share");
    check_says(r.out, "# column clip_share: declared by no run\n");
    check_text(&r, 0, "clip_share", "nan");
    program_free(&r);
}

/* -- statrec --------------------------------------------------------------------------------- */

static void test_info(void **state) {
    (void)state;
    static const char lines[] = "declared by the program: scope, name, unit, definition\n"
                                "  per site  g_clip      mm       what was cut off\n"
                                "  per site  net-cosine  1        of two gradients\n"
                                "  per step  clip_share  percent  steps cut so far\n";
    program_result r = run_well("statrec info a.h5");
    check_says(r.out, lines);
    program_free(&r);
    r = run_well("statrec info a.h5 --format tsv");
    check_says(r.out, "# declared per site: g_clip (mm): what was cut off\n");
    check_says(r.out, "# declared per step: clip_share (percent): steps cut so far\n");
    program_free(&r);
    r = run_well("statrec info none.h5");
    check_silent(r.out, "declared");
    program_free(&r);
}

static void test_check_and_recover(void **state) {
    (void)state;
    program_result r = run_well("statrec check a.h5 && statrec recover a.h5 -o again.h5 --force && "
                                "statrec info again.h5 && stat-curve again.h5 --stat clip_share");
    check_says(r.out, "a.h5: complete");
    check_says(r.out, "  per site  net-cosine  1        of two gradients\n");
    check_says(r.out, "\t40\t40\t40\n");
    program_free(&r);
    r = run_well("stat-scalar again.h5 --stat g_clip");
    check_cell(&r, 1, "max", 80);
    program_free(&r);
}

static void check_array(npz_reader *z, const char *name, int rank, int at, double want) {
    sr_failure why = {0};
    npz_array a = {0};
    check_ok(npz_read(z, name, &a, &why), &why);
    assert_int_equal(a.rank, rank);
    assert_int_equal(a.dim[0], DECLARED_STEPS);
    const double got =
        a.type == NPZ_FLOAT32 ? (double)((float *)a.data)[at] : ((double *)a.data)[at];
    check_near_double(name, &got, &want, 1, 1e-6, 0);
    free(a.data);
}

static void test_export(void **state) {
    (void)state;
    sr_failure why = {0};
    program_result r = run_well("statrec export a.h5 -o a.npz --force");
    program_free(&r);
    npz_reader *z = npz_open(program_file("a.npz"), &why);
    if (!z) fail_msg("%s", why.text);
    check_array(z, "scalars/g_clip", 2, 2 * 9 + 1, 20);
    check_array(z, "scalars/net-cosine", 2, 2 * 9 + 1, -1);
    check_array(z, "steps/clip_share", 1, 9, 10);
    npz_close(z);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary),           cmocka_unit_test(test_steps),
        cmocka_unit_test(test_outliers),          cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_one_declares),      cmocka_unit_test(test_units),
        cmocka_unit_test(test_same_intervals),    cmocka_unit_test(test_comparable),
        cmocka_unit_test(test_observed),          cmocka_unit_test(test_name_of_a_form),
        cmocka_unit_test(test_columns_of_steps),  cmocka_unit_test(test_info),
        cmocka_unit_test(test_check_and_recover), cmocka_unit_test(test_export)};
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
