/* feature_rows.h -- the recorded steps that a table of features is about, and the order of the
 * features. */
#ifndef ANALYSIS_FEATURE_ROWS_H
#define ANALYSIS_FEATURE_ROWS_H

#include "analysis/feature_values.h"
#include "analysis/frame/step_range.h"

enum { FEATURE_STEPS_MOST = 64 };

/* Rows of /vectors: ranges in rising order. */
typedef struct feature_rows {
    int64_t first[FEATURE_STEPS_MOST], count[FEATURE_STEPS_MOST];
    int ranges;
    int64_t total;
    int64_t last_step; /* last step of the run */
} feature_rows;

/* step: "" for the window's rows, else "first", "middle", "last" and numbers of recorded steps,
 * separated by commas. */
sr_status feature_rows_choose(feature_rows *r, const sr_runfile *run, const char *path,
                              const char *step, const step_window *window, sr_failure *why);

/* Takes some rows of a site: their steps [count], and values [statistics, count, width]. */
typedef sr_status feature_visit(void *context, const int64_t *step, int64_t count,
                                const double *value, sr_failure *why);
/* Visits all rows, block after block. */
sr_status feature_rows_each(const feature_rows *r, const feature_site *s, feature_visit *visit,
                            void *context, sr_failure *why);

/* feature [width], ordered by the first statistic. word: "feature" (by number), "largest" (by the
 * largest absolute value over the rows) or "outlier". "outlier": by the mean over the rows of
 * |value - median over features| / median absolute deviation. Features without a value are last. */
sr_status feature_order(const feature_rows *r, const feature_site *s, const char *word,
                        int64_t *feature, sr_failure *why);
/* Orders features by a score [width]: falling, or rising; NaN last; equal ones by their number. */
sr_status feature_sort(const double *score, bool rising, int64_t *feature, int64_t width,
                       sr_failure *why);

#endif
