/* spectra.h -- singular values of the rows that a normalization sees. */
#ifndef OBSERVE_SPECTRA_H
#define OBSERVE_SPECTRA_H

#include "norm/norm_site.h"

/* values [d], descending, of the valid rows of x [rows, d]. */
sr_status spectrum_of_rows(const norm_rows *rows, const real *x, int64_t d, double *values,
                           sr_failure *why);

#endif
