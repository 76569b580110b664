/* series_summaries.h -- summaries of many series of a run, and a series as one column. */
#ifndef ANALYSIS_SERIES_SERIES_SUMMARIES_H
#define ANALYSIS_SERIES_SERIES_SUMMARIES_H

#include "analysis/columns/column_summary.h"
#include "analysis/series/series.h"

/* Rows of one series as a column, from memory where they fit (column_keep). s must stay. */
typedef struct series_column {
    const series *s;
    int64_t first;
    column_source source;
    column_space space;
} series_column;

/* x must stay where it is; series_column_close after a failure too. */
sr_status series_column_open(series_column *x, const series *s, int64_t first, int64_t rows,
                             sr_failure *why);
void series_column_close(series_column *x);

/* Summaries of series of one run and source, rows first .. first + rows - 1 of each; sites in forward
 * order. result [count] */
sr_status series_summaries(const series *s, int count, int64_t first, int64_t rows, bool range,
                           summary *result, sr_failure *why);

#endif
