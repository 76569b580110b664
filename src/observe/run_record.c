/* run_record.c -- a training run's file: its options, steps, evaluations and embedding. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/svd.h"
#include "observe/run_record.h"
#include "statrec/runfile.h"

/* -- opening and closing */

sr_status run_record_check_path(const char *path, bool force, sr_failure *why) {
    return sr_check_path(path, force, why);
}

static sr_sync find_sync(const char *word) {
    if (!word) return SR_SYNC_FLUSH;
    if (strcmp(word, "close") == 0) return SR_SYNC_CLOSE;
    return strcmp(word, "none") == 0 ? SR_SYNC_NONE : SR_SYNC_FLUSH;
}

static sr_recorder *create_recorder(const run_record_options *o, const char *model_name,
                                    sr_failure *why) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    sr_options s = SR_OPTIONS_DEFAULT;
    s.force = o->force;
    s.resume = o->resume;
    s.running = false, s.overhead = 0; /* checkpoints keep them; same seed, same rows */
    s.parent = o->parent;
    s.program = "statrec train";
    s.version = STATREC_VERSION;
    s.command = o->command;
    s.config = o->config;
    s.host = host;
    s.git = o->git;
    s.model = model_name;
    s.data = o->data;
    s.task = o->task;
    s.loss_reduction = "sum";
    s.seed = o->seed;
    s.threads = o->threads;
    s.ranks = o->ranks;
    s.scalars = o->scalars;
    s.vectors = o->vectors;
    s.vectors_every = o->vectors_every;
    s.planned_steps = o->steps;
    s.spectra = o->scalars && o->spectra_every > 0;
    s.planned_spectra = s.spectra ? o->updates / o->spectra_every : 0;
    s.final = o->scalars && o->final;
    s.pairs = s.final ? o->pairs : 0;
    s.size_limit = o->size_limit;
    s.flush_steps = o->flush_steps;
    s.flush_seconds = o->flush_seconds;
    s.sync = find_sync(o->sync);
    return sr_create(o->path, &s, why);
}

static sr_status observe_batch(model *m, const bool *chosen, double alpha, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < m->sites && status == SR_OK; i++)
        if (chosen[i]) status = norm_site_observe_batch(m->site[i], alpha, why);
    return status;
}

static void forget(run_record *r) {
    attention_scalars_free(r->attention);
    activations_free(r->activations);
    layer_norms_free(r->norms);
    hooks_free(r->hooks);
    free(r);
}

/* The sites that were named: declared and watched, with an observer where one is asked for. */
static sr_status open_hooks(run_record *r, const run_record_options *o, sr_failure *why) {
    bool *chosen = hooks_choose(r->model, o->sites, o->observe_batch, why);
    if (!chosen) return why->status;
    sr_status status =
        o->observe_batch ? observe_batch(r->model, chosen, o->observe_alpha, why) : SR_OK;
    const hooks_shares shares = {.shares = r->shares,
                                 .own = r->own_shares,
                                 .each = o->each_share,
                                 .together = o->synchronised};
    if (status == SR_OK)
        r->hooks = hooks_create(r->model, r->recorder, chosen, o->vectors, &shares, why);
    free(chosen);
    return r->hooks ? SR_OK : why->status;
}

/* The i-th of the model's word embeddings; NULL past the last. */
static const tensor *embedding_at(const model *m, int i, const char **name) {
    static const char *const names[] = {"tokens", "target_tokens"};
    const tensor *const e[] = {m->embedding, m->target_embedding};
    if (i > 1 || !e[i] || (i > 0 && e[i] == e[0])) return NULL;
    *name = names[i];
    return e[i];
}

/* Numbers of this trainer's own that every process looks for in the passes of its shares. */
static sr_status open_extra_hooks(run_record *r, const run_record_options *o, sr_failure *why) {
    if (o->attention)
        r->attention =
            attention_scalars_create(r->model, r->recorder, r->hooks, r->own_shares, why);
    if (o->attention && !r->attention) return why->status;
    if (o->activations_every > 0)
        r->activations = activations_create(r->model, r->recorder, r->hooks, why);
    return o->activations_every > 0 && !r->activations ? why->status : SR_OK;
}

