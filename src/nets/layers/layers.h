/* layers.h -- building blocks of models: parameters plus the expression that uses them.
 *
 * A layer is made once (layer_*_init adds its parameters to the params; failures stick there) and
 * applied in every step. Weights are [out, in], images (N, H, W, C), text (B, T, d).
 */
#ifndef NETS_LAYERS_LAYERS_H
#define NETS_LAYERS_LAYERS_H

#include "engine/ops/attention/attention_ops.h"
#include "engine/ops/ops.h"
#include "engine/params.h"
#include "norm/norm_site.h"

/* Initial values of one tensor. */
typedef struct layer_init {
    init_kind kind;
    double a;
} layer_init;

/* U(gain * sqrt(6/(in+out))): Xavier-uniform. */
layer_init layer_xavier(int64_t in, int64_t out, double gain);

typedef struct linear_layer {
    tensor *w, *b; /* [out, in], [out] */
} linear_layer;

/* NAME.weight and NAME.bias. */
linear_layer linear_init(params *p, const char *name, int64_t in, int64_t out, layer_init weight,
                         layer_init bias);
tensor *linear_apply(const linear_layer *l, tape *t, tensor *x);

/* He's rule for a convolution, N(sqrt(2/(k k in))), or PyTorch's default, U(1/sqrt(k k in)). */
layer_init layer_conv_init(int64_t in, int64_t k, bool pytorch);
/* k x k convolution without bias: NAME.weight. */
tensor *conv_init(params *p, const char *name, int64_t in, int64_t out, int64_t k, layer_init init);

/* Norms of the queries and keys of each head of an attention; NULL: none. They belong to the
   model. */
typedef struct head_norms {
    norm_site *q, *k;
} head_norms;

/* Normalizes every head (dh features) of every row of x [..., heads dh] as one row. rows: of x.
 * n NULL: returns x. */
tensor *attention_normalize_heads(norm_site *n, tape *t, tensor *x, int heads,
                                  const norm_rows *rows);

/* Multi-head attention with its four projections (docs/models.md 2.3). */
typedef struct attention_layer {
    linear_layer q, k, v, o;
    head_norms norms;
    int heads;
    double scale, dropout;
} attention_layer;

/* With `key` features of q and k and `value` of v in each head. */
attention_layer attention_init(params *p, const char *name, int64_t d, int64_t heads, int64_t key,
                               int64_t value, double dropout);
/* Source of the queries, or of keys and values: x [B, T, d], and its rows for the norm of the heads
 * (NULL without). */
typedef struct attention_side {
    tensor *x;
    const norm_rows *rows;
} attention_side;

/* key_valid, causal and report as in op_attention. */
tensor *attention_apply(const attention_layer *a, tape *t, attention_side asks,
                        attention_side answers, const uint8_t *key_valid, bool causal,
                        attention_report *report);

/* Multi-linear attention of one head with its projections, no biases (docs/models.md 3.1). */
typedef struct multilinear_layer {
    tensor *q, *k, *v, *r; /* [R, d] */
    tensor *o;             /* [d, K K] */
    tensor *core;          /* [cores, R] */
} multilinear_layer;

multilinear_layer multilinear_init(params *p, const char *name, int64_t d, int64_t R, int64_t K,
                                   int64_t cores);
/* Queries come from x [B, T, d]; keys and values from keys [B, K, d], x itself or memory and x.
 * positions [K, d] of the keys; u, z [R]. */
tensor *multilinear_apply(const multilinear_layer *l, tape *t, tensor *x, tensor *keys,
                          tensor *positions, tensor *u, tensor *z, bool causal);

/* Attention with relative positions and its projections, no biases (docs/models.md 4). */
typedef struct xl_attention_layer {
    tensor *q, *k, *v, *r; /* [heads dh, d] */
    tensor *o;             /* [d, heads dh] */
    head_norms norms;
    int heads;
    double dropout; /* on the attention weights */
} xl_attention_layer;

/* Weights N(deviation). */
xl_attention_layer xl_attention_init(params *p, const char *name, int64_t d, int64_t heads,
                                     int64_t head_dim, double dropout, double deviation);

/* Shared by all layers of a pass. */
typedef struct xl_shared {
    tensor *positions; /* [n, d] of the distances n-1 .. 0 */
    tensor *u, *z;     /* [heads, dh] */
    int64_t reach;     /* as in xl_options */
    /* For the norms of the heads (NULL without): rows of x, and of the memory before it. */
    const norm_rows *rows, *memory;
} xl_shared;

/* Queries come from x [B, T, d]; keys and values from keys [B, K, d], x itself or memory (rows
 * s->memory) and x. report: as in op_attention. */
tensor *xl_attention_apply(const xl_attention_layer *l, tape *t, tensor *x, tensor *keys,
                           const xl_shared *s, attention_report *report);

/* W2 drop(relu(W1 x)). */
typedef struct ffn_layer {
    linear_layer in, out;
    double dropout;
} ffn_layer;

/* Weights N(deviation), as in language models; deviation 0: Xavier. */
ffn_layer ffn_init(params *p, const char *name, int64_t d, int64_t inner, double dropout,
                   double deviation);
tensor *ffn_apply(const ffn_layer *f, tape *t, tensor *x);

#endif
