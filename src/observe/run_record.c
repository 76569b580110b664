/* run_record.c -- a training run's file: its options, steps, evaluations and embedding. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/svd.h"
#include "observe/run_record.h"
#include "observe/spectra.h"
#include "statrec/runfile.h"

/* -- opening and closing */

sr_status run_record_check_path(const char *path, bool force, sr_failure *why) {
    return sr_check_path(path, force, why);
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
    s.sync = SR_SYNC_FLUSH;
    if (o->sync && !strcmp(o->sync, "close")) s.sync = SR_SYNC_CLOSE;
    if (o->sync && !strcmp(o->sync, "none")) s.sync = SR_SYNC_NONE;
    return sr_create(o->path, &s, why);
}

static run_record *make(model *m, const run_record_options *o, sr_failure *why) {
    run_record *r = malloc(sizeof *r);
    if (r)
        *r = (run_record){.model = m,
                          .shares = o->shares > 0 ? o->shares : 1,
                          .own_shares = o->own_shares > 0 ? o->own_shares : 1};
    else
        sr_fail(why, SR_MEMORY, "out of memory for the statistics of layers");
    return r;
}

static void forget(run_record *r) {
    attention_scalars_free(r->attention);
    activations_free(r->activations);
    layer_norms_free(r->norms);
    theorem_scalars_free(r->theorems);
    hooks_free(r->hooks);
    free(r);
}

/* Declares and hooks the chosen sites, with an observer if wanted. */
static sr_status open_hooks(run_record *r, const run_record_options *o, sr_failure *why) {
    bool *chosen = hooks_choose(r->model, o->sites, o->observe_batch, why);
    if (!chosen) return why->status;
    sr_status status = SR_OK;
    for (int i = 0; o->observe_batch && i < r->model->sites && status == SR_OK; i++)
        if (chosen[i]) status = norm_site_observe_batch(r->model->site[i], o->observe_alpha, why);
    const hooks_shares shares = {.shares = r->shares,
                                 .own = r->own_shares,
                                 .each = o->each_share,
                                 .together = o->synchronised};
    if (status == SR_OK)
        r->hooks = hooks_create(r->model, r->recorder, chosen, o->vectors, &shares, why);
    free(chosen);
    return r->hooks ? SR_OK : why->status;
}

/* The i-th word embedding of the model; NULL past the last. */
static const tensor *embedding_at(const model *m, int i, const char **name) {
    static const char *const names[] = {"tokens", "target_tokens"};
    const tensor *const e[] = {m->embedding, m->target_embedding};
    if (i > 1 || !e[i] || (i > 0 && e[i] == e[0])) return NULL;
    *name = names[i];
    return e[i];
}

/* Custom scalars that every process computes in the passes of its shards. */
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
    if (o->scalars && o->theorems_every > 0) {
        r->theorems = theorem_scalars_create(r->recorder, r->hooks, !o->synchronised, why);
        if (!r->theorems) return why->status;
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

/* False in a process that only sends statistics. */
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

const char *run_record_lock_refused(const run_record *r) {
    return writes(r) ? sr_lock_refused(r->recorder) : NULL;
}

int64_t run_record_projected_bytes(const run_record *r) {
    return writes(r) ? sr_projected_bytes(r->recorder) : 0;
}

int64_t run_record_vectors_every(const run_record *r) {
    return writes(r) ? sr_vectors_every(r->recorder) : 0;
}

/* -- a resumed run */

sr_status run_record_open_look(const char *path, run_record_info *look, sr_failure *why) {
    *look = (run_record_info){0};
    sr_runfile *f = sr_run_open(path, why);
    if (!f) return why->status;
    const sr_run_info *info = sr_run_get_info(f);
    sr_status status = SR_OK;
    if (info->steps > 0)
        status = sr_run_step_ints(f, "step", info->steps - 1, 1, &look->last_step, why);
    look->complete = !strcmp(info->status, "complete") || !strcmp(info->status, "diverged");
    look->config = strdup(info->config);
    look->command = strdup(info->command);
    look->parent = strdup(info->parent);
    if (!look->config || !look->command || !look->parent)
        status = sr_fail(why, SR_MEMORY, "%s: out of memory for its texts", path);
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

void run_record_want_theorems(run_record *r, bool wanted) {
    if (r) theorem_scalars_begin_step(r->theorems, wanted);
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

static sr_status record_embedding(run_record *r, const tensor *e, const char *name, int64_t step,
                                  sr_failure *why) {
    int64_t count = e->dim[0] < e->dim[1] ? e->dim[0] : e->dim[1];
    double *value = malloc((size_t)count * sizeof *value);
    if (!value)
        return sr_fail(why, SR_MEMORY, "out of memory for %lld singular values", (long long)count);
    float *copy;
    const float *weights = spectra_as_float(e->value, e->count, &copy);
    sr_status status = weights ? svd_singular_values(weights, e->dim[0], e->dim[1], value, why)
                               : sr_fail(why, SR_MEMORY, "out of memory for the embedding");
    if (status == SR_OK) sr_put_singular_values(r->recorder, name, step, value);
    free(copy);
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

sr_status run_record_state_each(run_record *r, state_visit_fn *visit, void *context,
                                sr_failure *why) {
    static const char *const names[] = {"mu", "sigma2", "psi2", "position"};
    sr_status status = SR_OK;
    if (!r || !r->hooks) return SR_OK;
    for (int i = 0; i < r->model->sites; i++) {
        const norm_site *s = r->model->site[i];
        const norm_observer_state *o = s->observer;
        double *const value[] = {o ? o->mu : NULL, o ? o->sigma2 : NULL, o ? o->psi2 : NULL,
                                 hooks_position(r->hooks, i)};
        for (int k = 0; k < 4 && status == SR_OK; k++) {
            char name[2 * PARAM_NAME];
            snprintf(name, sizeof name, "%s.observed.%s", s->name, names[k]);
            const npz_array a = {NPZ_FLOAT64, 1, {s->features}, value[k]};
            if (value[k]) status = visit(context, &(state_item){STATE_OBSERVER, name, a}, why);
        }
    }
    return status;
}
