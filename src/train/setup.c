/* setup.c -- opening and closing a run. */
#include <math.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "statnet/gemm.h"
#include "statnet/progress.h"
#include "statnet/svd.h"
#include "trainer.h"

void trainer_note(const trainer *r, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (r->events->note) r->events->note(r->events->context, text);
}

void trainer_warn(const trainer *r, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (r->events->warn) r->events->warn(r->events->context, text);
}

/* -- schedule */

static sr_status read_milestones(schedule *s, const char *text, sr_failure *why) {
    for (const char *at = text; *at;) {
        char *end;
        double value = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !(value > 0))
            return sr_fail(why, SR_USAGE,
                           "--lr-steps: '%s' is not a list of positive numbers as in 6,9", text);
        if (s->milestones == SCHEDULE_STEPS_MAX)
            return sr_fail(why, SR_USAGE, "--lr-steps: '%s' has more than %d milestones", text,
                           SCHEDULE_STEPS_MAX);
        s->milestone[s->milestones++] = value;
        at = *end ? end + 1 : end;
    }
    return SR_OK;
}

static sr_status open_schedule(trainer *r, sr_failure *why) {
    const train_config *c = r->config;
    static const char *const kinds[] = {"fixed", "step", "cosine", "inverse_sqrt"};
    r->schedule = (schedule){.lr = c->lr,
                             .warmup_init = c->warmup_init,
                             .warmup = c->warmup_updates,
                             .total = r->updates,
                             .factor = c->lr_factor,
                             .milestone_updates = !strcmp(c->lr_steps_in, "updates")};
    for (int i = 0; i < 4; i++)
        if (!strcmp(kinds[i], c->scheduler)) r->schedule.kind = (schedule_kind)i;
    return read_milestones(&r->schedule, c->lr_steps, why);
}

/* -- data, model, optimizer */

