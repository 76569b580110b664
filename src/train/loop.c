/* loop.c -- steps, updates, epochs.
 *
 * A step is one forward and backward pass; update-freq steps make an update. Gradients belong to
 * the SUMMED loss. Before the optimizer they are divided by the tokens of the update
 * (docs/models.md 2.5, 9.4). So recorded gradient statistics do not depend on the batch size.
 */
#include <math.h>
#include <string.h>

#include "base/program/progress.h"
#include "train/checkpoint/checkpoint.h"
#include "train/shards.h"

/* -- one update */

/* Several ranks stop at the same step, after they exchanged the signal. */
static bool should_stop(const trainer *r) {
    if (ranks_count(r->ranks) > 1) return shards_stop(r);
    return r->events->stop && r->events->stop(r->events->context);
}

/* Bounds the gradient, entries first: one that exploded must not shrink all others to nothing.
   norm: of the mean gradient. *scale turns the sum into the clipped mean. */
static sr_status clip(trainer *r, double norm, double *scale, sr_failure *why) {
    const train_config *c = r->config;
    params *p = &r->model->params;
    if (c->clip_value > 0) {
        optim_clip_values(p, r->threads, c->clip_value / *scale);
        if (c->clip_norm > 0 && optim_grad_norm(p, r->threads, &norm, why) != SR_OK)
            return why->status;
        norm *= c->clip_norm > 0 ? *scale : 1;
    }
    if (c->clip_norm > 0) *scale *= optim_clip_factor(norm, c->clip_norm);
    return SR_OK;
}

/* Applies the accumulated gradient; *mean_norm: norm of the mean gradient before clipping. */
static sr_status apply_update(trainer *r, double *mean_norm, sr_failure *why) {
    const train_config *c = r->config;
    double scale = 1 / (double)r->accumulated_tokens, norm;
    sr_status status = optim_grad_norm(&r->model->params, r->threads, &norm, why);
    if (status != SR_OK) return status;
    *mean_norm = norm *= scale;
    run_record_before_update(r->record, r->result->updates + 1, scale, r->threads);
    r->lr = schedule_lr(&r->schedule, r->result->updates, r->epoch);
    if (isfinite(norm)) status = clip(r, norm, &scale, why);
    if (status != SR_OK) return status;
    r->result->updates++;
    if (isfinite(norm)) {
        optim_step s = {&c->optim, r->result->updates - r->result->skipped, r->lr, scale,
                        r->threads};
        optim_apply(r->optimizer, &s, &r->model->params);
        r->last_skipped = false;
    } else {
        r->last_skipped = true;
        r->result->skipped++;
    }
    run_record_after_update(r->record, r->threads);
    params_invalidate_grad(&r->model->params);
    r->accumulated = r->accumulated_tokens = 0;
    return SR_OK;
}

/* -- one step */

/* Selects records of the first pass of every N-th update. */
static bool is_due(const trainer *r, int64_t every) {
    return every && !r->accumulated && (r->result->updates + 1) % every == 0;
}

static void tell_nonfinite(trainer *r, double loss, double norm) {
    const char *what, *site = run_record_nonfinite(r->record, &what);
    if (r->nonfinite_told || (!site && isfinite(loss) && isfinite(norm))) return;
    r->nonfinite_told = true;
    if (site)
        trainer_warn(r, "step %lld: the %s of site %s is not finite; the run continues",
                     (long long)r->result->steps, what, site);
    else
        trainer_warn(r, "step %lld: the %s is not finite; the run continues",
                     (long long)r->result->steps, isfinite(loss) ? "gradient" : "loss");
}

static void tell_progress(const trainer *r, double loss, int64_t tokens) {
    if (!r->events->progress) return;
    train_progress p = {.update = r->result->updates,
                        .updates = r->updates,
                        .epoch = r->epoch,
                        .loss = loss,
                        .lr = r->lr,
                        .tokens = tokens};
    r->events->progress(r->events->context, &p);
}

/* Passes over the training data after `steps` more steps. An update uses the learning rate at the
   start of its last step; records describe the end of a step. */
