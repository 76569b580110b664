/* attention_scalars.h -- what the weights of every attention are like, as scalars of its site that
 * the run declares (docs/definitions.md). */
#ifndef OBSERVE_ATTENTION_SCALARS_H
#define OBSERVE_ATTENTION_SCALARS_H

#include "observe/hooks.h"

typedef struct attention_scalars attention_scalars;

/* Declares them and watches the attentions of recorded sites, in the passes of so many shares of
 * every batch. r NULL: in a process that writes nothing. NULL on failure, also where the model has
 * none. Recorder, model and hooks outlive it. */
attention_scalars *attention_scalars_create(model *m, sr_recorder *r, const hooks *h, int shares,
                                            sr_failure *why);
/* Stops watching; NULL is fine, here and below. */
void attention_scalars_free(attention_scalars *a);
/* The passes that follow are of another step, from now on of this process's share `number`. */
void attention_scalars_begin_step(attention_scalars *a);
void attention_scalars_enter(attention_scalars *a, int number);
/* (all processes) Behind the passes of a step: what all shares say together, into the recorder. */
sr_status attention_scalars_exchange(attention_scalars *a, const run_exchange *x, sr_failure *why);

#endif
