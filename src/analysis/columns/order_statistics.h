/* order_statistics.h -- what summaries of columns in memory share with those of columns that are read
 * block by block. */
#ifndef ANALYSIS_COLUMNS_ORDER_STATISTICS_H
#define ANALYSIS_COLUMNS_ORDER_STATISTICS_H

#include "analysis/columns/column_summary.h"

/* The quantiles of a summary, upwards. */
enum { SUMMARY_QUANTILES = QUANTILES_MOST };
extern const double summary_quantile[SUMMARY_QUANTILES];

/* Those of summary_make, or of summary_range. */
typedef struct quantile_span {
    int first, count;
} quantile_span;

quantile_span quantile_span_of(bool range);
/* at [q.count] */
void summary_set_quantiles(summary *s, quantile_span q, const double *at);

/* What one pass in the order of steps knows of a column. */
typedef struct finite_sum {
    int64_t values, finite;
    double sum, least, largest;
} finite_sum;

finite_sum finite_sum_begin(void);
/* Brings the finite values to the front, in their order, and adds them; returns how many. */
int64_t finite_sum_add(finite_sum *f, double *value, int64_t count);
/* Everything but the quantiles, which are NaN. */
summary finite_sum_end(const finite_sum *f);

/* The rank of the order statistic below quantile p of count values, and the one above: the same for
 * the last. */
int64_t quantile_rank(int64_t count, double p);
int64_t quantile_rank_above(int64_t count, double p);
/* at [quantiles], upwards, of finite values, whose order is lost. */
void quantiles_find(double *value, int64_t count, const double *quantile, int quantiles,
                    double *at);
double quantile_between(int64_t count, double p, double below, double above);

/* Gives `take` the finite values of the one column of c, in their order, block by block (streaming_quantiles.c). */
typedef void finite_taker(void *into, const double *value, int64_t count);
sr_status finite_values(const column_source *c, finite_taker *take, void *into, sr_failure *why);

#endif
