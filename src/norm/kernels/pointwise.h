/* pointwise.h -- the kernel of the methods that bound every number separately (pointwise.c). */
#ifndef NORM_KERNELS_POINTWISE_H
#define NORM_KERNELS_POINTWISE_H

#include "norm/kernels/norm_method.h"

/* y = gamma f(alpha x + shift) + beta */
typedef struct pointwise_rule {
    double (*value)(double z);           /* f */
    double (*slope)(double z, double f); /* f' at z, given the value f */
    double alpha, shift;
} pointwise_rule;

/* Indices of their gradients among the method's own parameters. */
enum { POINTWISE_ALPHA, POINTWISE_SHIFT };

sr_status pointwise_forward(norm_call *c, const pointwise_rule *rule, const real *x, real *y);
/* Fills sum_g, sum_gx and the gradients of alpha and, if the method has one, the shift. */
sr_status pointwise_backward(norm_call *c, const pointwise_rule *rule, const real *x,
                             const real *dy, real *dx);

#endif
