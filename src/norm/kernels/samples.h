/* samples.h -- the kernel of GroupNorm and InstanceNorm; see samples.c. */
#ifndef NORM_KERNELS_SAMPLES_H
#define NORM_KERNELS_SAMPLES_H

#include "norm/kernels/norm_method.h"

sr_status samples_forward(norm_call *c, int64_t groups, const real *x, real *y);
sr_status samples_backward(norm_call *c, int64_t groups, const real *x, const real *dy, real *dx);
size_t samples_kept_bytes(const norm_call *c);

#endif
