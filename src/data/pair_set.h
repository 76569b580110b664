/* pair_set.h -- sentence pairs in memory and the batches made of them; what read_*.c and synth_*.c
 * of pairs fill. */
#ifndef STATNET_PAIR_SET_H
#define STATNET_PAIR_SET_H

#include "statnet/batch_plan.h"
#include "statnet/data.h"
#include "statnet/text.h"
#include "statnet/vocab.h"

enum { PAIR_SPLITS = 3, PAIR_LONGEST = 1024 /* positions of the models (docs/models.md 2.7) */ };
enum { SIDE_SOURCE, SIDE_TARGET, SIDES };

/* The text of one split: line i of one side belongs to line i of the other. */
typedef struct pair_text {
    file_bytes side[SIDES]; /* byte NULL: no such split */
    int64_t lines;          /* of each side */
} pair_text;

/* Token ids of one side, without </s>: sentence i is id[first[i]] .. id[first[i + 1] - 1]. */
typedef struct pair_side {
    int32_t *id;
    int64_t *first;
} pair_side;

typedef struct pair_split {
    int64_t count; /* pairs kept; 0: no such split */
    pair_side side[SIDES];
    int64_t *record; /* [count], line (from 0) of each pair */
    int64_t *
        partner; /* [count], pair whose source this pair has: its own unless sources are shuffled */
    int64_t dropped_empty, dropped_long;
    int64_t unknown, tokens; /* target tokens that are <unk>; all, </s> included */
    batch_plan plan;
} pair_split;

typedef struct pair_set {
    vocab *words;
    pair_split split[PAIR_SPLITS];
    int64_t max_tokens, vocab_size, longest, limit; /* as options and data_shape name them */
    batch_rule rule;
    bool shuffle_sources;
    uint64_t seed;
    int64_t *order;      /* [training batches], shuffled for order_epoch */
    int64_t order_epoch; /* -1: none yet */
    /* The current batch. */
    int32_t *source, *target_in, *target_out;
    uint8_t *source_mask, *target_mask;
    double entropy; /* nats per target token, NaN when unknown */
} pair_set;

sr_status pair_set_create(pair_set *s, const data_options *o, sr_failure *why);
void pair_set_free(pair_set *s);
/* Counts the words of the training text, makes the dictionary, turns every text into ids and plans
 * the batches. Words counted in s->words beforehand are in the dictionary too. Training is cut to
 * the first `limit` lines. The text is not needed afterwards. */
sr_status pair_set_build(pair_set *s, const pair_text text[PAIR_SPLITS], sr_failure *why);

/* pair_batch.c: plans, permutation of sources, buffers; then batches. */
sr_status pair_set_plan(pair_set *s, sr_failure *why);
/* Source words (with </s>) and positions (with padding too) of all batches of a split. */
void pair_set_fill(const pair_split *p, int64_t *words, int64_t *positions);
void pair_set_batch(pair_set *s, data_split split, int64_t epoch, int64_t index, batch *b);

void pair_text_free(pair_text *t);

#endif
