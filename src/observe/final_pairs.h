/* final_pairs.h -- see final_pairs.c and observe/observe.h. */
#ifndef OBSERVE_FINAL_PAIRS_H
#define OBSERVE_FINAL_PAIRS_H

#include "observe/observe.h"

/* The pairs into the recorder, of a process that has one; its failure is kept there. NULL is
   fine. */
void final_pairs_put(const final_pairs *f);

#endif