static sr_status declare(run_record *r, const run_record_options *o, sr_failure *why) {
    model *m = r->model;
    if (o->scalars && open_hooks(r, o, why) != SR_OK) return why->status;
    if (o->scalars && open_extra_hooks(r, o, why) != SR_OK) return why->status;
    if (o->scalars && o->layer_norms_every != 0) {
        r->norms = layer_norms_create(m, r->recorder, r->hooks, o->layer_norms_every, why);
        if (!r->norms) return why->status;
    }
    const char *name;
    const tensor *e;
    for (int i = 0; (e = embedding_at(m, i, &name)); i++) {
        sr_add_embedding(r->recorder, name, e->dim[0], e->dim[1]);
        sr_set_embedding_method(r->recorder, name, SVD_METHOD);
    }
    for (int i = 0; i < o->metrics; i++) {
        const run_metric_declaration *d = &o->metric[i];
        sr_add_metric(r->recorder, d->name, d->unit, d->definition, d->better);
    }
    const sr_failure *f = sr_failed(r->recorder);
    return f ? sr_fail(why, f->status, "%s", f->text) : SR_OK;
}

static run_record *make(model *m, const run_record_options *o, sr_failure *why) {
    run_record *r = malloc(sizeof *r);
    if (r)
        *r = (run_record){.model = m,
                          .shares = o->shares > 0 ? o->shares : 1,
                          .own_shares = o->own_shares > 0 ? o->own_shares : 1};
    else
        sr_fail(why, SR_MEMORY, "out of memory for what layers find");
    return r;
}

run_record *run_record_create(model *m, const run_record_options *o, sr_failure *why) {
    run_record *r = make(m, o, why);
    if (!r) return NULL;
    r->recorder = create_recorder(o, m->row->name, why);
    if (r->recorder && declare(r, o, why) == SR_OK) return r;
    run_record_abandon(r);
    return NULL;
}

run_record *run_record_follow(model *m, const run_record_options *o, sr_failure *why) {
    run_record *r = make(m, o, why);
    if (!r || !o->scalars) return r;
    if (open_hooks(r, o, why) == SR_OK && open_extra_hooks(r, o, why) == SR_OK) return r;
    forget(r);
    return NULL;
}

/* Not one that follows. */
static bool writes(const run_record *r) {
    return r && r->recorder;
}

sr_status run_record_close(run_record *r, const char *status, const char *reason,
                           const char *digest, sr_failure *why) {
    if (!r) return SR_OK;
    if (!writes(r)) return forget(r), SR_OK;
    const sr_finish finish =
        SR_INIT(sr_finish, .status = status, .reason = reason, .weights_digest = digest);
    sr_status closed = sr_close(r->recorder, &finish, why);
    forget(r);
    return closed;
}

void run_record_abandon(run_record *r) {
    if (!r) return;
    if (r->recorder) sr_abandon(r->recorder);
    forget(r);
}

int64_t run_record_projected_bytes(const run_record *r) {
    return writes(r) ? sr_projected_bytes(r->recorder) : 0;
}

int64_t run_record_vectors_every(const run_record *r) {
    return writes(r) ? sr_vectors_every(r->recorder) : 0;
}

/* -- a run that goes on */

static bool copy_text(const char *text, char **to) {
    const size_t size = strlen(text) + 1;
    *to = malloc(size);
    if (*to) memcpy(*to, text, size);
    return *to != NULL;
}

