/* test_ranks_together.c -- several ranks: the result of each exchange and the error after one rank
 * fails. No rank waits for one that exited. */
#include <stdio.h>
#include <string.h>

#include "ranks/ranks.h"
#include "testing/check.h"
#include "testing/child_complaint.h"
#include "testing/failing_malloc.h"
#include "testing/piped_ranks.h"

enum { RANKS = 3, WIDTH = 2, LENGTH = 7, LAST = RANKS - 1, ALL_EXCHANGES = 9 };

/* Reports a fault of the running rank unless the condition is true. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) complain("rank", "line %d: not %s", __LINE__, #condition);               \
    } while (0)

static sr_failure why;

/* -- exchanges --------------------------------------------------------------------------------- */

static sr_status gather(ranks *k) {
    double all[RANKS * WIDTH] = {0};
    const int rank = ranks_rank(k);
    for (int i = 0; i < WIDTH; i++) all[rank * WIDTH + i] = 10 * rank + i;
    const sr_status status = ranks_allgather(k, all, WIDTH, &why);
    for (int i = 0; i < RANKS * WIDTH && status == SR_OK; i++)
        EXPECT(all[i] == 10 * (i / WIDTH) + i % WIDTH);
    return status;
}

static sr_status broadcast(ranks *k) {
    int number = 7 + ranks_rank(k);
    const sr_status status = ranks_broadcast(k, &number, sizeof number, &why);
    EXPECT(status != SR_OK || number == 7);
    return status;
}

static sr_status agree(ranks *k) {
    return ranks_agree(k, SR_OK, &why);
}

static sr_status compare(ranks *k) {
    return ranks_compare(k, "equal", "options", &why);
}

/* Each rank sends its number of rows; the sum of all comes back. */
static sr_status transfer(ranks *k) {
    static const int parts[RANKS] = {2, 1, 1};
    real row[2][LENGTH], *own[2] = {row[0], row[1]}, sum[LENGTH];
    int64_t width;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < LENGTH; j++) row[i][j] = (real)(100 * (ranks_rank(k) + 1) + 10 * i + j);
    ranks_transfer *t = ranks_send_pieces(k, parts, own, LENGTH, &why);
    if (!t) return why.status;
    while (!ranks_pieces_here(t) && why.status == SR_OK) ranks_finish(t, &why);
    real *piece = ranks_pieces(t, &width);
    for (int i = 1; i < 4; i++)
        for (int64_t j = 0; j < width; j++) piece[j] += piece[i * width + j];
    if (why.status == SR_OK) ranks_return_pieces(t, sum, &why);
    if (why.status == SR_OK) ranks_finish(t, &why);
    for (int j = 0; j < LENGTH && why.status == SR_OK; j++) EXPECT(sum[j] == (real)(710 + 4 * j));
    ranks_transfer_free(t);
    return why.status;
}

static sr_status (*const exchanges[])(ranks *k) = {gather, broadcast, agree, compare, transfer};
enum { EXCHANGES = sizeof exchanges / sizeof *exchanges };

static int exchange_well(ranks *k) {
    for (int i = 0; i < EXCHANGES; i++)
        if (exchanges[i](k) != SR_OK) complain("rank", "exchange %d: %s", i, why.text);
    EXPECT(!strcmp(ranks_describe(k), "3 ranks, by pipes") && ranks_count(k) == RANKS);
    EXPECT(piped_exchanges(k) == ALL_EXCHANGES);
    return 0;
}

static void each_rank_gets_its_part(void **state) {
    (void)state;
    assert_int_equal(piped_run(RANKS, NULL, exchange_well), 0);
}

/* -- a failing rank ---------------------------------------------------------------------------- */

static const piped_fault *fault;

/* Every exchange after a failure fails at once. */
static void expect_over(ranks *k, sr_status (*exchange)(ranks *k)) {
    why = (sr_failure){0};
    EXPECT(exchange(k) == SR_STATE && strstr(why.text, "the ranks have lost each other"));
}

static int meet_fault(ranks *k) {
    char text[64];
    sr_status status = SR_OK;
    for (int i = 0; i < EXCHANGES && status == SR_OK; i++) status = exchanges[i](k);
    EXPECT(status != SR_OK && status == why.status);
    snprintf(text, sizeof text, "exchange %ld was made to fail", fault->at);
    if (ranks_rank(k) == fault->rank) {
        EXPECT(!strcmp(why.text, text));
        expect_over(k, gather);
        expect_over(k, broadcast);
        expect_over(k, compare);
        expect_over(k, transfer);
        EXPECT(ranks_agree(k, SR_IO, &why) == SR_IO); /* asks no rank */
    } else {
        EXPECT(strstr(why.text, "is gone"));
    }
    return 0;
}

/* After the last exchange the other ranks have all their data. */
static void no_rank_waits_for_ever(void **state) {
    (void)state;
    for (int rank = 0; rank < RANKS; rank++)
        for (long at = 1; at < ALL_EXCHANGES; at++) {
            const piped_fault one = {rank, at};
            fault = &one;
            if (piped_run(RANKS, &one, meet_fault) != 0)
                fail_msg("exchange %ld of rank %d fails", at, rank);
        }
}

