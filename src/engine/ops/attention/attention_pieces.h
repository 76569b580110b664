/* attention_pieces.h -- what an attention_report says, gathered where the weights are made: of each
 * piece (sentence and head) by itself, then over the sentences in their order. */
#ifndef ENGINE_OPS_ATTENTION_ATTENTION_PIECES_H
#define ENGINE_OPS_ATTENTION_ATTENTION_PIECES_H

#include "engine/ops/ops.h"

typedef struct attention_piece {
    double logit_max, entropy; /* entropy: sum over the queries */
    int64_t queries;
} attention_piece;

/* [pieces] without a query yet; NULL and a failure of the tape when out of memory. */
attention_piece *attention_pieces_begin(tape *t, int64_t pieces);
/* A query that counts: its largest logit (-inf: it sees no key and does not count) and its weights
 * P [n]. A weight of 0 adds nothing, NaN does. */
void attention_piece_add(attention_piece *to, int64_t n, real largest, const real *P);
/* piece [sentences, heads]. */
void attention_pieces_end(const attention_piece *piece, int64_t sentences, int heads,
                          attention_report *to);

#endif
