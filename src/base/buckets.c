/* buckets.c -- the smallest, the median and the largest finite value of each part of an axis. No value
 * outside them is lost and, but for medians between two values, none is invented. */
#include "statnet/buckets.h"

#include <math.h>
#include <stdbool.h>

#include "statnet/sort.h"

/* The distance of two ends of double is infinite. */
double bucket_middle(double low, double high) {
    const double length = high - low;
    return isfinite(length) ? low + 0.5 * length : 0.5 * low + 0.5 * high;
}

/* sorted: values already are, as those of the axis itself. */
static double median_of(double *value, int64_t n, bool sorted) {
    const int64_t rank[2] = {(n - 1) / 2, n / 2};
    if (!sorted) select_ranks(value, n, rank, rank[0] < rank[1] ? 2 : 1);
    return bucket_middle(value[rank[0]], value[rank[1]]);
}

bucket_range bucket_measure(double *value, int64_t count) {
    bucket_range r = {INFINITY, NAN, -INFINITY};
    int64_t n = 0;
    bool sorted = true;
    for (int64_t i = 0; i < count; i++) {
        const double now = value[i];
        if (!isfinite(now)) continue;
        sorted = sorted && now >= r.largest;
        r.least = now < r.least ? now : r.least;
        r.largest = now > r.largest ? now : r.largest;
        value[n++] = now;
    }
    if (n == 0) return (bucket_range){NAN, NAN, NAN};
    r.median = median_of(value, n, sorted);
    return r;
}

int64_t bucket_of(double x, double low, double high, int64_t buckets) {
    if (!(high > low)) return 0;
    const double part = (x - low) / (high - low) * (double)buckets;
    if (!(part > 0)) return 0;
    return part < (double)buckets ? (int64_t)part : buckets - 1;
}