static int64_t ceiling(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static sr_status open_data(trainer *r, sr_failure *why) {
    const train_config *c = r->config;
    r->data = data_open(&c->data, why);
    if (!r->data) return why->status;
    r->batches = data_batches(r->data, SPLIT_TRAIN);
    if (r->batches < 1)
        return sr_fail(why, SR_USAGE, "no training batch: %s", data_describe(r->data));
    r->updates = ceiling(r->batches, c->update_freq) * c->epochs;
    if (c->max_steps && c->max_steps < r->updates) r->updates = c->max_steps;
    trainer_note(r, "data: %s", data_describe(r->data));
    return SR_OK;
}

static sr_status open_model(trainer *r, sr_failure *why) {
    r->model = model_create(&r->config->model, data_get_shape(r->data), why);
    if (!r->model) return why->status;
    r->optimizer = optim_find(r->config->optimizer);
    if (!r->optimizer)
        return sr_fail(why, SR_USAGE, "optimizer '%s' is not known", r->config->optimizer);
    trainer_note(r, "model: %s, %lld parameters, %d normalization sites, %d threads",
                 r->config->model.name, (long long)params_total(&r->model->params), r->model->sites,
                 r->threads);
    return params_slots(&r->model->params, r->optimizer->slots, why);
}

/* -- recorder */

static sr_recorder *create_recorder(trainer *r, const char *command, const char *dump,
                                    sr_failure *why) {
    const train_config *c = r->config;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    sr_options o = SR_OPTIONS_DEFAULT;
    o.force = c->force;
    o.program = "statrec train";
    o.version = STATREC_VERSION;
    o.command = command;
    o.config = dump;
    o.host = host;
    o.git = STATREC_GIT;
    o.model = c->model.name;
    o.data = c->data.name;
    o.task = r->model->row->task == TASK_IMAGES ? "images" : "pairs";
    o.loss_reduction = "sum";
    o.seed = (uint64_t)c->seed;
    o.threads = r->threads;
    o.scalars = strcmp(c->record, "none") != 0;
    o.vectors = !strcmp(c->record, "all");
    o.vectors_every = c->vectors_every;
    o.planned_steps = r->updates * c->update_freq;
    o.spectra = o.scalars && c->spectra_every > 0;
    o.planned_spectra = o.spectra ? r->updates / c->spectra_every : 0;
    o.final = o.scalars && c->final_tid;
    o.size_limit = c->size_limit;
    o.flush_steps = c->flush_steps;
    o.flush_seconds = c->flush_seconds;
    return sr_create(c->output, &o, why);
}

static void note_projection(const trainer *r) {
    int64_t bytes = sr_projected_bytes(r->recorder), every = sr_vectors_every(r->recorder);
    char vectors[64] = "no vectors";
    if (every > 0) snprintf(vectors, sizeof vectors, "vectors every %lld steps", (long long)every);
    if (every == 1) snprintf(vectors, sizeof vectors, "vectors every step");
    trainer_note(r,
                 "recording: %s, projected size %.1f MB for %lld steps, %s; a crash loses at most "
                 "%lld steps or %g s",
                 r->config->output, (double)bytes / 1e6,
                 (long long)(r->updates * r->config->update_freq), vectors,
                 (long long)r->config->flush_steps, r->config->flush_seconds);
}

/* Running values of a method that has none follow with the weight that bn would have here. */
static sr_status observe_batch(const trainer *r, sr_failure *why) {
    const train_config *c = r->config;
    double alpha = model_norm_alpha(r->model, &c->model, norm_find("bn"));
    sr_status status = SR_OK;
    for (int i = 0; i < r->model->sites && status == SR_OK; i++)
        if (hooks_match(c->record_sites, r->model->site[i]->name))
            status = norm_site_observe_batch(r->model->site[i], alpha, why);
    return status;
}

static sr_status open_recorder(trainer *r, const char *command, sr_failure *why) {
    const train_config *c = r->config;
    if (!*c->output) return SR_OK;
    char *dump = trainer_config_text(r);
    if (!dump) return sr_fail(why, SR_MEMORY, "out of memory for the configuration");
    r->recorder = create_recorder(r, command, dump, why);
    free(dump);
    if (!r->recorder) return why->status;
    if (!strcmp(c->observe, "batch") && observe_batch(r, why) != SR_OK) return why->status;
    if (strcmp(c->record, "none")) {
        r->hooks =
            hooks_create(r->model, r->recorder, c->record_sites, !strcmp(c->record, "all"), why);
        if (!r->hooks) return why->status;
    }
    const tensor *e = r->model->embedding;
    if (e) {
        sr_add_embedding(r->recorder, "tokens", e->dim[0], e->dim[1]);
        sr_set_embedding_method(r->recorder, "tokens", SVD_METHOD);
    }
    if (sr_failed(r->recorder))
        return sr_fail(why, sr_failed(r->recorder)->status, "%s", sr_failed(r->recorder)->text);
    note_projection(r);
    return SR_OK;
}

sr_status trainer_open(trainer *r, const char *command, sr_failure *why) {
    const train_config *c = r->config;
    r->threads = c->threads ? (int)c->threads : omp_get_num_procs();
    r->started = progress_clock();
    gemm_setup(r->threads);
    rng root = rng_create((uint64_t)c->seed);
    r->random = rng_split(&root, 1);
    sr_status status = trainer_dump_open(r, why);
    if (status == SR_OK) status = open_data(r, why);
    if (status == SR_OK) status = open_schedule(r, why);
    if (status == SR_OK) status = open_model(r, why);
    if (status == SR_OK && !(r->tape = tape_create(r->threads, why))) status = why->status;
    if (status == SR_OK) status = open_recorder(r, command, why);
    if (status == SR_OK) status = trainer_dump_weights(r, why);
    return status;
}

/* A run that never made a step leaves no file behind. */
static sr_status close_recorder(trainer *r, sr_status so_far, sr_failure *why) {
    if (!r->recorder) return so_far;
    if (so_far != SR_OK && r->result->steps == 0) {
        sr_abandon(r->recorder);
        return so_far;
    }
    const char *status = so_far != SR_OK ? "failed" : r->finished ? "complete" : "interrupted";
    sr_finish finish = {.status = status,
                        .reason = so_far != SR_OK ? why->text
                                  : r->finished   ? ""
                                                  : "signal",
                        .weights_digest = r->result->digest};
    sr_failure recorder_failure = {0};
    sr_status closed = sr_close(r->recorder, &finish, &recorder_failure);
    r->recorder = NULL;
    if (so_far != SR_OK || closed == SR_OK) return so_far;
    if (recorder_failure.hint[0]) {
        sr_fail(why, closed, "%s", recorder_failure.text);
        sr_hint(why, "%s", recorder_failure.hint);
        return closed;
    }
    return sr_fail(why, closed, "%s", recorder_failure.text);
}

sr_status trainer_close(trainer *r, sr_status so_far, sr_failure *why) {
    so_far = trainer_dump_close(r, so_far, why);
    sr_status status = close_recorder(r, so_far, why);
    hooks_free(r->hooks);
    tape_free(r->tape);
    model_free(r->model);
    data_close(r->data);
    return status;
}
