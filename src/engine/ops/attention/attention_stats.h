/* attention_stats.h -- gathers an attention_report: first per chunk (sentence and head), then over
 * the sentences in order. */
#ifndef ENGINE_OPS_ATTENTION_ATTENTION_STATS_H
#define ENGINE_OPS_ATTENTION_ATTENTION_STATS_H

#include "engine/ops/attention/attention_ops.h"

typedef struct attention_chunk {
    double logit_max, entropy; /* entropy: sum over the queries */
    int64_t queries;
} attention_chunk;

/* Makes [chunks] without queries; NULL and a failure of the tape when out of memory. */
attention_chunk *attention_stats_begin(tape *t, int64_t chunks);
/* Adds a query: its largest logit (-inf: it sees no key and is not counted) and its weights P [n].
 * A weight of 0 adds nothing, NaN does. */
void attention_chunk_add(attention_chunk *to, int64_t n, real largest, const real *P);
/* Fills the report from chunk [sentences, heads]. */
void attention_stats_end(const attention_chunk *chunk, int64_t sentences, int heads,
                         attention_report *to);

#endif
