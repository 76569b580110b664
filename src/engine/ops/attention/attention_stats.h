/* attention_stats.h -- what an attention_report says, gathered where the weights are made: of each
 * chunk (sentence and head) by itself, then over the sentences in their order. */
#ifndef ENGINE_OPS_ATTENTION_ATTENTION_STATS_H
#define ENGINE_OPS_ATTENTION_ATTENTION_STATS_H

#include "engine/ops/attention/attention_ops.h"

typedef struct attention_chunk {
    double logit_max, entropy; /* entropy: sum over the queries */
    int64_t queries;
} attention_chunk;

/* [chunks] without a query yet; NULL and a failure of the tape when out of memory. */
attention_chunk *attention_stats_begin(tape *t, int64_t chunks);
/* A query that counts: its largest logit (-inf: it sees no key and does not count) and its weights
 * P [n]. A weight of 0 adds nothing, NaN does. */
void attention_chunk_add(attention_chunk *to, int64_t n, real largest, const real *P);
/* chunk [sentences, heads]. */
void attention_stats_end(const attention_chunk *chunk, int64_t sentences, int heads,
                         attention_report *to);

#endif
