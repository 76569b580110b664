/* shards.h -- a step whose batch is shared out among passes and processes. */
#ifndef TRAIN_SHARDS_H
#define TRAIN_SHARDS_H

#include "train/gradient_sum.h"
#include "train/trainer.h"

/* Gradients of this rank's shards; refuses what cannot be shared out. Before the record is opened. */
sr_status shards_open(trainer *r, sr_failure *why);
/* Running values of this rank's shards: behind the record, whose observers keep some. */
sr_status shards_recorded(trainer *r, sr_failure *why);
void shards_close(trainer *r);
int shards_of_rank(const trainer *r); /* how many this rank passes */

/* (all) The forward and backward passes of a step over batch b; *loss: the summed loss of all shards.
 * update: the step closes an update, and the parameters' gradient is then that of all its shards. */
sr_status shards_pass(trainer *r, const batch *b, bool update, double *loss, sr_failure *why);
/* As told behind the last step: a signal came to one of several ranks; a checkpoint is due by the first
 * one's clock. */
bool shards_stop(const trainer *r);
bool shards_due(const trainer *r);

/* The i-th of this rank's shards of a batch; *p as it is to be passed. */
batch shards_own(const trainer *r, const batch *b, int i, pass *p);
/* It passes next: what is recorded and the layers' running values are its own. 0 behind the last pass. */
void shards_enter(trainer *r, int i);
/* How what they found goes to the first rank. */
run_exchange shards_exchange(trainer *r);

/* Running values of every shard for a checkpoint, until they are forgotten; nothing where there is one
 * set of them. Keep (all): before it is written. Make room: before it is read, all as the first
 * shard's are now. Take: behind that. Each: those of the shards behind the first. */
sr_status shards_keep_replicas(trainer *r, sr_failure *why);
sr_status shards_reserve(trainer *r, sr_failure *why);
void shards_take_replicas(trainer *r);
void shards_forget_replicas(trainer *r);
sr_status shards_each_replica(trainer *r, state_visit_fn *visitor, void *context, sr_failure *why);

#endif
