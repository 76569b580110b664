/* planned_steps.c -- steps and updates that follow from the options, before the first step. */
#include <float.h>
#include <math.h>

#include "train/trainer.h"

int64_t trainer_planned_steps(const trainer *r) {
    const int64_t every = r->config->update_freq, of_epoch = (r->batches + every - 1) / every;
    const int64_t rest = r->updates % of_epoch * every; /* no epoch's last update is among them */
    return r->updates / of_epoch * r->batches + rest;
}

int64_t trainer_freeze_update(const trainer *r) {
    return (int64_t)ceil(r->config->freeze_stats * (double)r->updates * (1 - 4 * DBL_EPSILON));
}
