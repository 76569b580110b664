/* bpe_step.h -- byte-pair encoding as a step of a line. */
#ifndef TEXT_BPE_BPE_STEP_H
#define TEXT_BPE_BPE_STEP_H

#include "text/bpe/bpe.h"
#include "text/line_transform.h"

/* Merges from a file of codes; path "": `merges` merges, learnt from the training text of both
 * sides. The codes are read, or learnt, when the step begins. apply NULL: *why. */
line_transform bpe_step(const char *path, int64_t merges, sr_failure *why);
/* With merges that are there already; takes them over, also on failure. */
line_transform bpe_step_of(bpe_codes *codes, sr_failure *why);
/* Its merges; NULL for a step of another kind, or one that has not begun. */
const bpe_codes *bpe_step_codes(const line_transform *step);

#endif
