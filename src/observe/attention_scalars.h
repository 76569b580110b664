/* attention_scalars.h -- what the weights of every attention are like, as scalars of its site that the run
 * declares (docs/definitions.md). */
#ifndef OBSERVE_ATTENTION_SCALARS_H
#define OBSERVE_ATTENTION_SCALARS_H

#include "hooks.h"

typedef struct attention_scalars attention_scalars;

/* Declares them and watches the attentions of recorded sites. NULL on failure, also where the model has
 * none. Recorder, model and hooks outlive it. */
attention_scalars *attention_scalars_create(model *m, sr_recorder *r, const hooks *h,
                                            sr_failure *why);
/* Stops watching; NULL is fine. */
void attention_scalars_free(attention_scalars *a);
/* Passes from now on are of this process's share `number`: those of share 0 are recorded. */
void attention_scalars_enter(attention_scalars *a, int number);

#endif
