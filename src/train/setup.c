/* setup.c -- opening and closing a run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program/progress.h"
#include "engine/gemm/gemm.h"
#include "train/loaded_model.h"
#include "train/shards.h"
#include "train/trainer.h"

/* -- schedule */

static sr_status open_schedule(trainer *r, sr_failure *why) {
    const train_config *c = r->config;
    static const struct {
        const char *name;
        schedule_kind kind;
    } kinds[] = {{"fixed", SCHEDULE_FIXED},
                 {"step", SCHEDULE_STEP},
                 {"cosine", SCHEDULE_COSINE},
                 {"linear", SCHEDULE_LINEAR},
                 {"inverse_sqrt", SCHEDULE_INVERSE_SQRT},
                 {"inverse_sqrt_xl", SCHEDULE_INVERSE_SQRT_XL}};
    r->schedule = (schedule){.lr = c->lr,
                             .warmup_init = c->warmup_init,
                             .warmup = c->warmup_updates,
                             .total = r->updates,
                             .lowest = c->lr_min,
                             .factor = c->lr_factor,
                             .milestone_updates = !strcmp(c->lr_steps_in, "updates")};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, c->scheduler)) r->schedule.kind = kinds[i].kind;
    return schedule_read_milestones(&r->schedule, c->lr_steps, why);
}

/* -- data, model, optimizer */

static sr_status open_data(trainer *r, sr_failure *why) {
    const train_config *c = r->config;
    r->data = train_data_open(c, &r->text, why);
    if (!r->data) return why->status;
    r->batches = data_batches(r->data, SPLIT_TRAIN);
    r->data_digest = data_training_digest(r->data);
    if (r->batches < 1)
        return sr_fail(why, SR_USAGE, "no training batch: %s", data_describe(r->data));
    r->updates = (r->batches + c->update_freq - 1) / c->update_freq * c->epochs;
    if (c->max_steps && c->max_steps < r->updates) r->updates = c->max_steps;
    trainer_note(r, "data: %s", data_describe(r->data));
    for (const char *at = data_warnings(r->data); *at; at += *at == '\n') {
        const int length = (int)strcspn(at, "\n");
        trainer_warn(r, "%.*s", length, at);
        at += length;
    }
    const train_resume *from = r->from;
    if (!from || from->updates < r->updates) return SR_OK;
    if (from->updates == r->updates && !from->complete) return SR_OK; /* the last pass is left */
    sr_fail(why, SR_USAGE, "%s: %s %lld updates, of %lld planned", from->rows,
            from->complete ? "the run is complete after" : "the run has made",
            (long long)from->updates, (long long)r->updates);
    sr_hint(why, "increase --epochs or --max-steps to continue");
    return SR_USAGE;
}

/* An option that no site's method obeys is a mistake. */
static sr_status check_norm_options(const trainer *r, sr_failure *why) {
    const model_options *o = &r->config->model;
    bool eps = !strcmp(r->config->observe, "batch"), alpha = eps;
    for (int i = 0; i < r->model->sites; i++) {
        const norm_site *s = r->model->site[i];
        eps |= s->method->eps > 0 || s->options.layer_scale > 0;
        alpha |= s->method->alpha > 0;
    }
    if (!isnan(o->norm_eps) && !eps)
        return sr_fail(why, SR_USAGE, "--norm-eps: no site's normalization has this parameter");
    if (!isnan(o->norm_alpha) && !alpha)
        return sr_fail(why, SR_USAGE, "--norm-alpha: no site's normalization has this parameter");
    return SR_OK;
}

static void tell_freezing(const trainer *r) {
    if (r->config->freeze_stats < 1)
        trainer_note(r, "running statistics stay as they are after update %lld",
                     (long long)trainer_freeze_update(r));
}

