/* checkpoint.c -- one checkpoint: an array_file with every item of train_state_each.
 *
 * Groups by kind: parameters, running, optimizer, observer, progress. A parameter's optimizer state
 * is optimizer/NAME.slot0, running statistics of shard 3 are replica/NAME@3. Attributes: config,
 * model, data, task, version, weights_digest, steps, updates, training_batches, training_digest and
 * the sizes of the data. Time and machine are not stored, so the same run gives the same bytes.
 */
#include "train/checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/shards.h"

const char *const checkpoint_groups[] = {
    [STATE_PARAMETER] = "parameters", [STATE_RUNNING] = "running", [STATE_OPTIMIZER] = "optimizer",
    [STATE_OBSERVER] = "observer",    [STATE_REPLICA] = "replica", [STATE_PROGRESS] = "progress",
    [STATE_PROGRESS + 1] = NULL,
};

void checkpoint_name(const state_item *item, char name[CHECKPOINT_NAME]) {
    snprintf(name, CHECKPOINT_NAME, "%s/%s", checkpoint_groups[item->kind], item->name);
}

/* -- writing */

sr_status checkpoint_add(void *writer, const state_item *item, sr_failure *why) {
    char name[CHECKPOINT_NAME];
    checkpoint_name(item, name);
    return array_writer_add(writer, name, &item->array, why);
}

void checkpoint_put_head(array_writer *w, const checkpoint_head *h) {
    char digest[32];
    data_shape shape = *h->shape;
    int64_t *size;
    const char *name;
    trainer_digest(h->model, digest);
    array_writer_put_text(w, "version", STATREC_VERSION, NULL);
    array_writer_put_text(w, "config", h->config, NULL);
    array_writer_put_text(w, "model", h->model->row->name, NULL);
    array_writer_put_text(w, "data", h->data, NULL);
    array_writer_put_text(w, "task", task_of(h->shape->task)->name, NULL);
    array_writer_put_text(w, "weights_digest", digest, NULL);
    array_writer_put_int(w, "updates", h->updates, NULL);
    for (int i = 0; (name = checkpoint_size(&shape, i, &size)); i++)
        array_writer_put_int(w, name, *size, NULL);
    array_writer_put_int(w, "meaning", shape.meaning, NULL);
    checkpoint_put_text(w, &h->codec);
}

sr_status checkpoint_write(trainer *r, const char *path, sr_failure *why) {
    char *config = trainer_config_text(r);
    if (!config) return sr_fail(why, SR_MEMORY, "%s: out of memory for the configuration", path);
    array_writer *w = array_writer_create(path, CHECKPOINT_FORMAT, CHECKPOINT_VERSION, why);
    if (w) {
        checkpoint_put_head(w, &(checkpoint_head){config, r->config->data.name, r->model,
                                                  data_get_shape(r->data), r->result->updates,
                                                  data_codec(r->data)});
        array_writer_put_int(w, "steps", r->result->steps, NULL);
        array_writer_put_int(w, "training_batches", r->batches, NULL);
        array_writer_put_int(w, "training_digest", r->data_digest, NULL);
        train_state_each(r, checkpoint_add, w, NULL);
        shards_each_replica(r, checkpoint_add, w, NULL);
    }
    free(config);
    return w ? array_writer_finish(w, why) : why->status; /* it keeps the first failure */
}

/* -- reading */

static sr_status fill_item(void *context, const state_item *item, sr_failure *why) {
    array_reader *f = context;
    char name[CHECKPOINT_NAME];
    checkpoint_name(item, name);
    if (array_reader_has(f, name)) {
        const sr_status status = array_reader_fill(f, name, &item->array, why);
        if (status != SR_OK || item->kind != STATE_PROGRESS) return status;
        return checkpoint_check_progress(array_reader_path(f), item->name, &item->array, why);
    }
    if (item->kind == STATE_REPLICA) return SR_OK; /* fewer shards: start like the first */
    sr_fail(why, SR_FORMAT, "%s: has no %s", array_reader_path(f), name);
    sr_hint(why, "it belongs to a run with another configuration");
    return SR_FORMAT;
}

sr_status checkpoint_check_meaning(const array_reader *f, const data_shape *shape,
                                   sr_failure *why) {
    int64_t meaning = 0;
    if (!array_reader_has_attribute(f, "meaning")) return SR_OK;
    const sr_status status = array_reader_int(f, "meaning", &meaning, why);
    if (status != SR_OK || meaning == 0 || meaning == shape->meaning) return status;
    sr_fail(why, SR_USAGE, "%s: made with other words or classes than the data have: other data",
            array_reader_path(f));
    sr_hint(why, "its dictionary comes from its own training text");
    return SR_USAGE;
}

/* Older checkpoints have no digest. */
static sr_status check_data(const trainer *r, const array_reader *f, sr_failure *why) {
    int64_t batches = 0, digest = r->data_digest;
    sr_status status = array_reader_int(f, "training_batches", &batches, why);
    if (status == SR_OK) status = checkpoint_check_meaning(f, data_get_shape(r->data), why);
    if (status == SR_OK && batches != r->batches)
        status = sr_fail(why, SR_USAGE,
                         "%s: made with %lld training batches, the data have %lld now: other data",
                         array_reader_path(f), (long long)batches, (long long)r->batches);
    if (status == SR_OK && array_reader_has_attribute(f, "training_digest"))
        status = array_reader_int(f, "training_digest", &digest, why);
    if (status != SR_OK || digest == r->data_digest) return status;
    sr_fail(why, SR_USAGE,
            "%s: the training data have changed since: other records, or another order",
            array_reader_path(f));
    sr_hint(why, "restore them (--data-dir), or start a new run: `statrec train --weights %s`",
            array_reader_path(f));
    return SR_USAGE;
}

/* The position where training continues must exist in the data. */
static sr_status check_place(const trainer *r, const char *path, sr_failure *why) {
    const struct {
        const char *name;
        int64_t value, most;
    } row[] = {{"data_batch", r->data_batch, r->batches},
               {"memory_filled", r->memory.filled, r->memory.rows}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (row[i].value > row[i].most)
            return sr_fail(why, SR_FORMAT, "%s: progress/%s is %lld, not 0 to %lld", path,
                           row[i].name, (long long)row[i].value, (long long)row[i].most);
    return SR_OK;
}

sr_status checkpoint_restore(trainer *r, const char *path, sr_failure *why) {
    array_reader *f = array_reader_open(path, CHECKPOINT_FORMAT, CHECKPOINT_VERSION, why);
    if (!f) return why->status;
    sr_status status = check_data(r, f, why);
    if (status == SR_OK) status = train_state_each(r, fill_item, f, why);
    if (status == SR_OK) status = check_place(r, path, why);
    if (status == SR_OK) status = shards_reserve(r, why);
    if (status == SR_OK) status = shards_each_replica(r, fill_item, f, why);
    if (status == SR_OK) shards_take_replicas(r);
    shards_forget_replicas(r);
    array_reader_close(f);
    return status;
}
