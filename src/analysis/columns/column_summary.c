/* Summary of a column: exact order statistics of its finite values.
 *
 * Quantile p of x_0 <= ... <= x_{n-1}: with h = (n - 1) p and k = floor(h),
 *     x_k + (h - k) (x_{k+1} - x_k)
 * (Hyndman and Fan 1996, definition 7; the median of an even number is the mean of the middle two).
 * Mean: sum in double divided by n. NaN and infinite values are counted, and are in nothing else.
 */

#include "analysis/columns/column_summary.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "base/buckets.h"
#include "base/large_pages.h"
#include "base/sort.h"

int64_t quantile_rank(int64_t count, double p) {
    return (int64_t)floor((double)(count - 1) * p);
}

int64_t quantile_rank_above(int64_t count, double p) {
    const int64_t k = quantile_rank(count, p);
    return k + 1 < count ? k + 1 : k;
}

double quantile_between(int64_t count, double p, double below, double above) {
    const double h = (double)(count - 1) * p;
    const int64_t k = (int64_t)floor(h);
    if (k + 1 >= count) return below;
    return below + (h - (double)k) * (above - below);
}

double quantile_of_sorted(const double *sorted, int64_t count, double p) {
    if (count <= 0) return NAN;
    return quantile_between(count, p, sorted[quantile_rank(count, p)],
                            sorted[quantile_rank_above(count, p)]);
}

/* The order statistics around each quantile are in their places then. */
static void order_quantiles(double *value, int64_t count, const double *p, int quantiles) {
    int64_t rank[2 * QUANTILES_MOST];
    int ranks = 0;
    for (int i = 0; i < 2 * quantiles && count > 0; i++) {
        const double of = p[i / 2];
        const int64_t next = i % 2 ? quantile_rank_above(count, of) : quantile_rank(count, of);
        if (!ranks || rank[ranks - 1] < next) rank[ranks++] = next;
    }
    quickselect_ranks(value, count, rank, ranks);
}

column_quantiles quantiles_make(double *value, int64_t count, const double *p, int quantiles) {
    column_quantiles q = {.least = INFINITY, .largest = -INFINITY};
    q.finite = gather_finite(value, value, count, &q.least, &q.largest);
    order_quantiles(value, q.finite, p, quantiles);
    for (int i = 0; i < quantiles; i++) q.at[i] = quantile_of_sorted(value, q.finite, p[i]);
    return q;
}

double column_mean(const double *value, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += value[i];
    return count ? sum / (double)count : NAN;
}

/* The mean is the sum in the order of steps, so it comes before value is reordered. mean: whether
 * it is wanted. Each addition waits for the one before: it takes longer than the median. */
static void summarise(double *value, int64_t count, bool mean, const double *p, int quantiles,
                      double **at, summary *s) {
    double least = INFINITY, largest = -INFINITY;
    const int64_t n = gather_finite(value, value, count, &least, &largest);
    *s = (summary){count, count - n, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    if (n == 0) return;
    s->min = least, s->max = largest;
    if (mean) s->mean = column_mean(value, n);
    order_quantiles(value, n, p, quantiles);
    for (int i = 0; i < quantiles; i++) *at[i] = quantile_of_sorted(value, n, p[i]);
}

void summary_make(double *value, int64_t count, summary *s) {
    static const double p[] = {0.01, 0.25, 0.5, 0.75, 0.99};
    summarise(value, count, true, p, 5,
              (double *[]){&s->q01, &s->q25, &s->median, &s->q75, &s->q99}, s);
}

void summary_range(double *value, int64_t count, summary *s) {
    summarise(value, count, false, (const double[]){0.5}, 1, (double *[]){&s->median}, s);
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

/* -- several columns ------------------------------------------------------------------------- */

enum { MANY_VALUES = 1 << 16 }; /* number from which threads pay */

sr_status columns_create(column_block *b, int64_t columns, int64_t rows, sr_failure *why) {
    b->memory = large_pages_alloc((size_t)(columns * rows + 1) * sizeof *b->memory);
    b->value = malloc((size_t)(columns + 1) * sizeof *b->value);
    if (!b->memory || !b->value)
        return sr_fail(why, SR_MEMORY, "out of memory for %lld columns of %lld rows",
                       (long long)columns, (long long)rows);
    for (int64_t i = 0; i < columns; i++) b->value[i] = b->memory + i * rows;
    return SR_OK;
}

void columns_free(column_block *b) {
    free(b->memory);
    free(b->value);
    *b = (column_block){0};
}

void columns_summarise(const column_block *b, int columns, int64_t rows, bool range,
                       summary *result) {
    const bool many = rows * columns > MANY_VALUES;
#pragma omp parallel for schedule(dynamic) num_threads(many ? omp_get_max_threads() : 1)
    for (int i = 0; i < columns; i++)
        (range ? summary_range : summary_make)(b->value[i], rows, &result[i]);
}

int columns_together(int64_t rows, int64_t columns) {
    const int64_t room = column_memory_limit() / ((rows + 1) * (int64_t)sizeof(double));
    const int64_t fit = room < 1 ? 1 : room, passes = (columns + fit - 1) / fit;
    return passes ? (int)((columns + passes - 1) / passes) : 1;
}
