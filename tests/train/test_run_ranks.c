/* test_run_ranks.c -- a training in several processes. It is bit-identical to one process with as
 * many shards; synchronized statistics are close to whole-batch statistics. A failure is the same
 * on each rank and in the file. */
#define _GNU_SOURCE 1 /* MAP_ANONYMOUS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "small_run.h"
#include "testing/check.h"
#include "testing/child_complaint.h"
#include "testing/piped_ranks.h"

enum { WORDS = 60, STEPS = 4, TEXT = 4096 };

#define EVERYTHING                                                                                 \
    "--observe batch --attention-stats --activations-every 1 --final-tid --final-batches 2 "       \
    "--pairs 500 --spectra-every 2 "

/* Options of a training of pairs. */
static const char *options, *own_options[PIPED_MOST]; /* NULL: `options` */
static char digest[32];
static double loss[STEPS], tolerance;
static const char *wanted[PIPED_MOST]; /* reason of each rank; NULL: it ends well */
static bool stops[PIPED_MOST], continues;
static int steps = STEPS;

static void parse(train_config *c, const char *line, const char *output) {
    static char text[TEXT];
    const char *word[WORDS] = {NULL};
    int count = 0;
    snprintf(text, sizeof text, "%s --max-steps %d --sync none -o %s", line, steps, output);
    for (char *w = strtok(text, " "); w; w = strtok(NULL, " ")) word[count++] = w;
    assert_true(count < WORDS);
    small_parse(c, word);
}

/* -- one process ------------------------------------------------------------------------------- */

static void train_alone(const char *line) {
    static train_config c;
    train_result result;
    parse(&c, line, "one.h5");
    sr_runfile *f = small_train(&c, NULL, &result);
    small_steps(f, "loss", STEPS, loss);
    strcpy(digest, result.digest);
    sr_run_close(f);
}

/* -- several ----------------------------------------------------------------------------------- */

static const ranks *running;

static bool stop(void *context) {
    (void)context;
    return stops[ranks_rank(running)];
}

/* Losses of the run file; without a tolerance the weights are the same. */
static void check_result(const train_result *result) {
    double own[STEPS];
    sr_failure why = {0};
    sr_runfile *f = sr_run_open("many.h5", &why);
    if (!f) complain("ranks", "%s", why.text);
    if (sr_run_step_reals(f, "loss", 0, STEPS, own, &why) != SR_OK)
        complain("ranks", "%s", why.text);
    sr_run_close(f);
    for (int i = 0; i < STEPS; i++)
        if (!(own[i] >= loss[i] - tolerance && own[i] <= loss[i] + tolerance))
            complain("ranks", "loss %d is %.9g, not %.9g", i, own[i], loss[i]);
    if (tolerance == 0 && strcmp(result->digest, digest) != 0)
        complain("ranks", "the weights are %s, not %s", result->digest, digest);
}

static int train(ranks *k) {
    static train_config c;
    static train_resume from;
    train_result result;
    sr_failure why = {0};
    const int rank = ranks_rank(k);
    const train_events events = {.ranks = k, .stop = stop};
    running = k;
    parse(&c, own_options[rank] ? own_options[rank] : options, "many.h5");
    if (continues && train_resume_find("many.h5", "", &from, &c, &why) != SR_OK)
        complain("ranks", "%s", why.text);
    if (continues) c.max_steps = STEPS;
    const sr_status status =
        train_run(&c, "test", continues ? &from : NULL, &events, &result, &why);
    train_resume_free(&from);
    if ((status != SR_OK) != (wanted[rank] != NULL) ||
        (wanted[rank] && !strstr(why.text, wanted[rank])))
        complain("ranks", "rank %d: '%s', not '%s'", rank, why.text,
                 wanted[rank] ? wanted[rank] : "");
    if (status == SR_OK && result.interrupted != (stops[0] || stops[1]))
        complain("ranks", "rank %d is %sinterrupted", rank, result.interrupted ? "" : "not ");
    if (status == SR_OK && result.interrupted && result.steps != 1)
        complain("ranks", "rank %d stops after step %lld", rank, (long long)result.steps);
    if (status == SR_OK && rank == 0 && *loss > 0 && !result.interrupted) check_result(&result);
    return 0;
}

static void run_ranks(int count, const char *line) {
    options = line;
    if (piped_run(count, NULL, train) != 0) fail_msg("%d ranks: %s", count, line);
}

