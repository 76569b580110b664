/* model_tensorized.c -- tensorized transformer, a language model (docs/models.md 3): Ma et al.,
 * NeurIPS 2019, in the form that PN and RBN train, core-1 unless --core-number sets another.
 *
 *   x = drop(sqrt(d) E[token])                    no positions are added
 *   P_j = drop([sin((T-1-j) w) ... cos((T-1-j) w) ...]),  w_i = 10000^(-2i/d)
 *   each layer: multi-linear attention of x with the positions P (layer_multilinear.c), FFN;
 *               both with a residual sum and a norm (layer_residual.c)
 *   logits = drop(x) E^T + bias, or the adaptive softmax over E: then forward returns the nll
 *
 * Pre-norm models have no norm at the end. Peri-norm models have one after the embedding and one at
 * the end. All layers share u and z. The shape of Wo contains the window T, so a model only accepts
 * windows of this length. The released code builds a mask and never applies it: with
 * --lm-mask released a position sees its own target.
 *
 * Sites in the order of the forward pass: layer.I.norm1, layer.I.norm2. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/loss/loss_ops.h"
#include "nets/layers/text_layers.h"
#include "nets/model_rows.h"

enum { CUTOFFS_MAX = 8 };
#define DEVIATION 0.02 /* standard deviation of every initial weight (docs/models.md 3.2) */

typedef struct preset {
    const char *name;
    int64_t layers, R;
    layer_size layer;
    const char *cutoffs;
} preset;

static const preset presets[] = {
    {"ptb", 3, 40, {.d = 256, .ffn = 2100, .dropout = 0.3}, ""},
    {"wikitext-103", 6, 40, {.d = 256, .ffn = 2100, .dropout = 0.1}, "20000,40000,200000"},
    {"ptb-mini", 2, 32, {.d = 128, .ffn = 512, .dropout = 0.1}, ""},
    {"wikitext-2", 2, 32, {.d = 128, .ffn = 512, .dropout = 0.1}, "4000,12000"},
};

typedef struct tensorized_layer {
    residual_norms norm1, norm2;
    multilinear_layer attention;
    ffn_layer ffn;
} tensorized_layer;

typedef struct tensorized {
    preset size; /* after the options */
    int64_t window, cores;
    bool causal;
    int cutoffs; /* 0: the whole softmax */
    int64_t cutoff[CUTOFFS_MAX];
    real *positions; /* [window, d], owned */
    tensor *embedding, *bias, *cluster, *cluster_bias, *u, *z;
    tensorized_layer layer[LAYERS_MAX];
    norm_site *embedded, *final; /* peri alone */
} tensorized;

/* -- sizes */

static sr_status choose_size(tensorized *net, const model_options *o, sr_failure *why) {
    const preset *base = MODEL_PRESET(model_tensorized, o->preset, presets, why);
    if (!base) return SR_USAGE;
    preset *s = &net->size;
    *s = *base;
    s->layers = model_size(o->layers, base->layers);
    s->R = model_size(o->head_dim, base->R);
    s->layer.d = model_size(o->embed_dim, base->layer.d);
    s->layer.ffn = model_size(o->ffn_dim, base->layer.ffn);
    s->layer.dropout = model_default(o->dropout, base->layer.dropout);
    layer_placement_choose(&s->layer, o);
    net->cores = model_size(o->core_number, 1);
    net->causal = strcmp(o->lm_mask, "released") != 0;
    return layer_count_check(s->layers, why);
}

/* Cut-offs "a,b,c" that rise. A preset's cut-offs beyond the dictionary are left out. */
static sr_status choose_cutoffs(tensorized *net, const char *given, int64_t vocabulary,
                                sr_failure *why) {
    const char *at = *given ? given : net->size.cutoffs;
    int64_t before = 0;
    if (!strcmp(at, "none")) return SR_OK;
    while (*at) {
        char *end;
        const long long value = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ',') || value <= before || net->cutoffs == CUTOFFS_MAX)
            return sr_fail(why, SR_USAGE,
                           "--adaptive-cutoffs: '%.80s' is not 'none' or up to %d rising numbers",
                           given, CUTOFFS_MAX);
        if (value >= vocabulary && *given)
            return sr_fail(why, SR_USAGE,
                           "--adaptive-cutoffs: %lld is not below the %lld words of the dictionary",
                           value, (long long)vocabulary);
        if (value < vocabulary) net->cutoff[net->cutoffs++] = value;
        before = value;
        at = end + (*end == ',');
    }
    return SR_OK;
}

/* -- building */

