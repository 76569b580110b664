/* weights.c -- reads and writes weights and running statistics: checkpoints and NumPy archives.
   Arrays are named like parameters, "encoder.0.ffn_block.in.weight", and running statistics,
   "encoder.0.norm1.mu". float32 and float64 are both taken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/checkpoint/checkpoint.h"
#include "train/loaded_model.h"

/* -- from arrays */

double weights_get(const npz_array *a, int64_t i) {
    return a->type == NPZ_FLOAT32 ? (double)((const float *)a->data)[i]
                                  : ((const double *)a->data)[i];
}

void weights_put(const npz_array *a, int64_t i, double value) {
    if (a->type == NPZ_FLOAT32)
        ((float *)a->data)[i] = (float)value;
    else
        ((double *)a->data)[i] = value;
}

/* Checks the shape of an array before allocation. */
static sr_status check_array(const char *path, const state_item *item, const npz_array *from,
                             sr_failure *why) {
    if (from->type != NPZ_FLOAT32 && from->type != NPZ_FLOAT64)
        return sr_fail(why, SR_FORMAT, "%s: %s: neither float32 nor float64", path, item->name);
    bool same = from->rank == item->array.rank;
    for (int i = 0; same && i < from->rank; i++) same = from->dim[i] == item->array.dim[i];
    if (!same)
        return sr_fail(why, SR_FORMAT, "%s: %s: its shape differs from the model's", path,
                       item->name);
    return SR_OK;
}

static void take(const state_item *item, const npz_array *from) {
    for (int64_t i = 0; i < npz_count(from); i++)
        weights_put(&item->array, i, weights_get(from, i));
}

static sr_status missing(const char *path, const state_item *item, sr_failure *why) {
    if (item->kind != STATE_PARAMETER) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: has no array %s", path, item->name);
}

/* -- NumPy archives */

typedef struct archive {
    npz_reader *reader;
    const char *path;
    int64_t taken;
} archive;

static bool holds(npz_reader *r, const char *name) {
    for (int64_t i = 0; i < npz_arrays(r); i++)
        if (!strcmp(npz_name(r, i), name)) return true;
    return false;
}

static sr_status read_item(void *context, const state_item *item, sr_failure *why) {
    archive *a = context;
    npz_array found;
    if (!holds(a->reader, item->name)) return missing(a->path, item, why);
    sr_status status = npz_shape(a->reader, item->name, &found, why);
    if (status == SR_OK) status = check_array(a->path, item, &found, why);
    if (status == SR_OK) status = npz_read(a->reader, item->name, &found, why);
    if (status != SR_OK) return status;
    status = check_array(a->path, item, &found, why); /* as it was read now */
    /* unreached: an archive that changes between its two readings */
    if (status == SR_OK) take(item, &found);
    free(found.data);
    a->taken++;
    return status;
}

typedef struct name_search {
    const char *name;
    bool found;
} name_search;

static sr_status look_for(void *context, const state_item *item, sr_failure *why) {
    name_search *s = context;
    (void)why;
    s->found |= !strcmp(item->name, s->name);
    return SR_OK;
}

/* An unused array has a misspelt name, belongs to another model, or is a duplicate. */
static sr_status refuse_left_over(model *m, const archive *a, sr_failure *why) {
    for (int64_t i = 0; i < npz_arrays(a->reader); i++) {
        name_search s = {npz_name(a->reader, i), false};
        train_model_each(m, look_for, &s, NULL);
        if (!s.found)
            return sr_fail(why, SR_FORMAT, "%s: %s is no parameter of the model", a->path, s.name);
    }
    return sr_fail(why, SR_FORMAT, "%s: has an array of the model twice", a->path);
}

/* -- checkpoints */

static sr_status read_stored(void *context, const state_item *item, sr_failure *why) {
    const array_reader *f = context;
    char name[CHECKPOINT_NAME];
    npz_array found;
    checkpoint_name(item, name);
    if (!array_reader_has(f, name)) return missing(array_reader_path(f), item, why);
    sr_status status = array_reader_shape(f, name, &found, why);
    if (status == SR_OK) status = check_array(array_reader_path(f), item, &found, why);
    if (status != SR_OK) return status;
    found.data = malloc((size_t)npz_count(&found) * sizeof(double) + 1);
    if (!found.data) return sr_fail(why, SR_MEMORY, "%s: out of memory", array_reader_path(f));
    status = array_reader_fill(f, name, &found, why);
    if (status == SR_OK) take(item, &found);
    free(found.data);
    return status;
}

sr_status weights_read(model *m, const char *path, sr_failure *why) {
    const size_t length = strlen(path);
    if (length > 4 && !strcmp(path + length - 4, ".npz")) {
        archive a = {npz_open(path, why), path, 0};
        if (!a.reader) return why->status;
        sr_status status = train_model_each(m, read_item, &a, why);
        if (status == SR_OK && a.taken < npz_arrays(a.reader))
            status = refuse_left_over(m, &a, why);
        npz_close(a.reader);
        return status;
    }
    array_reader *f = array_reader_open(path, CHECKPOINT_FORMAT, CHECKPOINT_VERSION, why);
    if (!f) return why->status;
    sr_status status = train_model_each(m, read_stored, f, why);
    array_reader_close(f);
    return status;
}

sr_status weights_check_meaning(const char *path, const data_shape *shape, sr_failure *why) {
    if (!checkpoint_is_name(path)) return SR_OK;
    array_reader *f = array_reader_open(path, CHECKPOINT_FORMAT, CHECKPOINT_VERSION, why);
    if (!f) return why->status;
    const sr_status status = checkpoint_check_meaning(f, shape, why);
    array_reader_close(f);
    return status;
}

/* -- writing */

static sr_status add_to_npz(void *context, const state_item *item, sr_failure *why) {
    return npz_add(context, item->name, &item->array, why);
}

sr_status weights_write_npz(model *m, const char *path, bool force, sr_failure *why) {
    npz_writer *w = npz_create(path, force, why);
    if (!w) return why->status;
    sr_status status = train_model_each(m, add_to_npz, w, why);
    if (status == SR_OK) return npz_write(w, why);
    npz_abandon(w);
    return status;
}
