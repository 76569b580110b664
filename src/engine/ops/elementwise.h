/* elementwise.h -- ops that treat every element alike: an op is two loops over a chunk of n
 * elements. */
#ifndef ENGINE_OPS_ELEMENTWISE_H
#define ENGINE_OPS_ELEMENTWISE_H

#include "engine/ops/ops.h"

typedef struct elementwise {
    const char *name;
    void (*forward)(int64_t n, const real *restrict x, real *restrict y);
    /* dx from dy and y, or from dy and x with `of_input`: overwritten, or added. */
    void (*backward)(int64_t n, bool add, const real *restrict z, const real *restrict dy,
                     real *restrict dx);
    bool of_input;
} elementwise;

/* op must live as long as the step. */
tensor *elementwise_apply(const elementwise *op, tape *t, tensor *x);

#endif
