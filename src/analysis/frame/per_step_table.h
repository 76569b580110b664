/* per_step_table.h -- tables with one row per run, site and step. */
#ifndef ANALYSIS_FRAME_PER_STEP_TABLE_H
#define ANALYSIS_FRAME_PER_STEP_TABLE_H

#include "analysis/frame/site_selection.h"
#include "analysis/frame/step_range.h"

typedef struct step_table {
    const run_set *set;
    const choice *chosen;
    series_source source;
    tsv *table;
    int64_t buckets;           /* 0: every step */
    const step_window *window; /* [runs] */
    bool intervals;            /* of medians, in a summary */
    int64_t parts;             /* equal parts of training, a summary of each */
} step_table;

sr_status step_table_print(const step_table *t, sr_failure *why);

#endif
