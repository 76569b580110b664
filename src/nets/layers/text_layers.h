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

/* Adds the parameter `name` and makes it the model's embedding. longest: words of a sentence, </s>
 * included. */
sr_status embedding_build(const site_builder *b, embedding_layer *e, const char *name,
                          int64_t vocabulary, int64_t longest, int64_t d, int32_t pad);
/* Extends the positions, which are computed, to sentences of `longest` words. */
sr_status embedding_reach(embedding_layer *e, int64_t longest, sr_failure *why);
void embedding_free(embedding_layer *e);
/* token [count, length] -> [count, length, d], without the dropout after it (layer_embedded) */
tensor *embedding_apply(const embedding_layer *e, tape *t, const int32_t *token, int64_t count,
                        int64_t length);
/* pass_rows of embedded sentences, with the mean of their positions. mask NULL: no padding.
 * count_padding: padded rows count as valid. NULL when out of memory. */
norm_rows *embedding_rows(const embedding_layer *e, pass *p, int64_t count, int64_t length,
                          const uint8_t *mask, bool count_padding);

/* -- transformer */

/* Position of the norms of a sublayer (layer_residual.c). */
typedef enum layer_placement {
    PLACEMENT_POST,   /* after the sum */
    PLACEMENT_PRE,    /* before the sublayer */
    PLACEMENT_PERI,   /* before and after it */
    PLACEMENT_SCALED, /* before it, divided by the root of the layer's number from 1 */
} layer_placement;

typedef struct layer_size {
    int64_t d, ffn, heads;
    layer_placement placement;
    double dropout, attention_dropout, relu_dropout;
} layer_size;

enum { LAYERS_MAX = 64 }; /* layers of a stack */

/* Replaces the preset's values by the options that are given. */
void layer_size_choose(layer_size *s, const model_options *o);
void layer_placement_choose(layer_size *s, const model_options *o);
/* Rejects more than LAYERS_MAX layers, and heads that do not divide d. */
sr_status layer_count_check(int64_t layers, sr_failure *why);
sr_status layer_heads_check(const layer_size *s, sr_failure *why);
/* True when norms precede the sublayers, so that the last sum is not normalized. */
bool layer_leaves_sum(const layer_size *s);

/* The norms of the residual branch around a sublayer; NULL where the placement has none. */
typedef struct residual_norms {
    norm_site *before, *branch, *sum;
    double scale; /* factor after `before` */
} residual_norms;

/* NAME.I.PART, the first norm of a branch. Call it before adding the parameters of the sublayer. */
residual_norms residual_norms_init(const site_builder *b, const layer_size *s, const char *side,
                                   int layer, const char *part);
/* NAME.I.PART_out, if the placement has one. Call it after adding them. */
void residual_norms_end(const site_builder *b, const layer_size *s, const char *side, int layer,
                        const char *part, residual_norms *n);
/* The norm with the name PART. */
norm_site *residual_norms_site(const residual_norms *n);

/* An attention sublayer. */
typedef struct attention_branch {
    residual_norms norms;
    attention_layer attention;
    model_attention *seen; /* for hooks */
} attention_branch;

typedef struct encoder_layer {
    attention_branch self;
    residual_norms ffn_norm;
    ffn_layer ffn;
} encoder_layer;

typedef struct decoder_layer {
    attention_branch self, cross;
    residual_norms ffn_norm;
    ffn_layer ffn;
} decoder_layer;

/* Encoder layers, and the norms before and after them. */
typedef struct encoder_stack {
    int64_t layers;
    norm_site *embedded, *final; /* NULL where the placement has none */
    encoder_layer layer[LAYERS_MAX];
} encoder_stack;

/* Layer i: its sites are SIDE.I.norm1, ... or decoder.I.self, ... */
encoder_layer encoder_layer_init(const site_builder *b, const layer_size *s, const char *side,
                                 int i);
decoder_layer decoder_layer_init(const site_builder *b, const layer_size *s, int i);
/* The sites are SIDE.embedding (peri), the layers' and SIDE.final (all but post). */
void encoder_stack_init(encoder_stack *e, const site_builder *b, const layer_size *s,
                        const char *side, int64_t layers);

