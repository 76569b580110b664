/* model_decoder.h -- how a model decodes: a translator word by word, a parser state by state.
 *
 * Both use running statistics and no dropout. A result depends on its own sentence or state alone,
 * to the last bit. Other sentences of the call and the number of threads do not change it.
 */
#ifndef NETS_MODEL_DECODER_H
#define NETS_MODEL_DECODER_H

#include <stdint.h>

#include "base/real.h"
#include "statrec/base.h"

typedef struct model model;

/* A sentence to decode: token [length], no padding, </s> last. */
typedef struct model_source {
    const int32_t *token;
    int64_t length;
} model_source;

enum { WORDS_TOGETHER = 64 };
typedef struct model_decoder {
    /* Makes a decoder for the model's present weights, which may change only after `free`. Several
     * decoders of a model may work at the same time. beside: shares the weight copies of that
     * decoder, which must be freed later; or NULL. Returns NULL and *why when out of memory, or
     * when a normalization needs statistics of the whole sentence (SR_USAGE). */
    void *(*create)(model *m, const void *beside, int threads, sr_failure *why);
    void (*free)(void *decoder);
    /* Encodes `count` sentences and forgets those before. */
    sr_status (*start)(void *decoder, const model_source *source, int64_t count, sr_failure *why);
    /* Row i extends the hypothesis of row parent[i] of the previous call by token[i]. In the first
     * call after `start`, parent[i] is a sentence. Writes source_at [rows] unless it is NULL: the
     * index of the source word with the largest attention weight, averaged over the last layer's
     * heads. </s> is excluded. -1: the source is </s> alone. */
    sr_status (*step)(void *decoder, int64_t rows, const int32_t *parent, const int32_t *token,
                      int32_t *source_at, sr_failure *why);
    /* Writes natural logs of next-word probabilities for words first .. first + count - 1 of a row
     * of the last step. Any thread may call it. */
    void (*log_p)(const void *decoder, int64_t row, int64_t first, int64_t count, double *log_p);
    /* Writes the largest log_p of each WORDS_TOGETHER words, bit for bit one of them. */
    void (*largest)(const void *decoder, int64_t row, double *log_p);
} model_decoder;

/* How a parser's model scores states. */
typedef struct model_scorer {
    /* Makes a scorer for the model's present weights, like a decoder's. NULL and *why. */
    void *(*create)(model *m, int threads, sr_failure *why);
    void (*free)(void *scorer);
    /* logits [rows, classes] of feature [rows, features]. */
    sr_status (*score)(void *scorer, int64_t rows, const int32_t *feature, real *logits,
                       sr_failure *why);
} model_scorer;

#endif
