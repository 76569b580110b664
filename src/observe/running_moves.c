/* running_moves.c -- see running_moves.h.
 *
 * mu: running mean from before the pass; mu': after it; mu_B: of the batch. Sums over features, in
 * double and in their order:
 *
 *     mu_moved = sum (mu' - mu) (mu_B - mu)     mu_apart = sum (mu_B - mu)^2
 *
 * A step of statrec train is one pass of each site. One update mu' = alpha mu + (1 - alpha) mu_B
 * gives mu_moved = (1 - alpha) mu_apart. This costs one pass over the features, as the update does.
 */
#include "observe/running_moves.h"

#include <math.h>
#include <string.h>

const char *const running_moves_name[MOVES] = {"mu_moved", "mu_apart"};
const char *const running_moves_definition[MOVES] = {
    "sum over features of (mu' - mu)(mu_B - mu), mu and mu' the running mean before and after the "
    "step",
    "sum over features of (mu_B - mu)^2, mu the running mean before the step",
};

static const double *running_mean(const norm_site *s) {
    for (int i = 0; i < NORM_STATE_MAX && s->method->state[i].name; i++)
        if (!strcmp(s->method->state[i].name, "mu")) return s->state[i];
    return NULL;
}

bool running_moves_of(const norm_site *s) {
    const uint32_t both = NORM_BIT(mu) | NORM_BIT(mu_B);
    return !strcmp(s->method->axis, "batch") && (s->method->vectors & both) == both &&
           running_mean(s);
}

void running_moves_declare(sr_recorder *r, int id[MOVES]) {
    for (int i = 0; i < MOVES; i++)
        id[i] = sr_declare_scalar(r, running_moves_name[i], "1", running_moves_definition[i],
                                  SR_PER_SITE);
}

void running_moves_take(const norm_view *o, double value[MOVES]) {
    value[MOVE_MOVED] = value[MOVE_APART] = NAN;
    if (!running_moves_of(o->site)) return;
    const double *before = o->call->stat[NORM_mu], *batch = o->call->stat[NORM_mu_B],
                 *after = running_mean(o->site);
    double moved = 0, apart = 0;
    for (int64_t k = 0; k < o->call->features; k++) {
        const double away = batch[k] - before[k];
        moved += (after[k] - before[k]) * away;
        apart += away * away;
    }
    value[MOVE_MOVED] = moved;
    value[MOVE_APART] = apart;
}
