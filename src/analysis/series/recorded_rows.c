/* recorded_rows.c -- finds rows at which a site was recorded. */
#include <math.h>

#include "analysis/series/series.h"

static double valid_rows(const vector_row *row) {
    return row->rows;
}

sr_status series_recorded_row(const series *s, int64_t row, int way, int64_t *found,
                              sr_failure *why) {
    enum { LOOK = 2048 };
    static const statistic rows = {"rows", "rows", NULL, NEEDS_ROWS, valid_rows, NULL};
    const series counts = {s->run, s->site, &rows, s->source};
    const int64_t end = sr_run_has_scalar(s->run, "rows") ? series_length(s) : 0;
    double value[LOOK];
    sr_status status = SR_OK;
    *found = -1;
    for (; row >= 0 && row < end && *found < 0 && status == SR_OK; row += way * LOOK) {
        const int64_t first = way > 0 ? row : row < LOOK ? 0 : row - LOOK + 1;
        const int64_t last = way < 0 ? row : end - row < LOOK ? end - 1 : row + LOOK - 1;
        status = series_read(&counts, first, last - first + 1, value, NULL, why);
        for (int64_t at = row; at >= first && at <= last && *found < 0; at += way)
            if (status == SR_OK && !isnan(value[at - first])) *found = at;
    }
    return status;
}
