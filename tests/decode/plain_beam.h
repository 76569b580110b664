/* plain_beam.h -- a plain beam search for one sentence, as reference. It follows the rules
 * literally: a hypothesis is an array of words, every candidate is built and sorted, and no state
 * carries over between steps. */
#ifndef TESTS_PLAIN_BEAM_H
#define TESTS_PLAIN_BEAM_H

#include "decode/beam.h"

enum { PLAIN_WORDS = 64 }; /* longest hypothesis */

/* log_p [V] of the word after these. */
typedef void plain_next_fn(void *context, const int32_t *word, int64_t count, double *log_p);

/* source_at is -1 everywhere. Free with translation_free. */
translation plain_beam(const beam_options *o, int64_t longest, int64_t V, plain_next_fn *next,
                       void *context);

/* Fails unless both hold the same hypotheses, scores to `tolerance`. */
void plain_compare(const translation *got, const translation *want, double tolerance);

/* log_p = log softmax of noise [V], a function of the seed and the previous words. */
void plain_noise(uint64_t seed, const int32_t *word, int64_t count, int64_t V, double *log_p);

#endif
