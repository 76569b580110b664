/* buckets.h -- many numbers to few, for figures and their tables: an axis cut into equal parts, of each
 * of which the extremes stay, so that a spike of one step among a million does. */
#ifndef BASE_BUCKETS_H
#define BASE_BUCKETS_H

#include <stdint.h>

typedef struct bucket_range {
    double least, median, largest; /* of the finite values; NaN without any */
} bucket_range;

/* Brings the finite ones of from [count] to the front of `to`, in their order; returns how many. to: from, or in front of
 * it. Their ends to *least and *largest, which have those of what was gathered before. */
int64_t gather_finite(double *to, const double *from, int64_t count, double *least,
                      double *largest);
/* Reorders value [count]. */
bucket_range bucket_measure(double *value, int64_t count);
/* Of two finite values. */
double bucket_middle(double low, double high);
/* Number from 0 of the part of [low, high] that x is in; x outside is in the first or the last. */
int64_t bucket_of(double x, double low, double high, int64_t buckets);

#endif
