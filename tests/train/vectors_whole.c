/* vectors_whole.c -- transformer_full.h5: a small encoder-decoder, its embedded source, encoder
 * output, logits, losses, and the gradient of every parameter.
 *
 * The file pads sources on the left, statrec on the right (docs/models.md 2.2). So inputs move to
 * the front of their rows, and results back to the file's positions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_vectors.h"
#include "task/task.h"

/* -- names */

/* Parameter name -> name in the file: "encoder.0.attention.q.weight" -> "e0_Wq". */
static void vector_name(const char *full, char *name, size_t size) {
    static const struct {
        const char *part, *stem;
    } part[] = {{"attention.q.", "q"}, {"attention.k.", "k"},  {"attention.v.", "v"},
                {"attention.o.", "o"}, {"ffn_block.in.", "1"}, {"ffn_block.out.", "2"},
                {"norm1.", "1"},       {"norm2.", "2"},        {"self.", "1"},
                {"cross.", "2"},       {"ffn.", "3"}};
    static const char *const kind[][2] = {
        {"weight", "W"}, {"bias", "b"}, {"gamma", "g"}, {"beta", "c"}};
    const char *last = strrchr(full, '.'), *stem = "?", *letter = "?";
    if (!last) {
        snprintf(name, size, "E"); /* the embedding */
        return;
    }
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        if (!strcmp(last + 1, kind[i][0])) letter = kind[i][1];
    for (size_t i = sizeof part / sizeof *part; i-- > 0;)
        if (strstr(full, part[i].part)) stem = part[i].stem;
    const char *which = strstr(full, "self_attention")    ? "s"
                        : strstr(full, "cross_attention") ? "x"
                                                          : "";
    const char *number = strchr(full, '.') + 1;
    if (strstr(full, ".final."))
        snprintf(name, size, "%c_f%s", full[0], letter);
    else
        snprintf(name, size, "%c%.*s_%s%s%s", full[0], (int)strcspn(number, "."), number, which,
                 letter, stem);
}

/* -- sentences */

typedef struct sentences {
    int64_t count, length;
    int32_t *id;      /* [count, length], words in front */
    uint8_t *mask;    /* of id */
    uint8_t *in_file; /* [count, length]: words in the file's positions */
    int64_t *from;    /* [count * length]: index here of each element of the file */
} sentences;

static void move_pads(const int32_t *row, int64_t first, sentences *s) {
    int64_t words = first;
    for (int64_t i = first; i < first + s->length; i++) s->id[i] = TOKEN_PAD;
    for (int64_t i = first; i < first + s->length; i++) {
        s->in_file[i] = row[i - first] != TOKEN_PAD;
        s->from[i] = s->in_file[i] ? words : first;
        if (s->in_file[i]) s->id[words++] = row[i - first];
    }
    for (int64_t i = first; i < words; i++) s->mask[i] = 1;
}

static bool read_sentences(model_case *c, const char *path, sentences *s) {
    int64_t dim[4];
    int32_t *id = case_ints(c, path, 2, dim);
    if (!id) return false;
    *s = (sentences){.count = dim[0], .length = dim[1]};
    const int64_t n = s->count * s->length;
    s->id = case_alloc(c, n, sizeof *s->id);
    s->mask = case_alloc(c, n, 1);
    s->in_file = case_alloc(c, n, 1);
    s->from = case_alloc(c, n, sizeof *s->from);
    if (!s->id || !s->mask || !s->in_file || !s->from) return false;
    for (int64_t b = 0; b < s->count; b++) move_pads(id + b * s->length, b * s->length, s);
    return true;
}

/* Rows of x [count, length, d] in the order of the file. */
static void compare_rows(model_case *c, const char *name, const tensor *x, const sentences *s) {
    const int64_t d = tensor_features(x), rows = s->count * s->length;
    real *there = case_alloc(c, rows * d, sizeof *there);
    if (!there) return;
    for (int64_t i = 0; i < rows; i++)
        memcpy(there + i * d, x->value + s->from[i] * d, (size_t)d * sizeof *there);
    case_compare_reals(c, name, there, rows * d, s->in_file, d);
}

/* -- the model */

typedef struct whole {
    model_case *c;
    model *m;
    tape *t;
    sentences source, in, out;
    batch batch;
} whole;

