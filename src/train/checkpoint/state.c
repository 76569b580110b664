/* state.c -- the one list of all state that a run's future depends on, besides its configuration
 * and data. */
#include <stdio.h>

#include "train/trainer.h"

enum { STATE_NAME = 2 * PARAM_NAME };

static const npz_type real_type = sizeof(real) == sizeof(double) ? NPZ_FLOAT64 : NPZ_FLOAT32;

typedef struct state_visit {
    state_visit_fn *visit;
    void *context;
    sr_failure *why;
    sr_status status; /* status of the first failed visit; the others are skipped */
} state_visit;

static void visit(state_visit *w, state_kind kind, const char *name, npz_array array) {
    const state_item item = {kind, name, array};
    if (w->status == SR_OK) w->status = w->visit(w->context, &item, w->why);
}

static void visit_number(state_visit *w, const char *name, npz_type type, void *data) {
    visit(w, STATE_PROGRESS, name, (npz_array){.type = type, .data = data});
}

static npz_array shaped_like(const tensor *t, real *data) {
    npz_array a = {.type = real_type, .rank = t->rank, .data = data};
    for (int i = 0; i < t->rank; i++) a.dim[i] = t->dim[i];
    return a;
}

/* Values [features], or [rows, features]. */
static void visit_running(const norm_site *s, state_visit *w) {
    char name[STATE_NAME];
    for (int k = 0; k < NORM_STATE_MAX; k++) {
        if (!s->state[k]) continue;
        const bool rows = s->state_count[k] != s->features;
        npz_array a = {.type = NPZ_FLOAT64, .rank = rows ? 2 : 1, .data = s->state[k]};
        if (rows) a.dim[0] = s->state_count[k] / s->features;
        a.dim[a.rank - 1] = s->features;
        snprintf(name, sizeof name, "%s.%s", s->name, s->method->state[k].name);
        visit(w, STATE_RUNNING, name, a);
    }
}

static void visit_progress(trainer *r, state_visit *w) {
    train_result *result = r->result;
    visit_number(w, "steps", NPZ_INT64, &result->steps);
    visit_number(w, "updates", NPZ_INT64, &result->updates);
    visit_number(w, "skipped", NPZ_INT64, &result->skipped);
    visit_number(w, "accumulated", NPZ_INT64, &r->accumulated);
    visit_number(w, "accumulated_tokens", NPZ_INT64, &r->accumulated_tokens);
    visit_number(w, "data_epoch", NPZ_INT64, &r->data_epoch);
    visit_number(w, "data_batch", NPZ_INT64, &r->data_batch);
    visit_number(w, "loss_sum", NPZ_FLOAT64, &r->loss_sum);
    visit_number(w, "loss_tokens", NPZ_INT64, &r->loss_tokens);
    visit_number(w, "patience_best", NPZ_FLOAT64, &r->patience_best);
    visit_number(w, "patience_waited", NPZ_INT64, &r->patience_waited);
    visit_number(w, "lr", NPZ_FLOAT64, &r->lr);
    visit_number(w, "validations", NPZ_INT64, &r->validations);
    visit_number(w, "unevaluated", NPZ_UINT8, &r->unevaluated);
    visit_number(w, "epoch", NPZ_FLOAT64, &r->epoch);
    visit_number(w, "last_loss", NPZ_FLOAT64, &r->last_loss);
    visit_number(w, "last_skipped", NPZ_UINT8, &r->last_skipped);
    visit_number(w, "best", NPZ_FLOAT64, &r->best);
    visit_number(w, "random_key", NPZ_INT64, &r->random.key);
    model_memory *k = &r->memory;
    if (k->rows > 0) {
        const npz_array a = {.type = real_type,
                             .rank = 4,
                             .dim = {k->layers, k->sequences, k->rows, k->width},
                             .data = k->value};
        visit(w, STATE_PROGRESS, "memory", a);
        visit_number(w, "memory_filled", NPZ_INT64, &k->filled);
    }
    /* Sums of the last validation: at the end they decide whether the run diverged. */
    task_sums *last = &result->last.sum;
    visit_number(w, "valid_loss_sum", NPZ_FLOAT64, &last->loss);
    visit_number(w, "valid_nll_sum", NPZ_FLOAT64, &last->nll);
    visit_number(w, "valid_tokens", NPZ_INT64, &last->tokens);
    visit_number(w, "valid_correct", NPZ_INT64, &last->correct);
    visit_number(w, "valid_unknown", NPZ_INT64, &last->unknown);
    for (int i = 0; i < r->task->counts; i++) {
        char name[STATE_NAME];
        snprintf(name, sizeof name, "valid_count%d", i);
        visit_number(w, name, NPZ_INT64, &last->count[i]);
    }
}

static void visit_model(const model *m, state_visit *w) {
    for (int i = 0; i < m->params.count; i++) {
        param *p = m->params.item[i];
        visit(w, STATE_PARAMETER, p->name, shaped_like(&p->t, p->t.value));
    }
    for (int i = 0; i < m->sites; i++) visit_running(m->site[i], w);
}

sr_status train_model_each(model *m, state_visit_fn *visitor, void *context, sr_failure *why) {
    state_visit w = {visitor, context, why, SR_OK};
    visit_model(m, &w);
    return w.status;
}

sr_status train_state_each(trainer *r, state_visit_fn *visitor, void *context, sr_failure *why) {
    state_visit w = {visitor, context, why, SR_OK};
    model *m = r->model;
    visit_model(m, &w);
    char name[STATE_NAME];
    for (int i = 0; i < m->params.count; i++) {
        const param *p = m->params.item[i];
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "%s.slot%d", p->name, k);
            if (p->slot[k]) visit(&w, STATE_OPTIMIZER, name, shaped_like(&p->t, p->slot[k]));
        }
    }
    for (int i = 0; i < m->sites; i++) { /* warm-ups count calls */
        snprintf(name, sizeof name, "%s.calls", m->site[i]->name);
        visit_number(&w, name, NPZ_INT64, &m->site[i]->calls);
    }
    visit_progress(r, &w);
    if (w.status == SR_OK) w.status = run_record_state_each(r->record, visitor, context, why);
    return w.status;
}
