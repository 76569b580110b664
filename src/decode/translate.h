/* translate.h -- translation of sentences by a model (docs/models.md 2.8). */
#ifndef DECODE_TRANSLATE_H
#define DECODE_TRANSLATE_H

#include "decode/beam.h"
#include "nets/models.h"

typedef struct translate_options {
    beam_options beam;
    /* Bounds the memory: a batch holds sentences as long as the sum over them of
     *     source length + beam * (longest hypothesis + 1),
     * both with </s>, does not exceed it. A position costs 2 layers d numbers of `real` (keys and
     * values, rounded up to whole vectors) and some 30 bytes. A hypothesis costs 4 bytes per word
     * of the vocabulary besides. Each thread has its own batch if the batches suffice. A copy of
     * the decoder's weights and the embedding comes on top. So does one sentence of S words at a
     * time in the encoder: heads S^2 numbers per layer. */
    int64_t max_tokens;
    int64_t max_sentences; /* in a batch; 0: as many as fit */
    int64_t max_source;    /* longest source that is accepted, </s> included; 0: 1024 */
    int threads;
    void *context; /* context of functions that any thread may call, `progress` one at a time */
    /* After every batch: sentences and target words, </s> counted, of the best hypotheses so far.
     * NULL: no reports. */
    void (*progress)(void *context, int64_t sentences, int64_t words);
    bool (*stop)(void *context); /* asked before every word; true: ends early. NULL: never */
} translate_options;

/* beam_options_default, 16,384 tokens, one thread. */
translate_options translate_options_default(void);

typedef struct translate_report {
    int64_t sentences, words; /* as reported to progress */
    bool stopped;             /* sentences of batches that were not finished have no hypothesis */
    int64_t refused; /* number of the source, from 0, that a failure is about; -1: of none */
} translate_report;

/* Translates source [count] into out [count], in the same order; the caller frees each. Sources are
 * tokens of the model's dictionary without padding, </s> last. report may be NULL. The model is
 * only read, with running statistics and without dropout. SR_USAGE: the model writes no sentences,
 * or a decoder normalization needs whole sentences. Also for options that do not fit, log
 * probabilities that are NaN, and sources that are malformed or too long (report->refused).
 * SR_MEMORY. After a failure all of out is zeros. */
sr_status translate(model *m, const translate_options *o, const model_source *source, int64_t count,
                    translation *out, translate_report *report, sr_failure *why);

#endif