static void check_same(int count, const char *line) {
    tolerance = 0;
    train_alone(line);
    run_ranks(count, line);
}

static void bytes_depend_on_shards_alone(void **state) {
    (void)state;
    check_same(2, "--norm bn --shards 2 --update-freq 2 " EVERYTHING);
    check_same(3, "--norm pn-released --shards 5 --record-shards --observe batch");
    check_same(2, "--norm ln --shards 3 --dropout 0.2 --validate-interval-updates 2 "
                  "--testpref valid --test "
                  "--validate-train 1 --svd-every 2 --parameter-norms-every 1 --clip-norm 1");
    check_same(2, "--norm pn --shards 2 --record none --bleu-every 1 --patience 9");
}

/* The last batch has one pair, so one rank has no rows. */
static void synchronized_statistics_are_of_the_batch(void **state) {
    (void)state;
    static const char *const norms[] = {"bn", "rbn --rbn-scale mean", "pn"};
    char line[400];
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        snprintf(line, sizeof line, "--norm %s --decoder-norm bn " EVERYTHING, norms[i]);
        train_alone(line);
        tolerance = 1e-3 * loss[0];
        snprintf(line + strlen(line), sizeof line - strlen(line), " --sync-norm --shards 2");
        run_ranks(2, line);
    }
}

/* -- ends -------------------------------------------------------------------------------------- */

static void forget(void) {
    for (int r = 0; r < PIPED_MOST; r++) own_options[r] = wanted[r] = NULL, stops[r] = false;
    continues = false;
    memset(loss, 0, sizeof loss);
}

static void expect_all(int count, const char *text) {
    for (int r = 0; r < count; r++) wanted[r] = text;
}

static void ranks_that_do_not_fit_are_refused(void **state) {
    (void)state;
    forget();
    expect_all(2, "2 ranks, but batches of 1 shard");
    run_ranks(2, "--norm ln --shards 1");
    expect_all(3, "3 ranks, but batches of 2 shards");
    run_ranks(3, "--norm ln --shards 2");
    expect_all(2, "--sync-norm: 3 shards need 3 ranks, there are 2");
    run_ranks(2, "--norm bn --sync-norm --shards 3");
    expect_all(2, "--sync-norm: pn-released of site encoder.0.norm1 cannot be synchronized");
    run_ranks(2, "--norm pn-released --sync-norm --shards 2");
    forget();
}

static void ranks_that_differ_are_refused(void **state) {
    (void)state;
    forget();
    own_options[1] = "--norm ln --shards 2 --lr 0.5";
    expect_all(2, "rank 1 has other options than rank 0");
    run_ranks(2, "--norm ln --shards 2");
    own_options[1] = "--norm ln --shards 2 --trainpref absent";
    wanted[1] = "absent.de";
    wanted[0] = "rank 1: ";
    run_ranks(2, "--norm ln --shards 2");
    forget();
}

/* A signal to one rank is one to all. */
static void one_rank_stops_all(void **state) {
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        forget();
        stops[rank] = true;
        run_ranks(2, "--norm ln --shards 2 --final-tid");
    }
    forget();
}

/* Resumes from a checkpoint after two of four updates, which has the statistics of every shard. */
static void a_run_goes_on(void **state) {
    (void)state;
    const char *line = "--norm bn --shards 3 --record-shards --checkpoint-every 1";
    forget();
    tolerance = 0;
    steps = STEPS / 2;
    run_ranks(2, line);
    steps = STEPS;
    train_alone(line);
    continues = true;
    run_ranks(2, line);
    forget();
}

/* -- exchanges that fail ----------------------------------------------------------------------- */

static piped_fault fault;
static long *made; /* exchanges of a run without a fault; seen by all processes */

/* The first rank's file contains the failure, if it has a step. */
static void check_failed(const sr_failure *why) {
    sr_failure own = {0};
    if (access("failed.h5", F_OK) != 0) return;
    sr_runfile *f = sr_run_open("failed.h5", &own);
    if (!f) complain("failed.h5", "%s", own.text);
    const sr_run_info *info = sr_run_get_info(f);
    if (strcmp(info->status, "failed") != 0 || strcmp(info->reason, why->text) != 0)
        complain("failed.h5", "%s, '%s', not '%s'", info->status, info->reason, why->text);
    sr_run_close(f);
}