static void build_shared(model *m, tensorized *net, int64_t vocabulary) {
    params *p = &m->params;
    const int64_t d = net->size.layer.d, R = net->size.R, clusters = net->cutoffs;
    net->embedding =
        params_add(p, "embedding", 2, (int64_t[]){vocabulary, d}, INIT_NORMAL, DEVIATION);
    net->bias = params_add(p, "output.bias", 1, &vocabulary, INIT_CONSTANT, 0);
    if (clusters) {
        net->cluster =
            params_add(p, "cluster.weight", 2, (int64_t[]){clusters, d}, INIT_NORMAL, DEVIATION);
        net->cluster_bias = params_add(p, "cluster.bias", 1, &clusters, INIT_CONSTANT, 0);
    }
    net->u = params_add(p, "attention.u", 1, &R, INIT_NORMAL, DEVIATION);
    net->z = params_add(p, "attention.z", 1, &R, INIT_NORMAL, DEVIATION);
    m->embedding = m->target_embedding = net->embedding;
    m->gives_nll = clusters > 0;
}

static void build_layer(const site_builder *b, const tensorized *net, tensorized_layer *l, int i) {
    const layer_size *s = &net->size.layer;
    char name[PARAM_NAME];
    snprintf(name, sizeof name, "layer.%d.attention", i);
    l->norm1 = residual_norms_init(b, s, "layer", i, "norm1");
    l->attention =
        multilinear_init(&b->m->params, name, s->d, net->size.R, net->window, net->cores);
    residual_norms_end(b, s, "layer", i, "norm1", &l->norm1);
    l->ffn = layer_ffn_init(b, s, "layer", i, "norm2", s->dropout, DEVIATION, &l->norm2);
}

static sr_status tensorized_build(model *m, const model_options *o, const data_shape *shape,
                                  sr_failure *why) {
    tensorized *net = m->self;
    const site_builder b = {m, o, why};
    net->window = shape->longest;
    sr_status status = choose_size(net, o, why);
    if (status == SR_OK) status = choose_cutoffs(net, o->adaptive_cutoffs, shape->vocabulary, why);
    if (status != SR_OK) return status;
    net->positions = model_distances(net->window, net->size.layer.d, why);
    if (!net->positions) return SR_MEMORY;
    m->condition = lm_mask_condition(net->causal);
    build_shared(m, net, shape->vocabulary);
    net->embedded = layer_peri_site(&b, &net->size.layer, "layer", "embedding");
    for (int i = 0; i < net->size.layers; i++) build_layer(&b, net, &net->layer[i], i);
    net->final = layer_peri_site(&b, &net->size.layer, "layer", "final");
    model_vary_gains(m, DEVIATION);
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

static void tensorized_free(model *m) {
    tensorized *net = m->self;
    free(net->positions);
}

/* -- forward */

/* Logits [B, T, V], or the nll of each token [B T]. */
static tensor *output(const tensorized *net, const pass *p, tensor *x) {
    x = op_dropout(p->tape, x, net->size.layer.dropout);
    if (!net->cutoffs) return op_linear(p->tape, x, net->embedding, net->bias);
    const adaptive_inputs in = {.h = x,
                                .w = net->embedding,
                                .b = net->bias,
                                .wc = net->cluster,
                                .bc = net->cluster_bias,
                                .cutoff = net->cutoff,
                                .cutoffs = net->cutoffs};
    return op_adaptive_softmax(p->tape, &in, p->batch->target_out);
}

static tensor *tensorized_forward(model *m, pass *p) {
    const tensorized *net = m->self;
    const batch *b = p->batch;
    const int64_t T = b->target_length, d = net->size.layer.d;
    const double drop = net->size.layer.dropout;
    if (T != net->window)
        return tape_fail(p->tape, SR_USAGE, "model tensorized has windows of %lld tokens, not %lld",
                         (long long)net->window, (long long)T);
    const text_pass text = {
        .pass = p, .size = &net->size.layer, .source = pass_rows(p, b->count, T, NULL)};
    if (!text.source) return NULL;
    tensor *x =
        op_embedding(p->tape, net->embedding, b->target_in, b->count, T, sqrt((double)d), NULL, -1);
    x = layer_embedded(&text, net->embedded, x, text.source);
    tensor *r = op_dropout(p->tape, tape_wrap(p->tape, 2, (int64_t[]){T, d}, net->positions), drop);
    for (int i = 0; i < net->size.layers; i++) {
        const tensorized_layer *l = &net->layer[i];
        tensor *h = layer_before(&text, &l->norm1, x, text.source);
        h = multilinear_apply(&l->attention, p->tape, h, h, r, net->u, net->z, net->causal);
        x = layer_after(&text, &l->norm1, x, h, text.source);
        x = layer_ffn(&text, &l->ffn, &l->norm2, x, text.source);
    }
    if (net->final) x = layer_normalize(&text, net->final, x, text.source);
    return output(net, p, x);
}

const model_row model_tensorized = {
    .name = "tensorized",
    .citation = "Ma et al., NeurIPS 2019",
    .summary = "language model of multi-linear attention, post- or pre-norm, tied embedding",
    .task = TASK_LM,
    .presets = "ptb|wikitext-103|ptb-mini|wikitext-2",
    .options = "embed-dim ffn-dim layers head-dim core-number lm-mask adaptive-cutoffs placement "
               "dropout",
    .build = tensorized_build,
    .forward = tensorized_forward,
    .free = tensorized_free,
    .size = sizeof(tensorized),
};
