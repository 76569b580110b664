/* grams.h -- the n-grams that a hypothesis shares with its references. */
#ifndef SCORE_GRAMS_H
#define SCORE_GRAMS_H

#include "base/containers/byte_buffer.h"
#include "base/containers/map.h"
#include "score/score.h"

typedef struct gram_word {
    size_t start, length; /* in the text */
    int32_t spelling;     /* number of the word */
    int32_t gram;         /* number of the n-gram that begins here */
} gram_word;

/* Occurrences of an n-gram so far; in_best: the most in one reference. */
typedef struct gram_count {
    int32_t in_hyp, in_ref, in_best;
} gram_count;

typedef struct grams {
    byte_buffer text;
    gram_word *word; /* [words], the hypothesis first */
    int64_t words, capacity;
    map spellings, pairs;
    gram_count *count; /* by number of the n-gram */
    int64_t count_capacity;
    int64_t end[1 + BLEU_REFERENCES]; /* ends of the words of each text */
    int texts;
} grams;

void grams_begin(grams *g);
/* Appends the words of the next text, cut at ASCII or Unicode blanks. False when out of memory or
 * beyond 2^30 words. */
bool grams_add(grams *g, const byte_buffer *line, bool ascii);
/* Correct, total and lengths of the first text against the others; false when out of memory. */
bool grams_count(grams *g, bleu_counts *counts);
void grams_free(grams *g);

#endif
