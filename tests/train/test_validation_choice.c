/* test_validation_choice.c -- a run with batch statistics validates both ways by default if that
 * reads at most a tenth of the training reads. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"
#include "train/trainer.h"

/* -- the count of validations -- */

/* As the training loop does it. */
static int64_t count_plainly(int64_t updates, int64_t a, int64_t b) {
    int64_t count = 0;
    for (int64_t u = 1; u <= updates; u++) count += u == updates || u % a == 0 || (b && u % b == 0);
    return count;
}

static void counts(void **state) {
    (void)state;
    for (int64_t updates = 1; updates <= 60; updates++)
        for (int64_t a = 1; a <= 20; a++)
            for (int64_t b = 0; b <= 20; b++)
                assert_int_equal(trainer_count_validations(updates, a, b),
                                 count_plainly(updates, a, b));
    const int64_t large = INT64_C(1) << 60;
    assert_int_equal(trainer_count_validations(large, large - 1, large / 2 - 1), 1 + 2 + 1);
}

/* -- runs: 40 pairs of training, one of validation -- */

typedef struct outcome {
    bool both;
    int evaluations;
    char digest[32], notes[4096];
} outcome;

static void hear(void *context, const char *text) {
    char *notes = context;
    const size_t used = strlen(notes);
    snprintf(notes + used, 4096 - used, "%s\n", text);
}

static outcome run(const char *const *more) {
    outcome o = {.both = false};
    const train_events events = {.context = o.notes, .note = hear};
    train_result r;
    small_write_pairs(40);
    sr_runfile *f = small_run(more, &events, &r);
    const sr_run_info *info = sr_run_get_info(f);
    o.both = sr_run_find_metric(f, "valid_loss_batch") != NULL;
    o.evaluations = (int)info->evals;
    snprintf(o.digest, sizeof o.digest, "%s", r.digest);
    assert_int_equal(strstr(info->config, "validate-batch = yes\n") != NULL, o.both);
    assert_int_equal(strstr(info->config, "validate-batch = no\n") != NULL, !o.both);
    if (o.both) {
        double value[64];
        assert_true(info->evals <= 64);
        small_evals(f, "valid_loss_batch", info->evals, value);
        for (int i = 0; i < o.evaluations; i++) assert_true(isfinite(value[i]));
    }
    sr_run_close(f);
    return o;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

/* Twenty batches an epoch. Two validations of 4 tokens for 160 of training. */
static void at_the_limit(void **state) {
    (void)state;
    assert_true(RUN("--norm=bn", "--epochs=1", "--validate-interval-updates=5").both); /* 4 of 40 */
    assert_false(RUN("--norm=bn", "--epochs=1", "--validate-interval-updates=4").both); /* 5 */
    assert_true(RUN("--norm=bn", "--epochs=2", "--validate-interval-updates=5").both);
    assert_false(RUN("--norm=bn", "--max-steps=4").both); /* 1 of 8 */
    assert_true(RUN("--norm=bn", "--max-steps=5").both);  /* 1 of 10 */
    assert_false(RUN("--norm=bn", "--max-steps=10", "--validate-interval-updates=4").both);
    assert_true(RUN("--norm=bn", "--update-freq=3", "--validate-interval-updates=2", "--epochs=1")
                    .both); /* 4 of 40: updates 2, 4, 6, 7 */
    assert_false(
        RUN("--norm=bn", "--update-freq=3", "--validate-interval-updates=1", "--epochs=1").both);
}

static void what_was_asked_for(void **state) {
    (void)state;
    const outcome open = RUN("--norm=bn", "--epochs=1"),
                  no = RUN("--norm=bn", "--epochs=1", "--no-validate-batch"),
                  yes = RUN("--norm=bn", "--epochs=1", "--validate-batch");
    assert_true(open.both && yes.both && !no.both);
    assert_non_null(strstr(open.notes, "with batch statistics, too; each way reads 2.5 % of the"));
    assert_null(strstr(yes.notes, "each way"));
    assert_null(strstr(no.notes, "each way"));
    assert_string_equal(open.digest, no.digest);
    assert_string_equal(open.digest, yes.digest);
    assert_true(RUN("--norm=bn", "--max-steps=4", "--validate-batch").both);
}

/* One way only if both would agree; none without validation data. */
static void without_batch_statistics(void **state) {
    (void)state;
    static const char *const norms[] = {"ln", "rmsnorm", "none", "pn"};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        assert_false(RUN("--norm", norms[i], "--decoder-norm=ln", "--epochs=1").both);
    assert_true(RUN("--norm=ln", "--decoder-norm=bn", "--epochs=1").both);
    assert_true(RUN("--norm=pnv", "--epochs=1").both);
    train_result r;
    small_write("a b\nc d\n", "x y\nz w\n", NULL, NULL);
    sr_runfile *f = small_run((const char *const[]){"--norm=bn", "--epochs=20", NULL}, NULL, &r);
    assert_null(sr_run_find_metric(f, "valid_loss_batch"));
    sr_run_close(f);
}

/* A resumed run, and one of the same configuration, keep the decision. */
static void stored(void **state) {
    (void)state;
    static train_config c, read;
    sr_failure why = {0};
    small_write_pairs(40);
    small_parse(&c, (const char *const[]){"--norm=bn", "--epochs=1", NULL});
    assert_true(c.validate_batch_open && !c.validate_batch);
    small_parse(&c, (const char *const[]){"--norm=bn", "--no-validate-batch", NULL});
    assert_true(!c.validate_batch_open && !c.validate_batch);
    check_ok(
        train_config_read(&read, "record = none\nnorm = bn\nvalidate-batch = no\n", "text", &why),
        &why);
    assert_true(!read.validate_batch_open && !read.validate_batch);
    check_ok(
        train_config_read(&read, "record = none\nnorm = bn\nvalidate-batch = yes\n", "text", &why),
        &why);
    assert_true(!read.validate_batch_open && read.validate_batch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(at_the_limit),
        cmocka_unit_test(what_was_asked_for),
        cmocka_unit_test(without_batch_statistics),
        cmocka_unit_test(stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
