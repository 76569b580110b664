/* conll_score.h -- counts of correct, found and gold entities, as in conlleval.pl (Tjong Kim Sang,
 * version 2004-01-26; docs/scores.md).
 *
 * The first '-' separates the part of a tag from its type. Parts and types of two adjacent words
 * decide where a phrase begins and ends. The script has B, I, O and E; '[' and ']' are phrases of
 * one word. A new type begins a phrase, whatever the part is, as in `I-X` after `O`.
 */
#ifndef SCORE_CONLL_SCORE_H
#define SCORE_CONLL_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "statrec/base.h"

typedef struct conll_scorer conll_scorer;

/* A tag of a file. */
typedef struct conll_tag {
    const char *byte;
    size_t size;
} conll_tag;

typedef struct conll_counts {
    int64_t tokens, right;           /* tokens, those with the gold tag */
    int64_t gold, found, correct;    /* phrases of the text, of the predictions, of both */
    int64_t stray_gold, stray_found; /* I-X after O or another type */
    int64_t unknown;                 /* tags with a part unknown to the script */
} conll_counts;

conll_scorer *conll_create(void); /* NULL when out of memory */
void conll_free(conll_scorer *s);
sr_status conll_add(conll_scorer *s, conll_tag gold, conll_tag found, sr_failure *why);
void conll_end_sentence(conll_scorer *s);

/* The counts after the last tag; a phrase at the end counts. */
conll_counts conll_sum(const conll_scorer *s);
/* Prints the output of the script; latex: with -l. SR_IO, SR_MEMORY. */
sr_status conll_print(const conll_scorer *s, bool latex, FILE *out, sr_failure *why);

#endif
