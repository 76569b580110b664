/* test_checkpoint_policy.c -- values of --checkpoint-every, names of a run and its checkpoints,
 * ranges of stored values, the best value; only the first rank writes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks/ranks_private.h"
#include "small_run.h"
#include "testing/check.h"
#include "train/checkpoint/checkpoint.h"

static void test_intervals(void **state) {
    (void)state;
    static const struct {
        const char *text;
        train_every unit;
        int64_t count;
    } good[] = {{"none", EVERY_NONE, 0},
                {"end", EVERY_END, 0},
                {"500", EVERY_UPDATES, 500},
                {"600s", EVERY_SECONDS, 600},
                {"2e", EVERY_EPOCHS, 2}};
    static const char *const bad[] = {"",   "s",  "e",   "+5",  "0",
                                      "-2", "5x", "5ss", "5 s", "99999999999999999999"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        train_interval every;
        sr_failure why = {0};
        check_ok(train_interval_read(good[i].text, &every, &why), &why);
        assert_int_equal(every.unit, good[i].unit);
        assert_int_equal(every.count, good[i].count);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char quoted[64];
        train_interval every;
        sr_failure why = {0};
        snprintf(quoted, sizeof quoted, "'%s' is none of", bad[i]);
        train_interval_read(bad[i], &every, &why);
        check_failure(&why, SR_USAGE, quoted);
    }
}

static void test_prefix(void **state) {
    (void)state;
    static const struct {
        const char *checkpoint, *output, *want;
    } row[] = {{"", "", ""},
               {"", "run.h5", "run"},
               {"", "run", "run"},
               {"", ".h5", ".h5"},
               {"", "run.h5x", "run.h5x"},
               {"a/b", "run.h5", "a/b"},
               {"a.h5", "run.h5", "a.h5"}};
    static train_config c;
    char prefix[CHECKPOINT_PATH];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        strcpy(c.checkpoint, row[i].checkpoint), strcpy(c.output, row[i].output);
        checkpoint_prefix(&c, prefix);
        assert_string_equal(prefix, row[i].want);
    }
}

/* A run's two names; the paths of both are as long as an option at most. */
static void test_resume_names(void **state) {
    (void)state;
    static const struct {
        const char *run, *output, *part;
    } row[] = {{"x.h5", "x.h5", "x.h5.part"},
               {"x.h5.part", "x.h5", "x.h5.part"},
               {".part", ".part", ".part.part"},
               {"apart", "apart", "apart.part"},
               {"", "", ".part"}};
    char output[OPTION_TEXT_SIZE], part[OPTION_TEXT_SIZE + 8], path[OPTION_TEXT_SIZE + 1];
    static train_config c;
    train_resume from;
    sr_failure why = {0};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        check_ok(train_resume_names(row[i].run, output, part, &why), &why);
        assert_string_equal(output, row[i].output);
        assert_string_equal(part, row[i].part);
    }
    memset(path, 'x', sizeof path), path[OPTION_TEXT_SIZE - 1] = 0;
    check_ok(train_resume_names(path, output, part, &why), &why);
    path[OPTION_TEXT_SIZE - 1] = 'x', path[OPTION_TEXT_SIZE] = 0;
    train_resume_find(path, "", &from, &c, &why);
    check_failure(&why, SR_USAGE, "the path is too long");
}

/* -- sizes of the data */

/* Each size at its ends and beyond them; NULL: the data may have it. */
static void test_sizes(void **state) {
    (void)state;
    static const struct {
        data_shape shape;
        const char *part;
    } row[] = {
#define PAIRS(...) {.task = TASK_PAIRS, .vocabulary = 9, .longest = 5, __VA_ARGS__}
#define TAGS(...)                                                                                  \
    { .task = TASK_TAGS, .classes = 2, .vocabulary = 9, .characters = 3, __VA_ARGS__ }
        {PAIRS(.target_vocabulary = 0), NULL},
        {PAIRS(.target_vocabulary = TOKEN_FIRST_WORD), NULL},
        {PAIRS(.target_vocabulary = 1), "target_vocabulary is 1, not 4 to"},
        {PAIRS(.target_vocabulary = -1), "target_vocabulary is -1, not 0 to"},
        {PAIRS(.target_vocabulary = INT64_MAX), "target_vocabulary is 9223372036854775807"},
        {PAIRS(.height = 1), "height is 1, not 0 to 0"},
        {TAGS(.longest = 0), NULL},
        {TAGS(.pos_tags = 1), "pos_tags is 1, not 0 to 0"},
        {{.task = TASK_TAGS, .classes = 2, .vocabulary = 9}, "characters is 0, not 1 to"},
        {{.task = TASK_IMAGES, .height = 1 << 16, .width = 1, .channels = 1, .classes = 1}, NULL},
        {{.task = TASK_IMAGES, .height = (1 << 16) + 1, .width = 1, .channels = 1, .classes = 1},
         "height is 65537, not 1 to 65536"}};
#undef PAIRS
#undef TAGS
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        sr_failure why = {0};
        const sr_status status = checkpoint_check_sizes(&row[i].shape, "x.ckpt", &why);
        if (!row[i].part) check_ok(status, &why);
        if (row[i].part) check_failure(&why, SR_FORMAT, row[i].part);
    }
}

