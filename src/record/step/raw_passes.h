/* raw_passes.h -- forward and backward passes of a site in the current step. raw_passes.c collects
 * them from sr_take_*, sr_put_forward and sr_put_backward. raw_statistics.c computes the vectors of
 * the step. All vectors are double [width]. */
#ifndef RECORD_STEP_RAW_PASSES_H
#define RECORD_STEP_RAW_PASSES_H

#include "record/recorder.h"

enum { RAW_WORK = 6, RAW_PENDING_MAX = 4096 };

/* Allocates the passes and running statistics of a site. */
sr_status raw_reserve(sr_recorder *r, int site);
/* Forgets the passes of the step before. */
void raw_begin_step(raw_state *raw);
/* Without a backward pass the last forward pass counts. False if there was no pass. */
bool raw_finish_passes(raw_state *raw, int64_t width);
void raw_free(raw_state *raw);

/* raw_statistics.c: puts the vectors and scalars of all sites with passes in this step. */
sr_status raw_end_step(sr_recorder *r);

#endif
