/* spectra.c -- singular values of the rows that a normalization sees (docs/norms.md 18.4).
 *
 * X [N, d], the N valid rows, not centred: roots of the eigenvalues of X^T X, summed in double
 * (svd.h), descending. Values under about 5e-7 of the largest are rounding errors, values past the
 * N-th are 0, without a row or with one that is not finite all are NaN.
 */
#include "observe/spectra.h"

#include <stdlib.h>

#include "base/svd.h"

#ifdef REAL_DOUBLE
/* The double build's rows as float. */
static float *narrow_rows(const real *x, int64_t count) {
    float *narrow = malloc((size_t)(count + 1) * sizeof *narrow);
    for (int64_t i = 0; narrow && i < count; i++) narrow[i] = (float)x[i];
    return narrow;
}
#endif

sr_status spectrum_of_rows(const norm_rows *rows, const real *x, int64_t d, double *values,
                           sr_failure *why) {
#ifdef REAL_DOUBLE
    float *narrow = narrow_rows(x, rows->rows * d);
    if (!narrow) return sr_fail(why, SR_MEMORY, "out of memory for the rows of a site");
    sr_status status = svd_gram_singular_values(narrow, rows->index, rows->valid, d, values, why);
    free(narrow);
    return status;
#else
    return svd_gram_singular_values(x, rows->index, rows->valid, d, values, why);
#endif
}
