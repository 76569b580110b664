/* tree_data.h -- a data set of trees for parsing: sentences, ids of their words, labels, rules of
 * the scores.
 *
 * Ids of words and POS tags come from dictionaries with the specials of batch.h. TOKEN_BOS is ROOT,
 * TOKEN_PAD none, TOKEN_UNK unknown. Label l is TOKEN_FIRST_WORD + l.
 */
#ifndef DATA_SETS_TREE_DATA_H
#define DATA_SETS_TREE_DATA_H

#include "data/data.h"
#include "parse/arc_standard.h"
#include "parse/trees.h"

typedef struct data_trees {
    const treebank *bank;
    const int32_t *word, *pos; /* [words of the bank] ids */
    int64_t first, count;      /* sentences of the split in the bank */
    const vocab *labels;       /* NULL: trees without labels */
    int32_t arc_labels;        /* 1 without labels */
    bool one_root;             /* every training sentence has one root */
    tree_rules rules;          /* AUTO replaced */
} data_trees;

/* False when the split is not there, or the data are no trees. */
bool data_trees_of(const dataset *d, data_split split, data_trees *t);

/* Features of a state: ids of the words of its nodes, then of their POS tags. With labels, the
 * labels of the last ARC_CHILDREN nodes follow. */
int64_t data_tree_features(const data_trees *t); /* their number */
/* first_word: of the sentence in the bank. */
void data_tree_feature(const data_trees *t, int64_t first_word, const arc_state *s,
                       int32_t *feature);
int64_t data_tree_classes(const data_trees *t);

#endif
