/* layer_scale.h -- the layer scale that can stand in front of a method; see layer_scale.c. */
#ifndef NORM_LAYER_SCALE_H
#define NORM_LAYER_SCALE_H

#include "statnet/norm.h"

/* u [rows, d] and scale [rows, groups] = 1/s; all: padded rows too, otherwise valid rows only and
 * the others are left undefined. */
void layer_scale_forward(const norm_call *c, bool all, const real *x, real *u, double *scale);

/* du [rows, d] -> dx [rows, d]. */
void layer_scale_backward(const norm_call *c, bool all, const real *u, const double *scale,
                          const real *du, real *dx);

#endif
