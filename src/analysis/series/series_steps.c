/* Rows of a series and their steps, without its values. */
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
