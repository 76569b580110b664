/* test_placements.c -- every placement of the norms, and the norm of queries and keys
 * (docs/models.md 2.3, 2.9). Compares encoder-decoder, language model and classifier with plain
 * loops in double, one sentence at a time without padding. Also names, order and rows of the sites;
 * rejected options. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plain_transformer.h"
#include "testing/check.h"

static const char *const placements[] = {"post", "pre", "peri", "scaled"};

/* -- models */

static model_options options_of(const char *name, const char *placement, const char *qk) {
    model_options o = {.norm = "ln",
                       .decoder_norm = "rmsnorm",
                       .norm_eps = 1e-5,
                       .norm_alpha = NAN,
                       .lm_mask = "causal",
                       .linear_init = "xavier",
                       .pooling = "mean",
                       .positions = "sinusoidal",
                       .char_encoder = "none",
                       .embed_dim = D,
                       .ffn_dim = FFN,
                       .heads = HEADS,
                       .layers = LAYERS,
                       .encoder_layers = LAYERS,
                       .decoder_layers = LAYERS,
                       .dropout = 0.3,
                       .attention_dropout = 0.2,
                       .relu_dropout = 0.1,
                       .seed = 3};
    strcpy(o.name, name);
    strcpy(o.placement, placement);
    strcpy(o.qk_norm, qk);
    return o;
}

/* Every gain and bias has a different value. */
static void wear(model *m) {
    rng r = rng_create(5);
    for (int i = 0; i < m->params.count; i++) {
        param *p = m->params.item[i];
        const bool gain = strstr(p->name, ".gamma") != NULL;
        for (int64_t k = 0; p->t.rank == 1 && k < p->t.count; k++)
            p->t.value[k] = (real)((gain ? 1 : 0) + 0.3 * rng_normal(&r));
    }
}

static model *make(const model_options *o, task id, int64_t classes) {
    const data_shape shape = {
        .task = id, .vocabulary = WORDS, .classes = classes, .longest = LONGEST};
    sr_failure why = {0};
    model *m = model_create(o, &shape, &why);
    if (!m) fail_msg("%s, %s: %s", o->name, o->placement, why.text);
    wear(m);
    return m;
}

/* Two sentences, the second one shorter: positions after its words are padding. */
enum { SENTENCES = 2 };
static const int64_t source_words[] = {LONGEST, 4}, target_words[] = {5, 3};

typedef struct sentences {
    int32_t source[SENTENCES * LONGEST], target[SENTENCES * LONGEST];
    uint8_t source_mask[SENTENCES * LONGEST], target_mask[SENTENCES * LONGEST];
    batch b;
} sentences;

static void fill(int32_t *token, uint8_t *mask, int64_t length, const int64_t *words) {
    for (int64_t i = 0; i < SENTENCES * length; i++) {
        mask[i] = i % length < words[i / length];
        token[i] =
            mask[i] ? TOKEN_FIRST_WORD + (int32_t)(i * 7 % (WORDS - TOKEN_FIRST_WORD)) : TOKEN_PAD;
    }
}

static void sentences_make(sentences *s, task id) {
    const int64_t whole[] = {5, 5};
    fill(s->source, s->source_mask, LONGEST, source_words);
    fill(s->target, s->target_mask, 5, id == TASK_LM ? whole : target_words);
    s->b = (batch){.task = id,
                   .count = SENTENCES,
                   .source_length = LONGEST,
                   .target_length = 5,
                   .source = s->source,
                   .target_in = s->target,
                   .target_out = s->target,
                   .source_mask = s->source_mask,
                   .target_mask = s->target_mask,
                   .tokens = 8};
}

static tensor *forward(model *m, const sentences *s, tape *t, norm_mode mode) {
    tape_reset(t, rng_create(1), mode == NORM_TRAIN, mode == NORM_TRAIN);
    pass p = {.tape = t, .batch = &s->b, .mode = mode};
    tensor *y = m->row->forward(m, &p);
    if (!y) fail_msg("%s", tape_failure(t)->text);
    return y;
}

static tape *fresh_tape(void) {
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    assert_non_null(t);
    return t;
}

static void compare(const char *what, const real *got, const double *want, int64_t count) {
    double *wide = plain_numbers(count);
    for (int64_t i = 0; i < count; i++) wide[i] = (double)got[i];
    if (!check_close(what, wide, want, count, 1e-4, 1e-4)) fail_msg("%s", what);
    free(wide);
}

static const char *described(const char *name, const char *placement, const char *qk) {
    static char text[128];
    snprintf(text, sizeof text, "%s, %s, qk-norm %s", name, placement, qk);
    return text;
}

/* -- complete networks */

