/* transformer.h -- the encoder-decoder transformer, for its own files: model_transformer.c builds
 * it and passes whole sentences through it. transformer_decoder.c writes sentences word by word,
 * with the weights of transformer_packed.c. Both use transformer_encode.c. */
#ifndef NETS_MODELS_TRANSFORMER_H
#define NETS_MODELS_TRANSFORMER_H

#include "engine/gemm/row_ops.h"
#include "nets/layers/text_layers.h"

typedef struct preset {
    const char *name;
    int64_t encoder_layers, decoder_layers;
    layer_size layer;
} preset;

typedef struct transformer {
    preset size;                    /* after the options */
    embedding_layer source, target; /* the same one when the dictionary is joint */
    encoder_stack encoder;
    decoder_layer decoder[LAYERS_MAX];
    norm_site *decoder_embedding, *decoder_final; /* NULL where the placement has none */
    bool count_padding;                           /* normalizations treat padded rows as valid */
} transformer;

/* The encoder's result [count, source length, d] for the sources of the pass's batch. */
tensor *transformer_encode(const transformer *net, const text_pass *p);

/* Packed weights of a decoder layer (row_ops.h). */
typedef struct layer_rows {
    row_weight self[4], cross[2], ffn[2]; /* q, k, v, o; q, o; in, out */
} layer_rows;

/* Packed weights of all layers and of the logits; several decoders may share them. */
typedef struct packed_weights {
    layer_rows layer[LAYERS_MAX];
    row_weight output;
} packed_weights;

/* Copies of the decoder's weights as they are now (transformer_packed.c); NULL: out of memory. Free
 * with packed_weights_free (NULL is fine). */
packed_weights *packed_weights_make(const transformer *net, sr_failure *why);
void packed_weights_free(packed_weights *w);

extern const model_decoder transformer_decoder;

#endif
