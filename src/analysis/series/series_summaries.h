/* series_summaries.h -- summaries of many series of a run. */
#ifndef ANALYSIS_SERIES_SERIES_SUMMARIES_H
#define ANALYSIS_SERIES_SERIES_SUMMARIES_H

#include "analysis/columns/column_summary.h"
#include "analysis/series/series.h"

/* Summaries of series of one run and source, rows first .. first + rows - 1 of each; sites in
 * forward order. range: as summary_range. result [count] */
sr_status series_summaries(const series *s, int count, int64_t first, int64_t rows, bool range,
                           summary *result, sr_failure *why);

#endif
