/* training_digest.c -- a checksum of the training data in the form of batches: ids, labels, pixels,
 * in their order. A run that is resumed needs the same. */
#include "base/crc32.h"
#include "data/dataset.h"

/* The checksum `sum` with an array of `count` items; NULL: not there. */
#define ADD(sum, array, count)                                                                     \
    ((array) ? crc32_add(sum, array, (size_t)(count) * sizeof *(array)) : (sum))

static uint32_t of_images(const image_set *s) {
    const image_split *p = &s->split[SPLIT_TRAIN];
    const int64_t pixels = s->size.height * s->size.width * s->size.channels;
    const uint32_t sum = ADD(0, p->label, p->count);
    return ADD(sum, p->pixel, p->count * pixels);
}

static uint32_t of_pairs(const pair_split *p) {
    uint32_t sum = 0;
    for (int i = 0; i < SIDES; i++) {
        if (!p->side[i].first) continue; /* read for evaluation alone */
        sum = ADD(sum, p->side[i].first, p->count + 1);
        sum = ADD(sum, p->side[i].id, p->side[i].first[p->count]);
    }
    return sum;
}

static uint32_t of_sentences(const sentence_split *p) {
    uint32_t sum = ADD(0, p->first, p->count + 1);
    sum = ADD(sum, p->label, p->count);
    sum = ADD(sum, p->id, p->words);
    sum = ADD(sum, p->tag, p->words);
    sum = ADD(sum, p->letter, p->words + 1);
    return p->letter ? ADD(sum, p->character, p->letter[p->words]) : sum;
}

static uint32_t of_trees(const tree_split *p) {
    const int64_t *start = p->of->bank.start, first = start[p->first];
    uint32_t sum = ADD(0, start + p->first, p->count + 1);
    sum = ADD(sum, p->of->word + first, p->words);
    sum = ADD(sum, p->of->pos + first, p->words);
    sum = ADD(sum, p->of->label + first, p->words);
    return ADD(sum, p->of->head + first, p->words);
}

int64_t data_training_digest(const dataset *d) {
    const running_split *text = &d->running.split[SPLIT_TRAIN];
    switch (d->shape.task) { /* unreached: a value that is no task */
    case TASK_IMAGES:
        return of_images(&d->images);
    case TASK_PAIRS:
        return of_pairs(&d->pairs.split[SPLIT_TRAIN]);
    case TASK_LM:
        return ADD(0, text->id, text->tokens);
    case TASK_SENTENCES:
    case TASK_TAGS:
        return of_sentences(&d->sentences.split[SPLIT_TRAIN]);
    case TASK_TREES:
        return of_trees(&d->trees.split[SPLIT_TRAIN]);
    }
    return 0;
}
