/* batch_plan.h -- which pairs go into which batch (models.md 2.7). */
#ifndef STATNET_BATCH_PLAN_H
#define STATNET_BATCH_PLAN_H

#include <stdint.h>

#include "statnet/rng.h"
#include "statrec/base.h"

enum { PLAN_MULTIPLE = 8 }; /* a full batch has a multiple of this many pairs */

typedef struct batch_plan {
    int64_t count;  /* batches */
    int64_t *first; /* [count + 1]: batch k is pair[first[k]] .. pair[first[k + 1] - 1] */
    int64_t *pair;  /* [pairs] */
} batch_plan;

/* Plans batches for `pairs` pairs of source_length[i] and target_length[i] tokens, </s> included.
 * No pair may be longer than max_tokens on either side. SR_MEMORY on failure. */
sr_status batch_plan_make(batch_plan *p, const int64_t *source_length, const int64_t *target_length,
                          int64_t pairs, int64_t max_tokens, rng random, sr_failure *why);
void batch_plan_free(batch_plan *p);

#endif
