/* layer.h -- one normalization layer with its parameters, for this folder's tests. */
#ifndef TESTS_NORM_LAYER_H
#define TESTS_NORM_LAYER_H

#include "norm/norm_options.h"
#include "norm/norm_site.h"
#include "testing/check.h"

/* A layer whose gain, bias and other parameters are random. */
typedef struct layer {
    params p;
    norm_site site;
    const int32_t *sample; /* sample numbers of the rows of layer_pass; NULL: each row its own */
    int64_t samples;
    double tokens, *penalty; /* of norm_rows */
} layer;

/* Fails the running test on an error. groups: groups of a layer scale, 0: none. */
void layer_make(layer *l, const norm_method *m, int64_t features, int64_t groups);
void layer_make_with(layer *l, const norm_method *m, int64_t features, const norm_options *o);
void layer_free(layer *l);

/* Runs one forward and backward pass of x, dy [rows, d] with `mask` (may be NULL) on `threads`
 * threads. Writes y, dx [rows, d] (NULL: not needed); parameter gradients stay in the layer. */
void layer_pass(layer *l, tape *t, const real *x, const real *dy, int64_t rows, const uint8_t *mask,
                norm_mode mode, real *y, real *dx);

/* Computes u [rows, d], the output of a layer scale of x with these groups, in plain loops; groups
 * 0: u = x. s [rows, groups]: receives the divisors, or NULL. Free with free. */
double *layer_scaled(const real *x, int64_t rows, int64_t d, int64_t groups, double eps, double *s);

/* Returns rows*d normal numbers. Column k has (1 + k/4) times this mean and standard deviation.
 * Free with free. */
real *layer_numbers(int64_t rows, int64_t d, uint64_t seed, double mean, double deviation);

#endif
