/* sync.h -- statistics of a layer with rows on several processes (sync.c). With one process these
 * functions change nothing. */
#ifndef NORM_KERNELS_SYNC_H
#define NORM_KERNELS_SYNC_H

#include "norm/kernels/norm_method.h"

/* In: mean [d] and m2 [d] of this process's valid rows. Out: mean and m2 of all rows of all
 * processes, and *n, their number. */
sr_status sync_moments(const norm_call *c, double *n, double *mean, double *m2);

/* a [d] and b [d] become their sums over the processes. */
sr_status sync_sums(const norm_call *c, double *a, double *b);

/* *n = valid rows of all processes. */
sr_status sync_rows(const norm_call *c, double *n);

#endif
