/* feature_values.h -- values of single features of a site: a vector of the run file, or a number
 * that follows from several of one feature. */
#ifndef ANALYSIS_FEATURE_VALUES_H
#define ANALYSIS_FEATURE_VALUES_H

#include "analysis/series/statistic.h"
#include "statrec/runfile.h"

/* The vectors of format.h by their names, then comparisons of batch and running values. A statistic
 * of this table has a value for each feature; `recompute` only finds the sites that have it. */
enum { FEATURE_VALUES = SR_VECTOR_COUNT + 6 };
extern const statistic feature_values[FEATURE_VALUES];

/* The standard deviation over steps of a statistic, for n independent normal rows of a batch.
 * alpha: the weight of the old running value. NaN if the statistic has no such formula. */
double feature_noise(const statistic *of, double rows, double alpha);

/* One site and its statistics. */
typedef struct feature_site {
    const sr_runfile *run;
    int64_t site;
    int64_t width;
    const statistic *of[FEATURE_VALUES]; /* [statistics] of feature_values */
    int statistics;
} feature_site;

/* Rows to read at once: whole blocks of the file, some megabytes. */
sr_status feature_rows_together(const feature_site *s, int64_t *rows, sr_failure *why);
/* Rows first .. first + count - 1 of /vectors: value [statistics, count, width]. */
sr_status feature_rows_read(const feature_site *s, int64_t first, int64_t count, double *value,
                            sr_failure *why);

#endif
