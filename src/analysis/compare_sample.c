/* One series of stat-compare: what is in the window, its median and tails, and resamples of them
 * (analysis_bootstrap.c). */
#include "statnet/compare_sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sample_free(sample *x) {
    free(x->value);
    free(x->drawn);
    *x = (sample){0};
}

/* Rows in the window whose step is at or behind --after. */
static sr_status sample_read(sample *x, const series *of, const step_window *w, double after,
                             sr_failure *why) {
    int64_t first = 0, rows_here = 0;
    if (window_rows(w, of, &first, &rows_here, why) != SR_OK) return why->status;
    int64_t last, *step = malloc((size_t)(rows_here + 1) * sizeof *step);
    x->value = malloc((size_t)(rows_here + 1) * sizeof *x->value);
    sr_status status = step && x->value ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = run_last_step(of->run, &last, why);
    if (status == SR_OK) status = series_read(of, first, rows_here, x->value, step, why);
    for (int64_t i = 0; i < rows_here && status == SR_OK; i++) {
        if (100 * (double)step[i] < after * (double)last) continue;
        if (isfinite(x->value[i]))
            x->value[x->count++] = x->value[i];
        else
            x->nonfinite++;
    }
    free(step);
    return status;
}

static sr_status sample_exact(sample *x, sr_failure *why) {
    double *sorted = malloc((size_t)(x->count + 1) * sizeof *sorted);
    if (!sorted) return sr_fail(why, SR_MEMORY, "out of memory");
    memcpy(sorted, x->value, (size_t)x->count * sizeof *sorted);
    summary s;
    summary_make(sorted, x->count, &s);
    x->exact[0] = s.median;
    x->exact[1] = s.q99;
    x->exact[2] = s.max;
    free(sorted);
    return SR_OK;
}

sr_status sample_make(sample *x, const sample_plan *s, const series *of, const step_window *w,
                      rng random, sr_failure *why) {
    *x = (sample){0};
    sr_status status = sample_read(x, of, w, s->after, why);
    if (status == SR_OK) status = sample_exact(x, why);
    if (status != SR_OK || x->count < LEAST_STEPS) return status;
    const column_source c = column_in_memory(x->value, x->count);
    x->block = s->block ? s->block : bootstrap_block(&c, x->count, x->exact[0], why);
    if (!x->block) return SR_MEMORY;
    if (x->block > x->count) x->block = x->count;
    x->drawn = malloc((size_t)(BOOTSTRAP_TAILS * s->resamples) * sizeof *x->drawn);
    if (!x->drawn) return sr_fail(why, SR_MEMORY, "out of memory");
    return bootstrap_tails(&c, x->count, x->block, random, s->resamples, x->drawn, why);
}

/* -- pairs ----------------------------------------------------------------------------------- */
