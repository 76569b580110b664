/* svd.h -- singular values; the only door to LAPACKE. */
#ifndef STATNET_SVD_H
#define STATNET_SVD_H

#include <stdint.h>

#include "statrec/base.h"

/* Singular values of the row-major matrix a [rows x cols], descending, into
 * values [min(rows, cols)]. a is not changed. SR_MEMORY or SR_LIBRARY on failure; non-finite
 * input gives NaN values and SR_OK. */
sr_status svd_singular_values(const float *a, int64_t rows, int64_t cols, double *values,
                              sr_failure *why);

#endif
