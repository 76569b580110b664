/* Many points to few: the smallest, the median and the largest finite value of each bucket.
 *
 * A bucket is an equal part of the x axis, about half a point of the printed figure wide. No value
 * outside [low, high] is lost and none is invented, so a spike of one step among a million stays.
 */
#include <math.h>

#include "statnet/plot.h"
#include "statnet/sort.h"

plot_bucket plot_reduce(double *value, int64_t count) {
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(value[i])) value[n++] = value[i];
    if (n == 0) return (plot_bucket){NAN, NAN, NAN};
    sort_reals(value, n);
    const double median = n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
    return (plot_bucket){value[0], median, value[n - 1]};
}

int64_t plot_bucket_of(double x, double low, double high, int buckets) {
    if (!(high > low)) return 0;
    const double part = (x - low) / (high - low) * buckets;
    if (!(part > 0)) return 0;
    return part < buckets ? (int64_t)part : buckets - 1;
}
