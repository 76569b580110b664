/* bpe_pairs.h -- counts of pairs of adjacent symbols, and the words that contain them. */
#ifndef TEXT_BPE_BPE_PAIRS_H
#define TEXT_BPE_BPE_PAIRS_H

#include <stdbool.h>

#include "base/containers/map.h"

/* Occurrences of a pair in a word; the places of a pair form a list. */
typedef struct bpe_place {
    int32_t word, next; /* next: of the same pair, or -1 */
    int32_t times;
} bpe_place;

typedef struct bpe_pair {
    int64_t count;     /* while it is active */
    int64_t set_aside; /* while it is not */
    int64_t queued;    /* count of its entry in the heap, or -1 */
    int32_t first;     /* first of its places, or -1 */
    bool active;
    bool touched;
} bpe_pair;

typedef struct bpe_queued {
    int64_t count;
    int32_t pair;
} bpe_queued;

typedef struct bpe_pairs {
    const map *symbol;
    map key;
    bpe_pair *pair;     /* [key.count] */
    map at;             /* (pair, word) -> place */
    bpe_place *place;   /* [at.count] */
    int32_t *active;    /* [active_count] active pairs */
    int32_t *touched;   /* [touched_count] pairs whose count has changed */
    bpe_queued *queued; /* [queued_count] a heap, the greatest first; entries may be out of date */
    int64_t active_count, touched_count, queued_count;
    int64_t pair_capacity, place_capacity, active_capacity, touched_capacity, queued_capacity;
    double threshold; /* pairs below it are set aside */
} bpe_pairs;

void bpe_pairs_free(bpe_pairs *p);
/* A pair comes `times` (1 or -1) more in a word whose count is `count`. False: out of memory. */
bool bpe_pairs_change(bpe_pairs *p, int32_t left, int32_t right, int32_t word, int32_t times,
                      int64_t count);
/* After the pairs of all words have been counted. */
bool bpe_pairs_begin(bpe_pairs *p);
/* The pair to merge after `merges` merges; -1: none. False: out of memory. */
bool bpe_pairs_best(bpe_pairs *p, int64_t merges, int32_t *best, int64_t *count);
/* Call before and after the changes of a merge. */
void bpe_pairs_forget(bpe_pairs *p, int32_t pair);
bool bpe_pairs_settle(bpe_pairs *p, int32_t pair, int64_t merges);

#endif