static double epoch_after(const trainer *r, int64_t steps) {
    return (double)r->data_epoch + (double)(r->data_batch + steps) / (double)r->batches;
}

/* last: the step that closes an epoch closes its update too. */
static sr_status step(trainer *r, const batch *b, bool last, sr_failure *why) {
    r->result->steps++;
    r->stepped = true;
    run_record_begin_step(r->record, r->result->steps, is_due(r, r->config->spectra_every));
    if (r->config->activations_every)
        run_record_want_activations(r->record, is_due(r, r->config->activations_every));
    if (r->config->theorems_every)
        run_record_want_theorems(r->record, is_due(r, r->config->theorems_every));
    /* Every step checks this, so that a resumed run is frozen, too. */
    const bool frozen = r->result->updates >= trainer_freeze_update(r);
    for (int i = 0; i < r->model->sites; i++) norm_site_freeze(r->model->site[i], frozen);
    double sum = 0, norm = 0, mark;
    const bool update = r->accumulated + 1 == r->config->update_freq || last;
    sr_status status = shards_pass(r, b, update, &sum, why);
    if (status != SR_OK) return status;
    r->accumulated++;
    r->accumulated_tokens += b->tokens;
    r->loss_sum += sum;
    r->loss_tokens += b->tokens;
    double loss = r->last_loss = sum / (double)b->tokens;
    run_step row = {.update = r->result->updates + 1,
                    .tokens = b->tokens,
                    .loss = loss,
                    .lr = NAN,
                    .grad_norm = NAN};
    if (update) {
        mark = progress_clock();
        status = apply_update(r, &norm, why);
        row.grad_norm = norm;
        row.lr = r->lr;
        r->result->times.optimizer += progress_lap(&mark);
    }
    row.epoch = r->epoch = epoch_after(r, 1);
    mark = progress_clock();
    run_record_end_step(r->record, &row);
    r->result->times.recorder += progress_lap(&mark);
    if (status == SR_OK) status = trainer_dump_step(r, b, sum, &row, why);
    tell_nonfinite(r, loss, norm);
    tell_progress(r, loss, b->tokens);
    return status == SR_OK ? trainer_check_record(r, why) : status;
}

/* -- epochs */

/* Singular values after this update; those after the last one are taken at the end. */
static bool embedding_due(const trainer *r) {
    const int64_t every = r->config->svd_every, u = r->result->updates;
    return every && u % every == 0 && u != r->updates;
}

/* A decomposition may take minutes. */
static sr_status record_embedding(trainer *r, sr_failure *why) {
    sr_status status = trainer_flush(r, why);
    if (status == SR_OK) status = run_record_embedding(r->record, r->result->steps, why);
    return status == SR_OK ? trainer_flush(r, why) : status;
}

static bool validation_due(const trainer *r, bool epoch_ends) {
    const train_config *c = r->config;
    const int64_t u = r->result->updates;
    return u == r->updates || (epoch_ends && r->data_epoch % c->validate_epochs == 0) ||
           (c->validate_updates && u % c->validate_updates == 0);
}

/* The step of the next batch. */
static sr_status next_step(trainer *r, sr_failure *why) {
    batch b;
    double mark = progress_clock();
    const int64_t i = r->data_batch;
    sr_status status = data_batch(r->data, SPLIT_TRAIN, r->data_epoch, i, &b, why);
    r->result->times.data += progress_lap(&mark);
    const bool last = i == r->batches - 1;
    r->epoch = epoch_after(r, 0);
    if (status == SR_OK) status = step(r, &b, last, why);
    r->data_batch = last ? 0 : i + 1;
    r->data_epoch += last;
    if (status != SR_OK) return status;
    /* Between updates: spectra, validation, checkpoints. */
    if (r->accumulated) return SR_OK;
    if (embedding_due(r)) status = record_embedding(r, why);
    if (status == SR_OK && validation_due(r, last)) status = trainer_evaluate(r, SPLIT_VALID, why);
    if (status != SR_OK || r->unevaluated) return status;
    return trainer_checkpoint_between(r, last, why);
}

