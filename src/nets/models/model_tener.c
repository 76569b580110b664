/* model_tener.c -- the entity tagger of Yan, Deng, Li, Qiu, arXiv 1911.04474 (docs/models.md 5).
 *
 *   x = [drop(W[word]), characters(word)] Wi^T + bi         layer_characters.c
 *   L layers (layer_tener.c)
 *   logits = drop(x) Wo^T + bo;  conditional random field   op_crf.c; tags by crf_viterbi.c
 *
 * No norm follows the last layer, except in peri-norm models, which also have one of x. In training
 * a word is <unk> with probability 0.02. Padding is no key, no row of the normalizations and no
 * word of the field.
 *
 * Initial values: words N(1/sqrt(width)); linear layers U(1/sqrt(in)) as in PyTorch; trans, start
 * and end N(1), as in the library of the paper's code.
 *
 * Sites in the order of the forward pass: sites of a transformer over characters, encoder.I.norm1,
 * encoder.I.norm2. Queries and keys: encoder.I.attention.q_norm and .k_norm (layer_residual.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/loss/loss_ops.h"
#include "nets/layers/tener_layers.h"
#include "nets/model_rows.h"

/* Dropout of words (replaced by <unk>), of their vectors and of the last layer's output. */
#define WORD_DROPOUT      0.02
#define EMBEDDING_DROPOUT 0.5
#define OUTPUT_DROPOUT    0.4

typedef struct preset {
    const char *name;
    int64_t layers;
    layer_size layer; /* ffn 0: twice d */
    int64_t words;    /* width of their vectors */
    character_kind characters;
} preset;

static const preset presets[] = {
    {"conll2003", 2, {1792, 0, 14, PLACEMENT_POST, 0.15, 0.15, 0.15}, 100, CHARACTERS_CNN},
    {"conll2003-mini", 2, {128, 0, 4, PLACEMENT_POST, 0.15, 0.15, 0.15}, 50, CHARACTERS_CNN},
    /* a vector of 100 for each character; the paper has 50 for it and 50 for the bigram */
    {"resume", 2, {256, 0, 4, PLACEMENT_POST, 0.15, 0.15, 0.15}, 100, CHARACTERS_NONE},
};

static const char *const character_kinds[] = {
    [CHARACTERS_CNN] = "cnn",
    [CHARACTERS_TRANSFORMER] = "transformer",
    [CHARACTERS_NONE] = "none",
};

typedef struct tener {
    preset size;   /* after the options */
    tensor *words; /* [vocabulary, width] */
    character_encoder characters;
    linear_layer in, out;
    tener_layer layer[LAYERS_MAX];
    norm_site *embedded, *final; /* peri alone */
    crf_inputs crf;              /* without logits */
    bool count_padding;
} tener;

/* -- building */

static sr_status choose_size(preset *s, const model_options *o, sr_failure *why) {
    const preset *base = MODEL_PRESET(model_tener, o->preset, presets, why);
    if (!base) return SR_USAGE;
    *s = *base;
    s->layers = model_size(o->layers, base->layers);
    s->words = model_size(o->word_dim, base->words);
    layer_size_choose(&s->layer, o);
    s->layer.ffn = model_size(s->layer.ffn, 2 * s->layer.d);
    for (size_t i = 0; i < sizeof character_kinds / sizeof character_kinds[0]; i++)
        if (!strcmp(o->char_encoder, character_kinds[i])) s->characters = (character_kind)i;
    if (s->layer.d % (2 * s->layer.heads))
        return sr_fail(why, SR_USAGE,
                       "embed-dim %lld is not divisible by heads %lld into even widths",
                       (long long)s->layer.d, (long long)s->layer.heads);
    return layer_count_check(s->layers, why);
}

static sr_status build_words(model *m, tener *net, int64_t vocabulary) {
    const int64_t width = net->size.words;
    net->words = params_add(&m->params, "embedding", 2, (int64_t[]){vocabulary, width}, INIT_NORMAL,
                            1 / sqrt((double)width));
    m->embedding = m->target_embedding = net->words;
    if (!net->words) return m->params.failure.status;
    memset(net->words->value + TOKEN_PAD * width, 0, (size_t)width * sizeof(real));
    return SR_OK;
}

