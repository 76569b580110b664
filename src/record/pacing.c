/* pacing.c -- how much of the run's time recording takes, and a spacing of vectors that keeps it within
 * options.overhead.
 *
 * Own time is that of sr_begin_step, sr_observe_*, sr_end_step and sr_flush, and what the host adds. It
 * is compared with the time that went by after at least PACE_STEPS steps and PACE_ROWS rows of
 * vectors: more than the share allowed, and the spacing doubles; less than a quarter of it, and it
 * halves, not below the one that the size of the file asks for. Scalars are recorded in every step.
 */
#include <string.h>

#include "recorder.h"

enum { PACE_STEPS = 32, PACE_ROWS = 4, PACE_MOST = 4096 };

double sr_own_seconds(const sr_recorder *r) {
    return r ? r->own_seconds : 0;
}

void sr_add_seconds(sr_recorder *r, double seconds) {
    if (r && seconds > 0) r->own_seconds += seconds;
}

static bool is_paced(const sr_recorder *r) {
    return r->options.overhead > 0 && r->options.vectors && r->options.vectors_every == -1 &&
           r->sites > 0;
}

static int declare(sr_recorder *r, const char *name, const char *unit, const char *definition) {
    for (int i = 0; i < r->writer.declared_count; i++)
        if (strcmp(r->writer.declared[i].name, name) == 0) return SR_SCALAR_COUNT + i;
    return sr_declare_scalar(r, name, unit, definition, SR_PER_STEP);
}

void pacing_declare(sr_recorder *r) {
    if (!is_paced(r)) return;
    r->pace.seconds_scalar =
        declare(r, "recorder_seconds", "s", "time that recording took in this step");
    r->pace.every_scalar =
        declare(r, "vectors_every", "1", "vectors were recorded in steps divisible by it");
}

void pacing_begin_step(sr_recorder *r) {
    pacing *p = &r->pace;
    p->step_own = r->own_seconds;
    if (p->steps > 0) return;
    p->since = recorder_clock();
    p->own = r->own_seconds;
}

static void follow(sr_recorder *r) {
    pacing *p = &r->pace;
    const double share = (r->own_seconds - p->own) / (recorder_clock() - p->since);
    if (share > r->options.overhead && r->every < PACE_MOST)
        r->every *= 2;
    else if (share < r->options.overhead / 4 && r->every >= 2 * r->least_every)
        r->every /= 2;
    p->steps = p->rows = 0;
}

void pacing_end_step(sr_recorder *r) {
    pacing *p = &r->pace;
    if (!is_paced(r)) return;
    sr_put_step_scalar(r, p->seconds_scalar, r->own_seconds - p->step_own);
    sr_put_step_scalar(r, p->every_scalar, (double)r->every);
    p->steps++, p->rows += r->keeps_vectors;
    if (p->steps >= PACE_STEPS && p->rows >= PACE_ROWS) follow(r);
}
