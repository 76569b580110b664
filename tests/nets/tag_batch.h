/* tag_batch.h -- three small tagged sentences, padded to any length, and a tagger for them. */
#ifndef TESTS_NETS_TAG_BATCH_H
#define TESTS_NETS_TAG_BATCH_H

#include "nets/models.h"

enum {
    TAGGED = 3,            /* sentences of 5, 3 and 1 words */
    TAGGED_LENGTH = 5,     /* longest */
    TAGGED_CHARACTERS = 4, /* characters of the longest word */
    TAG_COUNT = 4,
    TAGGED_VOCABULARY = 12,
    TAGGED_ALPHABET = 9,
    TAGGED_ROOM = 16 /* largest number of padded words, and of padded characters */
};

typedef struct tag_batch {
    batch b;
    int32_t word[TAGGED * TAGGED_ROOM], tag[TAGGED * TAGGED_ROOM];
    int32_t character[TAGGED * TAGGED_ROOM * TAGGED_ROOM];
    uint8_t mask[TAGGED * TAGGED_ROOM];
    uint8_t allowed[(TAG_COUNT + 2) * (TAG_COUNT + 2)];
} tag_batch;

/* length, characters: padded sizes, at least the longest. Tag 3 may not follow tag 1. */
void tag_batch_fill(tag_batch *t, int64_t length, int64_t characters);
/* Options of a tagger of width 8, 2 heads, FFN 12; every dropout with an option is 0. */
model_options tagger_options(const char *norm, const char *placement, const char *char_encoder);
/* Fails the test on an error. */
model *tagger_create(const model_options *o);
/* Writes nll [TAGGED] in double; adds the gradients of their sum if the tape records. train: batch
 * statistics and dropout, else NORM_RUNNING. */
void tagger_run(model *m, tape *t, const batch *b, bool train, double *nll);
/* Number of words in sentence s. */
int tagged_words(int s);

#endif