static int fail_together(ranks *k) {
    static train_config c;
    train_result result;
    sr_failure why = {0};
    const train_events events = {.ranks = k};
    parse(&c, options, "failed.h5");
    const sr_status status = train_run(&c, "test", NULL, &events, &result, &why);
    if (fault.at == 0 && ranks_rank(k) == 0) *made = piped_exchanges(k);
    if ((status != SR_OK) != (fault.at > 0)) return 1;
    if (status != SR_OK) complain_unless_told("ranks", "", &why);
    if (status != SR_OK && ranks_rank(k) == 0) check_failed(&why);
    return 0;
}

static void fail_each_exchange(const char *line) {
    options = line;
    fault = (piped_fault){0};
    assert_int_equal(piped_run(2, NULL, fail_together), 0);
    assert_true(*made > 20);
    for (fault.rank = 0; fault.rank < 2; fault.rank++)
        for (fault.at = 1; fault.at < *made; fault.at += 1 + fault.at / 8) {
            remove("failed.h5");
            if (piped_run(2, &fault, fail_together) != 0)
                fail_msg("exchange %ld of %ld of rank %d fails", fault.at, *made, fault.rank);
        }
}

static void a_failed_exchange_ends_all(void **state) {
    (void)state;
    made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(made != MAP_FAILED);
    steps = 1;
    fail_each_exchange("--norm bn --sync-norm --shards 2 --final-tid --pairs 3 --attention-stats");
    fail_each_exchange("--norm pn --shards 3 --record-shards --activations-every 1 --final-tid "
                       "--pairs 3 --checkpoint-every 1");
    steps = STEPS;
}

/* -- a rank without memory --------------------------------------------------------------------- */

enum { SIZES = 64 };

/* Counts of all calloc calls for numbers of 8 bytes in the last rank, each once. */
static struct {
    int count;
    size_t size[SIZES];
    char text[PIPED_MOST][SR_FAILURE_TEXT];
} * seen;
static bool notes;
static size_t refused; /* calloc of this many numbers fails */

void *__libc_calloc(size_t count, size_t size);
void *calloc(size_t count, size_t size) {
    if (refused && size == sizeof(int64_t) && count == refused) return NULL;
    bool known = !notes || size != sizeof(int64_t) || seen->count == SIZES;
    for (int i = 0; !known && i < seen->count; i++) known = seen->size[i] == count;
    if (!known) seen->size[seen->count++] = count;
    return __libc_calloc(count, size);
}

static int lack_memory(ranks *k) {
    static train_config c;
    train_result result;
    sr_failure why = {0};
    const train_events events = {.ranks = k};
    const bool last = ranks_rank(k) == 1;
    parse(&c, options, "failed.h5");
    notes = last && !refused;
    refused = last ? refused : 0;
    train_run(&c, "test", NULL, &events, &result, &why);
    notes = false;
    snprintf(seen->text[ranks_rank(k)], SR_FAILURE_TEXT, "%s", why.text);
    return 0;
}

static void a_rank_without_memory_ends_all(void **state) {
    (void)state;
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(seen != MAP_FAILED);
    steps = 1;
    options = "--norm bn --shards 4 --record-shards --checkpoint-every 1 --final-tid";
    for (int i = -1, failed = 0; i < seen->count; i++) {
        refused = i < 0 ? 0 : seen->size[i];
        remove("failed.h5");
        assert_int_equal(piped_run(2, NULL, lack_memory), 0);
        if (!seen->text[0][0] != !seen->text[1][0]) /* the other rank reports it, or that the rank
                                                     * has gone */
            fail_msg("%zu numbers: '%s' and '%s'", refused, seen->text[0], seen->text[1]);
        failed += seen->text[1][0] != 0;
        if (i + 1 == seen->count) assert_true(failed > 1);
    }
    steps = STEPS;
}

static int begin(void **state) {
    (void)state;
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    assert_int_equal(chdir(check_temporary()), 0);
    small_write_pairs(9);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_depend_on_shards_alone),
        cmocka_unit_test(synchronized_statistics_are_of_the_batch),
        cmocka_unit_test(ranks_that_do_not_fit_are_refused),
        cmocka_unit_test(ranks_that_differ_are_refused),
        cmocka_unit_test(one_rank_stops_all),
        cmocka_unit_test(a_run_goes_on),
        cmocka_unit_test(a_failed_exchange_ends_all),
        cmocka_unit_test(a_rank_without_memory_ends_all),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
