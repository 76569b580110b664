/* prefetch.h -- makes the next batch in a thread while the last one is in use. */
#ifndef DATA_PREFETCH_H
#define DATA_PREFETCH_H

#include "data/data.h"

enum { PREFETCH_SLOTS = 2 }; /* sets of buffers: one handed out, one being filled */

typedef struct batch_place {
    data_split split;
    int64_t epoch, index;
} batch_place;

/* Makes a batch in the buffers of a slot. Runs in the thread and in the caller's at the same time,
 * for different slots. */
typedef sr_status batch_make(void *self, int slot, batch_place at, batch *b, sr_failure *why);

typedef struct prefetch prefetch;

/* NULL when out of memory. The first call with `next` starts the thread. */
prefetch *prefetch_create(batch_make *make, void *self);
/* Waits for the thread. */
void prefetch_free(prefetch *p);
/* Returns the batch at a place, or its failure, and starts on `next`. next NULL keeps the
 * prefetched batch; otherwise one for another place is dropped. The batch returned before becomes
 * invalid. */
sr_status prefetch_get(prefetch *p, batch_place at, const batch_place *next, batch *b,
                       sr_failure *why);

#endif
