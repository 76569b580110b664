/* beam.h -- beam search over anything that scores next words (docs/models.md 2.8).
 *
 * Deviation from fairseq: the limit int(a * source length + b) uses the sentence's own length with
 * </s>, not the longest of its batch. A translation depends on the sentence, the model and the
 * options alone. Neither the batch nor the number of threads changes a bit of a score.
 */
#ifndef DECODE_BEAM_H
#define DECODE_BEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "batch/batch.h"
#include "statrec/base.h"

/* -- results */

/* One hypothesis. The arrays belong to the translation it is in. */
typedef struct hypothesis {
    double score;   /* sum of log_p, divided by length^lenpen */
    int64_t length; /* </s> included, the start symbol not */
    int32_t *token; /* [length] ends in </s> */
    double *log_p;  /* [length] natural log; penalty of an unknown word taken off */
    /* [length] index of the source word with the most attention for this word, </s> excluded; -1:
     * none, or unknown */
    int32_t *source_at;
} hypothesis;

/* The best hypotheses of a sentence, best first. count 0: none could be finished. */
typedef struct translation {
    int64_t count;
    hypothesis *item; /* [count] */
} translation;

void translation_free(translation *t); /* t[0] alone; zeros are fine */

typedef enum {
    UNKNOWN_KEEP, /* <unk> stays in the text */
    UNKNOWN_DROP,
    /* replaced by the source word with the most attention; kept without one */
    UNKNOWN_COPY,
} unknown_words;

/* Words of the text without </s>: word[i] >= 0 is a token, -1 - j the source's word j. word has
 * memory for h->length; -> how many were written. */
int64_t hypothesis_words(const hypothesis *h, unknown_words how, int32_t *word);

/* -- beam search */

typedef struct beam_options {
    int64_t beam;        /* hypotheses a sentence; 1: greedy */
    int64_t best;        /* how many to return, at most beam; 0: beam */
    double lenpen;       /* score / length^lenpen; 0: the plain sum */
    double unk_penalty;  /* taken off <unk>'s log probability; INFINITY: <unk> is never chosen */
    int64_t min_len;     /* words before </s> may come; 0: a sentence may be empty */
    double max_a, max_b; /* words before </s> must come: int(max_a * source length + max_b) */
} beam_options;

/* 5, all, 1, 0, 1, 0 and 200: fairseq's. */
beam_options beam_options_default(void);
sr_status beam_options_check(const beam_options *o, sr_failure *why);
/* Words before </s> must come in a translation of a source of this length. */
int64_t beam_longest(const beam_options *o, int64_t source_length);

/* Source of the next word's probabilities. */
typedef struct scorer {
    void *context;
    int64_t vocabulary;
    int threads; /* threads that search for candidates */
    /* Scores the next word. Row i extends row parent[i] of the last call by token[i]. In the first
     * call parent[i] = i is the number of the sentence and token[i] </s>. Rows of a sentence are
     * neighbours, in the order of sentences; a finished sentence has none. Writes source_at [rows]
     * as in hypothesis. */
    sr_status (*score)(void *context, int64_t rows, const int32_t *parent, const int32_t *token,
                       int32_t *source_at, sr_failure *why);
    /* For a row of that call, as in model_decoder (model_decoder.h); -inf is allowed. Any thread
     * may call them. A NaN must be the largest. */
    void (*log_p)(const void *context, int64_t row, int64_t first, int64_t count, double *log_p);
    void (*largest)(const void *context, int64_t row, double *log_p);
} scorer;

/* Decodes `count` sentences together. source_length [count], </s> included. out [count] is
 * overwritten; the caller frees each (after a failure all are zeros). SR_USAGE: options that do not
 * fit, a NaN from the scorer; or whatever the scorer returns. */
sr_status beam_search(const beam_options *o, const scorer *words, int64_t count,
                      const int64_t *source_length, translation *out, sr_failure *why);

#endif
