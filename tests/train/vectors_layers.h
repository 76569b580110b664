/* vectors_layers.h -- one layer with its parameters and sites, alone in a model. */
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

/* Close it even if this returns false, which was reported. */
bool layer_case_open(layer_case *l, model_case *c, const char *model_name, const char *norm);
void layer_case_close(layer_case *l);
/* Every parameter from the file. */
void layer_case_set(layer_case *l, const layer_name *names);
/* Compares y and the gradients of x and every parameter. mask: rows to compare, NULL: all. */
void layer_case_compare(layer_case *l, const layer_name *names, const tensor *x, const tensor *y,
                        const uint8_t *mask);

#endif