sr_status run_record_open_look(const char *path, run_record_info *look, sr_failure *why) {
    *look = (run_record_info){0};
    sr_runfile *f = sr_run_open(path, why);
    if (!f) return why->status;
    const sr_run_info *info = sr_run_get_info(f);
    sr_status status = SR_OK;
    if (info->steps > 0)
        status = sr_run_step_ints(f, "step", info->steps - 1, 1, &look->last_step, why);
    look->complete = !strcmp(info->status, "complete") || !strcmp(info->status, "diverged");
    const bool whole = copy_text(info->config, &look->config) &&
                       copy_text(info->command, &look->command) &&
                       copy_text(info->parent, &look->parent);
    if (!whole) status = sr_fail(why, SR_MEMORY, "%s: no memory for its texts", path);
    sr_run_close(f);
    return status;
}

void run_record_close_look(run_record_info *look) {
    free(look->config);
    free(look->command);
    free(look->parent);
    *look = (run_record_info){0};
}

sr_status run_record_copy(run_record *r, const char *from, int64_t steps, int64_t embedding_step,
                          sr_failure *why) {
    sr_recovery got = SR_INIT(sr_recovery, .steps = 0);
    if (!writes(r)) return SR_OK;
    if (sr_copy_rows(r->recorder, from, steps, embedding_step, &got) != SR_OK) {
        const sr_failure *f = sr_failed(r->recorder);
        return sr_fail(why, f->status, "%s", f->text);
    }
    if (got.steps == steps && got.lost_evals == 0) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: %lld of %lld steps can be read", from, (long long)got.steps,
                   (long long)steps);
}

sr_status run_record_flush(run_record *r, sr_failure *why) {
    if (!writes(r)) return SR_OK;
    sr_status status = sr_flush(r->recorder);
    const sr_failure *f = sr_failed(r->recorder);
    return f ? sr_fail(why, f->status, "%s", f->text) : status;
}

void run_record_flush_rows(run_record *r) {
    if (writes(r)) sr_flush_rows(r->recorder);
}

bool run_record_has_eval(const char *path, const char *metric, int64_t step) {
    sr_runfile *f = sr_run_open(path, NULL);
    bool has = false;
    for (int64_t at = f ? sr_run_get_info(f)->evals : 0; at-- > 0 && !has;) {
        double of_step = NAN, value = NAN;
        if (sr_run_eval(f, "step", at, 1, &of_step, NULL) != SR_OK || of_step < (double)step) break;
        has = of_step == (double)step && sr_run_eval(f, metric, at, 1, &value, NULL) == SR_OK &&
              !isnan(value);
    }
    sr_run_close(f);
    return has;
}

/* -- a step */

void run_record_begin_step(run_record *r, int64_t step, bool spectra) {
    if (r && r->hooks) hooks_begin_step(r->hooks);
    if (r) attention_scalars_begin_step(r->attention);
    if (!writes(r)) return;
    sr_begin_step(r->recorder, step);
    if (r->hooks) hooks_want_spectra(r->hooks, spectra);
}

void run_record_want_activations(run_record *r, bool wanted) {
    if (!r || !r->activations) return;
    activations_begin_step(r->activations, wanted);
    hooks_on_forward(r->hooks, wanted ? activations_take : NULL, r->activations);
}

void run_record_before_update(run_record *r, int64_t update, double scale, int threads) {
    if (r && r->norms) layer_norms_before(r->norms, update, scale, threads);
}

void run_record_after_update(run_record *r, int threads) {
    if (r && r->norms) layer_norms_after(r->norms, threads);
}

void run_record_end_step(run_record *r, const run_step *row) {
    if (!writes(r)) return;
    const sr_step s =
        SR_INIT(sr_step, row->update, row->tokens, row->epoch, row->loss, row->lr, row->grad_norm);
    sr_end_step(r->recorder, &s);
}

void run_record_look_at_rows(run_record *r, bool look) {
    if (r && r->hooks) hooks_look_at_rows(r->hooks, look);
}

const char *run_record_nonfinite(run_record *r, const char **what) {
    return r && r->hooks ? hooks_nonfinite(r->hooks, what) : NULL;
}

void run_record_enter(run_record *r, int number) {
    if (r) r->number = number;
    if (r && r->hooks) hooks_enter(r->hooks, number);
    if (r) attention_scalars_enter(r->attention, number);
}

