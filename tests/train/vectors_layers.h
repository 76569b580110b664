/* vectors_layers.h -- one layer with parameters and sites of its own, in a model that holds nothing
 * else. */
#ifndef TESTS_TRAIN_VECTORS_LAYERS_H
#define TESTS_TRAIN_VECTORS_LAYERS_H

#include "model_vectors.h"
#include "nets/models.h"

typedef struct layer_case {
    model_case *c;
    model *m;
    model_options options;
    sr_failure why;
    tape *t;
    batch batch;
    pass pass;
} layer_case;

/* A parameter's name and its name in the file; full NULL ends a list. */
typedef struct layer_name {
    const char *full, *file;
} layer_name;

/* To be closed even when false, which was told. */
bool layer_case_open(layer_case *l, model_case *c, const char *model_name, const char *norm);
void layer_case_close(layer_case *l);
/* Every parameter from the file. */
void layer_case_set(layer_case *l, const layer_name *names);
/* y, the gradient of x and those of every parameter. mask: rows that count, NULL: all. */
void layer_case_compare(layer_case *l, const layer_name *names, const tensor *x, const tensor *y,
                        const uint8_t *mask);

#endif
