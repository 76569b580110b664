/* spectra.c -- singular values of the rows that a normalization sees (docs/norms.md 18.4).
 *
 * X [N, d] has the N valid rows, not centred. The values are roots of the eigenvalues of X^T X,
 * summed in double (svd.h), descending. Values under about 5e-7 of the largest are rounding errors.
 * Values past the N-th are 0. All are NaN without rows, or if a row is not finite.
 */
#include "observe/spectra.h"

#include <stdlib.h>

#include "base/svd.h"

const float *spectra_as_float(const real *x, int64_t count, float **copy) {
#ifdef REAL_DOUBLE
    *copy = malloc((size_t)(count + 1) * sizeof **copy);
    for (int64_t i = 0; *copy && i < count; i++) (*copy)[i] = (float)x[i];
    return *copy;
#else
    (void)count;
    *copy = NULL;
    return x;
#endif
}

sr_status spectrum_of_rows(const norm_rows *rows, const real *x, int64_t d, double *values,
                           sr_failure *why) {
    float *copy;
    const float *from = spectra_as_float(x, rows->rows * d, &copy);
    if (!from) return sr_fail(why, SR_MEMORY, "out of memory for the rows of a site");
    sr_status status = svd_gram_singular_values(from, rows->index, rows->valid, d, values, why);
    free(copy);
    return status;
}