static sr_status read_vectors(const trainer *r, const char *path, sr_failure *why) {
    const vocab *words = data_dictionary(r->data, SIDE_SOURCE);
    vector_matches m;
    if (word_vectors_read(path, words, r->model->embedding, &m, why) != SR_OK) return why->status;
    trainer_note(r, "word vectors: %s has %lld of %lld words", path, (long long)m.found,
                 (long long)m.words);
    r->model->condition = "word vectors pretrained";
    if (*m.line_ends) trainer_warn(r, "%s", m.line_ends);
    if (vector_matches_few(&m)) {
        char text[SR_FAILURE_TEXT];
        char *condition = r->result->condition;
        vector_matches_warning(&m, words, path, text, sizeof text);
        trainer_warn(r, "%s", text);
        snprintf(condition, sizeof r->result->condition, "word vectors of %lld of %lld words",
                 (long long)m.found, (long long)m.words);
        r->model->condition = condition;
    }
    return SR_OK;
}

/* Reads initial weights. */
static sr_status read_weights(const trainer *r, sr_failure *why) {
    const train_config *c = r->config;
    if (r->from) return SR_OK;
    if (*c->model.word_vectors && read_vectors(r, c->model.word_vectors, why) != SR_OK)
        return why->status;
    if (*c->weights && weights_read(r->model, c->weights, why) != SR_OK) return why->status;
    sr_failure other = {0};
    if (*c->weights && weights_check_meaning(c->weights, data_get_shape(r->data), &other) != SR_OK)
        trainer_warn(r, "--weights: %s", other.text);
    return SR_OK;
}

static sr_status open_model(trainer *r, sr_failure *why) {
    const train_config *c = r->config;
    const data_shape *shape = data_get_shape(r->data);
    r->task = task_of(shape->task);
    r->task_options = (task_options){c->label_smoothing, c->smoothing, c->bleu_beam};
    if (task_check(model_find(c->model.name), shape, why) != SR_OK) return why->status;
    r->model = model_create(&c->model, shape, why);
    if (!r->model || task_check_loss(r->task, &r->task_options, r->model, why) != SR_OK)
        return why->status;
    trainer_eval_begin(r, SPLIT_VALID, &r->result->last); /* a resumed run may have one */
    r->optimizer = optim_find(c->optimizer);
    if (!r->optimizer) return sr_fail(why, SR_USAGE, "optimizer '%s' is not known", c->optimizer);
    trainer_note(r, "model: %s, %lld parameters, %d normalization sites, %d threads", c->model.name,
                 (long long)params_total(&r->model->params), r->model->sites, r->threads);
    tell_freezing(r);
    trainer_warn_unused(r);
    sr_status status = check_norm_options(r, why);
    if (status == SR_OK) status = read_weights(r, why);
    return status == SR_OK ? params_slots(&r->model->params, r->optimizer->slots, why) : status;
}

/* -- run file */

static void note_projection(const trainer *r) {
    int64_t bytes = run_record_projected_bytes(r->record);
    int64_t every = run_record_vectors_every(r->record);
    char vectors[64] = "no vectors";
    if (every > 0) snprintf(vectors, sizeof vectors, "vectors every %lld steps", (long long)every);
    if (every == 1) snprintf(vectors, sizeof vectors, "vectors every step");
    trainer_note(r,
                 "recording: %s, projected size %.1f MB for %lld steps, %s; a crash loses at most "
                 "%lld steps or %g s",
                 r->config->output, (double)bytes / 1e6, (long long)trainer_planned_steps(r),
                 vectors, (long long)r->config->flush_steps, r->config->flush_seconds);
}

