/* layer_scale.h -- the layer scale that can stand in front of a method; see layer_scale.c. */
#ifndef NORM_KERNELS_LAYER_SCALE_H
#define NORM_KERNELS_LAYER_SCALE_H

#include "norm/kernels/norm_method.h"

struct column_passes;

/* The layer scale of one call: u = x/s. */
typedef struct layer_scale {
    int64_t groups, width; /* G and w: d = G w */
    double eps;
    const real *x;   /* [rows, d] */
    double *inverse; /* [rows, G] 1/s */
    bool made;       /* inverse is filled */
    real *u;         /* [rows, d] where somebody wants it in memory, or NULL */
    const real *du;
    real *dx; /* [rows, d], may be du; NULL outside of a backward pass */
} layer_scale;

/* For rows first .. first+count-1 of m, and m->scale: x -> inverse; x -> u; du -> dx. */
void layer_scale_make(const struct column_passes *m, int64_t first, int64_t count);
void layer_scale_apply(const struct column_passes *m, int64_t first, int64_t count);
void layer_scale_backward(const struct column_passes *m, int64_t first, int64_t count);

#endif
