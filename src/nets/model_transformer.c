/* model_transformer.c -- encoder-decoder transformer as in fairseq (models.md 2).
 *
 *   embed(tokens) = drop(sqrt(d) E[token] + P[position])          one E for source, target, output
 *   sublayer f with norm n:  pre   x + drop(f(n(x)))       post   n(x + drop(f(x)))
 *   encoder layer: self-attention, FFN; decoder layer: causal self-attention, cross-attention, FFN
 *   pre-norm models end encoder and decoder with one more norm
 *   logits = h E^T, label-smoothed cross entropy summed over target tokens
 *
 * Sites in the order of the forward pass: encoder.I.norm1, encoder.I.norm2, encoder.final,
 * decoder.I.self, decoder.I.cross, decoder.I.ffn, decoder.final. Encoder sites see the source mask,
 * decoder sites the target mask (fairseq's decoder norms see none; it makes no difference to LN).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_rows.h"
#include "statnet/layers.h"

enum { LAYERS_MAX = 64 };

typedef struct preset {
    const char *name;
    int64_t d, ffn, heads, encoder_layers, decoder_layers;
    bool pre;
    double dropout, attention_dropout, relu_dropout;
} preset;

static const preset presets[] = {
    {"mini", 128, 256, 4, 3, 3, true, 0.1, 0, 0},
    {"transformer", 512, 2048, 8, 6, 6, false, 0.1, 0, 0},
    {"transformer_iwslt_de_en", 512, 1024, 4, 6, 6, false, 0.3, 0.1, 0.1},
    {"transformer_big", 1024, 4096, 16, 6, 6, true, 0.3, 0.1, 0.1},
};

typedef struct encoder_layer {
    norm_site *norm1, *norm2;
    attention_layer attention;
    ffn_layer ffn;
} encoder_layer;

typedef struct decoder_layer {
    norm_site *self_norm, *cross_norm, *ffn_norm;
    attention_layer self, cross;
    ffn_layer ffn;
} decoder_layer;

typedef struct transformer {
    preset size; /* after the options */
    tensor *embedding;
    tensor positions;
    encoder_layer encoder[LAYERS_MAX];
    decoder_layer decoder[LAYERS_MAX];
    norm_site *encoder_final, *decoder_final; /* pre-norm only */
    double smoothing;
    smoothing_form form;
    bool count_padding; /* padded rows are rows like others to the normalizations */
} transformer;

/* -- building */

static const preset *preset_find(const char *name, sr_failure *why) {
    if (!*name) name = "transformer";
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        if (!strcmp(presets[i].name, name)) return &presets[i];
    sr_fail(why, SR_USAGE, "preset '%s' of model transformer is not one of %s", name,
            model_transformer.presets);
    return NULL;
}

static int64_t size_default(int64_t given, int64_t preset_value) {
    return given ? given : preset_value;
}

static sr_status choose_size(preset *s, const model_options *o, sr_failure *why) {
    const preset *base = preset_find(o->preset, why);
    if (!base) return SR_USAGE;
    *s = *base;
    s->d = size_default(o->embed_dim, base->d);
    s->ffn = size_default(o->ffn_dim, base->ffn);
    s->heads = size_default(o->heads, base->heads);
    s->encoder_layers = size_default(o->encoder_layers, base->encoder_layers);
    s->decoder_layers = size_default(o->decoder_layers, base->decoder_layers);
    s->dropout = model_default(o->dropout, base->dropout);
    s->attention_dropout = model_default(o->attention_dropout, base->attention_dropout);
    s->relu_dropout = model_default(o->relu_dropout, base->relu_dropout);
    if (*o->placement) s->pre = !strcmp(o->placement, "pre");
    if (s->d % s->heads)
        return sr_fail(why, SR_USAGE, "embed-dim %lld is not divisible by heads %lld",
                       (long long)s->d, (long long)s->heads);
    if (s->encoder_layers > LAYERS_MAX || s->decoder_layers > LAYERS_MAX)
        return sr_fail(why, SR_USAGE, "at most %d layers, not %lld + %lld", LAYERS_MAX,
                       (long long)s->encoder_layers, (long long)s->decoder_layers);
    return SR_OK;
}

