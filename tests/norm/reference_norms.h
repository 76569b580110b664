/* reference_norms.h -- every normalization in plain loops in double, written from docs/norms.md:
 * the reference for the kernels of src/norm. */
#ifndef TESTS_NORM_REFERENCE_NORMS_H
#define TESTS_NORM_REFERENCE_NORMS_H

#include "norm/norm_options.h"
#include "norm/norm_site.h"

/* One call of one layer, forward and backward. Matrices are [rows, d]. */
typedef struct reference_call {
    const norm_options *options; /* of `method` */
    const norm_method *method;
    norm_mode mode;
    int64_t rows, d, call; /* call: number of this training call, from 1; else of the last one */
    const uint8_t *mask;   /* NULL: all rows are valid */
    const int32_t *sample; /* NULL: each row is its own sample */
    int64_t samples;
    double tokens;
    const double *x, *g, *gamma, *beta; /* g = dL/dy */
    const double *own[NORM_OWN_MAX];    /* the method's learnable parameters; NULL: none */
    double *state[NORM_STATE_MAX];      /* updated in NORM_TRAIN */
    double *y, *dx, *dgamma, *dbeta, *own_grad[NORM_OWN_MAX];
    double *stat[NORM_VECTOR_COUNT]; /* [d] */
    double penalty;
    /* The method's input and its gradient: x and dx, or, with a layer scale before it, the caller's
     * memory. */
    double *u, *du;
} reference_call;

/* Fills y, dx, dgamma, dbeta, own_grad, stat, penalty; updates state. false: unknown method. */
bool reference_norm(reference_call *c);

#endif
