/* raw_passes.h -- forward and backward passes of a site in the current step, on their way from
 * sr_take_*, sr_put_forward and sr_put_backward (raw_passes.c) to the vectors of the step
 * (raw_statistics.c). Vectors are double [width]. */
#ifndef RECORD_STEP_RAW_PASSES_H
#define RECORD_STEP_RAW_PASSES_H

#include "record/recorder.h"

enum { RAW_WORK = 6, RAW_PENDING_MAX = 4096 };

/* Allocates the passes and running statistics of a site. */
sr_status raw_reserve(sr_recorder *r, int site);
/* Forgets the passes of the step before. */
void raw_begin_step(raw_state *raw);
/* Without any backward pass the last forward pass counts. False: there was none either. */
bool raw_finish_passes(raw_state *raw, int64_t width);
void raw_free(raw_state *raw);

#endif
