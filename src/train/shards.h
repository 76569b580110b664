/* shards.h -- a step whose batch is shared out among passes and processes. */
#ifndef TRAIN_SHARDS_H
#define TRAIN_SHARDS_H

#include "train/gradient_sum.h"
#include "train/trainer.h"

/* Opens gradients of this rank's shards; fails if the batch cannot be split. Call before the record
   is opened. */
sr_status shards_open(trainer *r, sr_failure *why);
/* Running statistics of this rank's shards; call after the record, whose observers have some. */
sr_status shards_recorded(trainer *r, sr_failure *why);
void shards_close(trainer *r);
int shards_of_rank(const trainer *r); /* how many this rank passes */

/* (all) Forward and backward passes of a step over batch b; *loss: summed over all shards. update:
   the step ends an update and sums the gradients of all shards. */
sr_status shards_pass(trainer *r, const batch *b, bool update, double *loss, sr_failure *why);
/* After a step: a rank got a signal; a checkpoint is due by the first rank's clock. */
bool shards_stop(const trainer *r);
bool shards_due(const trainer *r);

/* The i-th of this rank's shards of a batch; *p as it is to be passed. */
batch shards_own(const trainer *r, const batch *b, int i, pass *p);
/* Switches records and running statistics to shard i; 0 after the last pass. */
void shards_enter(trainer *r, int i);
/* How statistics reach the first rank. */
run_exchange shards_exchange(trainer *r);

/* Running statistics of every shard for a checkpoint; does nothing with one set. Keep (all): before
 * it is written. Reserve: before it is read, as copies of the first shard's. Take: after that.
 * Each: visits shards after the first. */
sr_status shards_keep_replicas(trainer *r, sr_failure *why);
sr_status shards_reserve(trainer *r, sr_failure *why);
void shards_take_replicas(trainer *r);
void shards_forget_replicas(trainer *r);
sr_status shards_each_replica(trainer *r, state_visit_fn *visitor, void *context, sr_failure *why);

#endif
