/* epoch_order.c -- shuffles training records by (seed, epoch). */
#include "data/sets/epoch_order.h"

#include "data/dataset.h"

rng data_stream(uint64_t seed, uint64_t use, uint64_t part) {
    rng root = rng_create(seed), uses = rng_split(&root, use);
    return rng_split(&uses, part);
}

void epoch_order_set(epoch_order *o, uint64_t seed, int64_t epoch, int64_t count, bool shuffle) {
    if (o->next == epoch + 1) return;
    rng random = data_stream(seed, STREAM_ORDER, (uint64_t)epoch);
    for (int64_t i = 0; i < count; i++) o->item[i] = i;
    if (shuffle) rng_shuffle(&random, o->item, count);
    o->next = epoch + 1;
}
