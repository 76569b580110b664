/* Early stopping: when a run ends, its message, and its counters in the saved state. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"
#include "train/trainer.h"

enum { EPOCHS = 12, BATCHES = 3 };

/* Weights that stay as they are: the first evaluation is the best, and N more are waited for. */
static void nothing_gets_better(void **state) {
    (void)state;
    const char *const args[] = {"--lr=0", "--warmup-init-lr=0", "--epochs=12", "--patience=4",
                                NULL};
    train_result r;
    small_write_pairs(2 * BATCHES);
    sr_runfile *f = small_run(args, NULL, &r);
    const sr_run_info *info = sr_run_get_info(f);
    assert_int_equal(info->evals, 5);
    assert_int_equal(r.updates, 5 * BATCHES);
    assert_string_equal(info->status, "complete");
    assert_non_null(
        strstr(info->reason, "4 evaluations in a row without a better valid_loss than"));
    assert_string_equal(info->reason, r.stopped);
    assert_false(r.interrupted);
    sr_run_close(f);
}

/* Spectra of the embedding when due, and only once at the end. */
static void embedding_once(void **state) {
    (void)state;
    static const char *const every[] = {"--svd-every=3", "--svd-every=4"};
    static const int records[] = {2, 2}; /* updates 3, 6 and 4, 6 */
    for (int i = 0; i < 2; i++) {
        const char *const args[] = {
            "--lr=0", "--warmup-init-lr=0", "--epochs=12", "--patience=1", every[i], NULL};
        train_result r;
        sr_run_embedding e = {.size = sizeof(sr_run_embedding)};
        sr_failure why = {0};
        small_write_pairs(2 * BATCHES);
        sr_runfile *f = small_run(args, NULL, &r);
        check_ok(sr_run_get_embedding(f, "tokens", &e, &why), &why);
        assert_int_equal(r.updates, 6);
        assert_int_equal(e.records, records[i]);
        sr_run_close(f);
    }
}

/* At the last planned update no run counts as stopped early. */
static void at_the_end_anyway(void **state) {
    (void)state;
    const char *const args[] = {"--lr=0", "--warmup-init-lr=0", "--epochs=5", "--patience=4", NULL};
    train_result r;
    small_write_pairs(2 * BATCHES);
    sr_runfile *f = small_run(args, NULL, &r);
    assert_int_equal(sr_run_get_info(f)->evals, 5);
    assert_string_equal(sr_run_get_info(f)->reason, "");
    assert_string_equal(r.stopped, "");
    sr_run_close(f);
}

/* -- courses that go up and down */

/* Learns the pairs a little, then overshoots; metric NULL: without patience. */
static int64_t course(const char *metric, int patience, double value[2][EPOCHS]) {
    char text[2][64];
    const char *args[16] = {"--lr=0.05", "--warmup-updates=0", "--lr-scheduler=fixed",
                            "--epochs=12", NULL};
    train_result r;
    snprintf(text[0], sizeof text[0], "--patience=%d", patience);
    snprintf(text[1], sizeof text[1], "--patience-metric=%.40s", metric ? metric : "");
    if (metric) args[4] = text[0], args[5] = text[1];
    sr_runfile *f = small_run(args, NULL, &r);
    const int64_t evals = sr_run_get_info(f)->evals;
    assert_true(evals <= EPOCHS);
    small_evals(f, "valid_loss", evals, value[0]);
    small_evals(f, "valid_accuracy", evals, value[1]);
    sr_run_close(f);
    return evals;
}

/* Evaluations until `patience` in a row were not better than all before them. */
static int64_t expected(const double *value, double sign, int patience) {
    int64_t best = 0;
    for (int64_t i = 1; i < EPOCHS; i++) {
        if (sign * value[i] > sign * value[best]) best = i;
        if (i - best == patience) return i + 1;
    }
    return EPOCHS;
}

static void up_and_down(void **state) {
    (void)state;
    static const char *const metric[] = {"valid_loss", "valid_accuracy"};
    static const double sign[] = {-1, 1};
    double whole[2][EPOCHS], value[2][EPOCHS];
    int early = 0;
    small_write_pairs(2 * BATCHES);
    assert_int_equal(course(NULL, 0, whole), EPOCHS);
    for (int m = 0; m < 2; m++)
        for (int patience = 1; patience <= 3; patience++) {
            const int64_t want = expected(whole[m], sign[m], patience);
            assert_int_equal(course(metric[m], patience, value), want);
            check_near_double(metric[m], value[m], whole[m], want, 0, 0);
            early += want > 2 && want < EPOCHS;
        }
    assert_true(early > 2); /* some courses end early */
}

/* -- the state */

