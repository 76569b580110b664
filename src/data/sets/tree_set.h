/* tree_set.h -- trees in memory, filled by read_trees.c, and batches of their transitions. */
#ifndef DATA_SETS_TREE_SET_H
#define DATA_SETS_TREE_SET_H

#include "data/prefetch.h"
#include "data/sets/epoch_order.h"
#include "data/sets/line_hashes.h"
#include "data/sets/tree_data.h"

enum { TREE_SPLITS = 3 };

/* The sentences of a file as ids. */
typedef struct tree_bank {
    treebank bank;       /* sentences 0: not there */
    int32_t *word, *pos; /* [words] */
    int32_t *label;      /* [words] -1: not a label of the training trees */
    int32_t *head;       /* [words] */
} tree_bank;

typedef struct tree_split {
    const tree_bank *of;    /* NULL: no such split */
    int64_t first, count;   /* sentences in it */
    int64_t words, unknown; /* and how many of their words are <unk> */
    int64_t unknown_pos;    /* words with a POS tag that training lacks */
    int64_t crossing;       /* sentences that no transitions build */
    int64_t unlabelled;     /* sentences with a label that training does not have */
    int64_t *kept, keeps;   /* [keeps] numbers of the others in the bank */
    int64_t *start;         /* [keeps + 1] transitions before each */
    line_hashes lines;      /* [count]; none after the checks */
    uint8_t *kind;          /* [start[keeps]] */
} tree_split;

typedef struct tree_buffers {
    epoch_order order;        /* [transitions of training] */
    int32_t *feature, *label; /* [batch_size, features], [batch_size] */
    arc_state state;
} tree_buffers;

typedef struct tree_set {
    tree_bank bank[TREE_SPLITS];
    tree_split split[TREE_SPLITS];
    vocab *words, *pos, *labels; /* labels NULL: none */
    bool one_root;
    tree_pos pos_column;
    tree_rules rules;
    int64_t batch_size, min_count, limit;
    uint64_t seed;
    tree_buffers slot[PREFETCH_SLOTS];
} tree_set;

sr_status tree_set_create(tree_set *s, const data_options *o, sr_failure *why);
void tree_set_free(tree_set *s);
/* Gives the splits' sentences ids and transitions once `of`, `first` and `count` are set. */
sr_status tree_set_build(tree_set *s, const data_options *o, sr_failure *why);
int64_t tree_set_batches(const tree_set *s, data_split split);
/* In the buffers of a slot. */
void tree_set_batch(tree_set *s, int slot, data_split split, int64_t epoch, int64_t index,
                    batch *b);
/* False when the split is not there. */
bool tree_set_trees(const tree_set *s, data_split split, data_trees *t);

#endif
