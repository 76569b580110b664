/* validate.c -- evaluations of a split, as they are recorded and told. */
#include <math.h>
#include <stdio.h>

#include "statnet/progress.h"
#include "trainer.h"

/* "valid_loss", "valid_loss_batch" */
void train_metric_name(const train_eval *e, int metric, bool of_batch,
                       char name[TRAIN_METRIC_NAME]) {
    snprintf(name, TRAIN_METRIC_NAME, "%s_%s%s", task_split_name(e->split),
             e->task->metric[metric].name, of_batch ? "_batch" : "");
}

static void record_eval(trainer *r, const train_eval *e) {
    char text[2 * TASK_METRICS][TRAIN_METRIC_NAME];
    const char *name[2 * TASK_METRICS];
    double value[2 * TASK_METRICS];
    const int metrics = task_metrics(e->task);
    for (int i = 0; i < 2 * metrics; i++) {
        const bool of_batch = i >= metrics;
        train_metric_name(e, i % metrics, of_batch, text[i]);
        name[i] = text[i];
        value[i] = of_batch ? e->batch_value[i % metrics] : e->value[i];
    }
    run_record_eval(r->record, e->step, e->epoch, name, value, 2 * metrics);
}

/* The split's sums and metrics; with batch statistics too where they are asked for. */
static sr_status measure(trainer *r, train_eval *e, sr_failure *why) {
    cross_entropy_report again;
    r->tape->profiling = false;
    sr_status status = task_evaluate(r->task, &r->task_options, r->model, r->tape, r->data,
                                     e->split, NORM_RUNNING, &e->sum, why);
    if (status != SR_OK) return status;
    r->task->measure(&e->sum, e->value);
    for (int i = 0; i < TASK_METRICS; i++) e->batch_value[i] = NAN;
    if (!r->config->validate_batch || e->split != SPLIT_VALID) return SR_OK;
    status = task_evaluate(r->task, &r->task_options, r->model, r->tape, r->data, e->split,
                           NORM_BATCH, &again, why);
    if (status == SR_OK) r->task->measure(&again, e->batch_value);
    return status;
}

sr_status trainer_evaluate(trainer *r, data_split split, sr_failure *why) {
    const double start = progress_clock();
    train_eval e = {
        .task = r->task,
        .split = split,
        .step = r->result->steps,
        .update = r->result->updates,
        .epoch = r->epoch,
        .train_loss = r->loss_sum / (double)r->loss_tokens,
        .lr = r->lr,
    };
    sr_status status = measure(r, &e, why);
    if (status != SR_OK) return status;
    e.seconds = progress_clock() - r->started;
    if (split == SPLIT_VALID) {
        r->loss_sum = 0;
        r->loss_tokens = 0;
        r->result->last = e;
    } else {
        r->result->test = e;
    }
    record_eval(r, &e);
    if (split == SPLIT_VALID && r->events->eval) r->events->eval(r->events->context, &e);
    r->result->times.validation += progress_clock() - start;
    return SR_OK;
}
