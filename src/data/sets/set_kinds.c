/* set_kinds.c -- the functions of each task's set: batches, dictionaries. */
#include "data/dataset.h"

static void free_images(dataset *d) {
    image_set_free(&d->images);
}

static int64_t count_images(const dataset *d, data_split split) {
    return image_set_batches(&d->images, split);
}

static void make_images(dataset *d, int slot, batch_place at, batch *b) {
    image_set_batch(&d->images, slot, at.split, at.epoch, at.index, b);
}

static void free_pairs(dataset *d) {
    pair_set_free(&d->pairs);
}

static int64_t count_pairs(const dataset *d, data_split split) {
    return d->pairs.split[split].plan.count;
}

static void make_pairs(dataset *d, int slot, batch_place at, batch *b) {
    pair_set_batch(&d->pairs, slot, at.split, at.epoch, at.index, b);
}

static const vocab *pair_words(const dataset *d, data_side side) {
    return d->pairs.dictionary[side];
}

static line_hashes *pair_lines(dataset *d, data_split split) {
    return &d->pairs.split[split].lines;
}

static void free_running(dataset *d) {
    running_set_free(&d->running);
}

static int64_t count_windows(const dataset *d, data_split split) {
    return d->running.split[split].batches;
}

static void make_windows(dataset *d, int slot, batch_place at, batch *b) {
    running_set_batch(&d->running, slot, at.split, at.index, b);
}

static const vocab *running_words(const dataset *d, data_side side) {
    (void)side;
    return d->running.words;
}

static line_hashes *running_lines(dataset *d, data_split split) {
    return &d->running.split[split].hashes;
}

static void free_trees(dataset *d) {
    tree_set_free(&d->trees);
}

static int64_t count_transitions(const dataset *d, data_split split) {
    return tree_set_batches(&d->trees, split);
}

static void make_transitions(dataset *d, int slot, batch_place at, batch *b) {
    tree_set_batch(&d->trees, slot, at.split, at.epoch, at.index, b);
}

static const vocab *tree_words(const dataset *d, data_side side) {
    (void)side;
    return d->trees.words;
}

static line_hashes *tree_lines(dataset *d, data_split split) {
    return &d->trees.split[split].lines;
}

static void free_sentences(dataset *d) {
    sentence_set_free(&d->sentences);
}

static int64_t count_sentences(const dataset *d, data_split split) {
    return sentence_set_batches(&d->sentences, split);
}

static void make_sentences(dataset *d, int slot, batch_place at, batch *b) {
    sentence_set_batch(&d->sentences, slot, at.split, at.epoch, at.index, b);
}

static const vocab *sentence_words(const dataset *d, data_side side) {
    (void)side;
    return d->sentences.dictionary;
}

static line_hashes *sentence_lines(dataset *d, data_split split) {
    return &d->sentences.split[split].lines;
}

static void free_tagged(dataset *d) {
    sentence_set_free(&d->sentences);
    for (int i = 0; i < SENTENCE_SPLITS; i++) file_free(&d->tagged_file[i]);
    tag_set_free(d->tags);
}

const set_kind set_kinds[] = {
    [TASK_IMAGES] = {free_images, count_images, make_images, NULL, NULL},
    [TASK_PAIRS] = {free_pairs, count_pairs, make_pairs, pair_words, pair_lines},
    [TASK_LM] = {free_running, count_windows, make_windows, running_words, running_lines},
    [TASK_SENTENCES] = {free_sentences, count_sentences, make_sentences, sentence_words,
                        sentence_lines},
    [TASK_TAGS] = {free_tagged, count_sentences, make_sentences, sentence_words, sentence_lines},
    [TASK_TREES] = {free_trees, count_transitions, make_transitions, tree_words, tree_lines},
};
