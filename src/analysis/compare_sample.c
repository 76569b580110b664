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

/* The window without the steps before --after: 100 step < after last. */
static sr_status window_after(step_window *w, const series *of, double after, sr_failure *why) {
    int64_t last;
    sr_status status = run_last_step(of->run, &last, why);
    if (status != SR_OK) return status;
    const double least = after * (double)last;
    int64_t step = (int64_t)fmax(floor(least / 100) - 1, 0);
    while (100 * (double)step < least) step++;
    if (step > w->first) w->first = step;
    return SR_OK;
}

sr_status sample_make(sample *x, const sample_plan *s, const series *of, const step_window *w,
                      rng random, sr_failure *why) {
    step_window later = *w;
    column_block b = {0};
    int64_t first = 0, rows = 0;
    *x = (sample){0};
    sr_status status = window_after(&later, of, s->after, why);
    if (status == SR_OK) status = window_rows(&later, of, &first, &rows, why);
    if (status == SR_OK) status = columns_create(&b, 2, rows, why);
    if (status == SR_OK) status = series_read(of, first, rows, b.value[0], NULL, why);
    if (status == SR_OK) {
        double least = INFINITY, largest = -INFINITY;
        summary found;
        x->count = gather_finite(b.value[1], b.value[0], rows, &least, &largest);
        x->nonfinite = rows - x->count;
        summary_make(b.value[0], rows, &found);
        x->exact[0] = found.median, x->exact[1] = found.q99, x->exact[2] = found.max;
    }
    if (status == SR_OK && x->count >= LEAST_STEPS) {
        const double *finite = b.value[1];
        x->drawn = malloc((size_t)(BOOTSTRAP_TAILS * s->resamples) * sizeof *x->drawn);
        if (!x->drawn) status = sr_fail(why, SR_MEMORY, "out of memory");
        x->block = s->block ? s->block : bootstrap_block(finite, x->count, x->exact[0], why);
        if (!x->block) status = why->status;
        if (x->block > x->count) x->block = x->count;
        if (status == SR_OK)
            status =
                bootstrap_tails(finite, x->count, x->block, random, s->resamples, x->drawn, why);
    }
    columns_free(&b);
    return status;
}