/* After the last update. A signal in the final pass leaves a run that is not finished. */
static sr_status finish(trainer *r, sr_failure *why) {
    sr_status status = SR_OK;
    r->finished = true;
    trainer_tell_patience(r);
    if (r->config->test) status = trainer_evaluate(r, SPLIT_TEST, why);
    if (r->unevaluated) r->finished = r->unevaluated = false;
    if (status == SR_OK && r->finished && r->config->final_tid) status = trainer_final_pass(r, why);
    return status;
}

static sr_status steps(trainer *r, sr_failure *why) {
    sr_status status = SR_OK;
    params_zero_grad(&r->model->params);
    while (status == SR_OK && r->result->updates < r->updates && !trainer_out_of_patience(r)) {
        if (!r->accumulated && should_stop(r)) break; /* a signal ends the run between updates */
        status = next_step(r, why);
    }
    const bool finishes = status == SR_OK && !should_stop(r);
    if (finishes) status = finish(r, why);
    r->result->interrupted = finishes ? !r->finished : should_stop(r);
    if (status == SR_OK && r->result->interrupted) status = trainer_checkpoint_last(r, why);
    if (status != SR_OK || r->result->steps == 0) return status;
    if (embedding_due(r)) return status; /* it is recorded already */
    return record_embedding(r, why);
}

/* Reads state and rows of the resumed run. */
static sr_status take_over(trainer *r, sr_failure *why) {
    sr_status status = checkpoint_restore(r, r->from->checkpoint, why);
    if (status == SR_OK && r->from->complete) status = trainer_check_resumed_patience(r, why);
    if (status != SR_OK) return status;
    const int64_t steps = r->result->steps_before = r->result->steps;
    r->checkpoint_covered = r->result->updates;
    if (*r->from->stored_dumps)
        trainer_note(r, "a resumed run writes no dump: not %.300s", r->from->stored_dumps);
    if (*r->from->passed_over) trainer_warn(r, "%s; passed over", r->from->passed_over);
    trainer_note(r, "resumed: %s, %lld updates are done", r->from->checkpoint,
                 (long long)r->result->updates);
    train_metric tested;
    train_metric_make(r->task, r->task->leading, SPLIT_TEST, false, &tested);
    r->tested = run_record_has_eval(r->from->rows, tested.name, steps);
    status =
        run_record_copy(r->record, r->from->rows, steps, embedding_due(r) ? steps : steps - 1, why);
    status = ranks_agree(r->ranks, status, why);
    if (status != SR_OK || !r->unevaluated) return status;
    r->unevaluated = false; /* repeats an interrupted evaluation, then writes its checkpoint */
    status = trainer_evaluate(r, SPLIT_VALID, why);
    if (status != SR_OK || r->unevaluated) return status;
    return trainer_checkpoint_between(r, r->data_batch == 0, why);
}

/* Returns why a finished run counts as diverged (docs/definitions.md), or NULL. */
static const char *divergence(const trainer *r) {
    const train_eval *e = &r->result->last;
    if (!r->finished || r->result->steps == 0) return NULL;
    if (!isfinite(r->last_loss)) return "the loss of the last pass is not finite";
    if (e->sum.tokens > 0 && !isfinite(e->sum.loss))
        return "the last validation loss is not finite";
    return r->last_skipped ? "the gradient of the last update is not finite" : NULL;
}

sr_status train_run(const train_config *c, const char *command, const train_resume *from,
                    const train_events *events, train_result *result, sr_failure *why) {
    sr_failure unheard = {0};
    if (!why) why = &unheard;
    *result = (train_result){0};
    trainer r = {.config = c, .from = from, .events = events, .result = result};
    sr_status status = trainer_open(&r, command, why);
    if (status == SR_OK && from) status = take_over(&r, why);
    if (status == SR_OK) status = steps(&r, why);
    result->diverged = divergence(&r);
    if (result->diverged) trainer_warn(&r, "the run diverged: %s", result->diverged);
    if (r.tape) memcpy(result->profile, r.tape->profile, sizeof result->profile);
    if (r.model) trainer_digest(r.model, result->digest);
    result->times.total = progress_clock() - r.started;
    return trainer_close(&r, status, why);
}
