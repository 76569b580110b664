/* test_ranks.c -- one process: every exchange returns its input; the launcher's variables are
 * read. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks/ranks.h"
#include "ranks/ranks_private.h"
#include "testing/check.h"

static const char *const launchers[] = {
    "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE",          "PMI_RANK", "PMIX_RANK",
    "SLURM_STEP_NUM_TASKS", "SLURM_PROCID",         "SLURM_CPUS_ON_NODE"};

static int without_launcher(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) unsetenv(launchers[i]);
    return 0;
}

static void one_rank(void **state) {
    (void)state;
    sr_failure why = {0};
    ranks *k = ranks_open(5, &why);
    assert_non_null(k);
    assert_true(ranks_count(k) == 1 && ranks_rank(k) == 0);
    assert_string_equal(ranks_describe(k), "1 rank");
    double row[3] = {1, 2, 3};
    int number = 7;
    assert_int_equal(ranks_allgather(k, row, 3, &why), SR_OK);
    check_equals(row[0], 1);
    check_equals(row[2], 3);
    assert_int_equal(ranks_broadcast(k, &number, sizeof number, &why), SR_OK);
    assert_int_equal(number, 7);
    assert_int_equal(ranks_compare(k, "text", "options", &why), SR_OK);
    assert_int_equal(ranks_agree(k, SR_OK, &why), SR_OK);
    sr_fail(&why, SR_IO, "own");
    assert_int_equal(ranks_agree(k, SR_IO, &why), SR_IO);
    assert_string_equal(why.text, "own");
    assert_true(ranks_threads(k, 3) == 3 && ranks_threads(k, 0) >= 1);
    ranks_close(k, NULL);
}

static void pieces_come_back(void **state) {
    (void)state;
    enum { LENGTH = 5 };
    real a[LENGTH] = {1, 2, 3, 4, 5}, b[LENGTH] = {10, 20, 30, 40, 50}, *own[] = {a, b};
    const int parts[] = {2};
    int64_t width;
    ranks *k = ranks_open_one(NULL);
    ranks_transfer *t = ranks_send_pieces(k, parts, own, LENGTH, NULL);
    assert_non_null(t);
    assert_true(ranks_pieces_here(t));
    real *piece = ranks_pieces(t, &width);
    assert_int_equal(width, LENGTH);
    for (int i = 0; i < LENGTH; i++) {
        check_equals(piece[i], a[i]);
        check_equals(piece[LENGTH + i], b[i]);
        piece[i] += piece[LENGTH + i];
    }
    assert_int_equal(ranks_return_pieces(t, a, NULL), SR_OK);
    assert_int_equal(ranks_finish(t, NULL), SR_OK);
    for (int i = 0; i < LENGTH; i++) check_equals(a[i], (real)(11 * (i + 1)));
    ranks_transfer_free(t);
    ranks_close(k, NULL);
}

/* Rejected: processes unaware of each other would write one file. */
static void launched_without_knowing(void **state) {
    (void)state;
    sr_failure why = {0};
    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    setenv("SLURM_PROCID", "2", 1);
    assert_int_equal(ranks_launched_rank(), 2);
    assert_null(ranks_open(5, &why));
    assert_int_equal(why.status, SR_USAGE);
    assert_true(strstr(why.text, "srun started 4 processes") != NULL);
    assert_true(why.hint[0] != 0);
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    assert_int_equal(ranks_launched_rank(), 0);
    without_launcher(state);
}

