/* Summary of a column: exact order statistics of its finite values.
 *
 * Quantile p of x_0 <= ... <= x_{n-1}: with h = (n - 1) p and k = floor(h),
 *     x_k + (h - k) (x_{k+1} - x_k)
 * (Hyndman and Fan 1996, definition 7; the median of an even number is the mean of the middle two).
 * Mean: sum in double divided by n. NaN and infinite values are counted, and are in nothing else.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "statnet/analysis.h"

double quantile_of_sorted(const double *sorted, int64_t count, double p) {
    if (count <= 0) return NAN;
    const double h = (double)(count - 1) * p;
    const int64_t k = (int64_t)floor(h);
    if (k + 1 >= count) return sorted[count - 1];
    return sorted[k] + (h - (double)k) * (sorted[k + 1] - sorted[k]);
}

/* Brings the finite values to the front, in their order; returns how many. */
static int64_t keep_finite(double *value, int64_t count, summary *s) {
    int64_t n = 0;
    double sum = 0, least = INFINITY, largest = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double v = value[i];
        if (!isfinite(v)) continue;
        sum += v;
        least = v < least ? v : least;
        largest = v > largest ? v : largest;
        value[n++] = v;
    }
    *s = (summary){.values = count,
                   .nonfinite = count - n,
                   .mean = n ? sum / (double)n : NAN,
                   .min = n ? least : NAN,
                   .max = n ? largest : NAN};
    return n;
}

/* quantile_of_sorted looks at the two order statistics around each quantile and nothing else. */
static void order_for(double *value, int64_t count, const double *quantile, int quantiles) {
    int64_t rank[16];
    int ranks = 0;
    for (int i = 0; i < quantiles; i++) {
        const int64_t k = (int64_t)floor((double)(count - 1) * quantile[i]);
        if (!ranks || rank[ranks - 1] < k) rank[ranks++] = k;
        if (k + 1 < count && rank[ranks - 1] < k + 1) rank[ranks++] = k + 1;
    }
    select_ranks(value, count, rank, count > 0 ? ranks : 0);
}

void summary_make(double *value, int64_t count, summary *s) {
    static const double quantile[] = {0.01, 0.25, 0.5, 0.75, 0.99};
    const int64_t n = keep_finite(value, count, s);
    order_for(value, n, quantile, sizeof quantile / sizeof quantile[0]);
    s->q01 = quantile_of_sorted(value, n, quantile[0]);
    s->q25 = quantile_of_sorted(value, n, quantile[1]);
    s->median = quantile_of_sorted(value, n, quantile[2]);
    s->q75 = quantile_of_sorted(value, n, quantile[3]);
    s->q99 = quantile_of_sorted(value, n, quantile[4]);
}

void summary_range(double *value, int64_t count, summary *s) {
    static const double quantile[] = {0.5};
    const int64_t n = keep_finite(value, count, s);
    order_for(value, n, quantile, 1);
    s->median = quantile_of_sorted(value, n, quantile[0]);
    s->q01 = s->q25 = s->q75 = s->q99 = NAN;
}

enum { RESAMPLES = 1000, LEAST = 20 };

/* value [n] finite, in the order of steps; scratch [n]; drawn [BOOTSTRAP_TAILS, RESAMPLES]. */
static sr_status draw_medians(const double *value, int64_t n, double *scratch, double *drawn,
                              sr_failure *why) {
    summary s;
    memcpy(scratch, value, (size_t)n * sizeof *scratch);
    summary_range(scratch, n, &s);
    const int64_t block = bootstrap_block(value, n, s.median, why);
    return block ? bootstrap_tails(value, n, block, rng_create(1), RESAMPLES, drawn, why)
                 : why->status;
}

sr_status summary_interval(const double *value, int64_t count, double *low, double *high,
                           sr_failure *why) {
    double *finite = malloc(2 * (size_t)(count + 1) * sizeof *finite);
    double *drawn = malloc(BOOTSTRAP_TAILS * RESAMPLES * sizeof *drawn);
    sr_status status = finite && drawn ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    int64_t n = 0;
    *low = *high = NAN;
    for (int64_t i = 0; i < count && status == SR_OK; i++)
        if (isfinite(value[i])) finite[n++] = value[i];
    if (status == SR_OK && n >= LEAST) {
        status = draw_medians(finite, n, finite + count + 1, drawn, why);
        sort_reals(drawn, RESAMPLES);
        *low = quantile_of_sorted(drawn, RESAMPLES, 0.025);
        *high = quantile_of_sorted(drawn, RESAMPLES, 0.975);
    }
    free(finite);
    free(drawn);
    return status;
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
