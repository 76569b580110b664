/* unused_options.c -- options that have no effect in this run, as its model, its number of shards
 * or its length shows: a warning for each. */
#include <string.h>

#include "observe/theorem_scalars.h"
#include "train/trainer.h"

typedef struct unused_option {
    const char *key;
    bool (*given)(const train_config *c);
    bool (*unused)(const trainer *r);
    const char *reason;
} unused_option;

static bool freezes(const train_config *c) {
    return c->freeze_stats < 1;
}

static bool no_running_statistics(const trainer *r) {
    for (int i = 0; i < r->model->sites; i++)
        if (norm_site_has_running(r->model->site[i])) return false;
    return true;
}

static bool synchronizes(const train_config *c) {
    return c->sync_norm;
}

static bool records_shards(const train_config *c) {
    return c->record_shards;
}

static bool one_shard(const trainer *r) {
    return r->shards == 1;
}

static bool records_theorems(const train_config *c) {
    return c->theorems_every > 0;
}

static bool no_theorem(const trainer *r) {
    for (int i = 0; i < r->model->sites; i++)
        if (theorem_scalars_apply(r->model->site[i]->method)) return false;
    return true;
}

static bool has_milestones(const train_config *c) {
    return !strcmp(c->scheduler, "step");
}

/* No update starts at the end. */
static bool milestone_after_end(const trainer *r) {
    const schedule *s = &r->schedule;
    const double epochs = (double)trainer_planned_steps(r) / (double)r->batches;
    const double end = s->milestone_updates ? (double)r->updates : epochs;
    return s->milestones > 0 && s->milestone[s->milestones - 1] >= end;
}

static const unused_option rows[] = {
    {"freeze-stats", freezes, no_running_statistics, "no site has running statistics"},
    {"sync-norm", synchronizes, one_shard, "the run has one process"},
    {"record-shards", records_shards, one_shard, "a batch has one shard"},
    {"theorems-every", records_theorems, no_theorem, "no site's method has a theorem"},
    {"lr-steps", has_milestones, milestone_after_end, "the last milestone is not reached"},
};

void trainer_warn_unused(const trainer *r) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].given(r->config) && rows[i].unused(r))
            trainer_warn(r, "--%s has no effect: %s", rows[i].key, rows[i].reason);
}
