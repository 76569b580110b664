/* loop.c -- steps, updates, epochs.
 *
 * A step is one forward and backward pass; update-freq steps make an update. Gradients are those of
 * the SUMMED loss; they are divided by the number of tokens of all the update's steps just before
 * the optimizer sees them (models.md 2.5, 9.4), so statistics that a normalization takes of its
 * gradient do not depend on the batch's size.
 */
#include <math.h>
#include <string.h>

#include "statnet/progress.h"
#include "trainer.h"

/* Seconds since *mark, which moves to now. */
static double lap(double *mark) {
    double now = progress_clock(), passed = now - *mark;
    *mark = now;
    return passed;
}

/* -- one update */

static bool should_stop(const trainer *r) {
    return r->events->stop && r->events->stop(r->events->context);
}

/* Applies what has been accumulated; *mean_norm is that of the mean gradient, before clipping. */
static sr_status apply_update(trainer *r, double *mean_norm, sr_failure *why) {
    const train_config *c = r->config;
    double scale = 1 / (double)r->accumulated_tokens, norm;
    sr_status status = optim_grad_norm(&r->model->params, r->threads, &norm, why);
    if (status != SR_OK) return status;
    *mean_norm = norm *= scale;
    r->lr = schedule_lr(&r->schedule, r->result->updates, r->epoch);
    if (c->clip_norm > 0) scale *= fmin(1, c->clip_norm / (norm + 1e-6));
    r->result->updates++;
    if (isfinite(norm)) {
        optim_step s = {&c->optim, r->result->updates - r->result->skipped, r->lr, scale,
                        r->threads};
        optim_apply(r->optimizer, &s, &r->model->params);
    } else {
        r->result->skipped++;
    }
    params_zero_grad(&r->model->params);
    r->accumulated = r->accumulated_tokens = 0;
    return SR_OK;
}

/* -- one step */

static bool wants_spectra(const trainer *r) {
    int64_t every = r->config->spectra_every;
    return every && !r->accumulated && (r->result->updates + 1) % every == 0;
}

/* The forward and backward pass; the summed loss. */
static sr_status pass(trainer *r, const batch *b, double *loss, sr_failure *why) {
    train_times *times = &r->result->times;
    double mark = progress_clock();
    cross_entropy_report report = {0};
    r->tape->profiling = r->config->profile;
    if (r->hooks) hooks_want_spectra(r->hooks, wants_spectra(r));
    tape_reset(r->tape, rng_split(&r->random, (uint64_t)r->result->steps), true, true);
    tensor *sum = model_loss(r->model, r->tape, b, NORM_TRAIN, &report);
    if (r->hooks) hooks_look_at_rows(r->hooks, !isfinite(report.loss));
    times->forward += lap(&mark);
    tape_backward(r->tape, sum, 1);
    double recorder = r->hooks ? hooks_seconds(r->hooks) : 0;
    times->recorder += recorder;
    times->backward += lap(&mark) - recorder;
    const sr_failure *f = tape_failure(r->tape);
    if (!f && r->hooks) f = hooks_failure(r->hooks);
    if (f) return sr_fail(why, f->status, "step %lld: %s", (long long)r->result->steps, f->text);
    r->accumulated++;
    r->accumulated_tokens += b->tokens;
    r->loss_sum += report.loss;
    r->loss_tokens += b->tokens;
    *loss = report.loss;
    return SR_OK;
}

static void tell_nonfinite(trainer *r, double loss, double norm) {
    const char *what, *site = r->hooks ? hooks_nonfinite(r->hooks, &what) : NULL;
    if (r->nonfinite_told || (!site && isfinite(loss) && isfinite(norm))) return;
    r->nonfinite_told = true;
    if (site)
        trainer_warn(r, "step %lld: the %s of site %s is not finite; the run goes on",
                     (long long)r->result->steps, what, site);
    else
        trainer_warn(r, "step %lld: the %s is not finite; the run goes on",
                     (long long)r->result->steps, isfinite(loss) ? "gradient" : "loss");
}

