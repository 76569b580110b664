/* step_cursor.c -- reads and checks columns of steps. Both checks read the whole column, so that an
 * unreadable row is reported before other faults. */
#include "runfile/read/file/step_cursor.h"

#include <stdlib.h>

enum { STEP_CURSOR_ROWS = 8192 };

sr_status step_cursor_open(step_cursor *w, const sr_runfile *f, bool vectors, sr_failure *why) {
    *w = (step_cursor){.f = f,
                       .vectors = vectors,
                       .rows = vectors ? f->info.vectors : f->info.steps,
                       .step = calloc(STEP_CURSOR_ROWS, sizeof *w->step)};
    return w->step ? SR_OK : sr_fail(why, SR_MEMORY, "%s: steps", f->path);
}

void step_cursor_close(step_cursor *w) {
    free(w->step);
    *w = (step_cursor){0};
}

/* The step of row i; rows are asked for in their order. */
static sr_status get_step(step_cursor *w, int64_t i, int64_t *step, sr_failure *why) {
    if (i - w->first >= w->count) {
        const int64_t left = w->rows - i, count = left < STEP_CURSOR_ROWS ? left : STEP_CURSOR_ROWS;
        w->count = 0;
        sr_status status = w->vectors ? sr_run_vector_steps(w->f, i, count, w->step, why)
                                      : sr_run_step_ints(w->f, "step", i, count, w->step, why);
        if (status != SR_OK) return status;
        w->first = i, w->count = count;
    }
    *step = w->step[i - w->first];
    return SR_OK;
}

sr_status step_cursor_reach(step_cursor *w, int64_t step, bool *found, sr_failure *why) {
    sr_status status = SR_OK;
    *found = false;
    for (; w->at < w->rows; w->at++) {
        int64_t here = -1;
        status = get_step(w, w->at, &here, why);
        if (status == SR_OK && here < step) continue;
        *found = status == SR_OK && here == step;
        break;
    }
    return status;
}

static sr_status damaged(const sr_runfile *f, const char *what, sr_failure *why) {
    return sr_fail(why, SR_FORMAT, "%s: %s", f->path, what);
}

sr_status step_cursor_check_steps(const sr_runfile *f, bool *read, sr_failure *why) {
    step_cursor w;
    int64_t step, last = -1;
    bool rises = true;
    sr_status status = step_cursor_open(&w, f, false, why);
    for (int64_t i = 0; i < w.rows && status == SR_OK; i++) {
        status = get_step(&w, i, &step, why);
        if (status == SR_OK) rises = rises && step > last, last = step;
    }
    step_cursor_close(&w);
    *read = status == SR_OK;
    if (*read && !rises) status = damaged(f, "/steps/step: not increasing", why);
    return status;
}

sr_status step_cursor_check_vectors(const sr_runfile *f, sr_failure *why) {
    step_cursor all, own;
    int64_t step, last = INT64_MIN;
    bool found = true;
    sr_status status = step_cursor_open(&all, f, false, why);
    sr_status other = step_cursor_open(&own, f, true, why);
    if (status == SR_OK) status = other;
    for (int64_t i = 0; i < own.rows && status == SR_OK; i++) {
        status = get_step(&own, i, &step, why);
        if (status != SR_OK || !found) continue;
        status = step_cursor_reach(&all, step, &found, why);
        found = found && step > last, last = step;
    }
    step_cursor_close(&all), step_cursor_close(&own);
    if (status == SR_OK && !found)
        status = damaged(f, "/vectors/step: not increasing, or not among the steps", why);
    return status;
}
