/* test_failing_analyses.c -- every analysis over a small run while one allocation or one HDF5 call
 * fails. It ends with a reason, or prints its usual output. */
#define _GNU_SOURCE 1 /* RTLD_NEXT, realpath */
#include <stdlib.h>

#include "testing/failing_programs.h"
#include "testing/full_run.h"

/* clang-format off */
#define PROGRAMS(X) \
    X(alpha) X(amgm) X(batch) X(batchmix) X(compare) X(condition) X(curve) \
    X(depth) X(distance) X(features) X(gamma) X(gap) X(gradnorm) X(lngrad) \
    X(outlier) X(pairs) X(scalar) X(svd) X(table) X(tid)
/* clang-format on */
#define DECLARE(name) int stat_##name##_main(int argc, char **argv);
PROGRAMS(DECLARE)

#define ROW(name, words)                                                                           \
    { stat_##name##_main, "stat-" #name " " words }
static const struct {
    program_main *program;
    const char *line;
} commands[] = {
    ROW(alpha, "--alpha 0.5,0.9 --running-dtype bf16,double run.h5"),
    ROW(amgm, "--per-step run.h5"),
    ROW(amgm, "run.h5"),
    ROW(batch, "--metric valid_loss run.h5 again.h5"),
    ROW(batchmix, "--resamples 100 --shifts 3 --site stem run.h5"),
    ROW(compare, "--resamples 100 run.h5 again.h5 other.h5"),
    ROW(condition, "run.h5"),
    ROW(curve, "run.h5"),
    ROW(curve, "--evals --gap run.h5"),
    ROW(curve, "--stat loss --buckets 1 run.h5"),
    ROW(depth, "run.h5"),
    ROW(distance, "--format json run.h5"),
    ROW(distance, "--per-step --buckets 4 run.h5"),
    ROW(distance, "--intervals --parts 2 run.h5"),
    ROW(distance, "--ranks run.h5"),
    ROW(features, "run.h5"),
    ROW(features, "--quantiles run.h5"),
    ROW(features, "--histogram 5 run.h5"),
    ROW(features, "--per-feature --order outlier --step last run.h5"),
    ROW(gamma, "run.h5"),
    ROW(gamma, "--bounds run.h5"),
    ROW(gap, "run.h5 again.h5"),
    ROW(gap, "--split evaluations run.h5 other.h5"),
    ROW(gap, "--split last-third --same-settings run.h5 again.h5 other.h5"),
    ROW(gradnorm, "--loss share run.h5"),
    ROW(lngrad, "run.h5"),
    ROW(outlier, "--list --parts 2 run.h5"),
    ROW(pairs, "run.h5"),
    ROW(scalar, "--stat y_outside,g_mu_share run.h5"),
    ROW(svd, "--all run.h5"),
    ROW(svd, "--summary run.h5"),
    ROW(table, "run.h5 again.h5 other.h5"),
    ROW(table, "--layout rbn-table1 run.h5 again.h5 other.h5"),
    ROW(table, "--layout pn-table1 --pick last run.h5 again.h5"),
    ROW(tid, "run.h5"),
    ROW(tid, "--final run.h5"),
};

static int write_runs(void **state) {
    (void)state;
    write_full_run(&(full_run){.path = program_file("run.h5"), .seed = 1});
    write_full_run(&(full_run){.path = program_file("again.h5"), .seed = 2});
    write_full_run(&(full_run){.path = program_file("other.h5"), .seed = 1, .norm = "rbn"});
    char plots[4096]; /* the table layouts */
    assert_non_null(realpath("plots", plots));
    assert_int_equal(setenv("STATREC_PLOTS", plots, 1), 0);
    return 0;
}

/* Fails each call site once, so that code shared by the programs is not tried again. depth: see
 * failing_calls.h; `only` as failing_only. */
static void fail_each(failing_kind kind, int depth, const char *only) {
    failing_once = true, failing_depth = depth, failing_only = only;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fail_program(commands[i].program, commands[i].line, kind);
}

static void test_allocations(void **state) {
    (void)state;
    fail_each(FAILING_ALLOCATIONS, 4, NULL);
}

static void test_hdf5(void **state) {
    (void)state;
    fail_each(FAILING_HDF5, 2, NULL);
}

/* The functions that read columns are several calls below a program's main(). */
static void test_reads(void **state) {
    (void)state;
    fail_each(FAILING_HDF5, 9, "H5Dread");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_hdf5),
        cmocka_unit_test(test_reads),
    };
    return cmocka_run_group_tests(tests, write_runs, NULL);
}