/* What the builder hands from layer to layer. */
typedef struct builder {
    model *m;
    const model_options *options; /* heads as in size */
    const preset *size;
    sr_failure *why;
} builder;

/* "encoder" or "decoder", layer (-1: none), part -> "encoder.0.norm1" */
static void full_name(char name[PARAM_NAME], const char *side, int layer, const char *part) {
    if (layer < 0)
        snprintf(name, PARAM_NAME, "%s.%s", side, part);
    else
        snprintf(name, PARAM_NAME, "%s.%d.%s", side, layer, part);
}

static norm_site *build_site(builder *b, const char *side, int layer, const char *part) {
    char name[PARAM_NAME];
    full_name(name, side, layer, part);
    const model_options *o = b->options;
    const char *norm = !strcmp(side, "encoder") ? o->norm : o->decoder_norm;
    return model_add_site(b->m, o, name, side, b->size->d, norm, b->why);
}

static attention_layer build_attention(builder *b, const char *side, int layer, const char *part) {
    char name[PARAM_NAME];
    full_name(name, side, layer, part);
    return attention_init(&b->m->params, name, b->size->d, b->size->heads,
                          b->size->attention_dropout);
}

static ffn_layer build_ffn(builder *b, const char *side, int layer) {
    char name[PARAM_NAME];
    full_name(name, side, layer, "ffn_block");
    return ffn_init(&b->m->params, name, b->size->d, b->size->ffn, b->size->relu_dropout);
}

/* The first site of a stack: in front of it only the embedding, or that and one sublayer. */
static norm_site *build_first_site(builder *b, const char *side, int layer, const char *part) {
    norm_site *s = build_site(b, side, layer, part);
    if (s) s->takes_positions = layer == 0;
    return s;
}

static encoder_layer build_encoder_layer(builder *b, int i) {
    encoder_layer l;
    l.norm1 = build_first_site(b, "encoder", i, "norm1");
    l.attention = build_attention(b, "encoder", i, "attention");
    l.norm2 = build_site(b, "encoder", i, "norm2");
    l.ffn = build_ffn(b, "encoder", i);
    return l;
}

static decoder_layer build_decoder_layer(builder *b, int i) {
    decoder_layer l;
    l.self_norm = build_first_site(b, "decoder", i, "self");
    l.self = build_attention(b, "decoder", i, "self_attention");
    l.cross_norm = build_site(b, "decoder", i, "cross");
    l.cross = build_attention(b, "decoder", i, "cross_attention");
    l.ffn_norm = build_site(b, "decoder", i, "ffn");
    l.ffn = build_ffn(b, "decoder", i);
    return l;
}

/* E ~ N(d^-0.5) with the row of <pad> zero; P for every position that a sentence can have. */
static sr_status build_embedding(builder *b, transformer *net, const data_shape *shape) {
    int64_t d = b->size->d, count = shape->longest + TOKEN_PAD + 2;
    net->embedding = params_add(&b->m->params, "embedding", 2, (int64_t[]){shape->vocabulary, d},
                                INIT_NORMAL, 1 / sqrt((double)d));
    net->positions = (tensor){.rank = 2, .dim = {count, d, 1, 1}, .count = count * d};
    net->positions.value = malloc((size_t)(count * d) * sizeof(real));
    if (!net->embedding || !net->positions.value)
        return sr_fail(b->why, SR_MEMORY, "out of memory for an embedding of %lld x %lld",
                       (long long)shape->vocabulary, (long long)d);
    for (int64_t k = 0; k < d; k++) net->embedding->value[TOKEN_PAD * d + k] = 0;
    op_embedding_positions(net->positions.value, count, d, TOKEN_PAD);
    b->m->embedding = net->embedding;
    return SR_OK;
}

