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

void sort_reals(double *value, int64_t count) {
    qsort(value, (size_t)count, sizeof *value, ascending);
}

void summary_make(double *value, int64_t count, summary *s) {
    int64_t n = 0;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(value[i])) continue;
        sum += value[i];
        value[n++] = value[i];
    }
    sort_reals(value, n);
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

void summary_columns(tsv *t) {
    tsv_column(t, "steps", "recorded steps");
    tsv_column(t, "nonfinite", "steps with NaN or infinity, not part of the following columns");
    tsv_column(t, "median", "exact median");
    tsv_column(t, "mean", "arithmetic mean");
    tsv_column(t, "q01", "1 % quantile, linear between order statistics");
    tsv_column(t, "q25", "25 % quantile");
    tsv_column(t, "q75", "75 % quantile");
    tsv_column(t, "q99", "99 % quantile");
    tsv_column(t, "max", "largest value");
}

void summary_cells(tsv *t, const summary *s) {
    const double real[] = {s->median, s->mean, s->q01, s->q25, s->q75, s->q99, s->max};
    tsv_int(t, s->values);
    tsv_int(t, s->nonfinite);
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) tsv_real(t, real[i]);
}
