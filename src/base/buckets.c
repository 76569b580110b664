/* buckets.c -- the smallest, the median and the largest finite value of each part of an axis. No value
 * outside them is lost and, but for medians between two values, none is invented. */
#include "statnet/buckets.h"

#include <math.h>

#include "statnet/sort.h"

bucket_range bucket_measure(double *value, int64_t count) {
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(value[i])) value[n++] = value[i];
    if (n == 0) return (bucket_range){NAN, NAN, NAN};
    sort_reals(value, n);
    const double low = value[(n - 1) / 2], high = value[n / 2];
    const double length = high - low; /* of two ends of double: infinite */
    const double middle = isfinite(length) ? low + 0.5 * length : 0.5 * low + 0.5 * high;
    return (bucket_range){value[0], middle, value[n - 1]};
}

int64_t bucket_of(double x, double low, double high, int64_t buckets) {
    if (!(high > low)) return 0;
    const double part = (x - low) / (high - low) * (double)buckets;
    if (!(part > 0)) return 0;
    return part < (double)buckets ? (int64_t)part : buckets - 1;
}
