/* validate.c -- evaluations of a split: runs, records and reports them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/program/progress.h"
#include "train/trainer.h"

/* -- a split */

static bool has_batch_statistics(const trainer *r, const train_eval *e) {
    return r->config->validate_batch && e->split == SPLIT_VALID;
}

static bool has_training_batches(const trainer *r, const train_eval *e) {
    return r->config->validate_train > 0 && e->split == SPLIT_VALID;
}

/* Metrics of one evaluation, by name. */
typedef struct named_values {
    train_metric metric[3 * TASK_METRICS];
    const char *name[3 * TASK_METRICS];
    double value[3 * TASK_METRICS];
    int count;
} named_values;

static void add_values(named_values *v, const task_row *row, data_split split, bool of_batch,
                       const double *value, int count) {
    for (int i = 0; i < count; i++) {
        train_metric *m = &v->metric[v->count];
        train_metric_make(row, i, split, of_batch, m);
        v->name[v->count] = m->name;
        v->value[v->count++] = value[i];
    }
}

/* Metrics with batch statistics, of the split and of training batches, if wanted. */
static sr_status measure_batches(trainer *r, train_eval *e, sr_failure *why) {
    task_sums sum;
    sr_status status = SR_OK;
    if (has_batch_statistics(r, e)) {
        status = task_evaluate(r->task, &r->task_options, r->model, r->tape, r->data, e->split,
                               NORM_BATCH, &sum, why);
        if (status == SR_OK) r->task->measure(&sum, e->batch_value);
    }
    if (status == SR_OK && has_training_batches(r, e)) {
        status = task_evaluate_training(r->task, &r->task_options, r->model, r->tape, r->data,
                                        r->config->validate_train, &sum, why);
        if (status == SR_OK) r->task->measure(&sum, e->train_value);
    }
    return status;
}

/* The split's sums and metrics. */
static sr_status measure(trainer *r, train_eval *e, sr_failure *why) {
    r->tape->profiling = false;
    sr_status status = task_evaluate(r->task, &r->task_options, r->model, r->tape, r->data,
                                     e->split, NORM_RUNNING, &e->sum, why);
    if (status != SR_OK) return status;
    r->task->measure(&e->sum, e->value);
    for (int i = 0; i < TASK_METRICS; i++) e->batch_value[i] = e->train_value[i] = NAN;
    status = trainer_decode(r, e, why);
    if (status != SR_OK || r->unevaluated) return status;
    return measure_batches(r, e, why);
}

/* Metrics of decoded text: in every validation, or in every --bleu-every-th and the test. NaN if
 * the loss is not finite. */
sr_status trainer_decode(trainer *r, train_eval *e, sr_failure *why) {
    const task_row *row = e->task;
    const int64_t every = row->decode_asked ? r->config->bleu_every : 1;
    double *value = e->value + task_metrics(row);
    for (int i = 0; i < task_all_metrics(row) - task_metrics(row); i++) value[i] = NAN;
    const int64_t number = r->validations + 1;
    if (!row->decode || !every || (e->split == SPLIT_VALID && number % every)) return SR_OK;
    if (!data_has_split(r->data, e->split)) return SR_OK;
    e->decodes = true;
    if (!isfinite(e->sum.loss)) { /* such a model decodes nothing */
        snprintf(e->decoded, sizeof e->decoded, "not decoded: the loss is not finite");
        return SR_OK;
    }
    const task_decoding d = {.options = &r->task_options,
                             .model = r->model,
                             .tape = r->tape,
                             .data = r->data,
                             .split = e->split,
                             .stop = r->events->stop,
                             .context = r->events->context};
    return row->decode(&d, value, e->decoded, &r->unevaluated, why);
}

/* (all) Broadcasts the first rank's metrics; ranks with other parameters end the run. */
static sr_status share_result(trainer *r, train_eval *e, sr_status status, sr_failure *why) {
    char digest[32];
    if (ranks_count(r->ranks) == 1) return status;
    const train_eval own = *e;
    status = ranks_agree(r->ranks, status, why);
    if (status == SR_OK) status = ranks_broadcast(r->ranks, e, sizeof *e, why);
    if (status == SR_OK)
        status = ranks_broadcast(r->ranks, &r->unevaluated, sizeof r->unevaluated, why);
    e->task = own.task, e->condition = own.condition; /* addresses of this process */
    trainer_parameters_digest(r->model, digest);
    if (status == SR_OK) status = ranks_compare(r->ranks, digest, "parameters", why);
    return status;
}

void trainer_eval_begin(const trainer *r, data_split split, train_eval *e) {
    int64_t tokens;
    e->task = r->task;
    e->split = split;
    e->left_out = data_left_out(r->data, split, &tokens);
    e->condition = model_condition(r->model);
    e->both_ways = r->config->validate_batch;
}

sr_status trainer_evaluate(trainer *r, data_split split, sr_failure *why) {
    const double start = progress_clock();
    train_eval e = {
        .step = r->result->steps,
        .update = r->result->updates,
        .epoch = r->epoch,
        .train_loss = r->loss_sum / (double)r->loss_tokens,
        .lr = r->lr,
    };
    trainer_eval_begin(r, split, &e);
    sr_status status = trainer_flush(r, why);
    if (status == SR_OK && trainer_writes(r)) status = measure(r, &e, why);
    status = share_result(r, &e, status, why);
    if (status != SR_OK || r->unevaluated) return status;
    r->validations += split == SPLIT_VALID;
    e.seconds = progress_clock() - r->started;
    if (split == SPLIT_VALID) {
        r->loss_sum = 0;
        r->loss_tokens = 0;
        r->result->last = e;
    } else {
        r->result->test = e;
    }
    if (split != SPLIT_TEST || !r->tested || r->stepped) {
        named_values v = {.count = 0};
        const task_row *row = e.task;
        add_values(&v, row, split, false, e.value, train_metrics_shown(r->config, row));
        if (has_batch_statistics(r, &e))
            add_values(&v, row, split, true, e.batch_value, task_metrics(row));
        if (has_training_batches(r, &e))
            add_values(&v, row, SPLIT_TRAIN, true, e.train_value, task_metrics(row));
        run_record_eval(r->record, e.step, e.epoch, v.name, v.value, v.count);
    }
    run_record_flush_rows(r->record);
    if (split == SPLIT_VALID) trainer_see_patience(r, &e);
    trainer_checkpoint_evaluated(r, &e);
    if (split == SPLIT_VALID && r->events->eval) r->events->eval(r->events->context, &e);
    r->result->times.validation += progress_clock() - start;
    return SR_OK;
}
