/* validate.c -- evaluations of a split, as they are recorded and told. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "statnet/progress.h"
#include "trainer.h"

/* -- a split */

static bool has_batch_statistics(const trainer *r, const train_eval *e) {
    return r->config->validate_batch && e->split == SPLIT_VALID;
}

static void record_eval(trainer *r, const train_eval *e) {
    train_metric metric[2 * TASK_METRICS];
    const char *name[2 * TASK_METRICS];
    double value[2 * TASK_METRICS];
    const int metrics = train_metrics_shown(r->config, e->task);
    const int count = metrics + (has_batch_statistics(r, e) ? task_metrics(e->task) : 0);
    for (int i = 0; i < count; i++) {
        const bool of_batch = i >= metrics;
        train_metric_make(e->task, i % metrics, e->split, of_batch, &metric[i]);
        name[i] = metric[i].name;
        value[i] = of_batch ? e->batch_value[i % metrics] : e->value[i];
    }
    run_record_eval(r->record, e->step, e->epoch, name, value, count);
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
    status = trainer_decode(r, e, why);
    if (status != SR_OK || r->unevaluated) return status;
    if (!has_batch_statistics(r, e)) return SR_OK;
    status = task_evaluate(r->task, &r->task_options, r->model, r->tape, r->data, e->split,
                           NORM_BATCH, &again, why);
    if (status == SR_OK) r->task->measure(&again, e->batch_value);
    return status;
}

/* Metrics of what the model writes: of every --bleu-every-th validation, and of the test. */
sr_status trainer_decode(trainer *r, train_eval *e, sr_failure *why) {
    const int64_t every = r->config->bleu_every;
    for (int i = task_metrics(e->task); i < task_all_metrics(e->task); i++) e->value[i] = NAN;
    const int64_t number = r->validations + 1;
    if (!every || (e->split == SPLIT_VALID && number % every)) return SR_OK;
    const bleu_form form = BLEU_MULTI_FORM;
    translator t = {.model = r->model, .codec = data_codec(r->data)};
    t.options = translate_options_preset();
    t.options.beam.beam = r->config->bleu_beam;
    t.options.beam.best = 1;
    const int64_t longest = 1024 + t.options.beam.beam * (beam_longest(&t.options.beam, 1024) + 1);
    if (t.options.max_tokens < longest) t.options.max_tokens = longest;
    t.options.threads = r->threads;
    t.options.stop = r->events->stop, t.options.context = r->events->context;
    bleu_scorer *s = translator_bleu(&t, r->data, e->split, &form, why);
    r->unevaluated = !s && why->status == SR_OK;
    if (!s) return why->status;
    const bleu_counts sum = bleu_sum(s);
    e->value[task_metrics(e->task)] = bleu_compute(&form, &sum).bleu;
    char line[BLEU_LINE], signature[BLEU_LINE];
    bleu_print_multi(&sum, line, sizeof line);
    bleu_signature(s, NULL, signature, sizeof signature);
    snprintf(e->decoded, sizeof e->decoded, "%s %s", line, signature);
    bleu_free(s);
    return SR_OK;
}

void trainer_eval_begin(const trainer *r, data_split split, train_eval *e) {
    int64_t tokens;
    e->task = r->task;
    e->split = split;
    e->left_out = data_left_out(r->data, split, &tokens);
    e->condition = model_condition(r->model);
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
    sr_status status = measure(r, &e, why);
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
    if (split != SPLIT_TEST || !r->tested || r->stepped) record_eval(r, &e);
    if (split == SPLIT_VALID) trainer_see_patience(r, &e);
    trainer_checkpoint_evaluated(r, &e);
    if (split == SPLIT_VALID && r->events->eval) r->events->eval(r->events->context, &e);
    r->result->times.validation += progress_clock() - start;
    return SR_OK;
}
