/* descending.h -- the order of singular values; used by writer and reader. */
#ifndef RUNFILE_DESCENDING_H
#define RUNFILE_DESCENDING_H

#include <stdbool.h>
#include <stdint.h>

/* True when no value is negative or larger than the one before it. NaN is allowed anywhere. */
bool run_descends(const double *value, int64_t count);

#endif
