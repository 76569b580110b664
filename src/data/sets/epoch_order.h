/* epoch_order.h -- random numbers of a data set, and the order of its records in an epoch. */
#ifndef DATA_SETS_EPOCH_ORDER_H
#define DATA_SETS_EPOCH_ORDER_H

#include <stdbool.h>

#include "base/rng.h"

/* The stream `part` of a use (STREAM_ORDER ...) of the seed. */
rng data_stream(uint64_t seed, uint64_t use, uint64_t part);

/* The caller allocates item; the rest is zero at first. */
typedef struct epoch_order {
    int64_t *item; /* [count] */
    int64_t next;  /* item is in the order of epoch next - 1; 0: none yet */
} epoch_order;

/* Puts 0 .. count-1 into the order of the epoch, from 0; without `shuffle` they ascend. */
void epoch_order_set(epoch_order *o, uint64_t seed, int64_t epoch, int64_t count, bool shuffle);

#endif
