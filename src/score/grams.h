/* grams.h -- the n-grams that a hypothesis shares with its references. */
#ifndef SCORE_GRAMS_H
#define SCORE_GRAMS_H

#include "base/byte_buffer.h"
#include "score/score.h"

/* Arrays [capacity] over the words of a sentence, its hypothesis first. The number of a word or of an
 * n-gram is the place where it stands first. */
typedef struct grams {
    byte_buffer text;                   /* bytes of the words */
    size_t *start, *length;             /* of a word in it */
    int32_t *word;                      /* its number */
    int32_t *shorter, *gram;            /* numbers of the n-grams that begin here: n-1, n */
    int32_t *in_hyp, *in_ref, *in_best; /* by number: counts so far; in_best of all references */
    int32_t *slot;                      /* [slots] hash table of numbers, -1 where empty */
    size_t slots, slot_capacity;
    int64_t words, capacity;
    int64_t end[1 + BLEU_REFERENCES]; /* of the words of each text */
    int texts;
} grams;

void grams_begin(grams *g);
/* The words of the next text, cut at ASCII blanks or at those of Unicode; false when out of memory or
 * beyond 2^30 words. */
bool grams_add(grams *g, const byte_buffer *line, bool ascii);
/* Correct, total and lengths of the first text against the others; false when out of memory. */
bool grams_count(grams *g, bleu_counts *counts);
void grams_free(grams *g);

#endif