/* Counts are exact as a double; sums of a validation may be below 0; any bits are a key. */
static void test_progress(void **state) {
    (void)state;
    static const int64_t most = (int64_t)1 << 53;
    static const struct {
        const char *name;
        int64_t value;
        bool good;
    } row[] = {{"steps", 0, true},          {"steps", most, true},
               {"steps", most + 1, false},  {"steps", -1, false},
               {"valid_correct", -1, true}, {"valid_correct", -most - 1, false},
               {"random_key", -most, true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        int64_t value = row[i].value;
        npz_array a = {.type = NPZ_INT64, .data = &value};
        sr_failure why = {0};
        const sr_status status = checkpoint_check_progress("x.ckpt", row[i].name, &a, &why);
        if ((status == SR_OK) != row[i].good) fail_msg("%s %zu: '%s'", row[i].name, i, why.text);
        a.type = NPZ_FLOAT64; /* real numbers may be any */
        check_ok(checkpoint_check_progress("x.ckpt", row[i].name, &a, &why), &why);
    }
}

/* -- files */

static void expect_removed(const char *name, bool removed) {
    if ((access(name, F_OK) != 0) != removed) fail_msg("%s: removed is not %d", name, removed);
}

/* Names similar to a run's own; the prefix has no folder. */
static void test_names(void **state) {
    (void)state;
    static const char *const ours[] = {"run-0000007.ckpt.part", "run-12345678.ckpt.part",
                                       "run-best.ckpt.part"},
                             *const others[] = {"run-000007.ckpt.part",
                                                "run-0000007.ckpu.part",
                                                "run_0000007.ckpt.part",
                                                "rum-best.ckpt.part",
                                                "run-1234567890123456789.ckpt.part",
                                                "run-best.ckp.part",
                                                "run-0000007x.ckpt.part",
                                                ".part",
                                                "run-0000007.ckpt"};
    char before[1000];
    int64_t *update;
    int count;
    sr_failure why = {0};
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(check_temporary()), 0);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) check_write(ours[i], "");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) check_write(others[i], "");
    check_ok(checkpoint_sweep("run", &why), &why);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) expect_removed(ours[i], true);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) expect_removed(others[i], false);
    check_ok(checkpoint_list("run", &update, &count, &why), &why);
    assert_true(count == 1 && update[0] == 7);
    free(update);
    check_ok(checkpoint_list("/no run in the root", &update, &count, &why), &why);
    assert_int_equal(count, 0);
    assert_int_equal(chdir(before), 0);
}

/* -- a run */

static trainer run;

static void open_run(const char *const *more) {
    static train_config c;
    static train_result result;
    static const train_events silent;
    sr_failure why = {0};
    small_write_pairs(6);
    small_parse(&c, more);
    result = (train_result){0};
    run = (trainer){.config = &c, .events = &silent, .result = &result};
    check_ok(trainer_open(&run, "test", &why), &why);
}

static int count_files(void) {
    char prefix[CHECKPOINT_PATH];
    int64_t *update;
    int count;
    sr_failure why = {0};
    checkpoint_prefix(run.config, prefix);
    check_ok(checkpoint_list(prefix, &update, &count, &why), &why);
    free(update);
    return count;
}

/* Loss: less is better, and NaN is never the best. */
static void test_best_of(const char *metric, bool of_batch) {
    static const struct {
        double value;
        bool test, better;
    } row[] = {{NAN, false, false}, {3, false, true},    {3, false, false}, {4, false, false},
               {2, true, false},    {NAN, false, false}, {1, false, true}};
    open_run((const char *const[]){"--keep-best", metric, NULL});
    assert_int_equal(run.config->validate_batch, of_batch);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        train_eval e = {.split = row[i].test ? SPLIT_TEST : SPLIT_VALID};
        (of_batch ? e.batch_value : e.value)[run.best_metric.index] = row[i].value;
        run.better = false;
        trainer_checkpoint_evaluated(&run, &e);
        if (run.better != row[i].better) fail_msg("value %zu, %g", i, row[i].value);
    }
    sr_failure why = {0};
    trainer_close(&run, SR_OK, &why);
}

