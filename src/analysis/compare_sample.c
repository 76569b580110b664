/* One series of stat-compare: median and tails of its values in the window, and resamples of them
 * (bootstrap.c). */

#include "analysis/compare_sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/column_summary.h"
#include "base/buckets.h"
#include "base/large_pages.h"

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

sr_status sample_measure(sample *x, const sample_plan *s, double *value, int64_t rows,
                         sr_failure *why) {
    static const double p[] = {0.5, 0.99};
    double least = INFINITY, largest = -INFINITY;
    *x = (sample){0};
    double *copy = large_pages_alloc((size_t)(rows + 1) * sizeof *copy);
    if (!copy) return sr_fail(why, SR_MEMORY, "out of memory");
    x->count = gather_finite(value, value, rows, &least, &largest);
    x->nonfinite = rows - x->count;
    memcpy(copy, value, (size_t)x->count * sizeof *copy);
    const column_quantiles found = quantiles_make(copy, x->count, p, 2);
    free(copy);
    x->exact[0] = found.at[0], x->exact[1] = found.at[1];
    x->exact[2] = x->count ? largest : NAN;
    if (x->count < LEAST_STEPS) return SR_OK;
    x->drawn = malloc((size_t)(BOOTSTRAP_TAILS * s->resamples) * sizeof *x->drawn);
    if (!x->drawn) return sr_fail(why, SR_MEMORY, "out of memory");
    x->block = s->block ? s->block : bootstrap_block(value, x->count, x->exact[0], why);
    if (!x->block) return why->status;
    if (x->block > x->count) x->block = x->count;
    return SR_OK;
}

sr_status sample_draw(sample *x, const sample_plan *s, const double *finite, rng random,
                      sr_failure *why) {
    return bootstrap_tails(finite, x->count, x->block, random, s->resamples, x->drawn, why);
}
