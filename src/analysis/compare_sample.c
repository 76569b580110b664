/* One series of stat-compare: median and tails of what is in the window, and resamples of them
 * (bootstrap.c). The values are read for each and do not stay. */

#include "analysis/compare_sample.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/series/series_summaries.h"

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

static sr_status sample_exact(sample *x, const column_source *c, sr_failure *why) {
    column_space space = {0};
    summary s;
    const sr_status status = summary_read(c, &space, &s, why);
    column_space_free(&space);
    if (status != SR_OK) return status;
    x->count = s.values - s.nonfinite;
    x->nonfinite = s.nonfinite;
    x->exact[0] = s.median;
    x->exact[1] = s.q99;
    x->exact[2] = s.max;
    return SR_OK;
}

static sr_status sample_draw(sample *x, const sample_plan *s, const column_source *c, rng random,
                             sr_failure *why) {
    x->block = s->block ? s->block : bootstrap_block(c, x->count, x->exact[0], why);
    if (!x->block) return why->status;
    if (x->block > x->count) x->block = x->count;
    x->drawn = malloc((size_t)(BOOTSTRAP_TAILS * s->resamples) * sizeof *x->drawn);
    if (!x->drawn) return sr_fail(why, SR_MEMORY, "out of memory");
    return bootstrap_tails(c, x->count, x->block, random, s->resamples, x->drawn, why);
}

sr_status sample_make(sample *x, const sample_plan *s, const series *of, const step_window *w,
                      rng random, sr_failure *why) {
    step_window later = *w;
    series_column column;
    int64_t first = 0, rows = 0;
    *x = (sample){0};
    sr_status status = window_after(&later, of, s->after, why);
    if (status == SR_OK) status = window_rows(&later, of, &first, &rows, why);
    if (status != SR_OK) return status;
    status = series_column_open(&column, of, first, rows, why);
    if (status == SR_OK) status = sample_exact(x, &column.source, why);
    if (status == SR_OK && x->count >= LEAST_STEPS)
        status = sample_draw(x, s, &column.source, random, why);
    series_column_close(&column);
    return status;
}
