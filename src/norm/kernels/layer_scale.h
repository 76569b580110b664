/* layer_scale.h -- the layer scale before a method (layer_scale.c). */
#ifndef NORM_KERNELS_LAYER_SCALE_H
#define NORM_KERNELS_LAYER_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"

/* The layer scale of one call: u = x/s. */
typedef struct layer_scale {
    int64_t groups, width; /* G and w: d = G w */
    double eps;
    const real *x;   /* [rows, d] */
    double *inverse; /* [rows, G] 1/s */
    bool made;       /* inverse is filled */
    real *u;         /* [rows, d], or NULL when not in memory */
    const real *du;
    real *dx; /* [rows, d], may be du; NULL outside a backward pass */
} layer_scale;

/* A step of the layer scale in the rows index[first] .. index[first + count - 1]; index NULL: rows
 * first .. first + count - 1. */
typedef void layer_scale_fn(const layer_scale *s, const int32_t *index, int64_t first,
                            int64_t count);
layer_scale_fn layer_scale_make;     /* x -> inverse */
layer_scale_fn layer_scale_apply;    /* x -> u */
layer_scale_fn layer_scale_backward; /* du -> dx */

#endif
