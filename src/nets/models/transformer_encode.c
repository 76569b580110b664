/* transformer_encode.c -- the encoder stack of a transformer over the sources of a batch, which
 * training and decoding share (docs/models.md 2.3). */
#include "nets/models/transformer.h"

tensor *transformer_encode(const transformer *net, const text_pass *p) {
    const batch *b = p->pass->batch;
    tensor *x = embedding_apply(&net->source, p->pass->tape, b->source, b->count, b->source_length);
    return encoder_stack_apply(&net->encoder, p, x);
}