static void test_best(void **state) {
    (void)state;
    test_best_of("valid_loss", false);
}

/* Validation with batch statistics is made where the metric needs it. */
static void test_best_with_batch_statistics(void **state) {
    (void)state;
    test_best_of("valid_loss_batch", true);
}

/* Also with a best and an end checkpoint due. */
static void test_other_rank(void **state) {
    (void)state;
    sr_failure why = {0};
    for (int rank = 1; rank >= 0; rank--) {
        open_run((const char *const[]){"--checkpoint-every=1", "--keep-best=valid_loss", NULL});
        run.ranks->rank = rank;
        check_ok(trainer_checkpoints_open(&run, &why), &why);
        run.result->updates = 1, run.better = true;
        check_ok(trainer_checkpoint_between(&run, false, &why), &why);
        run.result->updates = 2;
        check_ok(trainer_checkpoint_last(&run, &why), &why);
        check_ok(trainer_checkpoints_close(&run, true, true, &why), &why);
        assert_int_equal(run.checkpoint_update, 2); /* all ranks agree on that */
        assert_int_equal(count_files(), rank ? 0 : 2);
        run.ranks->rank = 0;
        trainer_close(&run, SR_OK, &why);
    }
}

/* Options that were not validated, and a metric without a better direction. */
static void test_refused(void **state) {
    (void)state;
    static train_config c;
    sr_failure why = {0};
    open_run((const char *const[]){"--keep-best=valid_loss", NULL});
    const train_config *given = run.config;
    const task_row *own = run.task;
    task_row odd = *own;
    odd.metric[0].better = BETTER_NEITHER, run.task = &odd;
    trainer_checkpoints_open(&run, &why);
    check_failure(&why, SR_USAGE, "--keep-best: neither less nor more valid_loss is better");
    c = *given, run.config = &c, run.task = own;
    strcpy(c.checkpoint_every, "5x");
    why = (sr_failure){0};
    trainer_checkpoints_open(&run, &why);
    check_failure(&why, SR_USAGE, "--checkpoint-every: '5x' is none of");
    run.config = given;
    trainer_close(&run, SR_OK, &why);
}

/* An update that is skipped is counted once; its checkpoint is written once. */
static void test_once(void **state) {
    (void)state;
    char path[CHECKPOINT_PATH];
    sr_failure why = {0};
    open_run((const char *const[]){"--checkpoint-every=1", NULL});
    run.result->updates = 1;
    check_ok(trainer_checkpoint_between(&run, false, &why), &why);
    assert_int_equal(count_files(), 1);
    checkpoint_prefix(run.config, path);
    assert_int_equal(unlink(strcat(path, "-0000001.ckpt")), 0);
    check_ok(trainer_checkpoint_between(&run, false, &why), &why);
    assert_int_equal(count_files(), 0);
    trainer_close(&run, SR_OK, &why);
}

/* A run with --force was killed, and the next one fails before it handles checkpoints: the
 * checkpoints of both earlier runs keep their names. */
static void test_killed(void **state) {
    (void)state;
    static const char *const names[] = {"killed-0000001.ckpt.old", "killed-0000002.ckpt"};
    static train_config c;
    static train_result result;
    const train_events silent = {0};
    char path[2][CHECKPOINT_PATH];
    sr_failure why = {0};
    small_write_pairs(6);
    small_parse(&c, (const char *const[]){"--checkpoint-every=1", NULL});
    snprintf(c.output, sizeof c.output, "%s/killed.h5", check_temporary());
    snprintf(c.data.dir, sizeof c.data.dir, "%s/nowhere", check_temporary());
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s", check_temporary(), names[i]);
        check_write(path[i], "");
    }
    train_run(&c, "test", NULL, &silent, &result, &why);
    check_failure(&why, SR_IO, "nowhere");
    for (int i = 0; i < 2; i++) expect_removed(path[i], false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intervals),  cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_resume_names),
        cmocka_unit_test(test_sizes),      cmocka_unit_test(test_progress),
        cmocka_unit_test(test_best),       cmocka_unit_test(test_best_with_batch_statistics),
        cmocka_unit_test(test_other_rank), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_once),       cmocka_unit_test(test_killed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