/* Sizes from the datasets, the rest from attributes. */
static bool read_options(model_case *c, model_options *o, int64_t *vocabulary) {
    int64_t E[4], W1[4];
    if (!case_read(c, "in/E", 2, E) || !case_read(c, "in/e0_W1", 2, W1)) return false;
    const int64_t layers = (int64_t)case_number(c, "layers");
    *o = (model_options){.norm_eps = case_number(c, "eps"),
                         .norm_alpha = NAN,
                         .embed_dim = E[1],
                         .ffn_dim = W1[0],
                         .heads = (int64_t)case_number(c, "heads"),
                         .encoder_layers = layers,
                         .decoder_layers = layers};
    if (case_number(c, "pad") != TOKEN_PAD) case_skip(c, "another <pad> than %d", TOKEN_PAD);
    if (o->heads < 1) case_fail(c, "heads are not positive");
    strcpy(o->name, "transformer");
    strcpy(o->preset, "mini");
    strcpy(o->placement, case_number(c, "pre") != 0 ? "pre" : "post");
    snprintf(o->norm, sizeof o->norm, "%s", case_text(c, "enc_norm"));
    strcpy(o->decoder_norm, "ln");
    o->dropout = o->attention_dropout = o->relu_dropout = 0;
    *vocabulary = E[0];
    return case_fine(c);
}

static bool build(whole *w) {
    model_options o;
    int64_t vocabulary;
    sr_failure why = {0};
    if (!read_options(w->c, &o, &vocabulary)) return false;
    if (!norm_named(o.norm, &(norm_value){0})) case_fail(w->c, "norm '%s' is not known", o.norm);
    if (!case_fine(w->c)) return false;
    const int64_t longest =
        w->source.length > w->in.length ? w->source.length : w->in.length; /* longer side */
    data_shape shape = {.task = TASK_PAIRS, .vocabulary = vocabulary, .longest = longest};
    w->m = model_create(&o, &shape, &why);
    if (!w->m) case_fail(w->c, "%s", why.text);
    for (int i = 0; w->m && i < w->m->params.count; i++) {
        char name[64], path[80];
        vector_name(w->m->params.item[i]->name, name, sizeof name);
        snprintf(path, sizeof path, "in/%s", name);
        case_fill(w->c, path, &w->m->params.item[i]->t);
    }
    return case_fine(w->c);
}

static bool read_batch(whole *w) {
    if (!read_sentences(w->c, "in/src", &w->source) || !read_sentences(w->c, "in/prev", &w->in) ||
        !read_sentences(w->c, "in/tgt", &w->out))
        return false;
    if (w->source.count != w->in.count || w->in.count != w->out.count ||
        w->in.length != w->out.length) {
        case_fail(w->c, "src, prev and tgt are not of one batch");
        return false;
    }
    w->batch = (batch){.task = TASK_PAIRS,
                       .count = w->source.count,
                       .source_length = w->source.length,
                       .target_length = w->out.length,
                       .source = w->source.id,
                       .target_in = w->in.id,
                       .target_out = w->out.id,
                       .source_mask = w->source.mask,
                       .target_mask = w->out.mask};
    return true;
}

/* -- comparing */

/* The source's embedding is the first op of that name; the decoder starts with the second, so the
 * op before that is the encoder's last. */
static void compare_encoder(whole *w) {
    tensor *embedded = NULL, *encoded = NULL;
    for (const tape_node *n = w->t->last; n; n = n->before) {
        if (strcmp(n->op, "embedding")) continue;
        if (!embedded && n->before) encoded = n->before->out;
        embedded = n->out;
    }
    if (embedded && encoded && embedded->count == encoded->count) {
        compare_rows(w->c, "src_emb", embedded, &w->source);
        compare_rows(w->c, "enc_out", encoded, &w->source);
    } else {
        case_fail(w->c, "the tape has no encoder between two embeddings");
    }
}

static void compare_grads(whole *w) {
    for (int i = 0; i < w->m->params.count; i++) {
        const param *p = w->m->params.item[i];
        char name[64], out[80];
        vector_name(p->name, name, sizeof name);
        snprintf(out, sizeof out, "d_%s", name);
        case_compare_reals(w->c, out, p->t.grad, p->t.count, NULL, 1);
    }
}

static void run(whole *w) {
    model_case *c = w->c;
    if (!read_batch(w) || !build(w)) return;
    task_sums report = {0};
    const task_options o = {.label_smoothing = case_number(c, "label_smoothing")};
    pass p = {.tape = w->t, .batch = &w->batch, .mode = NORM_TRAIN};
    tensor *logits = w->m->row->forward(w->m, &p);
    if (!case_tape_fine(c, w->t) || !logits) return;
    compare_encoder(w);
    compare_rows(c, "logits", logits, &w->out);
    tensor *loss = task_of(TASK_PAIRS)->loss(&o, &p, logits, &report);
    tape_backward(w->t, loss, 1);
    if (!case_tape_fine(c, w->t)) return;
    case_compare(c, "loss", &report.loss, 1, NULL, 1);
    case_compare(c, "nll", &report.nll, 1, NULL, 1);
    compare_grads(w);
}

void check_transformer_full(model_case *c) {
    whole w = {.c = c, .t = case_tape(c)};
    if (w.t) run(&w);
    tape_free(w.t);
    model_free(w.m);
}
