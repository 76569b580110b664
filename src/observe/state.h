/* state.h -- the state of a run, item by item. Each owner lists its items; digests, checkpoints and
 * averages walk the list. */
#ifndef OBSERVE_STATE_H
#define OBSERVE_STATE_H

#include "base/npz/npz.h"

typedef enum {
    STATE_PARAMETER, /* trained */
    STATE_RUNNING,   /* running values of a normalization */
    STATE_OPTIMIZER, /* slots of a parameter */
    STATE_OBSERVER,  /* running values that only observers keep */
    STATE_REPLICA,   /* running values and counts of calls of shards after the first */
    STATE_PROGRESS, /* counters, sums since the last evaluation, position in the data, random key */
} state_kind;

/* array.data is the state itself: a visitor may write to it. The name is unique in the list. */
typedef struct state_item {
    state_kind kind;
    const char *name; /* "encoder.0.norm1.mu"; valid during the call */
    npz_array array;
} state_item;

typedef sr_status state_visit_fn(void *context, const state_item *item, sr_failure *why);

#endif
