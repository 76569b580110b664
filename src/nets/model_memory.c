/* model_memory.c -- the memory of a recurrent model between batches (docs/models.md 4). */
#include <stdlib.h>
#include <string.h>

#include "engine/ops/ops.h"
#include "nets/models.h"

static int64_t value_count(const model_memory *k) {
    return k->layers * k->sequences * k->rows * k->width;
}

sr_status model_memory_init(model_memory *k, const model *m, bool training, int64_t sequences,
                            sr_failure *why) {
    *k = (model_memory){.layers = m->memory_layers,
                        .sequences = sequences,
                        .rows = training ? m->memory_rows : m->memory_eval_rows,
                        .width = m->memory_width};
    if (value_count(k) == 0) {
        *k = (model_memory){0};
        return SR_OK;
    }
    k->value = calloc((size_t)value_count(k), sizeof *k->value);
    if (k->value) return SR_OK;
    const int64_t rows = k->rows;
    *k = (model_memory){0};
    return sr_fail(why, SR_MEMORY, "out of memory for %lld rows of each of %lld sequences",
                   (long long)rows, (long long)sequences);
}

void model_memory_free(model_memory *k) {
    free(k->value);
    *k = (model_memory){0};
}

void model_memory_empty(model_memory *k) {
    if (k->value) memset(k->value, 0, (size_t)value_count(k) * sizeof *k->value);
    k->filled = 0;
}

tensor *model_memory_prepend(model_memory *k, tape *t, int64_t layer, tensor *x) {
    if (!x || !k || k->rows == 0) return x;
    if (x->dim[0] != k->sequences || x->dim[2] != k->width)
        return tape_fail(t, SR_USAGE,
                         "memory of %lld sequences of width %lld, a batch of %lld of %lld",
                         (long long)k->sequences, (long long)k->width, (long long)x->dim[0],
                         (long long)x->dim[2]);
    const int64_t step = k->rows * k->width;
    tensor *all = x;
    if (k->filled > 0) {
        tensor *front = tape_tensor(t, 3, (int64_t[]){k->sequences, k->filled, k->width});
        const int64_t there = k->filled * k->width;
        for (int64_t b = 0; front && b < k->sequences; b++)
            memcpy(front->value + b * there,
                   k->value + (layer * k->sequences + b + 1) * step - there,
                   (size_t)there * sizeof(real));
        all = op_concat(t, (tensor *[]){front, x}, 2, 1);
    }
    /* The older rows move to the front; rows before it are dropped. */
    const int64_t T = x->dim[1], fresh = T < k->rows ? T : k->rows;
    const size_t old = (size_t)((k->rows - fresh) * k->width);
    for (int64_t b = 0; b < k->sequences; b++) {
        real *to = k->value + (layer * k->sequences + b) * step;
        memmove(to, to + fresh * k->width, old * sizeof *to);
        memcpy(to + old, x->value + ((b + 1) * T - fresh) * k->width,
               (size_t)(fresh * k->width) * sizeof *to);
    }
    return all;
}

void model_memory_advance(model_memory *k, int64_t T) {
    if (!k || k->rows == 0) return;
    k->filled = k->filled + T < k->rows ? k->filled + T : k->rows;
}
