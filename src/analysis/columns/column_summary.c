/* Summary of a column: exact order statistics of its finite values.
 *
 * Quantile p of x_0 <= ... <= x_{n-1}: with h = (n - 1) p and k = floor(h),
 *     x_k + (h - k) (x_{k+1} - x_k)
 * (Hyndman and Fan 1996, definition 7; the median of an even number is the mean of the middle two).
 * Mean: sum in double divided by n. NaN and infinite values are counted, and are in nothing else.
 */

#include "analysis/columns/column_summary.h"

#include <math.h>

#include "analysis/columns/order_statistics.h"
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

finite_sum finite_sum_begin(void) {
    return (finite_sum){.least = INFINITY, .largest = -INFINITY};
}

enum { BLOCK = 512 }; /* what is gathered is still at hand when it is added */

int64_t finite_sum_add(finite_sum *f, double *value, int64_t count) {
    double sum = f->sum;
    int64_t n = 0;
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t before = n, left = count - at < BLOCK ? count - at : BLOCK;
        n += gather_finite(value + n, value + at, left, &f->least, &f->largest);
        for (int64_t i = before; i < n; i++) sum += value[i];
    }
    f->sum = sum;
    f->values += count, f->finite += n;
    return n;
}

summary finite_sum_end(const finite_sum *f) {
    const bool any = f->finite > 0;
    return (summary){.values = f->values,
                     .nonfinite = f->values - f->finite,
                     .mean = any ? f->sum / (double)f->finite : NAN,
                     .min = any ? f->least : NAN,
                     .q01 = NAN,
                     .q25 = NAN,
                     .median = NAN,
                     .q75 = NAN,
                     .q99 = NAN,
                     .max = any ? f->largest : NAN};
}

const double summary_quantile[SUMMARY_QUANTILES] = {0.01, 0.25, 0.5, 0.75, 0.99};

quantile_span quantile_span_of(bool range) {
    return range ? (quantile_span){2, 1} : (quantile_span){0, SUMMARY_QUANTILES};
}

void summary_set_quantiles(summary *s, quantile_span q, const double *at) {
    double *const into[SUMMARY_QUANTILES] = {&s->q01, &s->q25, &s->median, &s->q75, &s->q99};
    for (int i = 0; i < q.count; i++) *into[q.first + i] = at[i];
}

/* Unless it is there: ranks come upwards. */
static int rank_add(int64_t *rank, int ranks, int64_t next) {
    if (ranks && rank[ranks - 1] >= next) return ranks;
    rank[ranks] = next;
    return ranks + 1;
}

/* quantile_of_sorted looks at the two order statistics around each quantile and nothing else. */
static void order_for(double *value, int64_t count, const double *quantile, int quantiles) {
    int64_t rank[2 * QUANTILES_MOST] = {0};
    int ranks = 0;
    for (int i = 0; i < quantiles; i++) {
        ranks = rank_add(rank, ranks, quantile_rank(count, quantile[i]));
        ranks = rank_add(rank, ranks, quantile_rank_above(count, quantile[i]));
    }
    quickselect_ranks(value, count, rank, count > 0 ? ranks : 0);
}

void quantiles_find(double *value, int64_t count, const double *quantile, int quantiles,
                    double *at) {
    order_for(value, count, quantile, quantiles);
    for (int i = 0; i < quantiles; i++) at[i] = quantile_of_sorted(value, count, quantile[i]);
}

static void summary_of(double *value, int64_t count, bool range, summary *s) {
    const quantile_span q = quantile_span_of(range);
    double at[SUMMARY_QUANTILES];
    finite_sum f = finite_sum_begin();
    const int64_t n = finite_sum_add(&f, value, count);
    quantiles_find(value, n, summary_quantile + q.first, q.count, at);
    *s = finite_sum_end(&f);
    summary_set_quantiles(s, q, at);
}

void summary_make(double *value, int64_t count, summary *s) {
    summary_of(value, count, false, s);
}

void summary_range(double *value, int64_t count, summary *s) {
    summary_of(value, count, true, s);
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