static void check_pairs(const char *placement, const char *qk) {
    const model_options o = options_of("transformer", placement, qk);
    sentences s;
    model *m = make(&o, TASK_PAIRS, 0);
    tape *t = fresh_tape();
    const plain p = {m, placement};
    sentences_make(&s, TASK_PAIRS);
    const tensor *y = forward(m, &s, t, NORM_RUNNING);
    for (int i = 0; i < SENTENCES; i++) {
        double want[LONGEST * WORDS];
        double *memory = plain_stack(&p, "encoder", s.source + i * LONGEST, source_words[i],
                                     TOKEN_PAD, false, NULL, 0);
        double *x = plain_stack(&p, "decoder", s.target + i * 5, target_words[i], TOKEN_PAD, true,
                                memory, source_words[i]);
        plain_logits(&p, target_words[i], x, want);
        compare(described("transformer", placement, qk), y->value + i * 5 * WORDS, want,
                target_words[i] * WORDS);
        free(x), free(memory);
    }
    tape_free(t);
    model_free(m);
}

static void check_text(const char *placement, const char *qk) {
    const model_options o = options_of("transformer_lm", placement, qk);
    sentences s;
    model *m = make(&o, TASK_LM, 0);
    tape *t = fresh_tape();
    const plain p = {m, placement};
    sentences_make(&s, TASK_LM);
    const tensor *y = forward(m, &s, t, NORM_RUNNING);
    for (int i = 0; i < SENTENCES; i++) {
        double want[LONGEST * WORDS];
        double *x = plain_stack(&p, "layer", s.target + i * 5, 5, -1, true, NULL, 0);
        plain_logits(&p, 5, x, want);
        compare(described("transformer_lm", placement, qk), y->value + i * 5 * WORDS, want,
                5 * WORDS);
        free(x);
    }
    tape_free(t);
    model_free(m);
}

static void check_classes(const char *placement, const char *qk) {
    enum { CLASSES = 4 };
    const model_options o = options_of("transformer_classifier", placement, qk);
    sentences s;
    model *m = make(&o, TASK_SENTENCES, CLASSES);
    tape *t = fresh_tape();
    const plain p = {m, placement};
    sentences_make(&s, TASK_SENTENCES);
    const tensor *y = forward(m, &s, t, NORM_RUNNING);
    for (int i = 0; i < SENTENCES; i++) {
        const int64_t n = source_words[i];
        double mean[D] = {0};
        double *x =
            plain_stack(&p, "encoder", s.source + i * LONGEST, n, TOKEN_PAD, false, NULL, 0);
        for (int64_t k = 0; k < n * D; k++) mean[k % D] += x[k] / (double)n;
        double *want = plain_linear(&p, "classify", 1, D, CLASSES, mean);
        compare(described("transformer_classifier", placement, qk), y->value + i * CLASSES, want,
                CLASSES);
        free(x), free(want);
    }
    tape_free(t);
    model_free(m);
}

static void whole_networks(void **state) {
    (void)state;
    static const char *const qk[] = {"none", "ln", "rmsnorm"};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            check_pairs(placements[i], qk[k]);
            check_text(placements[i], qk[k]);
            check_classes(placements[i], qk[k]);
        }
}

/* -- sites */

static void expect_sites(const char *name, task id, const char *placement, const char *qk,
                         const char *const *want) {
    model_options o = options_of(name, placement, qk);
    o.layers = o.encoder_layers = o.decoder_layers = 1;
    if (id == TASK_TAGS) o.heads = 2;
    if (!strcmp(name, "transformer_xl")) o.head_dim = DH;
    model *m = make(&o, id, 4);
    int count = 0;
    for (; want[count]; count++) {
        const bool of_heads = strstr(want[count], "attention.") != NULL;
        const norm_site *s = count < m->sites ? m->site[count] : NULL;
        assert_non_null(s);
        assert_string_equal(s->name, want[count]);
        assert_int_equal(s->depth, count);
        assert_int_equal(!strcmp(s->kind, "attention"), of_heads);
        assert_int_equal(s->features, of_heads ? D / o.heads : D);
        if (of_heads) assert_string_equal(s->method->name, qk);
    }
    assert_int_equal(m->sites, count);
    model_free(m);
}

