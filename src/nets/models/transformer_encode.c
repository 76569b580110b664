/* transformer_encode.c -- the encoder stack of a transformer over the sources of a batch, which
 * training and decoding share (docs/models.md 2.3). */
#include "nets/models/transformer.h"

tensor *transformer_encode(const transformer *net, const text_pass *p) {
    const batch *b = p->pass->batch;
    tensor *x = embedding_apply(&net->source, p->pass->tape, b->source, b->count, b->source_length);
    x = layer_embedded(p, net->encoder_embedding, x, p->source);
    for (int i = 0; i < net->size.encoder_layers; i++)
        x = encoder_layer_apply(&net->encoder[i], p, x);
    return net->encoder_final ? layer_normalize(p, net->encoder_final, x, p->source) : x;
}
