/* train_pass.c -- one forward and backward pass of a batch or one of its shards. */
#include <math.h>

#include "base/program/progress.h"
#include "train/gradient_sum.h"
#include "train/trainer.h"

sr_status trainer_pass(trainer *r, pass *p, double *loss, sr_failure *why) {
    train_times *times = &r->result->times;
    double mark = progress_clock();
    task_sums sum;
    if (r->data_batch == 0) model_memory_empty(&r->memory);
    r->tape->profiling = r->config->profile;
    tape_reset(r->tape, rng_split(&r->random, (uint64_t)r->result->steps), true, true);
    tensor *value = task_loss(r->task, &r->task_options, r->model, p, &sum);
    if (p->absent) sum.loss = 0;
    run_record_look_at_rows(r->record, !isfinite(sum.loss));
    if (!isfinite(sum.loss)) model_memory_empty(&r->memory); /* it would spoil the steps to come */
    times->forward += progress_lap(&mark);
    if (r->leaving) gradient_sum_watch(r->leaving, r->tape);
    tape_backward(r->tape, value, p->absent ? 0 : 1);
    params_finalize_grad(&r->model->params);
    const double recorder = run_record_seconds(r->record);
    times->recorder += recorder;
    times->backward += progress_lap(&mark) - recorder;
    *loss = sum.loss;
    const sr_failure *f = tape_failure(r->tape);
    if (r->exchange_failed.status != SR_OK) f = &r->exchange_failed;
    if (!f) f = run_record_hook_failed(r->record);
    if (!f) return SR_OK;
    return sr_fail(why, f->status, "step %lld: %s", (long long)r->result->steps, f->text);
}
