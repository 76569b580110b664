/* downsample.h -- many rows to few: three rows for each part of an axis, for figures. */
#ifndef ANALYSIS_COLUMNS_DOWNSAMPLE_H
#define ANALYSIS_COLUMNS_DOWNSAMPLE_H

#include "analysis/columns/column_summary.h"

typedef struct parts {
    int columns;
    int64_t buckets, most; /* rows of a part that is kept */
    double low, high;      /* of x */
    column_source all;     /* the rows that parts_add is given, to be read again */
    int64_t first, number, count,
        capacity;  /* the part that is being filled: its number, its rows */
    double *value; /* [columns, capacity] */
    column_space space;
    int64_t rows, row_capacity; /* what is done: three rows for each part that has any */
    double *row;                /* [rows, columns] smallest, median, largest; NaN: none finite */
} parts;

/* all: the columns and their rows, of which `range` does not matter; a part that is longer than `room`
 * bytes is not kept but read again, several times. */
void parts_begin(parts *p, const column_source *all, int64_t room, int64_t buckets, double low,
                 double high);
/* The next rows, x not falling: x [count], value [columns][count]. */
sr_status parts_add(parts *p, const double *x, const double *const *value, int64_t count,
                    sr_failure *why);
/* After the last row. */
sr_status parts_end(parts *p, sr_failure *why);
void parts_free(parts *p);

#endif
