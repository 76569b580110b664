/* layer_norms.h -- norms of the gradient, weights and update of each layer. */
#ifndef OBSERVE_LAYER_NORMS_H
#define OBSERVE_LAYER_NORMS_H

#include "observe/hooks.h"

/* The site of the model that owns a parameter; -1: none. */
int layer_norms_site(const model *m, int parameter);

typedef struct layer_norms layer_norms;
/* Declares the scalars, recorded every `every` updates. Call before the first step. NULL on
 * failure. */
layer_norms *layer_norms_create(const model *m, sr_recorder *r, const hooks *h, int64_t every,
                                sr_failure *why);
void layer_norms_free(layer_norms *n); /* NULL is fine */

/* Call around an update, numbered from 1. Gradients times scale belong to the mean loss. */
void layer_norms_before(layer_norms *n, int64_t update, double scale, int threads);
void layer_norms_after(layer_norms *n, int threads);

#endif
