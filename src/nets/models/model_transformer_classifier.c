/* model_transformer_classifier.c -- a class for every sentence (docs/models.md 6).
 *
 *   embedding of the encoder-decoder (layer_embedding.c), with sinusoidal positions or none
 *   encoder layers: layer_encoder.c
 *   pooling: the mean over the words (op_masked_mean.c), or the first row, <s>
 *   logits = h W^T + b
 *
 * Pre-norm models end with one more norm. Peri-norm models also start with one. Padding is hidden
 * from attention; normalizations and the mean exclude it.
 *
 * rt and sst5 have 793,344 parameters besides embedding and output, and linear weights
 * U(1/sqrt(fan_in)). imdb has 23,136, with heads of 16 features of q and k and 8 of v.
 *
 * Sites in the order of the forward pass: encoder.I.norm1, encoder.I.norm2, encoder.final
 * (pre-norm). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nets/layers/text_layers.h"
#include "nets/model_rows.h"

typedef struct preset {
    const char *name;
    int64_t layers;
    layer_size layer;
    int64_t key, value; /* sizes of a head; 0: d/heads */
    bool positions, first, fan_in;
} preset;

static const preset presets[] = {
    {"rt", 4, {128, 512, 4, PLACEMENT_PRE, 0.2, 0, 0}, 0, 0, true, false, true},
    {"sst5", 4, {128, 512, 4, PLACEMENT_PRE, 0.2, 0, 0}, 0, 0, true, false, true},
    {"imdb", 1, {32, 256, 4, PLACEMENT_POST, 0.1, 0.1, 0.1}, 16, 0, false, true, false},
    {"imdb-mini", 1, {32, 256, 4, PLACEMENT_POST, 0.1, 0.1, 0.1}, 16, 0, false, true, false},
};

typedef struct classifier {
    preset size; /* after the options */
    embedding_layer embedding;
    encoder_stack encoder;
    linear_layer classify;
    bool count_padding;
} classifier;

/* -- building */

static sr_status choose_size(preset *s, const model_options *o, sr_failure *why) {
    const preset *base = MODEL_PRESET(model_transformer_classifier, o->preset, presets, why);
    if (!base) return SR_USAGE;
    *s = *base;
    s->layers = model_size(o->layers, base->layers);
    layer_size_choose(&s->layer, o);
    s->key = model_size(o->key_size, base->key);
    s->value = model_size(o->value_size, base->value);
    if (*o->pooling) s->first = !strcmp(o->pooling, "cls");
    if (*o->positions) s->positions = strcmp(o->positions, "none") != 0;
    if (*o->linear_init) s->fan_in = !strcmp(o->linear_init, "fan-in");
    if ((!s->key || !s->value) && layer_heads_check(&s->layer, why) != SR_OK) return SR_USAGE;
    return layer_count_check(s->layers, why);
}

static sr_status classifier_build(model *m, const model_options *o, const data_shape *shape,
                                  sr_failure *why) {
    classifier *net = m->self;
    model_options resolved = *o;
    const site_builder b = {m, &resolved, why};
    sr_status status = choose_size(&net->size, o, why);
    if (status != SR_OK) return status;
    const layer_size *s = &net->size.layer;
    resolved.heads = s->heads;
    resolved.key_size = net->size.key, resolved.value_size = net->size.value;
    net->count_padding = o->count_padding;
    m->params.fan_in = net->size.fan_in;
    status = embedding_build(&b, &net->embedding, "embedding", shape->vocabulary, shape->longest,
                             s->d, TOKEN_PAD);
    if (status != SR_OK) return status;
    encoder_stack_init(&net->encoder, &b, s, "encoder", net->size.layers);
    if (net->size.positions)
        layer_takes_positions(net->encoder.embedded, &net->encoder.layer[0].self.norms);
    net->classify =
        linear_init(&m->params, "classify", s->d, shape->classes,
                    layer_xavier(s->d, shape->classes, 1), (layer_init){INIT_CONSTANT, 0});
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

static void classifier_free(model *m) {
    classifier *net = m->self;
    embedding_free(&net->embedding);
}

static sr_status classifier_reach(model *m, int64_t longest, sr_failure *why) {
    classifier *net = m->self;
    return embedding_reach(&net->embedding, longest, why);
}

/* -- forward */

static norm_rows *rows_of(const classifier *net, pass *p) {
    const batch *b = p->batch;
    if (net->size.positions)
        return embedding_rows(&net->embedding, p, b->count, b->source_length, b->source_mask,
                              net->count_padding);
    return pass_rows(p, b->count, b->source_length, net->count_padding ? NULL : b->source_mask);
}

static tensor *embed(const classifier *net, const pass *p) {
    const batch *b = p->batch;
    const embedding_layer *e = &net->embedding;
    if (net->size.positions)
        return embedding_apply(e, p->tape, b->source, b->count, b->source_length);
    return op_embedding(p->tape, e->weight, b->source, b->count, b->source_length,
                        sqrt((double)net->size.layer.d), NULL, TOKEN_PAD);
}

/* [count, classes], of the first row [count, 1, classes]. */
static tensor *classifier_forward(model *m, pass *p) {
    const classifier *net = m->self;
    const text_pass text = {
        .pass = p,
        .size = &net->size.layer,
        .source_mask = p->batch->source_mask,
        .source = rows_of(net, p),
    };
    if (!text.source) return NULL;
    if (net->size.first && p->batch->source[0] != TOKEN_BOS)
        return tape_fail(p->tape, SR_USAGE,
                         "pooling cls: sentences have no <s> in front (--mark-start)");
    tensor *x = encoder_stack_apply(&net->encoder, &text, embed(net, p));
    x = net->size.first ? op_slice(p->tape, x, 1, 0, 1)
                        : op_masked_mean(p->tape, x, text.source_mask);
    return linear_apply(&net->classify, p->tape, x);
}

const model_row model_transformer_classifier = {
    .name = "transformer_classifier",
    .citation = "Vaswani et al., NeurIPS 2017; encoder only",
    .summary = "class of a sentence: transformer encoder, mean or first row, linear",
    .task = TASK_SENTENCES,
    .presets = "rt|sst5|imdb|imdb-mini",
    .options = "embed-dim ffn-dim heads key-size value-size layers placement qk-norm "
               "attention-stats pooling "
               "positions linear-init dropout attention-dropout relu-dropout count-padding",
    .build = classifier_build,
    .forward = classifier_forward,
    .reach = classifier_reach,
    .free = classifier_free,
    .size = sizeof(classifier),
};
