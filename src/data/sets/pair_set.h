/* pair_set.h -- sentence pairs in memory, filled by read_*.c and synth_*.c, and their batches. */
#ifndef DATA_SETS_PAIR_SET_H
#define DATA_SETS_PAIR_SET_H

#include "data/prefetch.h"
#include "data/sets/batch_plan.h"
#include "data/sets/epoch_order.h"
#include "data/sets/line_hashes.h"
#include "text/bpe/text_codec.h"
#include "text/text.h"
#include "text/vocab.h"

enum { PAIR_SPLITS = 3, PAIR_LONGEST = 1024 /* positions of the models (docs/models.md 2.7) */ };

/* The text of one split: line i of one side belongs to line i of the other. */
typedef struct pair_text {
    file_bytes side[SIDES]; /* byte NULL: no such split */
    int64_t lines;          /* lines of each side */
    int64_t *number[SIDES]; /* [lines], from 1, in the file; NULL: line i is i + 1 */
} pair_text;

/* A line of too many tokens. */
typedef struct long_line {
    int64_t
        line; /* from 0 in the text of the split, -1: none; then its number in the file, from 1 */
    int64_t tokens, most; /* </s> included */
    data_side side;
    char path[FILE_PATH];
} long_line;

/* Token ids of one side, without </s>: sentence i is id[first[i]] .. id[first[i + 1] - 1]. */
typedef struct pair_side {
    int32_t *id;
    int64_t *first;
} pair_side;

typedef struct pair_split {
    int64_t count;        /* pairs kept; 0: no such split */
    pair_text raw;        /* as read; not of training */
    size_t *start[SIDES]; /* [raw.lines + 1], where each line begins */
    pair_side side[SIDES];
    int64_t *record; /* [count], line (from 0) of each pair */
    /* [count], pair whose source this pair has: its own unless sources are shuffled */
    int64_t *partner;
    int64_t dropped_empty, dropped_long;
    long_line too_long;     /* the first one */
    line_hashes lines;      /* [count], of both sides; none after the checks */
    int64_t unknown[SIDES]; /* words that are <unk> */
    int64_t tokens;         /* target tokens, </s> included */
    batch_plan plan;
} pair_split;

/* Buffers of a batch. */
typedef struct pair_buffers {
    epoch_order order; /* [training batches], shuffled by epoch_order_set */
    int32_t *source, *target_in, *target_out;
    uint8_t *source_mask, *target_mask;
} pair_buffers;

typedef struct pair_set {
    vocab *dictionary[SIDES];         /* twice the same if joint */
    bool dictionary_read[SIDES];      /* from a file; no words are counted */
    line_transform step[CODEC_STEPS]; /* applied to a line before its words are counted */
    int steps;
    pair_split split[PAIR_SPLITS];
    int64_t max_tokens, vocab_size, longest, limit; /* as options and data_shape name them */
    batch_rule rule;
    bool shuffle_sources, separate;
    uint64_t seed;
    pair_buffers slot[PREFETCH_SLOTS];
    double entropy; /* nats per target token, NaN when unknown */
} pair_set;

sr_status pair_set_create(pair_set *s, const data_options *o, sr_failure *why);
void pair_set_free(pair_set *s);
/* Pairs from files: opens the line steps and dictionaries of the options. */
sr_status pair_set_prepare(pair_set *s, const data_options *o, sr_failure *why);
/* Applies the steps to every text, counts training words, makes dictionaries and ids, and plans the
 * batches. Words counted in s->dictionary before are in it, too. Training is cut to the first
 * `limit` lines. Moves the texts of the other splits into the set. */
sr_status pair_set_build(pair_set *s, pair_text text[PAIR_SPLITS], sr_failure *why);

/* pair_batch.c: plans, permutation of sources, buffers; then batches. */
sr_status pair_set_plan(pair_set *s, sr_failure *why);
/* Source words (with </s>) and positions (with padding too) of all batches of a split. */
void pair_set_fill(const pair_split *p, int64_t *words, int64_t *positions);
void pair_set_batch(pair_set *s, int slot, data_split split, int64_t epoch, int64_t index,
                    batch *b);

void pair_text_free(pair_text *t);

/* pair_text.c: texts as read, and after the steps. */
sr_status pair_text_take_steps(pair_set *s, const pair_text text[PAIR_SPLITS],
                               pair_text out[PAIR_SPLITS], sr_failure *why);
sr_status pair_split_keep_raw(pair_split *p, pair_text *t, sr_failure *why);
data_line pair_split_line(const pair_split *p, data_side side, int64_t line);
text_codec pair_set_codec(const pair_set *s);
/* Lines of the split that are used. */
int64_t pair_set_lines(const pair_set *s, data_split split, const pair_text *t);

#endif