static void record_step(trainer *r, const sr_step *row) {
    if (!r->recorder) return;
    double mark = progress_clock();
    sr_end_step(r->recorder, row);
    r->result->times.recorder += lap(&mark);
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

/* The recorder's failure stops the run unless the user wants otherwise. */
static sr_status check_recorder(const trainer *r, sr_failure *why) {
    const sr_failure *f = r->recorder ? sr_failed(r->recorder) : NULL;
    if (!f || !strcmp(r->config->on_write_error, "continue")) return SR_OK;
    sr_fail(why, f->status, "%s", f->text);
    sr_hint(why, "%s", f->hint);
    return f->status;
}

/* last: the step that closes an epoch closes its update too. */
static sr_status step(trainer *r, const batch *b, bool last, sr_failure *why) {
    r->result->steps++;
    if (r->recorder) sr_begin_step(r->recorder, r->result->steps);
    double sum = 0, norm = 0;
    sr_status status = pass(r, b, &sum, why);
    if (status != SR_OK) return status;
    double loss = sum / (double)b->tokens;
    sr_step row = {.update = r->result->updates + 1,
                   .tokens = b->tokens,
                   .epoch = r->epoch,
                   .loss = loss,
                   .lr = NAN,
                   .grad_norm = NAN};
    if (r->accumulated == r->config->update_freq || last) {
        double mark = progress_clock();
        status = apply_update(r, &norm, why);
        row.grad_norm = norm;
        row.lr = r->lr;
        r->result->times.optimizer += lap(&mark);
    }
    record_step(r, &row);
    if (status == SR_OK) status = trainer_dump_step(r, b, sum, &row, why);
    tell_nonfinite(r, loss, norm);
    tell_progress(r, loss, b->tokens);
    return status == SR_OK ? check_recorder(r, why) : status;
}

/* -- epochs */

/* What happens between updates: spectra and validation. */
static sr_status between_updates(trainer *r, bool epoch_ends, sr_failure *why) {
    const train_config *c = r->config;
    int64_t u = r->result->updates;
    if (r->accumulated) return SR_OK;
    bool ends = r->updates == u;
    if (c->svd_every && u % c->svd_every == 0 && !ends) {
        sr_status status = trainer_record_embedding(r, why);
        if (status != SR_OK) return status;
    }
    if (epoch_ends || ends || (c->validate_updates && u % c->validate_updates == 0))
        return trainer_validate(r, why);
    return SR_OK;
}

static sr_status epoch(trainer *r, int64_t number, sr_failure *why) {
    for (int64_t i = 0; i < r->batches && r->result->updates < r->updates; i++) {
        if (should_stop(r)) return SR_OK;
        batch b;
        double mark = progress_clock();
        sr_status status = data_batch(r->data, SPLIT_TRAIN, number, i, &b, why);
        r->result->times.data += lap(&mark);
        bool last = i == r->batches - 1;
        r->epoch = (double)number + (double)i / (double)r->batches;
        if (status == SR_OK) status = step(r, &b, last, why);
        r->epoch = (double)number + (double)(i + 1) / (double)r->batches;
        if (status == SR_OK) status = between_updates(r, last, why);
        if (status != SR_OK) return status;
    }
    return SR_OK;
}

static sr_status epochs(trainer *r, sr_failure *why) {
    params_zero_grad(&r->model->params);
    for (int64_t e = 0; e < r->config->epochs && r->result->updates < r->updates; e++) {
        sr_status status = epoch(r, e, why);
        if (status != SR_OK) return status;
        if (should_stop(r)) {
            r->result->interrupted = true;
            break;
        }
    }
    r->finished = !r->result->interrupted;
    if (r->finished && r->config->final_tid) {
        sr_status status = trainer_final_tid(r, why);
        if (status != SR_OK) return status;
    }
    return trainer_record_embedding(r, why);
}

sr_status train_run(const train_config *c, const char *command, const train_events *events,
                    train_result *result, sr_failure *why) {
    sr_failure unheard = {0};
    if (!why) why = &unheard;
    *result = (train_result){0};
    trainer r = {.config = c, .events = events, .result = result};
    sr_status status = trainer_open(&r, command, why);
    if (status == SR_OK) status = epochs(&r, why);
    if (r.tape) memcpy(result->profile, r.tape->profile, sizeof result->profile);
    if (r.model) trainer_digest(r.model, result->digest);
    result->times.total = progress_clock() - r.started;
    return trainer_close(&r, status, why);
}
