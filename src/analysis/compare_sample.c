/* One series of stat-compare: median and tails of its values in the window, and resamples of them
 * (bootstrap.c). */

#include "analysis/compare_sample.h"

#include <math.h>
#include <stdlib.h>

#include "base/buckets.h"

void sample_free(sample *x) {
    free(x->drawn);
    *x = (sample){0};
}

/* --after: 100 step < after last. */
sr_status sample_rows(const series *of, const step_window *w, double after, int64_t *first,
                      int64_t *rows, sr_failure *why) {
    step_window later = *w;
    const double least = after * (double)w->end;
    int64_t step = (int64_t)fmax(floor(least / 100) - 1, 0);
    while (100 * (double)step < least) step++;
    if (step > later.first) later.first = step;
    return window_rows(&later, of, first, rows, why);
}

sr_status sample_make(sample *x, const sample_plan *s, double *value, int64_t rows, rng random,
                      sr_failure *why) {
    double least = INFINITY, largest = -INFINITY;
    summary found;
    *x = (sample){0};
    double *finite = malloc((size_t)(rows + 1) * sizeof *finite);
    if (!finite) return sr_fail(why, SR_MEMORY, "out of memory");
    x->count = gather_finite(finite, value, rows, &least, &largest);
    x->nonfinite = rows - x->count;
    summary_make(value, rows, &found);
    x->exact[0] = found.median, x->exact[1] = found.q99, x->exact[2] = found.max;
    sr_status status = SR_OK;
    if (x->count >= LEAST_STEPS) {
        x->drawn = malloc((size_t)(BOOTSTRAP_TAILS * s->resamples) * sizeof *x->drawn);
        if (!x->drawn) status = sr_fail(why, SR_MEMORY, "out of memory");
        x->block = s->block ? s->block : bootstrap_block(finite, x->count, x->exact[0], why);
        if (!x->block) status = why->status;
        if (x->block > x->count) x->block = x->count;
        if (status == SR_OK)
            status =
                bootstrap_tails(finite, x->count, x->block, random, s->resamples, x->drawn, why);
    }
    free(finite);
    return status;
}