static void build_stacks(builder *b, transformer *net) {
    for (int i = 0; i < b->size->encoder_layers; i++) net->encoder[i] = build_encoder_layer(b, i);
    if (b->size->pre) net->encoder_final = build_site(b, "encoder", -1, "final");
    for (int i = 0; i < b->size->decoder_layers; i++) net->decoder[i] = build_decoder_layer(b, i);
    if (b->size->pre) net->decoder_final = build_site(b, "decoder", -1, "final");
}

static sr_status transformer_build(model *m, const model_options *o, const data_shape *shape,
                                   sr_failure *why) {
    transformer *net = m->self = calloc(1, sizeof *net);
    if (!net) return sr_fail(why, SR_MEMORY, "out of memory for model transformer");
    model_options resolved = *o;
    builder b = {m, &resolved, &net->size, why};
    sr_status status = choose_size(&net->size, o, why);
    if (status != SR_OK) return status;
    resolved.heads = net->size.heads;
    net->smoothing = model_default(o->label_smoothing, 0.1);
    net->form = o->smoothing;
    net->count_padding = o->count_padding;
    status = build_embedding(&b, net, shape);
    if (status != SR_OK) return status;
    build_stacks(&b, net);
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

static void transformer_free(model *m) {
    transformer *net = m->self;
    free(net->positions.value);
    free(net);
}

/* -- forward */

/* One pass: what every sublayer needs. */
typedef struct pass {
    const transformer *net;
    tape *t;
    const batch *b;
    norm_rows *source, *target;
    double penalty; /* of the normalizations, part of the loss */
} pass;

static tensor *normalize(const pass *p, norm_site *n, tensor *x, const norm_rows *rows) {
    const norm_rows *own = model_rows_for(n, p->t, rows);
    return own ? norm_apply(n, p->t, x, own) : NULL;
}

/* [d] mean over n rows of P[position]; the words of a sentence come first, its padding has none. */
static double *mean_position(tape *t, const tensor *positions, int64_t count, int64_t length,
                             const uint8_t *mask, int64_t n) {
    int64_t d = positions->dim[1];
    double *mean = tape_alloc(t, (size_t)d * sizeof *mean);
    for (int64_t k = 0; mean && k < d; k++) mean[k] = 0;
    for (int64_t i = 0; mean && i < length; i++) {
        const real *here = positions->value + (TOKEN_PAD + 1 + i) * d;
        int64_t words = 0;
        for (int64_t s = 0; s < count; s++) words += mask[s * length + i] != 0;
        for (int64_t k = 0; k < d; k++) mean[k] += (double)words / (double)n * (double)here[k];
    }
    return mean;
}

/* Rows of `length` places of each sentence; the mask says which are words. */
static norm_rows *text_rows(const pass *p, int64_t length, const uint8_t *mask, norm_mode mode) {
    int64_t count = p->b->count, rows = count * length;
    norm_rows *r = tape_alloc(p->t, sizeof *r);
    int32_t *sample = tape_alloc(p->t, (size_t)rows * sizeof *sample);
    const uint8_t *valid = p->net->count_padding ? NULL : mask;
    if (!r || !sample || norm_rows_init(r, p->t, rows, valid, mode) != SR_OK) return NULL;
    for (int64_t i = 0; i < rows; i++) sample[i] = (int32_t)(i / length);
    r->sample = sample;
    r->samples = count;
    r->tokens = (double)p->b->tokens;
    r->position_mean =
        mean_position(p->t, &p->net->positions, count, length, mask, r->valid ? r->valid : 1);
    return r->position_mean ? r : NULL;
}

static tensor *embed(const pass *p, const int32_t *token, int64_t length) {
    const transformer *net = p->net;
    tensor *x = op_embedding(p->t, net->embedding, token, p->b->count, length,
                             sqrt((double)net->size.d), &net->positions, TOKEN_PAD);
    return op_dropout(p->t, x, net->size.dropout);
}

/* The input of a sublayer and, after it, the sum: the two places where a norm can stand. */
static tensor *before(const pass *p, norm_site *n, tensor *x, const norm_rows *rows) {
    return p->net->size.pre ? normalize(p, n, x, rows) : x;
}

static tensor *after(const pass *p, norm_site *n, tensor *x, tensor *f, const norm_rows *rows) {
    tensor *sum = op_add(p->t, x, op_dropout(p->t, f, p->net->size.dropout));
    return p->net->size.pre ? sum : normalize(p, n, sum, rows);
}

static tensor *encode_layer(const pass *p, const encoder_layer *l, tensor *x) {
    tensor *h = before(p, l->norm1, x, p->source);
    h = attention_apply(&l->attention, p->t, h, h, p->b->source_mask, false);
    x = after(p, l->norm1, x, h, p->source);
    h = ffn_apply(&l->ffn, p->t, before(p, l->norm2, x, p->source));
    return after(p, l->norm2, x, h, p->source);
}

static tensor *encode(const pass *p) {
    const transformer *net = p->net;
    tensor *x = embed(p, p->b->source, p->b->source_length);
    for (int i = 0; i < net->size.encoder_layers; i++) x = encode_layer(p, &net->encoder[i], x);
    return net->size.pre ? normalize(p, net->encoder_final, x, p->source) : x;
}

static tensor *decode_layer(const pass *p, const decoder_layer *l, tensor *x, tensor *memory) {
    tensor *h = before(p, l->self_norm, x, p->target);
    h = attention_apply(&l->self, p->t, h, h, NULL, true);
    x = after(p, l->self_norm, x, h, p->target);
    h = before(p, l->cross_norm, x, p->target);
    h = attention_apply(&l->cross, p->t, h, memory, p->b->source_mask, false);
    x = after(p, l->cross_norm, x, h, p->target);
    h = ffn_apply(&l->ffn, p->t, before(p, l->ffn_norm, x, p->target));
    return after(p, l->ffn_norm, x, h, p->target);
}

static tensor *decode(const pass *p, tensor *memory) {
    const transformer *net = p->net;
    tensor *x = embed(p, p->b->target_in, p->b->target_length);
    for (int i = 0; i < net->size.decoder_layers; i++)
        x = decode_layer(p, &net->decoder[i], x, memory);
    return net->size.pre ? normalize(p, net->decoder_final, x, p->target) : x;
}

static tensor *transformer_loss(model *m, tape *t, const batch *b, norm_mode mode,
                                cross_entropy_report *report) {
    const transformer *net = m->self;
    pass p = {.net = net, .t = t, .b = b};
    p.source = text_rows(&p, b->source_length, b->source_mask, mode);
    p.target = text_rows(&p, b->target_length, b->target_mask, mode);
    if (!p.source || !p.target) return NULL;
    p.source->penalty = p.target->penalty = &p.penalty;
    tensor *x = decode(&p, encode(&p));
    tensor *logits = op_linear(t, x, net->embedding, NULL);
    tensor *loss = op_cross_entropy(t, logits, b->target_out, TOKEN_PAD, TOKEN_UNK, net->smoothing,
                                    net->form, report);
    if (loss && report) report->loss += p.penalty;
    return loss;
}

const model_row model_transformer = {
    .name = "transformer",
    .citation = "Vaswani et al., NeurIPS 2017",
    .summary = "encoder-decoder for sentence pairs, pre- or post-norm, one shared embedding",
    .task = TASK_PAIRS,
    .presets = "mini|transformer|transformer_iwslt_de_en|transformer_big",
    .build = transformer_build,
    .loss = transformer_loss,
    .free = transformer_free,
};
