/* final_pairs.h -- see final_pairs.c and observe/observe.h. */
#ifndef OBSERVE_FINAL_PAIRS_H
#define OBSERVE_FINAL_PAIRS_H

#include "observe/observe.h"

/* Records the pairs, if this process has a recorder, which keeps a failure. NULL is fine. */
void final_pairs_put(const final_pairs *f);

#endif
