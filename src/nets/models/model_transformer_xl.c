/* model_transformer_xl.c -- Transformer-XL, a language model with memory (docs/models.md 4): Dai et
 * al., ACL 2019.
 *
 *   x = drop(sqrt(d) E[token])                     positions only in the attention
 *   P_D = drop([sin(D w) ..., cos(D w) ...]),  w_i = 10000^(-2i/d), for distances n-1 .. 0
 *   each layer: attention with relative positions to memory and x (layer_xl_attention.c), FFN;
 *               both with a residual sum and a norm (layer_residual.c)
 *   logits = drop(x) E^T + bias
 *
 * Pre-norm models have no norm at the end. Peri-norm models have one after the embedding and one at
 * the end. All layers share u and z.
 *
 * The memory of a layer contains the inputs of its keys: in post-norm models the layer's input, in
 * pre-norm models the output of its norm. No row is normalized twice, and a batch has the rows of
 * its windows under every normalization. A norm of keys follows their projection, so it does
 * normalize the keys of memory (layer_xl_attention.c).
 *
 * Sites in the order of the forward pass: layer.I.norm1, layer.I.norm2. With norms of queries and
 * keys also layer.I.attention.q_norm and .k_norm (layer_residual.c).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/attention/attention_ops.h"
#include "nets/layers/text_layers.h"
#include "nets/model_rows.h"

#define DEVIATION 0.02 /* standard deviation of every initial weight */

typedef struct preset {
    const char *name;
    int64_t layers, head_dim;
    layer_size layer;
} preset;

static const preset presets[] = {
    {"enwik8", 12, 64, {.d = 512, .ffn = 2048, .heads = 8, .dropout = 0.1}},
    {"enwik8-mini", 4, 32, {.d = 128, .ffn = 512, .heads = 4, .dropout = 0.1}},
};

typedef struct xl_layer {
    residual_norms norm1, norm2;
    xl_attention_layer attention;
    ffn_layer ffn;
    model_attention *seen;
} xl_layer;

typedef struct transformer_xl {
    preset size; /* after the options */
    int64_t clamp, eval_clamp, reach;
    int64_t distances; /* rows of positions */
    real *positions;   /* [distances, d], row distances-1-D is distance D; owned */
    tensor *embedding, *bias, *u, *z;
    xl_layer layer[LAYERS_MAX];
    norm_site *embedded, *final; /* peri alone */
} transformer_xl;

/* -- sizes */

static sr_status choose_size(transformer_xl *net, const model_options *o, sr_failure *why) {
    const preset *base = MODEL_PRESET(model_transformer_xl, o->preset, presets, why);
    if (!base) return SR_USAGE;
    preset *s = &net->size;
    *s = *base;
    s->layers = model_size(o->layers, base->layers);
    s->head_dim = model_size(o->head_dim, base->head_dim);
    layer_size_choose(&s->layer, o);
    net->clamp = o->clamp_len;
    net->eval_clamp = model_size(o->eval_clamp_len, o->clamp_len);
    net->reach = o->same_length ? o->eval_mem_len : 0;
    if (o->same_length && o->eval_mem_len == 0)
        return sr_fail(why, SR_USAGE, "--same-length: there is no memory, eval-mem-len is 0");
    if (s->layer.d % 2)
        return sr_fail(why, SR_USAGE, "embed-dim %lld: positions are pairs of sine and cosine",
                       (long long)s->layer.d);
    return layer_count_check(s->layers, why);
}

/* -- building */

static void build_layer(const site_builder *b, const transformer_xl *net, xl_layer *l, int i) {
    const layer_size *s = &net->size.layer;
    char attention[PARAM_NAME];
    snprintf(attention, sizeof attention, "layer.%d.attention", i);
    const head_norms norms = layer_attention_sites(b, s, "layer", i, "attention", "norm1",
                                                   net->size.head_dim, &l->norm1);
    l->attention = xl_attention_init(&b->m->params, attention, s->d, s->heads, net->size.head_dim,
                                     s->attention_dropout, DEVIATION);
    l->attention.norms = norms;
    residual_norms_end(b, s, "layer", i, "norm1", &l->norm1);
    l->seen = model_add_attention(b->m, residual_norms_site(&l->norm1), s->heads, b->why);
    l->ffn = layer_ffn_init(b, s, "layer", i, "norm2", s->dropout, DEVIATION, &l->norm2);
}

