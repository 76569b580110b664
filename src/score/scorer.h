/* scorer.h -- the state of a scorer. */
#ifndef SCORE_SCORER_H
#define SCORE_SCORER_H

#include "score/grams.h"

struct bleu_scorer {
    bleu_form form;
    int refs; /* references of each sentence; 0 before the first */
    byte_buffer line, spare;
    grams grams;
    bleu_counts *sentence; /* [sentences] */
    int64_t sentences, capacity;
};

#endif
