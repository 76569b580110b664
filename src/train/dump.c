/* dump.c -- the first steps of a run as NumPy archives, for programs that check us from outside.
 *
 * Weights: updateU/NAME of every parameter and updateU/SITE.STATE of every running statistic, U = 0
 * before the first step. Batches: stepI/NAME of the inputs and results of step I, I from 1.
 * docs/check-against-pytorch.md lists the names. Copies stay in memory for --dump-steps steps, or
 * until the run ends. Then both files are written, and the run continues.
 */
#include <stdio.h>

#include "train/trainer.h"

enum { DUMP_NAME = 2 * PARAM_NAME };

sr_status trainer_dump_open(trainer *r, sr_failure *why) {
    const train_config *c = r->config;
    if (*c->dump_weights && !(r->dump_weights = npz_create(c->dump_weights, c->force, why)))
        return why->status;
    if (*c->dump_batches && !(r->dump_batches = npz_create(c->dump_batches, c->force, why)))
        return why->status;
    return SR_OK;
}

/* -- weights */

static sr_status add_item(void *context, const state_item *item, sr_failure *why) {
    const trainer *r = context;
    char name[DUMP_NAME];
    if (item->kind != STATE_PARAMETER && item->kind != STATE_RUNNING) return SR_OK;
    snprintf(name, sizeof name, "update%lld/%s", (long long)r->result->updates, item->name);
    return npz_add(r->dump_weights, name, &item->array, why);
}

sr_status trainer_dump_weights(trainer *r, sr_failure *why) {
    return r->dump_weights ? train_state_each(r, add_item, r, why) : SR_OK;
}

/* -- batches */

static sr_status add_arrays(const trainer *r, const task_array *array, int count, sr_failure *why) {
    sr_status status = SR_OK;
    for (int i = 0; i < count && status == SR_OK; i++) {
        char name[DUMP_NAME];
        snprintf(name, sizeof name, "step%lld/%s", (long long)r->result->steps, array[i].name);
        status = npz_add(r->dump_batches, name, &array[i].array, why);
    }
    return status;
}

static sr_status add_batch(const trainer *r, const batch *b, double loss, const run_step *row,
                           sr_failure *why) {
    const task_array numbers[] = {
        {"loss_sum", {.type = NPZ_FLOAT64, .data = &loss}},
        {"tokens", {.type = NPZ_INT64, .data = (void *)&b->tokens}},
        {"update", {.type = NPZ_INT64, .data = (void *)&row->update}},
        {"lr", {.type = NPZ_FLOAT64, .data = (void *)&row->lr}},
        {"grad_norm", {.type = NPZ_FLOAT64, .data = (void *)&row->grad_norm}},
    };
    task_array array[TASK_ARRAYS];
    sr_status status = add_arrays(r, array, r->task->arrays(b, array), why);
    if (status != SR_OK) return status;
    return add_arrays(r, numbers, sizeof numbers / sizeof numbers[0], why);
}

/* -- when */

/* Writes one archive and forgets it. Without an array nothing is written: the first step failed. */
static sr_status finish(trainer *r, npz_writer **w, const char *path, sr_failure *why) {
    npz_writer *whole = *w;
    const long long arrays = whole ? npz_added(whole) : 0, steps = r->result->steps;
    if (arrays == 0) return SR_OK;
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

sr_status trainer_dump_step(trainer *r, const batch *b, double loss, const run_step *row,
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
