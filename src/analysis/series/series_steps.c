/* Rows of a series and their steps, without its values. */
#include <math.h>

#include "analysis/series/series.h"

int64_t series_length(const series *s) {
    const sr_run_info *info = sr_run_get_info(s->run);
    return s->source == FROM_SCALARS ? info->steps : info->vectors;
}

sr_status series_read_steps(const series *s, int64_t first, int64_t count, int64_t *step,
                            sr_failure *why) {
    return s->source == FROM_VECTORS ? sr_run_vector_steps(s->run, first, count, step, why)
                                     : sr_run_step_ints(s->run, "step", first, count, step, why);
}

/* Rows [low, high) are left. */
sr_status series_find_row(const series *s, int64_t step, int64_t *row, sr_failure *why) {
    int64_t low = 0, high = series_length(s);
    sr_status status = SR_OK;
    while (low < high && status == SR_OK) {
        const int64_t middle = low + (high - low) / 2;
        int64_t here;
        status = series_read_steps(s, middle, 1, &here, why);
        if (status == SR_OK && here < step)
            low = middle + 1;
        else
            high = middle;
    }
    *row = low;
    return status;
}

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
