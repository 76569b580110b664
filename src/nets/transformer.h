/* transformer.h -- the encoder-decoder transformer as its files see it: model_transformer.c builds it
 * and passes whole sentences through; transformer_encode.c is what they share, transformer_decoder.c writes sentences word by word.
 */
#ifndef NETS_TRANSFORMER_H
#define NETS_TRANSFORMER_H

#include "site_layers.h"

enum { LAYERS_MAX = 64 };

typedef struct preset {
    const char *name;
    int64_t encoder_layers, decoder_layers;
    layer_size layer;
} preset;

typedef struct transformer {
    preset size;                    /* after the options */
    embedding_layer source, target; /* the same one when the dictionary is joint */
    encoder_layer encoder[LAYERS_MAX];
    decoder_layer decoder[LAYERS_MAX];
    norm_site *encoder_embedding, *decoder_embedding; /* NULL where the placement has none, */
    norm_site *encoder_final, *decoder_final;         /* as behind the last layers */
    bool count_padding; /* padded rows are rows like others to the normalizations */
} transformer;

/* The encoder's result [count, source length, d] for the sources of the pass's batch. */
tensor *transformer_encode(const transformer *net, const text_pass *p);

extern const model_decoder transformer_decoder;

#endif
