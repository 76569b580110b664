/* model_transformer.c -- encoder-decoder transformer as in fairseq (docs/models.md 2).
 *
 *   one embedding E for source, target and output (layer_embedding.c); where the target has a
 *   dictionary of its own, one for the source and one for target and output
 *   encoder and decoder layers: layer_encoder.c, layer_decoder.c, layer_residual.c
 *   pre-norm models end encoder and decoder with one more norm; peri-norm models begin them with
 *   one
 *   of the embedding too
 *   logits = h E^T
 *
 * Sites in the order of the forward pass: encoder.I.norm1, encoder.I.norm2, encoder.final,
 * decoder.I.self, decoder.I.cross, decoder.I.ffn, decoder.final. Encoder sites see the source mask,
 * decoder sites the target mask (fairseq's decoder norms see none; it makes no difference to LN).
 */
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
    if (s->layer.d % s->layer.heads)
        return sr_fail(why, SR_USAGE, "embed-dim %lld is not divisible by heads %lld",
                       (long long)s->layer.d, (long long)s->layer.heads);
    if (s->encoder_layers > LAYERS_MAX || s->decoder_layers > LAYERS_MAX)
        return sr_fail(why, SR_USAGE, "at most %d layers, not %lld + %lld", LAYERS_MAX,
                       (long long)s->encoder_layers, (long long)s->decoder_layers);
    return SR_OK;
}

static sr_status build_embedding(const site_builder *b, embedding_layer *e, const char *name,
                                 int64_t vocabulary, int64_t longest, const layer_size *s) {
    *e = embedding_init(&b->m->params, name, vocabulary, s->d, longest, TOKEN_PAD);
    if (e->weight && e->positions.value) return SR_OK;
    return sr_fail(b->why, SR_MEMORY, "out of memory for an embedding of %lld x %lld",
                   (long long)vocabulary, (long long)s->d);
}

static sr_status build_embeddings(const site_builder *b, transformer *net,
                                  const data_shape *shape) {
    const layer_size *s = &net->size.layer;
    const bool separate = shape->target_vocabulary > 0;
    sr_status status = build_embedding(b, &net->source, separate ? "embedding.source" : "embedding",
                                       shape->vocabulary, shape->longest, s);
    if (status == SR_OK && separate)
        status = build_embedding(b, &net->target, "embedding.target", shape->target_vocabulary,
                                 shape->longest, s);
    if (status == SR_OK && !separate) net->target = net->source;
    b->m->embedding = net->source.weight;
    b->m->target_embedding = net->target.weight;
    return status;
}

static void build_stacks(const site_builder *b, transformer *net) {
    const preset *size = &net->size;
    const layer_size *s = &size->layer;
    net->encoder_embedding = layer_embedding_site(b, s, "encoder");
    for (int i = 0; i < size->encoder_layers; i++) net->encoder[i] = encoder_layer_init(b, s, i);
    if (layer_leaves_sum(s)) net->encoder_final = layer_site(b, s, "encoder", -1, "final");
    net->decoder_embedding = layer_embedding_site(b, s, "decoder");
    for (int i = 0; i < size->decoder_layers; i++) net->decoder[i] = decoder_layer_init(b, s, i);
    if (layer_leaves_sum(s)) net->decoder_final = layer_site(b, s, "decoder", -1, "final");
    layer_takes_positions(net->encoder_embedding, &net->encoder[0].norm1);
    layer_takes_positions(net->decoder_embedding, &net->decoder[0].self_norm);
}

static sr_status transformer_build(model *m, const model_options *o, const data_shape *shape,
                                   sr_failure *why) {
    transformer *net = m->self = calloc(1, sizeof *net);
    if (!net) return sr_fail(why, SR_MEMORY, "out of memory for model transformer");
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
    free(net);
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
    .free = transformer_free,
    .decoder = &transformer_decoder,
};
