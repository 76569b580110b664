/* model_memory.h -- the memory of a recurrent model between batches (docs/models.md 4). */
#ifndef NETS_MODEL_MEMORY_H
#define NETS_MODEL_MEMORY_H

#include <stdbool.h>

#include "engine/tape.h"

typedef struct model model;

/* The newest rows of each sequence that entered each layer, without gradient. The reader of a
 * stream owns it and empties it at the start of the stream. */
typedef struct model_memory {
    int64_t layers, sequences, rows, width; /* rows: per sequence, at most; 0: carries nothing */
    int64_t filled;                         /* valid rows of each sequence */
    /* [layers, sequences, rows, width]: the last `filled` rows, the newest last; the others are
     * zeros. */
    real *value;
} model_memory;

/* An empty memory for `sequences` parallel sequences; without rows when the model carries nothing.
 * Free with model_memory_free. */
sr_status model_memory_init(model_memory *k, const model *m, bool training, int64_t sequences,
                            sr_failure *why);
void model_memory_free(model_memory *k);
void model_memory_empty(model_memory *k);
/* For model files: the layer's memory rows followed by x [sequences, T, width]. Only x gets a
 * gradient, and x is kept for the next pass. k NULL, or without rows: returns x. */
tensor *model_memory_prepend(model_memory *k, tape *t, int64_t layer, tensor *x);
/* Counts T new rows as filled, after every layer has kept them. */
void model_memory_advance(model_memory *k, int64_t T);

#endif
