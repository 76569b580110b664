/* batch_plan.h -- distributes pairs over batches (docs/models.md 2.7). */
#ifndef DATA_SETS_BATCH_PLAN_H
#define DATA_SETS_BATCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "statrec/base.h"

enum { PLAN_MULTIPLE = 8 }; /* a full batch has a multiple of this many pairs */

typedef enum {
    BATCHING_BUCKETED, /* pairs of similar length together */
    BATCHING_SORTED,   /* the same; training takes the batches in this order, shortest first */
    BATCHING_RANDOM,   /* in the order they were drawn */
} batching;
/* The value of --batching; bucketed for another word. */
batching batching_named(const char *word);

typedef struct batch_rule {
    batching batching;
    int64_t max_tokens;
    bool valid_only; /* max_tokens counts tokens of a side, without padding */
    int64_t pairs;   /* pairs of a batch, except the last; 0: by max_tokens */
} batch_rule;

typedef struct batch_plan {
    int64_t count;  /* batches */
    int64_t *first; /* [count + 1]: batch k is pair[first[k]] .. pair[first[k + 1] - 1] */
    int64_t *pair;  /* [pairs] */
} batch_plan;

/* Plans batches for `pairs` pairs of source_length[i] and target_length[i] tokens with </s>.
 * Sentences of one text pass the same array twice. By max_tokens no pair may be longer than that on
 * either side. SR_MEMORY on failure. */
sr_status batch_plan_make(batch_plan *p, const int64_t *source_length, const int64_t *target_length,
                          int64_t pairs, const batch_rule *rule, rng random, sr_failure *why);
void batch_plan_free(batch_plan *p);

#endif
