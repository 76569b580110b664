/* model_transformer_lm.c -- a plain decoder-only transformer, a language model
 * (docs/models.md 3.4).
 *
 *   embedding with positions of the encoder-decoder (layer_embedding.c), without padding
 *   layers: the encoder layers (layer_encoder.c) with causal attention
 *   logits = h E^T
 *
 * Pre-norm models end with one more norm. Peri-norm models also start with one. --lm-mask released:
 * no mask, as in the release of the tensorized transformer. This is a control experiment, since a
 * position then sees its own target.
 *
 * Sites in the order of the forward pass: layer.I.norm1, layer.I.norm2, layer.final (pre-norm). */
#include <stdlib.h>
#include <string.h>

#include "nets/layers/text_layers.h"
#include "nets/model_rows.h"

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
    encoder_stack stack;
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
    if (layer_heads_check(&s->layer, why) != SR_OK) return SR_USAGE;
    return layer_count_check(s->layers, why);
}

static sr_status transformer_lm_build(model *m, const model_options *o, const data_shape *shape,
                                      sr_failure *why) {
    transformer_lm *net = m->self;
    model_options resolved = *o;
    const site_builder b = {m, &resolved, why};
    sr_status status = choose_size(&net->size, o, why);
    if (status != SR_OK) return status;
    const layer_size *s = &net->size.layer;
    resolved.heads = s->heads;
    net->causal = strcmp(o->lm_mask, "released") != 0;
    m->condition = lm_mask_condition(net->causal);
    status = embedding_build(&b, &net->embedding, "embedding", shape->vocabulary, shape->longest,
                             s->d, -1);
    if (status != SR_OK) return status;
    encoder_stack_init(&net->stack, &b, s, "layer", net->size.layers);
    layer_takes_positions(net->stack.embedded, &net->stack.layer[0].self.norms);
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

static void transformer_lm_free(model *m) {
    transformer_lm *net = m->self;
    embedding_free(&net->embedding);
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
    x = encoder_stack_apply(&net->stack, &text, x);
    return op_linear(p->tape, x, net->embedding.weight, NULL);
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
    .size = sizeof(transformer_lm),
};
