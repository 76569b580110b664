/* Summary of a column: exact order statistics of its finite values.
 *
 * Quantile p of x_0 <= ... <= x_{n-1}: with h = (n - 1) p and k = floor(h),
 *     x_k + (h - k) (x_{k+1} - x_k)
 * (Hyndman and Fan 1996, definition 7; the median of an even number is the mean of the middle two).
 * Mean: sum in double divided by n. NaN and infinite values are counted, and are in nothing else.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis.h"

double quantile_of_sorted(const double *sorted, int64_t count, double p) {
    if (count <= 0) return NAN;
    const double h = (double)(count - 1) * p;
    const int64_t k = (int64_t)floor(h);
    if (k + 1 >= count) return sorted[count - 1];
    return sorted[k] + (h - (double)k) * (sorted[k + 1] - sorted[k]);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void summary_make(double *value, int64_t count, summary *s) {
    int64_t n = 0;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(value[i])) continue;
        sum += value[i];
        value[n++] = value[i];
    }
    qsort(value, (size_t)n, sizeof *value, ascending);
    *s = (summary){.values = count,
                   .nonfinite = count - n,
                   .mean = n ? sum / (double)n : NAN,
                   .min = n ? value[0] : NAN,
                   .max = n ? value[n - 1] : NAN};
    s->q01 = quantile_of_sorted(value, n, 0.01);
    s->q25 = quantile_of_sorted(value, n, 0.25);
    s->median = quantile_of_sorted(value, n, 0.5);
    s->q75 = quantile_of_sorted(value, n, 0.75);
    s->q99 = quantile_of_sorted(value, n, 0.99);
}
