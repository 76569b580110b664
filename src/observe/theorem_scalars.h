/* theorem_scalars.h -- quantities of the papers' theorems on rows and features of a site. */
#ifndef OBSERVE_THEOREM_SCALARS_H
#define OBSERVE_THEOREM_SCALARS_H

#include "observe/hooks.h"

typedef struct theorem_scalars theorem_scalars;

/* Whether a site with this method gets any of the scalars. */
bool theorem_scalars_apply(const norm_method *m);
/* Declares the scalars before the first step. features: also scalars of the backward pass, whose
 * sums must cover this process's rows alone. NULL on failure. Recorder and hooks outlive it. */
theorem_scalars *theorem_scalars_create(sr_recorder *r, hooks *h, bool features, sr_failure *why);
void theorem_scalars_free(theorem_scalars *t);
/* wanted: the next step records them. NULL is fine. */
void theorem_scalars_begin_step(theorem_scalars *t, bool wanted);

#endif
