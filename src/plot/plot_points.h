/* plot_points.h -- one curve as it is drawn. */
#ifndef PLOT_PLOT_POINTS_H
#define PLOT_PLOT_POINTS_H

#include <stdint.h>
#include <stdio.h>

#include "statrec/base.h"

/* A row has x and (low, median, high) of every value. */
typedef struct points {
    double *cell; /* [rows, columns] */
    int64_t rows, capacity;
    int columns;
} points;

/* The cells of a new last row; NULL: out of memory. */
double *points_add(points *p);
/* The median of the finite medians of `most` rows around each, fewer at the ends; the range
   stays. */
sr_status points_smooth(points *p, int most, sr_failure *why);
/* A line breaks at rows without values. Leaves them out where values were recorded at some steps
 * only, at most over three times the mean distance of neighbouring values. A run with few rows
 * without values keeps them. */
void points_join(points *p);
/* One block of the data file. */
void points_write(const points *p, FILE *out);

#endif