static sr_status find_item(void *context, const state_item *item, sr_failure *why) {
    void **found = context;
    (void)why;
    if (!strcmp(item->name, "patience_waited")) found[0] = item->array.data;
    if (!strcmp(item->name, "patience_best")) found[1] = item->array.data;
    return SR_OK;
}

static void counters_are_of_the_state(void **state) {
    (void)state;
    static train_config c;
    train_result result = {0};
    const train_events silent = {0};
    sr_failure why = {0};
    void *found[2] = {NULL, NULL};
    small_write_pairs(2 * BATCHES);
    small_parse(&c, (const char *const[]){"--patience=2", "--patience-metric=valid_ppl", NULL});
    trainer r = {.config = &c, .events = &silent, .result = &result};
    check_ok(trainer_open(&r, "test", &why), &why);
    const double ppl[] = {9, 7, 8};
    for (int i = 0; i < 3; i++) trainer_see_patience(&r, &(train_eval){.value = {0, 0, ppl[i], 0}});
    check_ok(train_state_each(&r, find_item, found, &why), &why);
    assert_true(found[0] && found[1]);
    assert_int_equal(*(int64_t *)found[0], 1);
    check_equals(*(double *)found[1], 7);
    assert_false(trainer_out_of_patience(&r));
    *(int64_t *)found[0] = 2; /* as after loading a checkpoint */
    assert_true(trainer_out_of_patience(&r));
    trainer_close(&r, SR_OK, &why);
}

/* Evaluations until the patience of 2 is over; NaN is not better than anything, nor than
   nothing. */
static void no_number_is_never_better(void **state) {
    (void)state;
    static const struct {
        double loss[6];
        int evals;
    } row[] = {{{NAN, NAN}, 2},
               {{NAN, 5, NAN, 4, 3, 2}, 0},
               {{5, NAN, NAN}, 3},
               {{INFINITY, 5, NAN, 5}, 4},
               {{5, 5, 5}, 3}};
    static train_config c;
    train_result result = {0};
    small_parse(&c, (const char *const[]){"--patience=2", NULL});
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        trainer r = {.config = &c, .result = &result, .patience_best = NAN};
        int over = 0;
        for (int k = 0; k < 6 && !over; k++) {
            trainer_see_patience(&r, &(train_eval){.value = {row[i].loss[k]}});
            if (trainer_out_of_patience(&r)) over = k + 1;
        }
        assert_int_equal(over, row[i].evals);
    }
}

static void batch_statistics_when_they_decide(void **state) {
    (void)state;
    static train_config c;
    train_result result = {0};
    const train_events silent = {0};
    sr_failure why = {0};
    small_write_pairs(2 * BATCHES);
    for (int asked = 0; asked < 2; asked++) {
        const char *metric = asked ? "valid_ppl_batch" : "valid_ppl";
        small_parse(&c, (const char *const[]){"--patience=2", "--patience-metric", metric, NULL});
        trainer r = {.config = &c, .events = &silent, .result = &result};
        check_ok(trainer_open(&r, "test", &why), &why);
        assert_int_equal(r.config->validate_batch, asked);
        trainer_see_patience(&r, &(train_eval){.value = {0, 0, 7}, .batch_value = {0, 0, 5}});
        check_equals(r.patience_best, asked ? 5 : 7);
        trainer_close(&r, SR_OK, &why);
    }
}

/* -- refusals */

static void refused(const char *argument, const char *text) {
    static train_config c;
    char *args[] = {"--record=none", "--patience=2", (char *)argument, NULL};
    int positional;
    sr_failure why = {0};
    assert_int_equal(train_config_parse(&c, 3, args, 0, &positional, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, text);
}

static void no_metric(void **state) {
    (void)state;
    refused("--patience-metric=loss", "'loss' is no metric of this validation");
    refused("--patience-metric=test_loss", "is no metric of this validation");
}

static void nothing_to_wait_for(void **state) {
    (void)state;
    static train_config c;
    train_result result;
    const train_events silent = {0};
    sr_failure why = {0};
    small_write("a b\nc d\n", "x y\nz w\n", NULL, NULL);
    small_parse(&c, (const char *const[]){"--patience=2", NULL});
    assert_int_equal(train_run(&c, "test", NULL, &silent, &result, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "--patience: parallel has no validation split here");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_gets_better),
                                       cmocka_unit_test(at_the_end_anyway),
                                       cmocka_unit_test(embedding_once),
                                       cmocka_unit_test(up_and_down),
                                       cmocka_unit_test(no_number_is_never_better),
                                       cmocka_unit_test(batch_statistics_when_they_decide),
                                       cmocka_unit_test(counters_are_of_the_state),
                                       cmocka_unit_test(no_metric),
                                       cmocka_unit_test(nothing_to_wait_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