#define SITES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void names_of_sites(void **state) {
    (void)state;
    expect_sites("transformer", TASK_PAIRS, "peri", "none",
                 SITES("encoder.embedding", "encoder.0.norm1", "encoder.0.norm1_out",
                       "encoder.0.norm2", "encoder.0.norm2_out", "encoder.final",
                       "decoder.embedding", "decoder.0.self", "decoder.0.self_out",
                       "decoder.0.cross", "decoder.0.cross_out", "decoder.0.ffn",
                       "decoder.0.ffn_out", "decoder.final"));
    expect_sites("transformer", TASK_PAIRS, "scaled", "ln",
                 SITES("encoder.0.norm1", "encoder.0.attention.q_norm",
                       "encoder.0.attention.k_norm", "encoder.0.norm2", "encoder.final",
                       "decoder.0.self", "decoder.0.self_attention.q_norm",
                       "decoder.0.self_attention.k_norm", "decoder.0.cross",
                       "decoder.0.cross_attention.q_norm", "decoder.0.cross_attention.k_norm",
                       "decoder.0.ffn", "decoder.final"));
    expect_sites("transformer_lm", TASK_LM, "post", "rmsnorm",
                 SITES("layer.0.attention.q_norm", "layer.0.attention.k_norm", "layer.0.norm1",
                       "layer.0.norm2"));
    expect_sites("transformer_classifier", TASK_SENTENCES, "peri", "bn",
                 SITES("encoder.embedding", "encoder.0.norm1", "encoder.0.attention.q_norm",
                       "encoder.0.attention.k_norm", "encoder.0.norm1_out", "encoder.0.norm2",
                       "encoder.0.norm2_out", "encoder.final"));
    static const char *const language[] = {"tensorized", "transformer_xl"};
    for (int i = 0; i < 2; i++) {
        expect_sites(language[i], TASK_LM, "peri", "",
                     SITES("layer.embedding", "layer.0.norm1", "layer.0.norm1_out", "layer.0.norm2",
                           "layer.0.norm2_out", "layer.final"));
        expect_sites(language[i], TASK_LM, "scaled", "", SITES("layer.0.norm1", "layer.0.norm2"));
    }
    expect_sites("tener", TASK_TAGS, "peri", "",
                 SITES("encoder.embedding", "encoder.0.norm1", "encoder.0.norm1_out",
                       "encoder.0.norm2", "encoder.0.norm2_out", "encoder.final"));
    expect_sites("transformer_xl", TASK_LM, "post", "bn",
                 SITES("layer.0.attention.q_norm", "layer.0.attention.k_norm", "layer.0.norm1",
                       "layer.0.norm2"));
    expect_sites("transformer_xl", TASK_LM, "peri", "ln",
                 SITES("layer.embedding", "layer.0.norm1", "layer.0.attention.q_norm",
                       "layer.0.attention.k_norm", "layer.0.norm1_out", "layer.0.norm2",
                       "layer.0.norm2_out", "layer.final"));
    expect_sites("tener", TASK_TAGS, "post", "ln",
                 SITES("encoder.0.attention.q_norm", "encoder.0.attention.k_norm",
                       "encoder.0.norm1", "encoder.0.norm2"));
    expect_sites("tener", TASK_TAGS, "scaled", "bn",
                 SITES("encoder.0.norm1", "encoder.0.attention.q_norm",
                       "encoder.0.attention.k_norm", "encoder.0.norm2"));
}

/* Rows, samples and width of a site, and its position in the pass. */
typedef struct seen {
    int calls, *order, at;
    const uint8_t *mask; /* token mask */
    int64_t rows, valid, samples, width;
} seen;

static void see(void *context, const norm_view *o) {
    seen *s = context;
    const norm_rows *r = o->call->rows;
    s->at = (*s->order)++;
    s->calls++;
    s->rows = r->rows, s->valid = r->valid, s->samples = r->samples, s->width = o->call->features;
    for (int64_t i = 0; i < r->rows; i++) /* sample: the token's sentence */
        assert_int_equal(r->sample[i], i / (r->rows / SENTENCES));
    const int64_t heads = s->width == DH ? HEADS : 1; /* rows of a token */
    for (int64_t i = 0, n = 0; i < r->rows; i++)
        if (s->mask[i / heads]) assert_int_equal(r->index[n++], i);
}

