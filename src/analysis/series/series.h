/* series.h -- the values of a statistic at one site over the steps of a run.
 *
 * They come from /scalars as recorded (series_scalars.c), or are computed again from /vectors
 * (series_vectors.c).
 */
#ifndef ANALYSIS_SERIES_SERIES_H
#define ANALYSIS_SERIES_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/series/statistic.h"

typedef enum { FROM_SCALARS, FROM_VECTORS } series_source;

typedef struct series {
    const sr_runfile *run;
    int64_t site;
    const statistic *stat;
    series_source source;
} series;

/* Recorded rows: T for scalars, V for vectors. */
int64_t series_length(const series *s);
/* Values and steps of rows first .. first + count - 1; step may be NULL. */
sr_status series_read(const series *s, int64_t first, int64_t count, double *value, int64_t *step,
                      sr_failure *why);
/* Reads several series of one run and source into value [series]. Series of one site are
 * neighbours, sites in forward order. */
sr_status series_read_all(const series *s, int series_count, int64_t first, int64_t count,
                          double *const *value, int64_t *step, sr_failure *why);
/* Steps alone. */
sr_status series_read_steps(const series *s, int64_t first, int64_t count, int64_t *step,
                            sr_failure *why);
/* First row at or after `step`, series_length without one; steps rise. A binary search. */
sr_status series_find_row(const series *s, int64_t step, int64_t *row, sr_failure *why);
/* recorded [S]: true where the site has a value of the statistic (not NaN at every step). */
sr_status series_recorded(const sr_runfile *run, const statistic *stat, series_source source,
                          bool *recorded, sr_failure *why);

extern const char *const vector_names[SR_VECTOR_COUNT];
/* series_read_all for /vectors. */
sr_status vectors_read(const series *s, int series_count, int64_t first, int64_t count,
                       double *const *value, sr_failure *why);

#endif
