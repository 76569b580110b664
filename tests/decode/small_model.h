/* small_model.h -- a transformer as after training: gains, biases and running statistics differ
 * from their initial values. Also the forward pass of training, the reference for decoding. */
#ifndef TESTS_SMALL_MODEL_H
#define TESTS_SMALL_MODEL_H

#include "nets/models.h"

enum { SMALL_WORDS = 131 };

typedef struct small_model {
    const char *norm, *decoder_norm, *placement;
    int64_t d, heads, longest; /* 0: 32, 4, 24 */
    int64_t target_words;      /* size of a separate target dictionary; 0: SMALL_WORDS, shared */
    const char *qk_norm;       /* NULL: none */
} small_model;

model *small_model_make(const small_model *s);

/* Sources of 1 .. most words and </s>; free() each token. */
void small_sources(model_source *source, int64_t count, int64_t most, uint64_t seed);
void small_sources_free(model_source *source, int64_t count);

/* log_p [target words] of the word after `count` words, from the whole sentence without a cache. */
void small_forward(model *m, const model_source *source, const int32_t *word, int64_t count,
                   norm_mode mode, double *log_p);

#endif
