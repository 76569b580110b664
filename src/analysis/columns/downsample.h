/* downsample.h -- many rows to few: three rows for each part of an axis, for figures. */
#ifndef ANALYSIS_COLUMNS_DOWNSAMPLE_H
#define ANALYSIS_COLUMNS_DOWNSAMPLE_H

#include <stdint.h>

#include "statrec/base.h"

typedef struct parts {
    int columns;
    int64_t buckets;                 /* 0: every row is kept as it is */
    double low, high;                /* range of x */
    int64_t number, count, capacity; /* the part that is being filled: its number, its rows */
    double *value;                   /* [columns, capacity] */
    int64_t rows, row_capacity;      /* output; a reader may take rows early and set rows to 0 */
    /* [rows, columns]: three rows for each part that has any, smallest, median, largest; NaN if no
     * value is finite */
    double *row;
} parts;

void parts_begin(parts *p, int columns, int64_t buckets, double low, double high);
/* Adds the next rows; x does not fall: x [count], value [columns][count]. */
sr_status parts_add(parts *p, const double *x, const double *const *value, int64_t count,
                    sr_failure *why);
/* Call it after the last row. */
sr_status parts_end(parts *p, sr_failure *why);
void parts_free(parts *p);

#endif