static run_record_options record_options(const trainer *r, const char *command,
                                         const char *config) {
    const train_config *c = r->config;
    return (run_record_options){
        .path = c->output,
        .force = c->force,
        .resume = r->from != NULL,
        .parent = r->from ? r->from->parent : NULL,
        .command = r->from ? r->from->command : command,
        .config = config,
        .git = STATREC_GIT,
        .data = c->data.name,
        .task = r->task->name,
        .seed = (uint64_t)c->seed,
        .threads = r->threads,
        .shares = r->shards,
        .own_shares = shards_of_rank(r),
        .each_share = c->record_shards && r->shards > 1 && !c->sync_norm,
        .synchronised = c->sync_norm && r->shards > 1,
        .ranks = r->shards == 1 ? NULL
                 : c->sync_norm ? "all rows of a batch, synchronised over the ranks"
                                : "the first shard of each batch (--shards); attention, "
                                  "activations and pairs: all shards",
        .scalars = strcmp(c->record, "none") != 0,
        .vectors = !strcmp(c->record, "all"),
        .sites = c->record_sites,
        .observe_batch = !strcmp(c->observe, "batch"),
        .observe_alpha = model_norm_alpha(r->model, &c->model, norm_observer()),
        .vectors_every = c->vectors_every,
        .size_limit = c->size_limit,
        .flush_steps = c->flush_steps,
        .flush_seconds = c->flush_seconds,
        .sync = c->sync,
        .steps = trainer_planned_steps(r),
        .updates = r->updates,
        .spectra_every = c->spectra_every,
        .attention = c->attention_stats,
        .activations_every = c->activations_every,
        .theorems_every = c->theorems_every,
        .layer_norms_every = c->parameter_norms_every,
        .final = c->final_tid,
        .pairs = c->final_tid ? c->pairs : 0,
    };
}

static sr_status open_record(trainer *r, const char *command, sr_failure *why) {
    if (!*r->config->output) return SR_OK;
    if (!trainer_writes(r)) {
        const run_record_options o = record_options(r, command, "");
        const bool sends = o.each_share || o.synchronised || o.observe_batch || o.attention ||
                           o.activations_every > 0 || o.pairs > 0;
        if (sends) r->record = run_record_follow(r->model, &o, why);
        return sends && !r->record ? why->status : SR_OK;
    }
    char *config = trainer_config_text(r);
    if (!config) return sr_fail(why, SR_MEMORY, "out of memory for the configuration");
    train_metric m[TRAIN_METRICS];
    run_metric_declaration metric[TRAIN_METRICS];
    run_record_options o = record_options(r, command, config);
    o.metric = metric;
    o.metrics = train_metrics_make(r->config, r->task, m);
    for (int i = 0; i < o.metrics; i++)
        metric[i] =
            (run_metric_declaration){m[i].name, m[i].unit, m[i].definition, (sr_better)m[i].better};
    r->record = run_record_create(r->model, &o, why);
    free(config);
    if (!r->record && r->from && r->config->record_shards)
        sr_hint(why, "--shards: a run with --record-shards keeps its number of shards");
    if (!r->record) return why->status;
    const char *refused = run_record_lock_refused(r->record);
    if (refused) trainer_warn(r, "%s", refused);
    note_projection(r);
    return SR_OK;
}

/* -- ranks */

/* (all) Checks that every rank opened the same inputs. */
static sr_status compare_ranks(const trainer *r, sr_status status, sr_failure *why) {
    status = ranks_agree(r->ranks, status, why);
    if (status != SR_OK || ranks_count(r->ranks) == 1) return status;
    char *config = trainer_config_text(r);
    if (!config) return sr_fail(why, SR_MEMORY, "out of memory for the configuration");
    status = ranks_compare(r->ranks, STATREC_VERSION " " STATREC_GIT, "statrec", why);
    if (status == SR_OK) status = ranks_compare(r->ranks, config, "options", why);
    free(config);
    if (status == SR_OK) status = ranks_compare(r->ranks, data_describe(r->data), "data", why);
    if (status != SR_OK) return status;
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)r->data_digest);
    return ranks_compare(r->ranks, text, "data", why);
}

static sr_status join_ranks(trainer *r, sr_failure *why) {
    r->shards = r->config->shards ? (int)r->config->shards : 1;
    r->ranks = r->events->ranks;
    if (!r->ranks) r->ranks = r->alone = ranks_open_one(why);
    if (!r->ranks) return why->status;
    r->threads = ranks_threads(r->ranks, (int)r->config->threads);
    char text[RANKS_TEXT] = "";
    sr_status status = ranks_agree(r->ranks, gemm_begin(r->threads, why), why);
    if (status == SR_OK) status = ranks_look_at_cores(r->ranks, r->threads, text, why);
    if (ranks_count(r->ranks) > 1)
        trainer_note(r, "%s, %d shards of every batch%s", ranks_describe(r->ranks), r->shards,
                     r->config->sync_norm ? ", batch statistics synchronised" : "");
    if (*text) trainer_warn(r, "%s", text);
    return status;
}

