/* feature_table.h -- tables of single features: at every recorded step, as quantiles over the
 * steps, and as histograms over the features of a step. */
#ifndef ANALYSIS_FEATURE_TABLE_H
#define ANALYSIS_FEATURE_TABLE_H

#include "analysis/frame/statistics_table.h"

/* --per-feature, --quantiles or --histogram N of stat-features. */
sr_status feature_table_print(const features_request *q, const run_set *set, const char *command,
                              sr_failure *why);

#endif
