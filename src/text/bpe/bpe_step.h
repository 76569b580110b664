/* bpe_step.h -- byte-pair encoding as a step of a line. */
#ifndef TEXT_BPE_BPE_STEP_H
#define TEXT_BPE_BPE_STEP_H

#include "text/bpe/bpe.h"
#include "text/line_transform.h"

/* Reads merges from a file; path "": learns `merges` merges from the training text of both sides.
 * Both happen when the step begins. apply NULL: *why. */
line_transform bpe_step(const char *path, int64_t merges, sr_failure *why);
/* The same with given merges, which it owns, also after a failure. */
line_transform bpe_step_of(bpe_codes *codes, sr_failure *why);
/* Its merges; NULL for another kind of step, or before begin. */
const bpe_codes *bpe_step_codes(const line_transform *step);

#endif
