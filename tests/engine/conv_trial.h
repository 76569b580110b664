/* conv_trial.h -- random inputs of a convolution, and its three passes by loops in double. */
#ifndef TESTS_ENGINE_CONV_TRIAL_H
#define TESTS_ENGINE_CONV_TRIAL_H

#include "engine/conv/conv.h"

conv_shape conv_trial_shape(int64_t images, int64_t height, int64_t width, int64_t in, int64_t out,
                            int64_t kernel, int64_t stride, int64_t pad);
/* Element counts of x, w, y. */
int64_t conv_trial_x(const conv_shape *s);
int64_t conv_trial_w(const conv_shape *s);
int64_t conv_trial_y(const conv_shape *s);
double *conv_trial_zeros(int64_t count);

/* Inputs and expected results of the three passes. */
typedef struct conv_trial {
    conv_shape s;
    real *x, *w, *dy;
    double *y, *dx, *dw;
} conv_trial;

conv_trial conv_trial_create(conv_shape s);
void conv_trial_free(conv_trial *t);

#endif
