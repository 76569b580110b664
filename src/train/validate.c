/* validate.c -- a pass over the validation data, and the spectrum of the embedding. */
#include <math.h>
#include <stdlib.h>

#include "statnet/progress.h"
#include "statnet/svd.h"
#include "trainer.h"

/* Sums of one pass without dropout: NORM_RUNNING, or NORM_BATCH, which updates nothing either. */
static sr_status validation_pass(trainer *r, norm_mode mode, cross_entropy_report *sum,
                                 sr_failure *why) {
    int64_t batches = data_batches(r->data, SPLIT_VALID);
    for (int64_t i = 0; i < batches; i++) {
        batch b;
        sr_status status = data_batch(r->data, SPLIT_VALID, 0, i, &b, why);
        if (status != SR_OK) return status;
        r->tape->profiling = false;
        tape_reset(r->tape, r->random, false, false);
        cross_entropy_report report = {0};
        if (!model_loss(r->model, r->tape, &b, mode, &report)) {
            const sr_failure *f = tape_failure(r->tape);
            return sr_fail(why, f->status, "validation: %s", f->text);
        }
        sum->loss += report.loss;
        sum->nll += report.nll;
        sum->tokens += report.tokens;
        sum->correct += report.correct;
        sum->unknown += report.unknown;
    }
    return SR_OK;
}

static void record_eval(trainer *r, const train_eval *e) {
    if (!r->recorder) return;
    double value[SR_EVAL_COUNT];
    for (int i = 0; i < SR_EVAL_COUNT; i++) value[i] = NAN;
    value[SR_EVAL_epoch] = e->epoch;
    value[SR_EVAL_valid_loss] = e->loss;
    value[SR_EVAL_valid_nll] = e->nll;
    value[SR_EVAL_valid_ppl] = exp(e->nll);
    value[SR_EVAL_valid_accuracy] = e->accuracy;
    value[SR_EVAL_valid_loss_batch] = e->loss_batch;
    value[SR_EVAL_valid_nll_batch] = e->nll_batch;
    value[SR_EVAL_valid_ppl_batch] = exp(e->nll_batch);
    value[SR_EVAL_valid_accuracy_batch] = e->accuracy_batch;
    sr_put_eval(r->recorder, e->step, value);
}

sr_status trainer_validate(trainer *r, sr_failure *why) {
    double start = progress_clock();
    cross_entropy_report sum = {0}, batch_sum = {0};
    sr_status status = validation_pass(r, NORM_RUNNING, &sum, why);
    if (status == SR_OK && r->config->validate_batch)
        status = validation_pass(r, NORM_BATCH, &batch_sum, why);
    if (status != SR_OK) return status;
    double batch_n = r->config->validate_batch ? (double)batch_sum.tokens : NAN;
    double n = (double)sum.tokens;
    train_eval e = {
        .step = r->result->steps,
        .update = r->result->updates,
        .epoch = r->epoch,
        .train_loss = r->loss_sum / (double)r->loss_tokens,
        .loss = sum.loss / n,
        .nll = sum.nll / n,
        .accuracy = 100 * (double)sum.correct / n,
        .loss_batch = batch_sum.loss / batch_n,
        .nll_batch = batch_sum.nll / batch_n,
        .accuracy_batch = 100 * (double)batch_sum.correct / batch_n,
        .tokens = sum.tokens,
        .unknown = sum.unknown,
        .lr = r->lr,
        .seconds = progress_clock() - r->started,
    };
    r->loss_sum = 0;
    r->loss_tokens = 0;
    r->result->last = e;
    record_eval(r, &e);
    if (r->events->eval) r->events->eval(r->events->context, &e);
    r->result->times.validation += progress_clock() - start;
    return SR_OK;
}

/* The double build's weights as float; the float build's as they are. */
static sr_status embedding_values(const tensor *e, double *value, sr_failure *why) {
#ifdef REAL_DOUBLE
    float *narrow = malloc((size_t)e->count * sizeof *narrow);
    if (!narrow) return sr_fail(why, SR_MEMORY, "out of memory for the embedding");
    for (int64_t i = 0; i < e->count; i++) narrow[i] = (float)e->value[i];
    sr_status status = svd_singular_values(narrow, e->dim[0], e->dim[1], value, why);
    free(narrow);
    return status;
#else
    return svd_singular_values(e->value, e->dim[0], e->dim[1], value, why);
#endif
}

sr_status trainer_record_embedding(trainer *r, sr_failure *why) {
    const tensor *e = r->model->embedding;
    if (!e || !r->recorder) return SR_OK;
    int64_t count = e->dim[0] < e->dim[1] ? e->dim[0] : e->dim[1];
    double *value = malloc((size_t)count * sizeof *value);
    if (!value)
        return sr_fail(why, SR_MEMORY, "out of memory for %lld singular values", (long long)count);
    sr_status status = embedding_values(e, value, why);
    if (status == SR_OK) sr_put_singular_values(r->recorder, "tokens", r->result->steps, value);
    free(value);
    return status;
}
