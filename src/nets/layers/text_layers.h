/* text_layers.h -- embedding, encoder and decoder layers of transformers, with their sites. */
#ifndef NETS_LAYERS_TEXT_LAYERS_H
#define NETS_LAYERS_TEXT_LAYERS_H

#include "nets/layers/layers.h"
#include "nets/layers/site_builder.h"
#include "nets/pass.h"

typedef struct embedding_layer {
    tensor *weight;   /* [vocabulary, d] */
    tensor positions; /* [positions, d], owned */
    int32_t pad;      /* -1: no padding */
} embedding_layer;

/* weight or positions.value NULL: out of memory. longest: words of a sentence, </s> included. */
embedding_layer embedding_init(params *p, const char *name, int64_t vocabulary, int64_t d,
                               int64_t longest, int32_t pad);
/* "embedding", the only one of the model, of the words of its data. */
sr_status embedding_build(const site_builder *b, embedding_layer *e, const data_shape *shape,
                          int64_t d, int32_t pad);
void embedding_free(embedding_layer *e);
/* token [count, length] -> [count, length, d], without the dropout after it (layer_embedded) */
tensor *embedding_apply(const embedding_layer *e, tape *t, const int32_t *token, int64_t count,
                        int64_t length);
/* pass_rows of embedded sentences, with the mean of their positions; mask NULL: no padding;
 * count_padding: padded rows are rows like others. NULL when out of memory. */
norm_rows *embedding_rows(const embedding_layer *e, pass *p, int64_t count, int64_t length,
                          const uint8_t *mask, bool count_padding);

/* -- transformer */

/* Position of the norms of a sublayer (layer_residual.c). */
typedef enum layer_placement {
    PLACEMENT_POST,   /* after the sum */
    PLACEMENT_PRE,    /* in front of the sublayer */
    PLACEMENT_PERI,   /* before and after it */
    PLACEMENT_SCALED, /* in front of it, divided by the root of the layer's number from 1 */
} layer_placement;

typedef struct layer_size {
    int64_t d, ffn, heads;
    layer_placement placement;
    double dropout, attention_dropout, relu_dropout;
} layer_size;

/* The options that are given, over the preset's. */
void layer_size_choose(layer_size *s, const model_options *o);
void layer_placement_choose(layer_size *s, const model_options *o);
/* True when norms precede the sublayers, so that the last sum is not normalized. */
bool layer_leaves_sum(const layer_size *s);

/* The norms of the residual branch around a sublayer; NULL where the placement has none. */
typedef struct residual_norms {
    norm_site *before, *branch, *sum;
    double scale; /* of what `before` gives */
} residual_norms;

/* NAME.I.PART, the first norm of a branch: to be made in front of the parameters of its
   sublayer. */
residual_norms residual_norms_init(const site_builder *b, const layer_size *s, const char *side,
                                   int layer, const char *part);
/* NAME.I.PART_out, where the placement has one: after them. */
void residual_norms_end(const site_builder *b, const layer_size *s, const char *side, int layer,
                        const char *part, residual_norms *n);
/* The one that is called PART. */
norm_site *residual_norms_site(const residual_norms *n);

typedef struct encoder_layer {
    residual_norms norm1, norm2;
    attention_layer attention;
    ffn_layer ffn;
    model_attention *seen;
} encoder_layer;

typedef struct decoder_layer {
    residual_norms self_norm, cross_norm, ffn_norm;
    attention_layer self, cross;
    ffn_layer ffn;
    model_attention *self_seen, *cross_seen;
} decoder_layer;

/* Layer i: its sites are encoder.I.norm1, ... or decoder.I.self, ... */
encoder_layer encoder_layer_init(const site_builder *b, const layer_size *s, int i);
/* The same under another name than "encoder". */
encoder_layer encoder_layer_named(const site_builder *b, const layer_size *s, const char *side,
                                  int i);
decoder_layer decoder_layer_init(const site_builder *b, const layer_size *s, int i);

/* What the two inits share. side: "encoder", "decoder", "layer"; layer -1: none
   ("encoder.final"). */
norm_site *layer_site(const site_builder *b, const layer_size *s, const char *side, int layer,
                      const char *part);
/* The sites of a branch with attention PART, but for those behind it: NORM, and PART.q_norm and
 * PART.k_norm of its heads, which have `key` features. */
head_norms layer_attention_sites(const site_builder *b, const layer_size *s, const char *side,
                                 int layer, const char *part, const char *norm, int64_t key,
                                 residual_norms *n);
/* Norms NORM, attention PART with the norms of its heads; *seen: what can be watched of it. */
attention_layer layer_attention_init(const site_builder *b, const layer_size *s, const char *side,
                                     int layer, const char *part, const char *norm,
                                     residual_norms *n, model_attention **seen);
ffn_layer layer_ffn_init(const site_builder *b, const layer_size *s, const char *side, int layer,
                         const char *norm, residual_norms *n);
/* Norm SIDE.embedding of the embedding's output, where the placement has one, else NULL. */
norm_site *layer_embedding_site(const site_builder *b, const layer_size *s, const char *side);

/* SIDE.final in models whose pre-norm form has none there: of peri alone, else NULL. */
norm_site *layer_peri_final(const site_builder *b, const layer_size *s, const char *side);
/* Of the first sites of a stack, the one whose input is the embedding with its positions, or that
 * and one sublayer. NULL where there is none. */
void layer_takes_positions(norm_site *embedding, const residual_norms *first);

/* What every sublayer needs of a pass. */
typedef struct text_pass {
    pass *pass;
    const layer_size *size;
    const uint8_t *source_mask;       /* [count, source length] */
    const uint8_t *target_mask;       /* [count, target length]; decoder layers only */
    const norm_rows *source, *target; /* target: decoder layers only */
    bool causal;                      /* encoder layers: a position sees itself and those before */
} text_pass;

/* x [B, T, d], memory [B, S, d]. */
tensor *encoder_layer_apply(const encoder_layer *l, const text_pass *p, tensor *x);
tensor *decoder_layer_apply(const decoder_layer *l, const text_pass *p, tensor *x, tensor *memory);

tensor *layer_normalize(const text_pass *p, norm_site *n, tensor *x, const norm_rows *rows);
/* What layers get of an embedding: drop(n(x)); n NULL: drop(x). */
tensor *layer_embedded(const text_pass *p, norm_site *n, tensor *x, const norm_rows *rows);
/* The input of a sublayer and, after it, the sum x + drop(f), with the norms of its branch;
 * layer_after_plain: x + f. */
tensor *layer_before(const text_pass *p, const residual_norms *n, tensor *x, const norm_rows *rows);
tensor *layer_after(const text_pass *p, const residual_norms *n, tensor *x, tensor *f,
                    const norm_rows *rows);
tensor *layer_after_plain(const text_pass *p, const residual_norms *n, tensor *x, tensor *f,
                          const norm_rows *rows);
/* A whole FFN sublayer. */
tensor *layer_ffn(const text_pass *p, const ffn_layer *f, const residual_norms *n, tensor *x,
                  const norm_rows *rows);
/* Where an attention of this pass leaves what its weights are like: room for it, or NULL where
 * nobody watches; once it is there, whoever watches is told. query_valid [B*Tq] or NULL. */
attention_report *layer_report(const text_pass *p, const model_attention *seen,
                               const uint8_t *query_valid);
void layer_report_call_hook(const model_attention *seen, const attention_report *found);

#endif
