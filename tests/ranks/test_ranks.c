/* test_ranks.c -- one process: every exchange returns what it was given; what a launcher says is heard. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "statnet/ranks.h"

static const char *const launchers[] = {
    "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PMI_RANK", "PMIX_RANK",
    "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"};

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
    assert_int_equal(ranks_gather(k, row, 3, &why), SR_OK);
    assert_true(row[0] == 1 && row[2] == 3);
    assert_int_equal(ranks_from_first(k, &number, sizeof number, &why), SR_OK);
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
        assert_true(piece[i] == a[i] && piece[LENGTH + i] == b[i]);
        piece[i] += piece[LENGTH + i];
    }
    assert_int_equal(ranks_return_pieces(t, a, NULL), SR_OK);
    assert_int_equal(ranks_finish(t, NULL), SR_OK);
    for (int i = 0; i < LENGTH; i++) assert_true(a[i] == (real)(11 * (i + 1)));
    ranks_transfer_free(t);
    ranks_close(k, NULL);
}

/* Several processes that do not know of each other would write one file. */
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_rank),
                                       cmocka_unit_test(pieces_come_back),
                                       cmocka_unit_test(launched_without_knowing)};
    return cmocka_run_group_tests(tests, without_launcher, NULL);
}
