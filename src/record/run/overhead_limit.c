/* overhead_limit.c -- measures the fraction of the run's time that recording takes, and adapts the
 * spacing of vectors to options.overhead.
 *
 * Own time is the time of declaring the file, sr_begin_step, sr_take_*, sr_end_step and sr_flush,
 * and the time that the host program adds. It is compared with the elapsed time after at least
 * PACE_STEPS steps and PACE_ROWS rows of vectors since the last comparison. If its fraction exceeds
 * the limit, the spacing doubles. If it is below a quarter of the limit, the spacing halves, but
 * not below the spacing for the size of the file. Every step records scalars.
 */
#include "record/run/overhead_limit.h"

#include <string.h>

#include "record/recorder_state.h"
#include "record/run/custom_scalars.h"

enum { PACE_STEPS = 32, PACE_ROWS = 4, PACE_MOST = 4096 };

double sr_own_seconds(const sr_recorder *r) {
    return r ? r->own_seconds : 0;
}

void sr_add_seconds(sr_recorder *r, double seconds) {
    if (r && seconds > 0) r->own_seconds += seconds;
}

static bool is_paced(const sr_recorder *r) {
    return recorder_is_paced(&r->options) && r->sites > 0;
}

/* The copied rows of a resumed run may have declared it. */
static int declare(sr_recorder *r, const char *name, const char *unit, const char *definition) {
    for (int i = 0; i < r->writer.declared_count; i++) {
        if (strcmp(r->writer.declared[i].name, name) != 0) continue;
        if (r->writer.declared[i].scope == SR_PER_STEP) return SR_SCALAR_COUNT + i;
        sr_fail(&r->failure, SR_USAGE, "%s: scalar %s is one per site: options.overhead needs it",
                r->path, name);
        return -1;
    }
    return recorder_declare_scalar(r, name, unit, definition, SR_PER_STEP);
}

void overhead_limit_declare(sr_recorder *r) {
    if (!is_paced(r)) return;
    r->pace.seconds_scalar =
        declare(r, RECORDER_SECONDS, "s", "time that recording took from the row before on");
    r->pace.every_scalar =
        declare(r, RECORDER_EVERY, "1", "vectors were recorded in steps divisible by it");
}

void overhead_limit_begin_step(sr_recorder *r) {
    pacing *p = &r->pace;
    if (p->since > 0) return;
    p->since = recorder_clock();
    p->own = r->own_seconds;
}

static void follow(sr_recorder *r) {
    pacing *p = &r->pace;
    const double now = recorder_clock();
    const double share = (r->own_seconds - p->own) / (now - p->since);
    if (share > r->options.overhead && r->every < PACE_MOST)
        r->every *= 2;
    else if (share < r->options.overhead / 4 && r->every >= 2 * r->least_every)
        r->every /= 2;
    p->since = now, p->own = r->own_seconds;
    p->steps = p->rows = 0;
}

void overhead_limit_end_step(sr_recorder *r) {
    pacing *p = &r->pace;
    if (!is_paced(r)) return;
    sr_put_step_scalar(r, p->seconds_scalar, r->own_seconds - p->step_own);
    sr_put_step_scalar(r, p->every_scalar, (double)r->every);
    p->step_own = r->own_seconds;
    p->steps++, p->rows += r->keeps_vectors;
    if (p->steps >= PACE_STEPS && p->rows >= PACE_ROWS) follow(r);
}
