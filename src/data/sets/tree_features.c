/* tree_features.c -- a parser's state as ids: 18 words, 18 POS tags, 12 labels
 * (docs/models.md 8). */
#include "data/sets/tree_data.h"

int64_t data_tree_features(const data_trees *t) {
    return 2 * ARC_PLACES + (t->labels ? ARC_CHILDREN : 0);
}

int64_t data_tree_classes(const data_trees *t) {
    return 1 + 2 * (int64_t)t->arc_labels;
}

static int32_t id_of(const int32_t *id, int32_t node) {
    return node == ARC_NONE ? TOKEN_PAD : node == 0 ? TOKEN_BOS : id[node - 1];
}

void data_tree_feature(const data_trees *t, int64_t first_word, const arc_state *s,
                       int32_t *feature) {
    int32_t node[ARC_PLACES];
    arc_places(s, node);
    for (int i = 0; i < ARC_PLACES; i++) {
        feature[i] = id_of(t->word + first_word, node[i]);
        feature[ARC_PLACES + i] = id_of(t->pos + first_word, node[i]);
    }
    for (int i = 0; t->labels && i < ARC_CHILDREN; i++) {
        const int32_t child = node[ARC_PLACES - ARC_CHILDREN + i];
        feature[2 * ARC_PLACES + i] =
            child == ARC_NONE ? TOKEN_PAD : TOKEN_FIRST_WORD + s->label[child];
    }
}
