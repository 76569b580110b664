/* attention_scalars.h -- largest logit and entropy of every attention, as custom scalars of its
 * site (docs/definitions.md). */
#ifndef OBSERVE_ATTENTION_SCALARS_H
#define OBSERVE_ATTENTION_SCALARS_H

#include "observe/hooks.h"

typedef struct attention_scalars attention_scalars;

/* Declares the scalars and hooks the attentions of recorded sites. shares: of a batch, in this
 * process. r NULL: this process writes nothing. NULL on failure. Recorder, model and hooks outlive
 * it. */
attention_scalars *attention_scalars_create(model *m, sr_recorder *r, const hooks *h, int shares,
                                            sr_failure *why);
/* Removes the hooks; NULL is fine, here and below. */
void attention_scalars_free(attention_scalars *a);
/* Call before the passes of a step, and before the passes of this process's shard `number`. */
void attention_scalars_begin_step(attention_scalars *a);
void attention_scalars_enter(attention_scalars *a, int number);
/* (all processes) After the passes of a step: merges and records all shards. */
sr_status attention_scalars_exchange(attention_scalars *a, const run_exchange *x, sr_failure *why);

#endif
