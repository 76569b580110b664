/* checkpoint_info.c -- attributes of a checkpoint, and whether its values are valid. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/checkpoint/checkpoint.h"
#include "train/loaded_model.h"

bool checkpoint_is_name(const char *path) {
    static const char end[] = ".ckpt";
    const size_t length = strlen(path), tail = sizeof end - 1;
    return length > tail && !strcmp(path + length - tail, end);
}

sr_status checkpoint_count(const array_reader *f, const char *group, bool read, int64_t *arrays,
                           int64_t *numbers, sr_failure *why) {
    int64_t count;
    sr_status status = array_reader_count(f, group, &count, why);
    for (int64_t i = 0; i < count && status == SR_OK; i++) {
        char member[2 * PARAM_NAME], name[CHECKPOINT_NAME];
        npz_array a = {0};
        status = array_reader_name(f, group, i, member, sizeof member, why);
        snprintf(name, sizeof name, "%s/%s", group, member);
        if (status == SR_OK) status = array_reader_shape(f, name, &a, why);
        if (status == SR_OK && read) {
            a.data = malloc((size_t)npz_count(&a) * sizeof(double) + 1);
            status = a.data ? array_reader_fill(f, name, &a, why)
                            : sr_fail(why, SR_MEMORY, "%s: out of memory to read it",
                                      array_reader_path(f));
            free(a.data);
        }
        if (status == SR_OK) *numbers += npz_count(&a);
    }
    *arrays += count;
    return status;
}

/* Some texts are not in every checkpoint. */
static sr_status read_texts(const array_reader *f, checkpoint_card *c, sr_failure *why) {
    const struct {
        const char *name;
        char **text;
    } of[] = {{"version", &c->version}, {"model", &c->model},
              {"data", &c->data},       {"task", &c->task},
              {"config", &c->config},   {"weights_digest", &c->weights_digest}};
    sr_status status = SR_OK;
    for (size_t i = 0; i < sizeof of / sizeof of[0] && status == SR_OK; i++)
        status = array_reader_text(f, of[i].name, of[i].text, why);
    c->steps = -1;
    if (status != SR_OK) return status;
    if (array_reader_has_attribute(f, "origin"))
        status = array_reader_text(f, "origin", &c->origin, why);
    else if (!(c->origin = calloc(1, 1)))
        status = sr_fail(why, SR_MEMORY, "%s: out of memory", array_reader_path(f));
    if (status == SR_OK && array_reader_has_attribute(f, "steps"))
        status = array_reader_int(f, "steps", &c->steps, why);
    return status == SR_OK ? array_reader_int(f, "updates", &c->updates, why) : status;
}

sr_status checkpoint_info_read(const char *path, checkpoint_card *card, sr_failure *why) {
    *card = (checkpoint_card){0};
    array_reader *f = array_reader_open(path, CHECKPOINT_FORMAT, CHECKPOINT_VERSION, why);
    if (!f) return why->status;
    sr_status status = read_texts(f, card, why);
    for (int i = 0; checkpoint_groups[i] && status == SR_OK; i++) {
        int64_t numbers = 0;
        status = checkpoint_count(f, checkpoint_groups[i], true, &card->arrays, &numbers, why);
        if (i == STATE_PARAMETER) card->parameters = numbers;
    }
    array_reader_close(f);
    return status;
}

void checkpoint_info_free(checkpoint_card *c) {
    free(c->version), free(c->model), free(c->data), free(c->task);
    free(c->weights_digest), free(c->origin), free(c->config);
    *c = (checkpoint_card){0};
}
