/* svd.h -- singular values; the only user of LAPACKE. */
#ifndef BASE_SVD_H
#define BASE_SVD_H

#include <stdint.h>

#include "statrec/base.h"

/* Fraction of the largest value below which the double Gram matrix does not resolve the others. */
#define SVD_RESOLUTION 5e-7
/* The method of svd_singular_values, in one line for tables. */
#define SVD_METHOD                                                                                 \
    "roots of the eigenvalues of the Gram matrix in double; block QR in double when a value is "   \
    "under 5e-7 of the largest"

/* Writes the singular values of the row-major matrix a [rows x cols] to values [min(rows, cols)],
 * descending. Each is exact to 1e-9 of the largest or better. a is not changed. SR_MEMORY or
 * SR_LIBRARY on failure; non-finite input gives NaN values and SR_OK. */
sr_status svd_singular_values(const float *a, int64_t rows, int64_t cols, double *values,
                              sr_failure *why);

/* values [cols], descending, from the Gram matrix alone: those under SVD_RESOLUTION of the largest
 * are rounding errors. index [rows] names the rows of a that count, in any order; NULL: the first
 * `rows`. Without a row NaN; values past the number of rows are 0. Otherwise as above. */
sr_status svd_gram_singular_values(const float *a, const int32_t *index, int64_t rows, int64_t cols,
                                   double *values, sr_failure *why);

#endif
