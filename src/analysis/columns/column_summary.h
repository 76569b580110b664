/* column_summary.h -- columns of numbers in memory: their summaries and quantiles. Needs no run
   file. */
#ifndef ANALYSIS_COLUMNS_COLUMN_SUMMARY_H
#define ANALYSIS_COLUMNS_COLUMN_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tsv.h"
#include "statrec/base.h"

/* -- quantiles ------------------------------------------------------------------------------- */

/* Quantile p of sorted [count]: linear between the order statistics around (count - 1) p. */
double quantile_of_sorted(const double *sorted, int64_t count, double p);
/* The ranks of those two order statistics, equal at the last; and the quantile from their
   values. */
int64_t quantile_rank(int64_t count, double p);
int64_t quantile_rank_above(int64_t count, double p);
double quantile_between(int64_t count, double p, double below, double above);

enum { QUANTILES_MOST = 5 };
typedef struct column_quantiles {
    int64_t finite;            /* number of finite values */
    double least, largest;     /* infinite, least above largest, if there are none */
    double at[QUANTILES_MOST]; /* NaN without any */
} column_quantiles;
/* p [quantiles] ascending. Reorders value [count]. */
column_quantiles quantiles_make(double *value, int64_t count, const double *p, int quantiles);

/* -- summaries ------------------------------------------------------------------------------- */

typedef struct summary {
    int64_t values, nonfinite;
    double mean, min, q01, q25, median, q75, q99, max; /* over the finite values; NaN without any */
} summary;

/* Mean of value [count]; NaN for none. */
double column_mean(const double *value, int64_t count);
/* Reorders value [count]. */
void summary_make(double *value, int64_t count, summary *result);
/* The same, but the mean and the quantiles other than the median are NaN: faster. */
void summary_range(double *value, int64_t count, summary *result);
/* Columns steps, nonfinite, median, mean, quantiles, max; and one row's cells of them. */
void summary_columns(tsv *table);
void summary_cells(tsv *table, const summary *s);

/* -- several columns ------------------------------------------------------------------------- */

typedef struct column_block {
    double *memory;
    double **value; /* [columns] of [rows] each */
} column_block;

/* Free it after a failure too. */
sr_status columns_create(column_block *b, int64_t columns, int64_t rows, sr_failure *why);
void columns_free(column_block *b);
/* Summaries of columns on all threads. result [columns] */
void columns_summarise(const column_block *b, int columns, int64_t rows, bool range,
                       summary *result);
/* Number of columns to read at once, so that column_memory_limit() bytes hold them; at least
   one. */
int columns_together(int64_t rows, int64_t columns);
/* Bytes of columns that an analysis keeps in memory (memory_limit.c). */
int64_t column_memory_limit(void);

#endif