/* -- a run */

/* Opens inputs; each rank checks its own. */
static sr_status open_inputs(trainer *r, sr_failure *why) {
    const train_config *c = r->config;
    const bool replaces = c->force || r->from, writes = trainer_writes(r);
    sr_status status = SR_OK;
    if (*c->output && writes) status = run_record_check_path(c->output, replaces, why);
    if (status == SR_OK && writes) status = trainer_dump_open(r, why);
    if (status == SR_OK) status = open_data(r, why);
    if (status == SR_OK) status = open_schedule(r, why);
    if (status == SR_OK) status = trainer_check_splits(r, why);
    if (status == SR_OK) status = open_model(r, why);
    if (status == SR_OK) status = trainer_choose_validation(r, why);
    if (status == SR_OK)
        status = task_memory(&r->memory, r->model, r->data, SPLIT_TRAIN, true, why);
    if (status == SR_OK && !(r->tape = tape_create(r->threads, why))) status = why->status;
    if (status == SR_OK) r->tape->reuse_activations = true;
    if (status == SR_OK) r->tape->bf16 = c->bf16;
    return status;
}

sr_status trainer_open(trainer *r, const char *command, sr_failure *why) {
    const train_config *c = r->config;
    r->started = progress_clock();
    r->patience_best = NAN;
    rng root = rng_create((uint64_t)c->seed);
    r->random = rng_split(&root, 1);
    sr_status status = join_ranks(r, why);
    if (status != SR_OK) return status;
    status = compare_ranks(r, open_inputs(r, why), why);
    if (status == SR_OK) status = shards_open(r, why);
    if (status == SR_OK) status = trainer_checkpoints_open(r, why);
    if (status == SR_OK) status = open_record(r, command, why);
    if (status == SR_OK) status = shards_recorded(r, why);
    if (status == SR_OK && trainer_writes(r)) status = trainer_dump_weights(r, why);
    return ranks_agree(r->ranks, status, why);
}

/* A run without a step leaves no file, and leaves a resumed run unchanged. *named: it has its
 * name. */
static sr_status close_record(trainer *r, sr_status so_far, bool *named, sr_failure *why) {
    const bool never_began = !r->from && !r->finished; /* a signal came while the data were read */
    if (!r->stepped && (so_far != SR_OK || never_began)) {
        run_record_abandon(r->record);
        return so_far;
    }
    const char *diverged = r->result->diverged;
    const bool failed = so_far != SR_OK;
    const char *status = failed ? "failed" : !r->finished ? "interrupted" : "complete";
    const char *reason = failed ? why->text : !r->finished ? "signal" : r->result->stopped;
    if (diverged && !failed && r->finished) status = "diverged", reason = diverged;
    sr_failure refused = {0};
    sr_status closed = run_record_close(r->record, status, reason, r->result->digest, &refused);
    *named = closed == SR_OK;
    if (failed || closed == SR_OK) return so_far;
    *why = refused;
    return closed;
}

sr_status trainer_close(trainer *r, sr_status so_far, sr_failure *why) {
    so_far = trainer_dump_close(r, so_far, why);
    bool named = false;
    sr_failure own = {0};
    sr_status status = close_record(r, so_far, &named, why);
    const sr_status swept = trainer_checkpoints_close(r, named, r->stepped, &own);
    if (status == SR_OK && swept != SR_OK) *why = own, status = swept;
    if (status == SR_OK && r->checkpoint_lost.status != SR_OK) /* the rows are complete */
        *why = r->checkpoint_lost, status = why->status;
    tape_free(r->tape);
    shards_close(r);
    ranks_close(r->alone, NULL);
    model_memory_free(&r->memory);
    model_free(r->model);
    data_close(r->data);
    free(r->chosen);
    return status;
}
