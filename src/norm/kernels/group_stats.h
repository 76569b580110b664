/* group_stats.h -- the kernel of GroupNorm and InstanceNorm (group_stats.c). */
#ifndef NORM_KERNELS_GROUP_STATS_H
#define NORM_KERNELS_GROUP_STATS_H

#include "norm/kernels/norm_method.h"

sr_status group_stats_forward(norm_call *c, int64_t groups, const real *x, real *y);
sr_status group_stats_backward(norm_call *c, int64_t groups, const real *x, const real *dy,
                               real *dx);
size_t group_stats_kept_bytes(const norm_call *c);

#endif
