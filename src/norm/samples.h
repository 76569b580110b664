/* samples.h -- the kernel of GroupNorm and InstanceNorm; see samples.c. */
#ifndef NORM_SAMPLES_H
#define NORM_SAMPLES_H

#include "statnet/norm.h"

sr_status samples_forward(norm_call *c, int64_t groups, const real *x, real *y);
sr_status samples_backward(norm_call *c, int64_t groups, const real *x, const real *dy, real *dx);
size_t samples_kept_bytes(const norm_call *c);

#endif
