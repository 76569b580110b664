/* gradient_sum.h -- the sum of the gradients of all shards of an update, on every rank. */
#ifndef TRAIN_GRADIENT_SUM_H
#define TRAIN_GRADIENT_SUM_H

#include "engine/params.h"
#include "ranks/ranks.h"

typedef struct gradient_sum gradient_sum;

/* Rank r of R (world) has the shards first(r) .. first(r+1)-1 of S. */
static inline int gradient_shard_first(int shards, int world, int rank) {
    return (int)((int64_t)shards * rank / world);
}

/* The i-th shard of this rank has the gradient params_block(p, i). NULL on failure. The others
 * outlive it. */
gradient_sum *gradient_sum_create(ranks *k, params *p, int shards, int threads, sr_failure *why);
void gradient_sum_free(gradient_sum *g);

/* Call before the last backward pass of an update: finished gradients are sent during the pass. */
void gradient_sum_watch(gradient_sum *g, tape *t);
/* (all) Call after it: params_block(p, 0) becomes the sum, the gradient of p. */
sr_status gradient_sum_finish(gradient_sum *g, tape *t, sr_failure *why);

#endif
