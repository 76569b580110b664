/* dump.c -- the first steps of a run as NumPy archives, for programs that check us from outside.
 *
 * Weights: updateU/NAME of every parameter and updateU/SITE.STATE of every running value, U = 0
 * before the first step and one more after every update. Batches: stepI/NAME of what step I read and
 * what came of it, I from 1. docs/checking.md lists the names. All of it is copied and stays in
 * memory until --dump-steps steps are done or the run ends; then both files are written, and the run
 * goes on.
 */
#include <math.h>
#include <stdio.h>

#include "trainer.h"

enum { DUMP_NAME = 2 * PARAM_NAME };

static const npz_type real_type = sizeof(real) == sizeof(double) ? NPZ_FLOAT64 : NPZ_FLOAT32;

sr_status trainer_dump_open(trainer *r, sr_failure *why) {
    const train_config *c = r->config;
    if (*c->dump_weights && !(r->dump_weights = npz_create(c->dump_weights, c->force, why)))
        return why->status;
    if (*c->dump_batches && !(r->dump_batches = npz_create(c->dump_batches, c->force, why)))
        return why->status;
    return SR_OK;
}

/* -- weights */

static sr_status add_param(const trainer *r, const param *p, sr_failure *why) {
    char name[DUMP_NAME];
    npz_array a = {.type = real_type, .rank = p->t.rank, .data = p->t.value};
    for (int i = 0; i < a.rank; i++) a.dim[i] = p->t.dim[i];
    snprintf(name, sizeof name, "update%lld/%s", (long long)r->result->updates, p->name);
    return npz_add(r->dump_weights, name, &a, why);
}

/* The k-th running value of a site: [features], or [rows, features]. */
static sr_status add_state(const trainer *r, const norm_site *s, int k, sr_failure *why) {
    char name[DUMP_NAME];
    bool rows = s->state_count[k] != s->features;
    npz_array a = {.type = NPZ_FLOAT64, .rank = rows ? 2 : 1, .data = s->state[k]};
    if (rows) a.dim[0] = s->state_count[k] / s->features;
    a.dim[a.rank - 1] = s->features;
    snprintf(name, sizeof name, "update%lld/%s.%s", (long long)r->result->updates, s->name,
             s->method->state[k].name);
    return npz_add(r->dump_weights, name, &a, why);
}

sr_status trainer_dump_weights(trainer *r, sr_failure *why) {
    const model *m = r->model;
    sr_status status = SR_OK;
    if (!r->dump_weights) return SR_OK;
    for (int i = 0; i < m->params.count && status == SR_OK; i++)
        status = add_param(r, m->params.item[i], why);
    for (int i = 0; i < m->sites; i++)
        for (int k = 0; k < NORM_STATE_MAX && status == SR_OK; k++)
            if (m->site[i]->state[k]) status = add_state(r, m->site[i], k, why);
    return status;
}

/* -- batches */

/* An array of a step, or a number of it with dim NULL. */
typedef struct part {
    const char *name;
    npz_type type;
    const void *data;
    int rank;
    const int64_t *dim;
} part;

static sr_status add_parts(const trainer *r, const part *p, int count, sr_failure *why) {
    sr_status status = SR_OK;
    for (; count > 0 && status == SR_OK; count--, p++) {
        char name[DUMP_NAME];
        npz_array a = {.type = p->type, .rank = p->rank, .data = (void *)p->data};
        for (int i = 0; i < a.rank; i++) a.dim[i] = p->dim[i];
        snprintf(name, sizeof name, "step%lld/%s", (long long)r->result->steps, p->name);
        status = npz_add(r->dump_batches, name, &a, why);
    }
    return status;
}

static sr_status add_images(const trainer *r, const batch *b, sr_failure *why) {
    const int64_t dim[] = {b->count, b->height, b->width, b->channels};
    const part parts[] = {
        {"image", real_type, b->image, 4, dim},
        {"label", NPZ_INT32, b->label, 1, dim},
    };
    return add_parts(r, parts, sizeof parts / sizeof parts[0], why);
}

static sr_status add_pairs(const trainer *r, const batch *b, sr_failure *why) {
    const int64_t source[] = {b->count, b->source_length}, target[] = {b->count, b->target_length};
    const part parts[] = {
        {"source", NPZ_INT32, b->source, 2, source},
        {"source_mask", NPZ_UINT8, b->source_mask, 2, source},
        {"target_in", NPZ_INT32, b->target_in, 2, target},
        {"target_out", NPZ_INT32, b->target_out, 2, target},
        {"target_mask", NPZ_UINT8, b->target_mask, 2, target},
    };
    return add_parts(r, parts, sizeof parts / sizeof parts[0], why);
}

static sr_status add_batch(const trainer *r, const batch *b, double loss, const sr_step *row,
                           sr_failure *why) {
    const part parts[] = {
        {"loss_sum", NPZ_FLOAT64, &loss, 0, NULL},
        {"tokens", NPZ_INT64, &b->tokens, 0, NULL},
        {"update", NPZ_INT64, &row->update, 0, NULL},
        {"lr", NPZ_FLOAT64, &row->lr, 0, NULL},
        {"grad_norm", NPZ_FLOAT64, &row->grad_norm, 0, NULL},
    };
    sr_status status = (b->task == TASK_IMAGES ? add_images : add_pairs)(r, b, why);
    if (status != SR_OK) return status;
    return add_parts(r, parts, sizeof parts / sizeof parts[0], why);
}

/* -- when */

/* Writes one archive and forgets it. */
static sr_status finish(trainer *r, npz_writer **w, const char *path, sr_failure *why) {
    npz_writer *whole = *w;
    if (!whole) return SR_OK;
    long long arrays = npz_added(whole), steps = r->result->steps;
    *w = NULL;
    sr_status status = npz_write(whole, why);
    if (status == SR_OK)
        trainer_note(r, "dump: %s, %lld arrays, after step %lld", path, arrays, steps);
    return status;
}

static sr_status finish_both(trainer *r, sr_failure *why) {
    sr_status weights = finish(r, &r->dump_weights, r->config->dump_weights, why);
    sr_status batches = finish(r, &r->dump_batches, r->config->dump_batches, why);
    return weights != SR_OK ? weights : batches;
}

sr_status trainer_dump_step(trainer *r, const batch *b, double loss, const sr_step *row,
                            sr_failure *why) {
    sr_status status = SR_OK;
    if (r->dump_batches) status = add_batch(r, b, loss, row, why);
    if (status == SR_OK && !r->accumulated) status = trainer_dump_weights(r, why);
    if (status == SR_OK && r->result->steps == r->config->dump_steps) status = finish_both(r, why);
    return status;
}

sr_status trainer_dump_close(trainer *r, sr_status so_far, sr_failure *why) {
    sr_status status = r->result->steps > 0 ? finish_both(r, why) : SR_OK;
    npz_abandon(r->dump_weights);
    npz_abandon(r->dump_batches);
    return so_far != SR_OK ? so_far : status;
}
