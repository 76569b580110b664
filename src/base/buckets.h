/* buckets.h -- downsampling for figures and their tables. The axis is cut into equal bins; each
 * keeps its extremes, so a spike of one step among a million stays. */
#ifndef BASE_BUCKETS_H
#define BASE_BUCKETS_H

#include <stdint.h>

typedef struct bucket_range {
    double least, median, largest; /* over the finite values; NaN without any */
} bucket_range;

/* Copies the finite values of from [count] to `to`, in their order; returns their number. to: from,
   or before it. Widens *least and *largest to include them. */
int64_t gather_finite(double *to, const double *from, int64_t count, double *least,
                      double *largest);
/* Reorders value [count]. */
bucket_range bucket_measure(double *value, int64_t count);
/* The middle of two finite values. */
double bucket_middle(double low, double high);
/* Number from 0 of the bin of [low, high] that holds x; x outside belongs to the first or the
 * last. */
int64_t bucket_of(double x, double low, double high, int64_t buckets);

#endif
