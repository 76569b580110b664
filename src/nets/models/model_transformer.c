/* model_transformer.c -- encoder-decoder transformer as in fairseq (docs/models.md 2).
 *
 *   one embedding E for source, target and output (layer_embedding.c). With separate dictionaries,
 *   one for the source and one for target and output
 *   encoder and decoder layers: layer_encoder.c, layer_decoder.c, layer_residual.c
 *   logits = h E^T
 *
 * In pre-norm models encoder and decoder end with one more norm. In peri-norm models they also
 * start with one.
 *
 * Sites in the order of the forward pass: encoder.I.norm1, encoder.I.norm2, encoder.final,
 * decoder.I.self, decoder.I.cross, decoder.I.ffn, decoder.final. Encoder sites get the source mask,
 * decoder sites the target mask. (fairseq's decoder norms have no mask; for LN this is the
 * same.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nets/model_rows.h"
#include "nets/models/transformer.h"

static const preset presets[] = {
    {"mini", 3, 3, {128, 256, 4, PLACEMENT_PRE, 0.1, 0, 0}},
    {"transformer", 6, 6, {512, 2048, 8, PLACEMENT_POST, 0.1, 0, 0}},
    {"transformer_iwslt_de_en", 6, 6, {512, 1024, 4, PLACEMENT_POST, 0.3, 0.1, 0.1}},
    {"transformer_big", 6, 6, {1024, 4096, 16, PLACEMENT_PRE, 0.3, 0.1, 0.1}},
};

/* -- building */

static sr_status choose_size(preset *s, const model_options *o, sr_failure *why) {
    const preset *base =
        MODEL_PRESET(model_transformer, *o->preset ? o->preset : "transformer", presets, why);
    if (!base) return SR_USAGE;
    *s = *base;
    s->encoder_layers = model_size(o->encoder_layers, base->encoder_layers);
    s->decoder_layers = model_size(o->decoder_layers, base->decoder_layers);
    layer_size_choose(&s->layer, o);
    if (layer_heads_check(&s->layer, why) != SR_OK) return SR_USAGE;
    if (layer_count_check(s->encoder_layers, why) != SR_OK) return SR_USAGE;
    return layer_count_check(s->decoder_layers, why);
}

static sr_status build_embeddings(const site_builder *b, transformer *net,
                                  const data_shape *shape) {
    const int64_t d = net->size.layer.d, longest = shape->longest;
    const bool separate = shape->target_vocabulary > 0;
    sr_status status = embedding_build(b, &net->source, separate ? "embedding.source" : "embedding",
                                       shape->vocabulary, longest, d, TOKEN_PAD);
    if (status == SR_OK && separate)
        status = embedding_build(b, &net->target, "embedding.target", shape->target_vocabulary,
                                 longest, d, TOKEN_PAD);
    if (!separate) net->target = net->source;
    b->m->embedding = net->source.weight;
    return status;
}

static void build_stacks(const site_builder *b, transformer *net) {
    const preset *size = &net->size;
    const layer_size *s = &size->layer;
    encoder_stack_init(&net->encoder, b, s, "encoder", size->encoder_layers);
    net->decoder_embedding = layer_peri_site(b, s, "decoder", "embedding");
    for (int i = 0; i < size->decoder_layers; i++) net->decoder[i] = decoder_layer_init(b, s, i);
    if (layer_leaves_sum(s)) net->decoder_final = layer_site(b, s, "decoder", -1, "final");
    layer_takes_positions(net->encoder.embedded, &net->encoder.layer[0].self.norms);
    layer_takes_positions(net->decoder_embedding, &net->decoder[0].self.norms);
}

static sr_status transformer_build(model *m, const model_options *o, const data_shape *shape,
                                   sr_failure *why) {
    transformer *net = m->self;
    model_options resolved = *o;
    site_builder b = {m, &resolved, why};
    sr_status status = choose_size(&net->size, o, why);
    if (status != SR_OK) return status;
    resolved.heads = net->size.layer.heads;
    net->count_padding = o->count_padding;
    m->params.fan_in = !strcmp(o->linear_init, "fan-in");
    m->params.embed_std = o->embed_std;
    status = build_embeddings(&b, net, shape);
    if (status != SR_OK) return status;
    build_stacks(&b, net);
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

static void transformer_free(model *m) {
    transformer *net = m->self;
    if (net->target.positions.value != net->source.positions.value) embedding_free(&net->target);
    embedding_free(&net->source);
}

static sr_status transformer_reach(model *m, int64_t longest, sr_failure *why) {
    transformer *net = m->self;
    const bool joint = net->target.positions.value == net->source.positions.value;
    const sr_status status = embedding_reach(&net->source, longest, why);
    if (joint) net->target.positions = net->source.positions;
    return status == SR_OK ? embedding_reach(&net->target, longest, why) : status;
}

/* -- forward */

static tensor *decode(const transformer *net, const text_pass *p, tensor *memory) {
    const batch *b = p->pass->batch;
    tensor *x =
        embedding_apply(&net->target, p->pass->tape, b->target_in, b->count, b->target_length);
    x = layer_embedded(p, net->decoder_embedding, x, p->target);
    for (int i = 0; i < net->size.decoder_layers; i++)
        x = decoder_layer_apply(&net->decoder[i], p, x, memory);
    return net->decoder_final ? layer_normalize(p, net->decoder_final, x, p->target) : x;
}

/* [count, target length, vocabulary of the target] */
static tensor *transformer_forward(model *m, pass *p) {
    const transformer *net = m->self;
    const batch *b = p->batch;
    text_pass text = {
        .pass = p,
        .size = &net->size.layer,
        .source_mask = b->source_mask,
        .target_mask = b->target_mask,
        .source = embedding_rows(&net->source, p, b->count, b->source_length, b->source_mask,
                                 net->count_padding),
        .target = embedding_rows(&net->target, p, b->count, b->target_length, b->target_mask,
                                 net->count_padding),
    };
    if (!text.source || !text.target) return NULL;
    tensor *x = decode(net, &text, transformer_encode(net, &text));
    return op_linear(p->tape, x, net->target.weight, NULL);
}

const model_row model_transformer = {
    .name = "transformer",
    .citation = "Vaswani et al., NeurIPS 2017",
    .summary = "encoder-decoder for sentence pairs, pre- or post-norm, one shared embedding",
    .task = TASK_PAIRS,
    .presets = "mini|transformer|transformer_iwslt_de_en|transformer_big",
    .options = "decoder-norm embed-dim ffn-dim heads encoder-layers decoder-layers placement "
               "qk-norm attention-stats dropout attention-dropout relu-dropout count-padding "
               "linear-init embed-std",
    .build = transformer_build,
    .forward = transformer_forward,
    .reach = transformer_reach,
    .free = transformer_free,
    .size = sizeof(transformer),
    .decoder = &transformer_decoder,
};