static sr_status tener_build(model *m, const model_options *o, const data_shape *shape,
                             sr_failure *why) {
    tener *net = m->self;
    model_options resolved = *o;
    const site_builder b = {m, &resolved, why};
    sr_status status = choose_size(&net->size, o, why);
    if (status != SR_OK) return status;
    const layer_size *s = &net->size.layer;
    resolved.heads = s->heads;
    net->count_padding = o->count_padding;
    status = build_words(m, net, shape->vocabulary);
    if (status == SR_OK)
        status = characters_init(&net->characters, &b, net->size.characters, shape->characters, s);
    if (status != SR_OK) return status;
    net->in = tener_linear(&m->params, "input", net->size.words + net->characters.width, s->d);
    net->embedded = layer_peri_site(&b, s, "encoder", "embedding");
    for (int i = 0; i < net->size.layers; i++)
        net->layer[i] = tener_layer_init(&b, s, "encoder", i);
    net->final = layer_peri_site(&b, s, "encoder", "final");
    net->out = tener_linear(&m->params, "output", s->d, shape->classes);
    int64_t tags = shape->classes;
    net->crf.trans =
        params_add(&m->params, "crf.trans", 2, (int64_t[]){tags, tags}, INIT_NORMAL, 1);
    net->crf.start = params_add(&m->params, "crf.start", 1, &tags, INIT_NORMAL, 1);
    net->crf.end = params_add(&m->params, "crf.end", 1, &tags, INIT_NORMAL, 1);
    m->condition = *o->word_vectors ? "word vectors from a file" : "word vectors not pretrained";
    m->gives_nll = true;
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

/* -- forward */

/* The batch's words, in training some of them <unk>. */
static const int32_t *words_of(const pass *p) {
    const batch *b = p->batch;
    const int64_t n = b->count * b->source_length;
    if (!p->tape->training) return b->source;
    int32_t *word = tape_alloc(p->tape, (size_t)n * sizeof *word);
    rng r = rng_create(tape_random(p->tape));
    r.counter = (uint64_t)tape_first(p->tape, n);
    for (int64_t i = 0; word && i < n; i++) {
        const bool dropped = rng_uniform(&r) < WORD_DROPOUT;
        word[i] = dropped && b->source_mask[i] ? TOKEN_UNK : b->source[i];
    }
    return word;
}

static tensor *embed(const tener *net, pass *p) {
    const batch *b = p->batch;
    tape *t = p->tape;
    const int32_t *word = words_of(p);
    if (!word) return NULL;
    tensor *x = op_embedding(t, net->words, word, b->count, b->source_length, 1, NULL, TOKEN_PAD);
    x = op_dropout(t, x, EMBEDDING_DROPOUT);
    if (net->size.characters != CHARACTERS_NONE)
        x = op_concat(t, (tensor *[]){x, characters_apply(&net->characters, p)}, 2, 2);
    return linear_apply(&net->in, t, x);
}

/* Logits [count, length, tags]. */
static tensor *encode(const tener *net, pass *p) {
    const batch *b = p->batch;
    const text_pass text = {
        .pass = p,
        .size = &net->size.layer,
        .source_mask = b->source_mask,
        .source =
            pass_rows(p, b->count, b->source_length, net->count_padding ? NULL : b->source_mask),
    };
    if (!text.source) return NULL;
    tensor *x = embed(net, p);
    if (net->embedded) x = layer_normalize(&text, net->embedded, x, text.source);
    for (int i = 0; i < net->size.layers; i++) x = tener_layer_apply(&net->layer[i], &text, x);
    if (net->final) x = layer_normalize(&text, net->final, x, text.source);
    return linear_apply(&net->out, p->tape, op_dropout(p->tape, x, OUTPUT_DROPOUT));
}

/* Gold tags as classes: tags of types that training lacks become O. */
static const int32_t *gold_of(const pass *p, int64_t classes) {
    const batch *b = p->batch;
    const int64_t n = b->count * b->source_length;
    int64_t known = 0;
    while (known < n && b->tag[known] < classes) known++;
    if (known == n) return b->tag;
    int32_t *gold = tape_alloc(p->tape, (size_t)n * sizeof *gold);
    for (int64_t i = 0; gold && i < n; i++) gold[i] = b->tag[i] < classes ? b->tag[i] : 0;
    return gold;
}

/* Negative log-likelihood of each sentence's tags [count]; outside training the best tags too. */
static tensor *tener_forward(model *m, pass *p) {
    const tener *net = m->self;
    const batch *b = p->batch;
    crf_inputs in = net->crf;
    in.logits = encode(net, p);
    if (in.logits && !p->tape->training) {
        const int64_t n = b->count * b->source_length;
        int32_t *path = tape_alloc(p->tape, (size_t)n * sizeof *path);
        if (!path || !crf_viterbi(p->tape, &in, b->source_mask, b->allowed, path, NULL))
            return NULL;
        p->predicted = path;
    }
    const int32_t *gold = gold_of(p, net->crf.start->count);
    return gold ? op_crf(p->tape, &in, gold, b->source_mask) : NULL;
}

const model_row model_tener = {
    .name = "tener",
    .citation = "Yan et al., arXiv 1911.04474",
    .summary = "entity tagger: attention with direction and distance, characters, CRF",
    .task = TASK_TAGS,
    .presets = "conll2003|conll2003-mini|resume",
    .options =
        "embed-dim ffn-dim heads layers word-dim word-vectors "
        "char-encoder placement qk-norm attention-stats dropout attention-dropout relu-dropout "
        "count-padding",
    .build = tener_build,
    .forward = tener_forward,
    .size = sizeof(tener),
};
