/* tener_layers.h -- the parts of the entity tagger: its layer, and the features of a word from its
 * characters. */
#ifndef NETS_LAYERS_TENER_LAYERS_H
#define NETS_LAYERS_TENER_LAYERS_H

#include "nets/layers/text_layers.h"

/* Weights and biases U(1/sqrt(in)), PyTorch's default. */
linear_layer tener_linear(params *p, const char *name, int64_t in, int64_t out);

/* -- layer_tener.c */

typedef struct tener_layer {
    residual_norms norm1, norm2;
    model_attention *seen;
    tensor *qkv;   /* [3 d, d] */
    tensor *u, *z; /* [heads, d/heads] */
    head_norms norms;
    linear_layer in, out;
} tener_layer;

/* Sites SIDE.I.norm1 and SIDE.I.norm2, of heads SIDE.I.attention.q_norm and .k_norm; i -1:
 * SIDE.norm1 ... */
tener_layer tener_layer_init(const site_builder *b, const layer_size *s, const char *side, int i);
/* x [N, T, d]; p->source_mask [N, T], p->source its rows. */
tensor *tener_layer_apply(const tener_layer *l, const text_pass *p, tensor *x);

/* -- layer_characters.c */

typedef enum { CHARACTERS_CNN, CHARACTERS_TRANSFORMER, CHARACTERS_NONE } character_kind;

typedef struct character_encoder {
    character_kind kind;
    int64_t width; /* features of a word; 0 of CHARACTERS_NONE */
    tensor *embedding;
    linear_layer filters; /* cnn */
    layer_size size;      /* transformer */
    tener_layer layer;
} character_encoder;

/* dropouts: of the transformer, taken from the words' layers. */
sr_status characters_init(character_encoder *e, const site_builder *b, character_kind kind,
                          int64_t characters, const layer_size *dropouts);
/* [count, length, width] of the pass's batch. */
tensor *characters_apply(const character_encoder *e, pass *p);

#endif