static void check_launcher(const char *variables[3], int count, const char *name) {
    static const char *const known[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    const char *heard;
    for (int i = 0; i < 3; i++)
        if (variables[i]) setenv(known[i], variables[i], 1);
    assert_int_equal(ranks_launched(&heard), count);
    assert_string_equal(heard, name);
    without_launcher(NULL);
}

static void launchers_have_names(void **state) {
    (void)state;
    check_launcher((const char *[]){NULL, NULL, NULL}, 1, "");
    check_launcher((const char *[]){"2", NULL, NULL}, 2, "mpirun");
    check_launcher((const char *[]){"1", NULL, NULL}, 1, "mpirun");
    check_launcher((const char *[]){NULL, "2", NULL}, 2, "mpirun");
    check_launcher((const char *[]){NULL, "4", "4"}, 4, "srun");   /* --mpi=pmi2 */
    check_launcher((const char *[]){NULL, "4", "2"}, 4, "mpirun"); /* its helpers, by srun */
    check_launcher((const char *[]){"3", NULL, "2"}, 3, "mpirun");
    check_launcher((const char *[]){NULL, NULL, "1"}, 1, "srun");
    check_launcher((const char *[]){"1", NULL, "4"}, 4, "srun"); /* four mpiruns of one each */
    setenv("SLURM_NTASKS", "2",
           1); /* a batch script is one process, however many tasks it starts */
    setenv("SLURM_PROCID", "0", 1);
    check_launcher((const char *[]){NULL, NULL, NULL}, 1, "");
    unsetenv("SLURM_NTASKS");
}

/* Ranks on a host share the cores that Slurm allocated; the hint is the launcher's own. */
static void cores_that_slurm_gave(void **state) {
    (void)state;
    char text[RANKS_TEXT], wanted[RANKS_TEXT];
    sr_failure why = {0};
    const int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    ranks *k = ranks_open(5, &why);
    assert_int_equal(ranks_look_at_cores(k, cores + 1, text, &why), SR_OK);
    assert_string_equal(text, ""); /* the user's choice */
    ranks_close(k, NULL);
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    setenv("SLURM_CPUS_ON_NODE", "1", 1);
    k = ranks_open(5, &why);
    assert_non_null(k);
    assert_int_equal(ranks_threads(k, 0), 1);
    assert_int_equal(ranks_look_at_cores(k, 1, text, &why), SR_OK);
    assert_string_equal(text, "");
    k->neighbours = 3;
    assert_int_equal(ranks_look_at_cores(k, 1, text, &why), SR_OK);
    snprintf(wanted, sizeof wanted,
             "rank 0: 3 ranks of 1 thread on the 1 core %s: steps will be slow",
             cores > 1 ? "that Slurm gave on its host" : "of its host");
    assert_string_equal(text, wanted);
    setenv("SLURM_CPUS_ON_NODE", "100000", 1); /* at most the host's cores */
    k->neighbours = 1;
    assert_true(ranks_threads(k, 0) <= cores);
    assert_int_equal(ranks_look_at_cores(k, 1, text, &why), SR_OK);
    assert_null(strstr(text, "100000"));
    ranks_close(k, NULL);
    without_launcher(state);
}

/* Bound to one core of several. */
static void bound_to_one(void **state) {
    char text[RANKS_TEXT];
    sr_failure why = {0};
    cpu_set_t before, one;
    CPU_ZERO(&one);
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || sched_getaffinity(0, sizeof before, &before) != 0)
        skip();
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) skip();
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    ranks *k = ranks_open(5, &why);
    assert_int_equal(ranks_threads(k, 0), 1);
    assert_int_equal(ranks_look_at_cores(k, 2, text, &why), SR_OK);
    assert_string_equal(text,
                        "rank 0: 2 threads on 1 core: it is bound to it; srun --cpus-per-task=2");
    assert_int_equal(ranks_look_at_cores(k, 1, text, &why), SR_OK);
    assert_non_null(strstr(text, "bound to 1 of"));
    setenv("SLURM_CPUS_ON_NODE", "1", 1); /* the other cores are not idle: other jobs use them */
    assert_int_equal(ranks_look_at_cores(k, 1, text, &why), SR_OK);
    assert_string_equal(text, "");
    k->launcher = "mpirun";
    assert_int_equal(ranks_look_at_cores(k, 2, text, &why), SR_OK);
    assert_non_null(strstr(text, "mpirun --bind-to none, or --map-by slot:pe=2"));
    ranks_close(k, NULL);
    sched_setaffinity(0, sizeof before, &before);
    without_launcher(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_rank),
                                       cmocka_unit_test(pieces_come_back),
                                       cmocka_unit_test(launched_without_knowing),
                                       cmocka_unit_test(launchers_have_names),
                                       cmocka_unit_test(cores_that_slurm_gave),
                                       cmocka_unit_test(bound_to_one)};
    return cmocka_run_group_tests(tests, without_launcher, NULL);
}