sr_status run_record_exchange(run_record *r, const run_exchange *x, sr_failure *why) {
    sr_status status = r && r->hooks ? hooks_exchange(r->hooks, x, why) : SR_OK;
    if (r && status == SR_OK) status = attention_scalars_exchange(r->attention, x, why);
    return r && status == SR_OK ? activations_exchange(r->activations, x, why) : status;
}

double run_record_seconds(run_record *r) {
    return r && r->hooks ? hooks_seconds(r->hooks) : 0;
}

const sr_failure *run_record_hook_failed(const run_record *r) {
    return r && r->hooks ? hooks_failure(r->hooks) : NULL;
}

const sr_failure *run_record_failed(const run_record *r) {
    return writes(r) ? sr_failed(r->recorder) : NULL;
}

/* -- beside the steps */

void run_record_eval(run_record *r, int64_t step, double epoch, const char *const *name,
                     const double *value, int count) {
    if (!writes(r)) return;
    sr_begin_eval(r->recorder, step, epoch);
    for (int i = 0; i < count; i++) sr_put_metric(r->recorder, name[i], value[i]);
    sr_end_eval(r->recorder);
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

static sr_status record_embedding(run_record *r, const tensor *e, const char *name, int64_t step,
                                  sr_failure *why) {
    int64_t count = e->dim[0] < e->dim[1] ? e->dim[0] : e->dim[1];
    double *value = malloc((size_t)count * sizeof *value);
    if (!value)
        return sr_fail(why, SR_MEMORY, "out of memory for %lld singular values", (long long)count);
    sr_status status = embedding_values(e, value, why);
    if (status == SR_OK) sr_put_singular_values(r->recorder, name, step, value);
    free(value);
    return status;
}

sr_status run_record_embedding(run_record *r, int64_t step, sr_failure *why) {
    const char *name;
    const tensor *e;
    sr_status status = SR_OK;
    for (int i = 0; writes(r) && status == SR_OK && (e = embedding_at(r->model, i, &name)); i++)
        status = record_embedding(r, e, name, step, why);
    return status;
}

/* -- state */

static sr_status visit_shadow(const norm_site *s, state_visit_fn *visit, void *context,
                              sr_failure *why) {
    const norm_observer_state *shadow = s->observer;
    double *const value[] = {shadow->mu, shadow->sigma2, shadow->psi2};
    static const char *const names[] = {"mu", "sigma2", "psi2"};
    sr_status status = SR_OK;
    for (int i = 0; i < 3 && status == SR_OK; i++) {
        char name[2 * PARAM_NAME];
        snprintf(name, sizeof name, "%s.observed.%s", s->name, names[i]);
        const npz_array a = {NPZ_FLOAT64, 1, {s->features}, value[i]};
        if (value[i]) status = visit(context, &(state_item){STATE_OBSERVER, name, a}, why);
    }
    return status;
}

static sr_status visit_position(const run_record *r, int i, state_visit_fn *visit, void *context,
                                sr_failure *why) {
    char name[2 * PARAM_NAME];
    const norm_site *s = r->model->site[i];
    double *value = hooks_position(r->hooks, i);
    if (!value) return SR_OK;
    snprintf(name, sizeof name, "%s.observed.position", s->name);
    const npz_array a = {NPZ_FLOAT64, 1, {s->features}, value};
    return visit(context, &(state_item){STATE_OBSERVER, name, a}, why);
}

sr_status run_record_state_each(run_record *r, state_visit_fn *visit, void *context,
                                sr_failure *why) {
    sr_status status = SR_OK;
    if (!r || !r->hooks) return SR_OK;
    for (int i = 0; i < r->model->sites && status == SR_OK; i++) {
        if (r->model->site[i]->observer)
            status = visit_shadow(r->model->site[i], visit, context, why);
        if (status == SR_OK) status = visit_position(r, i, visit, context, why);
    }
    return status;
}