static void rows_of_heads(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        const model_options o = options_of("transformer", placements[k], "ln");
        sentences s;
        seen of[64] = {{0}};
        int order = 0;
        model *m = make(&o, TASK_PAIRS, 0);
        tape *t = fresh_tape();
        sentences_make(&s, TASK_PAIRS);
        for (int i = 0; i < m->sites; i++) {
            const char *name = m->site[i]->name;
            of[i].order = &order;
            of[i].mask = !strncmp(name, "encoder", 7) || strstr(name, "cross_attention.k_norm")
                             ? s.source_mask
                             : s.target_mask;
            m->site[i]->forward_hook = see;
            m->site[i]->hook_context = &of[i];
        }
        forward(m, &s, t, NORM_TRAIN);
        for (int i = 0; i < m->sites; i++) {
            const char *name = m->site[i]->name;
            const bool head = strstr(name, "attention.") != NULL;
            const bool source =
                !strncmp(name, "encoder", 7) || strstr(name, "cross_attention.k_norm");
            assert_int_equal(of[i].calls, 1);
            assert_int_equal(of[i].at, i);
            assert_int_equal(of[i].width, head ? DH : D);
            assert_int_equal(of[i].rows, SENTENCES * (source ? LONGEST : 5) * (head ? HEADS : 1));
            assert_int_equal(of[i].valid, (source ? LONGEST + 4 : 8) * (head ? HEADS : 1));
            assert_int_equal(of[i].samples, SENTENCES);
            assert_string_equal(m->site[i]->kind, head                       ? "attention"
                                                  : !strncmp(name, "enc", 3) ? "encoder"
                                                                             : "decoder");
        }
        tape_free(t);
        model_free(m);
    }
}

/* -- dropout */

typedef struct both {
    double x[SENTENCES * LONGEST * D], y[SENTENCES * LONGEST * D];
} both;

static void keep(void *context, const norm_view *o) {
    both *b = context;
    for (int64_t i = 0; i < o->call->rows->rows * D; i++) {
        b->x[i] = (double)o->x[i];
        b->y[i] = (double)o->y[i];
    }
}

/* Dropout acts after the norm of the embedding and after a branch's second norm, not before. */
static void dropout_of_peri(void **state) {
    (void)state;
    enum { EMBEDDED, NORM1, NORM1_OUT, NORM2, SITES };
    model_options o = options_of("transformer_classifier", "peri", "none");
    o.dropout = 0.5, o.attention_dropout = o.relu_dropout = 0;
    sentences s;
    both *of = calloc(SITES, sizeof *of);
    assert_non_null(of);
    model *m = make(&o, TASK_SENTENCES, 4);
    tape *t = fresh_tape();
    sentences_make(&s, TASK_SENTENCES);
    for (int i = 0; i < SITES; i++) {
        m->site[i]->forward_hook = keep;
        m->site[i]->hook_context = &of[i];
    }
    forward(m, &s, t, NORM_TRAIN);
    int dropped[2] = {0}, kept[2] = {0};
    for (int64_t i = 0; i < SENTENCES * LONGEST * D; i++) {
        if (!s.source_mask[i / D]) continue;
        const double got[2] = {of[NORM1].x[i], of[NORM2].x[i] - of[NORM1].x[i]};
        const double want[2] = {of[EMBEDDED].y[i], of[NORM1_OUT].y[i]};
        for (int k = 0; k < 2; k++) {
            if (fabs(got[k]) < 1e-5)
                dropped[k]++;
            else if (fabs(got[k] - 2 * want[k]) < 1e-4)
                kept[k]++;
            else
                fail_msg("%d: %g of %g", k, got[k], want[k]);
        }
    }
    for (int k = 0; k < 2; k++) assert_true(dropped[k] > 20 && kept[k] > 20);
    free(of);
    tape_free(t);
    model_free(m);
}

/* "none" equals no option. */
static void absent_is_none(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        model_options o = options_of("transformer", placements[k], "");
        model *a = make(&o, TASK_PAIRS, 0);
        strcpy(o.qk_norm, "none");
        model *b = make(&o, TASK_PAIRS, 0);
        assert_int_equal(a->params.count, b->params.count);
        assert_int_equal(a->sites, b->sites);
        model_free(a);
        model_free(b);
    }
}

static void refusals(void **state) {
    (void)state;
    const data_shape shape = {.task = TASK_PAIRS, .vocabulary = WORDS, .longest = LONGEST};
    model_options o = options_of("transformer", "pre", "lm");
    sr_failure why = {0};
    assert_null(model_create(&o, &shape, &why));
    check_failure(&why, SR_USAGE, "unknown normalization 'lm'");
    static const char *const without[] = {"tensorized", "mlp_parser", "resnet20", "mnist_cnn"};
    for (int i = 0; i < 4; i++) assert_false(model_obeys(without[i], "qk-norm"));
    static const char *const with[] = {"transformer", "transformer_lm", "transformer_classifier",
                                       "transformer_xl", "tener"};
    for (int i = 0; i < 5; i++) assert_true(model_obeys(with[i], "qk-norm"));
    assert_false(model_obeys("tensorized", "attention-stats"));
    assert_true(model_obeys("tener", "attention-stats"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_networks), cmocka_unit_test(names_of_sites),
        cmocka_unit_test(rows_of_heads),  cmocka_unit_test(dropout_of_peri),
        cmocka_unit_test(absent_is_none), cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
