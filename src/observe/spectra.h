/* spectra.h -- singular values of the rows that a normalization sees. */
#ifndef OBSERVE_SPECTRA_H
#define OBSERVE_SPECTRA_H

#include "norm/norm_site.h"

/* x [count] as float: x itself, or a copy in the double build. NULL: out of memory. The caller
 * frees *copy. */
const float *spectra_as_float(const real *x, int64_t count, float **copy);

/* values [d], descending, of the valid rows of x [rows, d]. */
sr_status spectrum_of_rows(const norm_rows *rows, const real *x, int64_t d, double *values,
                           sr_failure *why);

#endif
