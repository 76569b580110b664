/* test_state.c -- every counter of a run comes back from a checkpoint, including those that few
 * runs use. */
#include <stdio.h>
#include <string.h>

#include "small_run.h"
#include "testing/check.h"
#include "train/checkpoint/checkpoint.h"

/* Distinct numbers. */
static void number(trainer *r, int64_t n) {
    train_result *result = r->result;
    task_sums *last = &result->last.sum;
    int64_t *const whole[] = {&result->steps,  &result->updates,       &result->skipped,
                              &r->accumulated, &r->accumulated_tokens, &r->data_epoch,
                              &r->data_batch,  &r->loss_tokens,        &r->patience_waited,
                              &r->validations, &last->tokens,          &last->correct,
                              &last->unknown};
    double *const real_number[] = {&r->loss_sum,  &r->patience_best, &r->lr,      &r->epoch,
                                   &r->last_loss, &r->best,          &last->loss, &last->nll};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) *whole[i] = n++;
    for (size_t i = 0; i < sizeof real_number / sizeof *real_number; i++)
        *real_number[i] = (double)n++ / 3;
    for (int i = 0; i < r->task->counts; i++) last->count[i] = n++;
    r->last_skipped = n % 2;
    for (int i = 0; i < r->model->sites; i++) r->model->site[i]->calls = n++;
}

/* Fails unless they are those. */
static void expect_number(trainer *r, int64_t n) {
    trainer want = *r;
    train_result result = *r->result;
    int64_t calls[64];
    assert_in_range(r->model->sites, 1, 64);
    for (int i = 0; i < r->model->sites; i++) calls[i] = r->model->site[i]->calls;
    want.result = &result;
    number(&want, n);
    assert_memory_equal(&result, r->result, sizeof result);
    want.result = r->result;
    assert_memory_equal(&want, r, sizeof want);
    for (int i = 0; i < r->model->sites; i++) assert_int_equal(calls[i], r->model->site[i]->calls);
}

static void every_counter(void **state) {
    (void)state;
    static train_config c;
    static train_result result;
    const train_events silent = {0};
    sr_failure why = {0};
    char path[600];
    snprintf(path, sizeof path, "%s/x.ckpt", check_temporary());
    small_write_pairs(6);
    small_parse(&c, (const char *const[]){"--norm=bn", NULL});
    static trainer r;
    r = (trainer){.config = &c, .events = &silent, .result = &result};
    check_ok(trainer_open(&r, "test", &why), &why);
    r.task = task_of(TASK_TAGS); /* it has its own counters */
    r.batches = 1000;            /* data_batch is among them */
    number(&r, 100);
    check_ok(checkpoint_write(&r, path, &why), &why);
    number(&r, 501);
    expect_number(&r, 501);
    check_ok(checkpoint_restore(&r, path, &why), &why);
    expect_number(&r, 100);
    trainer_close(&r, SR_OK, &why);
}

/* If rows are missing, the run does not resume. */
static void rows_that_lack(void **state) {
    (void)state;
    static train_config c;
    train_result result = {0};
    const train_events silent = {0};
    sr_failure why = {0};
    char first[600];
    snprintf(first, sizeof first, "%s/first.h5", check_temporary());
    small_write_pairs(6);
    sr_run_close(
        small_run((const char *const[]){"--epochs=2", "--max-steps=4", NULL}, NULL, &result));
    small_parse(&c, (const char *const[]){"--epochs=2", NULL});
    assert_int_equal(rename(c.output, first), 0);
    for (int steps = 4; steps <= 6; steps += 2) {
        result = (train_result){0};
        trainer r = {.config = &c, .events = &silent, .result = &result};
        check_ok(trainer_open(&r, "test", &why), &why);
        const sr_status status = run_record_copy(r.record, first, steps, steps, &why);
        assert_int_equal(status, steps == 4 ? SR_OK : SR_FORMAT);
        if (steps > 4) check_failure(&why, SR_FORMAT, "4 of 6 steps can be read");
        trainer_close(&r, status, &why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_counter),
                                       cmocka_unit_test(rows_that_lack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