/* SIDE.LAYER.PART, without a layer (-1) SIDE.PART. */
void layer_full_name(char name[PARAM_NAME], const char *side, int layer, const char *part);
/* side: "encoder", "decoder", "layer"; layer -1: none ("encoder.final"). */
norm_site *layer_site(const site_builder *b, const layer_size *s, const char *side, int layer,
                      const char *part);
/* The sites of a branch with attention PART, except those after it: NORM, and PART.q_norm and
 * PART.k_norm for heads of `key` features. */
head_norms layer_attention_sites(const site_builder *b, const layer_size *s, const char *side,
                                 int layer, const char *part, const char *norm, int64_t key,
                                 residual_norms *n);
/* Norms NORM, attention PART with the norms of its heads. */
attention_branch layer_attention_init(const site_builder *b, const layer_size *s, const char *side,
                                      int layer, const char *part, const char *norm);
/* Norms NORM and the FFN of layer `layer`; deviation as in ffn_init. */
ffn_layer layer_ffn_init(const site_builder *b, const layer_size *s, const char *side, int layer,
                         const char *norm, double dropout, double deviation, residual_norms *n);
/* SIDE.PART in peri-norm models: "embedding", after it, or "final", after the last layer. Else
 * NULL. */
norm_site *layer_peri_site(const site_builder *b, const layer_size *s, const char *side,
                           const char *part);
/* Marks the first site of a stack, `embedding` or the one of the first branch: its input contains
 * the positions. embedding may be NULL. */
void layer_takes_positions(norm_site *embedding, const residual_norms *first);

/* Arguments of every sublayer in a pass. */
typedef struct text_pass {
    pass *pass;
    const layer_size *size;
    const uint8_t *source_mask;       /* [count, source length] */
    const uint8_t *target_mask;       /* [count, target length]; decoder layers only */
    const norm_rows *source, *target; /* target: decoder layers only */
    bool causal; /* encoder layers: a position attends to itself and earlier ones */
} text_pass;

/* x [B, T, d], memory [B, S, d]. */
tensor *encoder_layer_apply(const encoder_layer *l, const text_pass *p, tensor *x);
tensor *encoder_stack_apply(const encoder_stack *e, const text_pass *p, tensor *embedding);
tensor *decoder_layer_apply(const decoder_layer *l, const text_pass *p, tensor *x, tensor *memory);

tensor *layer_normalize(const text_pass *p, norm_site *n, tensor *x, const norm_rows *rows);
/* Input of the first layer from an embedding x: drop(n(x)); n NULL: drop(x). */
tensor *layer_embedded(const text_pass *p, norm_site *n, tensor *x, const norm_rows *rows);
/* The input of a sublayer and, after it, the sum x + drop(f), with the norms of its branch.
 * layer_join: with another dropout. */
tensor *layer_before(const text_pass *p, const residual_norms *n, tensor *x, const norm_rows *rows);
tensor *layer_after(const text_pass *p, const residual_norms *n, tensor *x, tensor *f,
                    const norm_rows *rows);
tensor *layer_join(const text_pass *p, const residual_norms *n, tensor *x, tensor *f,
                   const norm_rows *rows, double dropout);
/* A whole attention sublayer. source: gives keys and values; NULL: x itself. Masks as in
 * attention_report and op_attention. */
typedef struct attention_mask {
    const uint8_t *query_valid, *key_valid;
    bool causal;
} attention_mask;
tensor *layer_attention(const text_pass *p, const attention_branch *a, tensor *x,
                        const norm_rows *rows, const attention_side *source, attention_mask mask);
/* A whole FFN sublayer. */
tensor *layer_ffn(const text_pass *p, const ffn_layer *f, const residual_norms *n, tensor *x,
                  const norm_rows *rows);
/* Memory for the statistics of an attention in this pass; NULL without a hook. query_valid [B*Tq]
 * or NULL. layer_report_call_hook passes the filled statistics to the hook. */
attention_report *layer_report(const text_pass *p, const model_attention *seen,
                               const uint8_t *query_valid);
void layer_report_call_hook(const model_attention *seen, const attention_report *found);

#endif
