/* average.c -- averages checkpoints (docs/models.md 2.8): parameters and running statistics, summed
   in double in the given order. Running variances are averaged, as in the releases;
   loaded_model_recompute measures them for the averaged weights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/checkpoint/checkpoint.h"
#include "train/loaded_model.h"

/* Sums of all items, concatenated. */
typedef struct sums {
    double *value;
    int64_t at;
    double scale;
    bool put_back;
} sums;

static sr_status visit(void *context, const state_item *item, sr_failure *why) {
    sums *s = context;
    const npz_array *a = &item->array;
    (void)why;
    for (int64_t i = 0; i < npz_count(a); i++, s->at++)
        if (s->put_back)
            weights_put(a, i, s->value[s->at] * s->scale);
        else
            s->value[s->at] += weights_get(a, i);
    return SR_OK;
}

static sr_status count_values(void *context, const state_item *item, sr_failure *why) {
    (void)why;
    *(int64_t *)context += npz_count(&item->array);
    return SR_OK;
}

sr_status loaded_model_average(loaded_model *t, char *const *name, int count, sr_failure *why) {
    int64_t values = 0;
    sr_status status = train_model_each(t->model, count_values, &values, why);
    sums s = {calloc((size_t)values + 1, sizeof *s.value), 0, 1.0 / count, false};
    if (!s.value)
        return sr_fail(why, SR_MEMORY, "out of memory to average %lld values", (long long)values);
    for (int i = 0; i < count && status == SR_OK; i++) {
        s.at = 0;
        status = weights_read(t->model, name[i], why);
        if (status == SR_OK) status = train_model_each(t->model, visit, &s, why);
    }
    s.at = 0, s.put_back = true;
    if (status == SR_OK) status = train_model_each(t->model, visit, &s, why);
    free(s.value);
    return status;
}

/* -- writing */

sr_status loaded_model_write(loaded_model *t, const char *path, const char *origin, bool force,
                             sr_failure *why) {
    if (!force && access(path, F_OK) == 0) {
        sr_fail(why, SR_EXISTS, "%s: exists", path);
        sr_hint(why, "another name, or --force to replace it");
        return SR_EXISTS;
    }
    loaded_model_text text;
    char *config = options_dump(train_options(), &t->config);
    sr_status status = config ? loaded_model_open_text(t, &text, why)
                              : sr_fail(why, SR_MEMORY, "%s: out of memory", path);
    if (status != SR_OK) {
        free(config);
        return status;
    }
    array_writer *w = array_writer_create(path, CHECKPOINT_FORMAT, CHECKPOINT_VERSION, why);
    if (w) {
        checkpoint_put_head(w, &(checkpoint_head){config, t->config.data.name, t->model, &t->shape,
                                                  t->updates, loaded_model_codec(&text)});
        array_writer_put_text(w, "origin", origin, NULL);
        train_model_each(t->model, checkpoint_add, w, NULL);
    }
    free(config);
    loaded_model_close_text(&text);
    return w ? array_writer_finish(w, why) : why->status;
}