static sr_status transformer_xl_build(model *m, const model_options *o, const data_shape *shape,
                                      sr_failure *why) {
    transformer_xl *net = m->self;
    model_options resolved = *o;
    const site_builder b = {m, &resolved, why};
    const int64_t memory = o->mem_len > o->eval_mem_len ? o->mem_len : o->eval_mem_len;
    sr_status status = choose_size(net, o, why);
    if (status != SR_OK) return status;
    net->distances = shape->longest + memory;
    net->positions = model_distances(net->distances, net->size.layer.d, why);
    if (!net->positions) return SR_MEMORY;
    resolved.heads = net->size.layer.heads;
    m->condition = lm_mask_condition(true);
    m->memory_layers = net->size.layers;
    m->memory_width = net->size.layer.d;
    m->memory_rows = o->mem_len;
    m->memory_eval_rows = o->eval_mem_len;
    int64_t vocabulary = shape->vocabulary;
    params *p = &m->params;
    const int64_t d = net->size.layer.d, heads[2] = {net->size.layer.heads, net->size.head_dim};
    net->embedding =
        params_add(p, "embedding", 2, (int64_t[]){vocabulary, d}, INIT_NORMAL, DEVIATION);
    net->bias = params_add(p, "output.bias", 1, &vocabulary, INIT_CONSTANT, 0);
    net->u = params_add(p, "attention.u", 2, heads, INIT_NORMAL, DEVIATION);
    net->z = params_add(p, "attention.z", 2, heads, INIT_NORMAL, DEVIATION);
    m->embedding = m->target_embedding = net->embedding;
    net->embedded = layer_peri_site(&b, &net->size.layer, "layer", "embedding");
    for (int i = 0; i < net->size.layers; i++) build_layer(&b, net, &net->layer[i], i);
    net->final = layer_peri_site(&b, &net->size.layer, "layer", "final");
    model_vary_gains(m, DEVIATION);
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

static void transformer_xl_free(model *m) {
    transformer_xl *net = m->self;
    free(net->positions);
}

/* -- forward */

static tensor *layer_apply(const xl_layer *l, const text_pass *p, int64_t layer, tensor *x,
                           const xl_shared *shared) {
    tape *t = p->pass->tape;
    tensor *h = layer_before(p, &l->norm1, x, p->source);
    tensor *keys = model_memory_prepend(p->pass->memory, t, layer, h);
    attention_report *report = layer_report(p, l->seen, NULL);
    h = xl_attention_apply(&l->attention, t, h, keys, shared, report);
    layer_report_call_hook(l->seen, report);
    x = layer_after(p, &l->norm1, x, h, p->source);
    return layer_ffn(p, &l->ffn, &l->norm2, x, p->source);
}

/* Logits [B, T, V]. */
static tensor *transformer_xl_forward(model *m, pass *p) {
    const transformer_xl *net = m->self;
    const layer_size *s = &net->size.layer;
    const batch *b = p->batch;
    tape *t = p->tape;
    const int64_t T = b->target_length, keys = T + (p->memory ? p->memory->filled : 0);
    if (keys > net->distances)
        return tape_fail(t, SR_USAGE, "model transformer_xl has %lld positions, not %lld",
                         (long long)net->distances, (long long)keys);
    const text_pass text = {.pass = p, .size = s, .source = pass_rows(p, b->count, T, NULL)};
    if (!text.source) return NULL;
    /* positions of this pass: the distances below `keys`, the greatest clamped */
    const int64_t clamp = t->training ? net->clamp : net->eval_clamp;
    const int64_t n = clamp && clamp < keys ? clamp + 1 : keys, dim[2] = {n, s->d};
    tensor *r = tape_wrap(t, 2, dim, net->positions + (net->distances - n) * s->d);
    xl_shared shared = {.positions = op_dropout(t, r, s->dropout),
                        .rows = text.source,
                        .u = net->u,
                        .z = net->z,
                        .reach = t->training ? 0 : net->reach};
    if (net->layer[0].attention.norms.k && keys > T &&
        !(shared.memory = pass_rows_outside(p, b->count, keys - T)))
        return NULL;
    tensor *x =
        op_embedding(t, net->embedding, b->target_in, b->count, T, sqrt((double)s->d), NULL, -1);
    x = layer_embedded(&text, net->embedded, x, text.source);
    for (int i = 0; i < net->size.layers; i++)
        x = layer_apply(&net->layer[i], &text, i, x, &shared);
    if (net->final) x = layer_normalize(&text, net->final, x, text.source);
    model_memory_advance(p->memory, T);
    return op_linear(t, op_dropout(t, x, s->dropout), net->embedding, net->bias);
}

const model_row model_transformer_xl = {
    .name = "transformer_xl",
    .citation = "Dai et al., ACL 2019",
    .summary = "language model with memory and relative positions, tied embedding",
    .task = TASK_LM,
    .presets = "enwik8|enwik8-mini",
    .options = "embed-dim ffn-dim heads layers head-dim placement qk-norm attention-stats dropout "
               "attention-dropout "
               "mem-len eval-mem-len clamp-len eval-clamp-len same-length eval-tgt-len",
    .build = transformer_xl_build,
    .forward = transformer_xl_forward,
    .free = transformer_xl_free,
    .size = sizeof(transformer_xl),
};
