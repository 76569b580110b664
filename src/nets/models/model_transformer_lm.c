/* model_transformer_lm.c -- a plain decoder-only transformer, a language model
 * (docs/models.md 3.4).
 *
 *   embedding with positions as the encoder-decoder has it (layer_embedding.c), without padding
 *   layers: those of its encoder (layer_encoder.c) with causal attention
 *   pre-norm models end with one more norm, peri-norm models begin with one too;  logits = h E^T
 *
 * --lm-mask released: no mask, as the tensorized transformer's release; a control experiment, since
 * a position then sees its own target.
 *
 * Sites in the order of the forward pass: layer.I.norm1, layer.I.norm2, layer.final (pre-norm).
 */
#include <stdlib.h>
#include <string.h>

#include "nets/layers/text_layers.h"
#include "nets/model_rows.h"

enum { LAYERS_MAX = 64 };

typedef struct preset {
    const char *name;
    int64_t layers;
    layer_size layer;
} preset;

static const preset presets[] = {
    {"ptb", 3, {256, 2100, 4, PLACEMENT_PRE, 0.3, 0, 0}},
    {"ptb-mini", 2, {128, 512, 4, PLACEMENT_PRE, 0.1, 0, 0}},
    {"wikitext-2", 2, {128, 512, 4, PLACEMENT_PRE, 0.1, 0, 0}},
};

typedef struct transformer_lm {
    preset size; /* after the options */
    embedding_layer embedding;
    encoder_layer layer[LAYERS_MAX];
    norm_site *embedded, *final; /* NULL where the placement has none */
    bool causal;
} transformer_lm;

const char *lm_mask_condition(bool causal) {
    return causal ? "mask causal" : "mask released: every position sees its own target";
}

static sr_status choose_size(preset *s, const model_options *o, sr_failure *why) {
    const preset *base = MODEL_PRESET(model_transformer_lm, o->preset, presets, why);
    if (!base) return SR_USAGE;
    *s = *base;
    s->layers = model_size(o->layers, base->layers);
    layer_size_choose(&s->layer, o);
    if (s->layer.d % s->layer.heads)
        return sr_fail(why, SR_USAGE, "embed-dim %lld is not divisible by heads %lld",
                       (long long)s->layer.d, (long long)s->layer.heads);
    if (s->layers > LAYERS_MAX)
        return sr_fail(why, SR_USAGE, "at most %d layers, not %lld", LAYERS_MAX,
                       (long long)s->layers);
    return SR_OK;
}

static sr_status transformer_lm_build(model *m, const model_options *o, const data_shape *shape,
                                      sr_failure *why) {
    transformer_lm *net = m->self = calloc(1, sizeof *net);
    if (!net) return sr_fail(why, SR_MEMORY, "out of memory for model transformer_lm");
    model_options resolved = *o;
    const site_builder b = {m, &resolved, why};
    sr_status status = choose_size(&net->size, o, why);
    if (status != SR_OK) return status;
    const layer_size *s = &net->size.layer;
    resolved.heads = s->heads;
    net->causal = strcmp(o->lm_mask, "released") != 0;
    status = embedding_build(&b, &net->embedding, shape, s->d, -1);
    if (status != SR_OK) return status;
    net->embedded = layer_embedding_site(&b, s, "layer");
    for (int i = 0; i < net->size.layers; i++)
        net->layer[i] = encoder_layer_named(&b, s, "layer", i);
    if (layer_leaves_sum(s)) net->final = layer_site(&b, s, "layer", -1, "final");
    layer_takes_positions(net->embedded, &net->layer[0].norm1);
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

static void transformer_lm_free(model *m) {
    transformer_lm *net = m->self;
    embedding_free(&net->embedding);
    free(net);
}

/* Logits [B, T, V]. */
static tensor *transformer_lm_forward(model *m, pass *p) {
    const transformer_lm *net = m->self;
    const batch *b = p->batch;
    const int64_t T = b->target_length;
    const text_pass text = {
        .pass = p,
        .size = &net->size.layer,
        .source = embedding_rows(&net->embedding, p, b->count, T, NULL, false),
        .causal = net->causal,
    };
    if (!text.source) return NULL;
    tensor *x = embedding_apply(&net->embedding, p->tape, b->target_in, b->count, T);
    x = layer_embedded(&text, net->embedded, x, text.source);
    for (int i = 0; i < net->size.layers; i++) x = encoder_layer_apply(&net->layer[i], &text, x);
    if (net->final) x = layer_normalize(&text, net->final, x, text.source);
    return op_linear(p->tape, x, net->embedding.weight, NULL);
}

static const char *transformer_lm_condition(const model *m) {
    return lm_mask_condition(((const transformer_lm *)m->self)->causal);
}

const model_row model_transformer_lm = {
    .name = "transformer_lm",
    .citation = "Vaswani et al., NeurIPS 2017; decoder only, without its cross-attention",
    .summary = "language model, causal transformer, pre- or post-norm, tied embedding",
    .task = TASK_LM,
    .presets = "ptb|ptb-mini|wikitext-2",
    .options = "embed-dim ffn-dim heads layers lm-mask placement qk-norm attention-stats dropout "
               "attention-dropout relu-dropout eval-tgt-len",
    .build = transformer_lm_build,
    .forward = transformer_lm_forward,
    .free = transformer_lm_free,
    .condition = transformer_lm_condition,
};