/* All ranks get the failure of the first rank that fails. */
static int tell_failure(ranks *k) {
    const bool fails = ranks_rank(k) == fault->rank || ranks_rank(k) == LAST;
    char text[64], wanted[80];
    snprintf(text, sizeof text, "disk %d is full", ranks_rank(k));
    if (fails) sr_fail(&why, SR_IO, "%s", text), sr_hint(&why, "empty it");
    const sr_status status = ranks_agree(k, fails ? SR_IO : SR_OK, &why);
    snprintf(wanted, sizeof wanted, "rank %d: disk %d is full", fault->rank, fault->rank);
    EXPECT(status == SR_IO && why.status == SR_IO && !strcmp(why.hint, "empty it"));
    EXPECT(!strcmp(why.text, fault->rank && !(ranks_rank(k) == fault->rank) ? wanted : wanted + 8));
    return 0;
}

static void all_have_the_first_failure(void **state) {
    (void)state;
    for (int rank = 0; rank < RANKS; rank++) {
        const piped_fault one = {rank, 0};
        fault = &one;
        assert_int_equal(piped_run(RANKS, NULL, tell_failure), 0);
    }
}

static int differ(ranks *k) {
    const char *text = ranks_rank(k) == 1 ? "--lr 1" : "--lr 2";
    EXPECT(ranks_compare(k, text, "options", &why) == SR_USAGE);
    EXPECT(!strcmp(why.text, "rank 1 has other options than rank 0"));
    return 0;
}

static void differences_are_named(void **state) {
    (void)state;
    assert_int_equal(piped_run(RANKS, NULL, differ), 0);
}

/* -- memory ------------------------------------------------------------------------------------ */

static long without; /* this allocation of rank 1 fails, from 0 */

static int run_out(ranks *k) {
    char text[RANKS_TEXT];
    const bool poor = ranks_rank(k) == 1;
    sr_status status = SR_OK;
    k->launcher = "mpirun";
    if (poor) failing_malloc_begin(without);
    for (int i = 0; i < EXCHANGES && status == SR_OK; i++) status = exchanges[i](k);
    if (status == SR_OK) status = ranks_look_at_cores(k, 1, text, &why);
    const long left = poor ? failing_malloc_end() : 0;
    if (!poor) return status == SR_OK || !strstr(why.text, "is gone");
    if (status == SR_OK) return left != 0 || failing_malloc_reached();
    return left != 0 || status != SR_MEMORY || !strstr(why.text, "out of memory");
}

static void memory_runs_out(void **state) {
    (void)state;
    enum { ALLOCATIONS = 6 }; /* agree, compare, three of a transfer, cores */
    if (!failing_malloc_there()) skip();
    for (without = 0; without < ALLOCATIONS; without++)
        if (piped_run(RANKS, NULL, run_out) != 0) fail_msg("allocation %ld", without);
}

static void one_rank_without_memory(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    for (int way = 0; way < 2; way++) {
        why = (sr_failure){0};
        failing_malloc_begin(0);
        ranks *k = way ? ranks_open(1, &why) : ranks_open_one(&why);
        failing_malloc_end();
        assert_null(k);
        check_failure(&why, SR_MEMORY, "out of memory for the ranks");
    }
    ranks_close(NULL, NULL);
    ranks_transfer_free(NULL);
}

/* -- cores ------------------------------------------------------------------------------------- */

static int look_at_cores(ranks *k) {
    char text[RANKS_TEXT];
    k->launcher = "mpirun";
    k->neighbours = 4000 + ranks_rank(k);
    EXPECT(ranks_threads(k, 0) >= 1);
    EXPECT(ranks_look_at_cores(k, 1, text, &why) == SR_OK);
    EXPECT(strstr(text, "rank 0: 4000 ranks of 1 thread on the ")); /* on every rank */
    k->neighbours = ranks_rank(k) == LAST ? 4000 : 1;
    EXPECT(ranks_look_at_cores(k, 1, text, &why) == SR_OK);
    EXPECT(strstr(text, "rank 2: 4000 ranks of 1 thread on the "));
    k->neighbours = 1;
    EXPECT(ranks_look_at_cores(k, 5000, text, &why) == SR_OK);
    EXPECT(strstr(text, "rank 0: 1 rank of 5000 threads on the ") || strstr(text, "5000 threads"));
    return 0;
}

static void the_first_warning_is_that_of_all(void **state) {
    (void)state;
    assert_int_equal(piped_run(RANKS, NULL, look_at_cores), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_gets_its_part),
        cmocka_unit_test(no_rank_waits_for_ever),
        cmocka_unit_test(all_have_the_first_failure),
        cmocka_unit_test(differences_are_named),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(one_rank_without_memory),
        cmocka_unit_test(the_first_warning_is_that_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
