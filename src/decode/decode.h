/* decode.h -- from source sentences to target sentences: beam search over anything that scores next
 * words, and translation by a model (docs/models.md 2.8).
 *
 * Deviation from fairseq: the largest length of a hypothesis, int(a * source length + b), goes by the
 * sentence's OWN length, </s> included, not by the longest of its batch. What a sentence becomes
 * depends on nothing but the sentence, the model and the options: not on the batch that it is in,
 * not on the number of threads, to the last bit of every score.
 */
#ifndef DECODE_DECODE_H
#define DECODE_DECODE_H

#include "nets/models.h"

/* -- results */

/* One hypothesis. The arrays belong to the translation it is in. */
typedef struct hypothesis {
    double score;       /* sum of log_p, divided by length^lenpen */
    int64_t length;     /* </s> included, the start symbol not */
    int32_t *token;     /* [length] ends in </s> */
    double *log_p;      /* [length] natural log; penalty of an unknown word taken off */
    int32_t *source_at; /* [length] place of the source word that the model looked at most while it
                           chose this word, </s> left out; -1: none, or not known */
} hypothesis;

/* The best hypotheses of a sentence, best first. count 0: none could be finished. */
typedef struct translation {
    int64_t count;
    hypothesis *item; /* [count] */
} translation;

void translation_free(translation *t); /* t[0] alone; zeros are fine */

typedef enum {
    UNKNOWN_KEEP, /* <unk> stands in the text */
    UNKNOWN_DROP,
    UNKNOWN_COPY, /* the source word that the model looked at stands for it; kept where none is known */
} unknown_words;

/* What stands in the text, </s> left out: word[i] >= 0 is a token, -1 - j the source's word j. word
 * has room for h->length; -> how many were written. */
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

/* What gives the next word's probabilities. */
typedef struct scorer {
    void *context;
    int64_t vocabulary;
    int threads; /* that candidates are looked for with */
    /* One word further: row i is the hypothesis of row parent[i] of the call before with token[i]
     * behind it; in the first call parent[i] = i is the number of the sentence and token[i] </s>.
     * Rows of a sentence are neighbours, in the order of the sentences; a sentence that is finished
     * has none. Writes source_at [rows] as in hypothesis. */
    sr_status (*score)(void *context, int64_t rows, const int32_t *parent, const int32_t *token,
                       int32_t *source_at, sr_failure *why);
    /* Of a row of that call, as a model_decoder has them (models.h); -inf allowed. Any thread calls them.
     * A NaN among the words has to be the largest. */
    void (*log_p)(const void *context, int64_t row, int64_t first, int64_t count, double *log_p);
    void (*largest)(const void *context, int64_t row, double *log_p);
} scorer;

/* Decodes `count` sentences together. source_length [count], </s> included. out [count] is
 * overwritten; the caller frees each (after a failure all are zeros). SR_USAGE: options that do not
 * fit, a NaN from the scorer; or whatever the scorer returns. */
sr_status beam_search(const beam_options *o, const scorer *words, int64_t count,
                      const int64_t *source_length, translation *out, sr_failure *why);

/* -- translation */

typedef struct translate_options {
    beam_options beam;
    /* Bounds the memory: a batch holds sentences as long as the sum over them of
     *     source length + beam * (longest hypothesis + 1),
     * both with </s>, does not exceed it. A position costs 2 layers d numbers of `real` (keys and
     * values of every decoder layer; sources and heads are rounded up to whole vectors) and some 30
     * bytes, a hypothesis besides 4 bytes a word of the vocabulary. Each thread has a batch of its own
     * where there are enough. On top come a copy of the decoder's weights and of the embedding, and
     * for each batch one sentence at a time in the encoder: heads S^2 numbers a layer where it has S
     * words. */
    int64_t max_tokens;
    int64_t max_sentences; /* in a batch; 0: as many as fit */
    int64_t max_source;    /* longest source that is accepted, </s> included; 0: 1024 */
    int threads;
    void *context; /* of functions that any thread may call, `progress` one at a time */
    /* After every batch: sentences and target words, </s> counted, of the best hypotheses so far. NULL:
     * nobody is told. */
    void (*progress)(void *context, int64_t sentences, int64_t words);
    bool (*stop)(void *context); /* asked before every word; true: ends early. NULL: never */
} translate_options;

/* beam_options_default, 16,384 tokens, one thread. */
translate_options translate_options_default(void);

typedef struct translate_report {
    int64_t sentences, words; /* as progress was told */
    bool stopped;             /* sentences of batches that were not finished have no hypothesis */
    int64_t refused; /* number of the source, from 0, that a failure is about; -1: of none */
} translate_report;

/* Translates source [count] (tokens of the model's dictionary, no padding, </s> last) into out
 * [count], in the order of the sources; the caller frees each. report may be NULL. The model is only
 * read, with running statistics and without dropout.
 * SR_USAGE: the model writes no sentences, or a normalization of its decoder needs whole sentences; a
 * source that is too long, does not fit max_tokens or is malformed (report->refused);
 * options that do not fit; log probabilities that are not numbers. SR_MEMORY. After a failure all of
 * out is zeros. */
sr_status translate(model *m, const translate_options *o, const model_source *source, int64_t count,
                    translation *out, translate_report *report, sr_failure *why);

#endif
