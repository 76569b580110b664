/* The classifier of sentences: parameter counts and sites, independence of padding, pooling by
 * hand, rejected options. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nets/layers/layers.h"
#include "nets/models.h"
#include "testing/check.h"

static model_options options(const char *preset, const char *norm) {
    model_options o = {.norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = NAN,
                       .attention_dropout = NAN,
                       .relu_dropout = NAN,
                       .seed = 1};
    strcpy(o.name, "transformer_classifier");
    strcpy(o.preset, preset);
    strcpy(o.norm, norm);
    return o;
}

static data_shape shape_of(int64_t vocabulary, int64_t classes) {
    return (data_shape){
        .task = TASK_SENTENCES, .vocabulary = vocabulary, .classes = classes, .longest = 64};
}

static model *create(const model_options *o, const data_shape *shape) {
    sr_failure why = {0};
    model *m = model_create(o, shape, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

static void expect_parameters(const model_options *o, int64_t d, int64_t want) {
    const data_shape shape = shape_of(50, 5);
    model *m = create(o, &shape);
    assert_int_equal(params_total(&m->params) - 50 * d - 5 * (d + 1), want);
    model_free(m);
}

/* docs/models.md 6 */
static void counts(void **state) {
    (void)state;
    model_options o = options("rt", "ln");
    expect_parameters(&o, 128, 793344);
    o.ffn_dim = 128;
    expect_parameters(&o, 128, 398592);
    o = options("sst5", "ln");
    expect_parameters(&o, 128, 793344);
    o = options("", "ln");
    expect_parameters(&o, 128, 793344);
    /* q, k 32 -> 64; v, o 32 -> 32; FFN; two norms */
    const int64_t imdb = 2 * (32 * 64 + 64) + 2 * (32 * 32 + 32) + 2 * 32 * 256 + 256 + 32 + 128;
    o = options("imdb", "ln");
    expect_parameters(&o, 32, imdb);
    o = options("imdb-mini", "ln");
    expect_parameters(&o, 32, imdb);
    o.key_size = 8, o.value_size = 4;
    expect_parameters(&o, 32, imdb - 2 * (32 * 32 + 32) - 2 * 32 * 16 - 16);
}

static void sites(void **state) {
    (void)state;
    const data_shape shape = shape_of(50, 5);
    model_options o = options("rt", "ln");
    strcpy(o.norm_at, "encoder.3.*=bn,encoder.final=none");
    model *m = create(&o, &shape);
    assert_int_equal(m->sites, 9);
    assert_string_equal(m->site[0]->name, "encoder.0.norm1");
    assert_string_equal(m->site[7]->name, "encoder.3.norm2");
    assert_string_equal(m->site[8]->name, "encoder.final");
    for (int i = 0; i < 9; i++) {
        assert_string_equal(m->site[i]->method->name, i < 6 ? "ln" : i < 8 ? "bn" : "none");
        assert_string_equal(m->site[i]->kind, "encoder");
        assert_true(m->site[i]->takes_positions == (i == 0));
    }
    model_free(m);
    o = options("imdb", "ln");
    m = create(&o, &shape);
    assert_int_equal(m->sites, 2);
    assert_string_equal(m->site[1]->name, "encoder.0.norm2");
    assert_false(m->site[0]->takes_positions);
    model_free(m);
}

static const tensor *weight(const model *m, const char *name) {
    const param *p = params_find(&m->params, name);
    assert_non_null(p);
    return &p->t;
}

static double largest(const tensor *x) {
    double most = 0;
    for (int64_t i = 0; i < x->count; i++) most = fmax(most, fabs((double)x->value[i]));
    return most;
}

/* Uniform distribution: the largest of thousands is close to the bound. */
static void expect_bound(const model *m, const char *name, double bound) {
    const double most = largest(weight(m, name));
    if (!(most <= bound && most > 0.95 * bound)) fail_msg("%s: %g, %g", name, most, bound);
}

static void initial_weights(void **state) {
    (void)state;
    const data_shape shape = shape_of(50, 5);
    model_options o = options("rt", "ln");
    model *m = create(&o, &shape);
    expect_bound(m, "encoder.0.attention.q.weight", 1 / sqrt(128));
    expect_bound(m, "encoder.0.ffn_block.in.weight", 1 / sqrt(128));
    expect_bound(m, "encoder.3.ffn_block.out.weight", 1 / sqrt(512));
    expect_bound(m, "classify.weight", 1 / sqrt(128));
    model_free(m);
    strcpy(o.linear_init, "xavier");
    m = create(&o, &shape);
    expect_bound(m, "encoder.0.ffn_block.in.weight", sqrt(6.0 / (128 + 512)));
    model_free(m);
    o = options("imdb", "ln");
    m = create(&o, &shape);
    expect_bound(m, "encoder.0.attention.q.weight", sqrt(0.5) * sqrt(6.0 / (32 + 64)));
    model_free(m);
}

/* Four heads of 16 and 8 features in a width of 32. */
static void heads_of_other_widths(void **state) {
    (void)state;
    params p;
    params_init(&p, 1);
    const attention_layer a = attention_init(&p, "a", 32, 4, 16, 8, 0.1),
                          b = attention_init(&p, "b", 32, 4, 8, 8, 0.1);
    assert_true(a.q.w->dim[0] == 64 && a.k.w->dim[0] == 64 && a.v.w->dim[0] == 32);
    assert_true(a.o.w->dim[0] == 32 && a.o.w->dim[1] == 32 && a.heads == 4);
    check_equals(a.scale, 0.25);
    check_equals(b.scale, 1 / sqrt(8));
    assert_true(b.q.w->dim[0] == 32 && b.v.w->dim[0] == 32);
    params_free(&p);
}

/* Linear layers of an encoder-decoder follow the same rule. */
static void initial_weights_of_pairs(void **state) {
    (void)state;
    const data_shape shape = {.task = TASK_PAIRS, .vocabulary = 50, .longest = 9};
    model_options o = options("mini", "ln");
    strcpy(o.name, "transformer"), strcpy(o.decoder_norm, "ln");
    strcpy(o.linear_init, "fan-in");
    model *m = create(&o, &shape);
    expect_bound(m, "encoder.0.ffn_block.out.weight", 1 / sqrt(256));
    expect_bound(m, "decoder.0.cross_attention.o.weight", 1 / sqrt(128));
    model_free(m);
    *o.linear_init = 0;
    m = create(&o, &shape);
    expect_bound(m, "encoder.0.ffn_block.out.weight", sqrt(6.0 / (128 + 256)));
    model_free(m);
}

/* -- forward */

enum { SENTENCES = 3, WORDS = 40 };

typedef struct sentences {
    int32_t word[SENTENCES * WORDS];
    uint8_t mask[SENTENCES * WORDS];
    batch b;
} sentences;

/* Sentences of 5, 3 and 1 words with <s> included, padded to `length`. */
static void fill(sentences *s, int64_t length) {
    static const int64_t words[SENTENCES] = {5, 3, 1};
    for (int64_t i = 0; i < SENTENCES; i++)
        for (int64_t k = 0; k < length; k++) {
            const bool padding = k >= words[i];
            s->word[i * length + k] = padding  ? TOKEN_PAD
                                      : k == 0 ? TOKEN_BOS
                                               : (int32_t)(4 + (7 * i + 3 * k) % 40);
            s->mask[i * length + k] = !padding;
        }
    s->b = (batch){.task = TASK_SENTENCES,
                   .count = SENTENCES,
                   .tokens = SENTENCES,
                   .source_length = length,
                   .source = s->word,
                   .source_mask = s->mask};
}

static tensor *forward(model *m, tape *t, const sentences *s, norm_mode mode) {
    pass p = {.tape = t, .batch = &s->b, .mode = mode};
    tape_reset(t, rng_create(1), false, false);
    return m->row->forward(m, &p);
}

static tape *make_tape(void) {
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    assert_non_null(t);
    return t;
}

/* Returns the largest change of a logit when padding to `length`. */
static double padding_moves(model *m, int64_t length, norm_mode mode) {
    enum { CLASSES = 5 };
    sentences s;
    double want[SENTENCES * CLASSES], farthest = 0;
    tape *t = make_tape();
    fill(&s, 5);
    tensor *y = forward(m, t, &s, mode);
    assert_true(y && y->count == SENTENCES * CLASSES);
    for (int64_t i = 0; i < y->count; i++) want[i] = (double)y->value[i];
    fill(&s, length);
    y = forward(m, t, &s, mode);
    assert_non_null(y);
    for (int64_t i = 0; i < y->count; i++)
        farthest = fmax(farthest, fabs((double)y->value[i] - want[i]));
    tape_free(t);
    return farthest;
}

/* For every normalization; with the control experiment padding does matter. */
static void padding_is_nothing(void **state) {
    (void)state;
    const data_shape shape = shape_of(50, 5);
    const char *const norms[] = {"ln", "bn", "pn", "rbn"}, *const presets[] = {"rt", "imdb"};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            model_options o = options(presets[k], norms[i]);
            model *m = create(&o, &shape);
            check_below(padding_moves(m, WORDS, NORM_BATCH), 1e-4);
            check_below(padding_moves(m, WORDS, NORM_RUNNING), 1e-4);
            model_free(m);
        }
    for (int k = 0; k < 2; k++) {
        model_options o = options(presets[k], "bn");
        o.count_padding = true;
        model *m = create(&o, &shape);
        check_above(padding_moves(m, WORDS, NORM_BATCH), 1e-2);
        model_free(m);
    }
}

/* Each site is normalized once in a pass. */
static void every_site(void **state) {
    (void)state;
    const data_shape shape = shape_of(50, 5);
    const char *const placements[] = {"pre", "post"};
    for (int k = 0; k < 2; k++) {
        model_options o = options("rt", "bn");
        strcpy(o.placement, placements[k]);
        model *m = create(&o, &shape);
        tape *t = make_tape();
        sentences s;
        fill(&s, 5);
        assert_non_null(forward(m, t, &s, NORM_TRAIN));
        assert_int_equal(m->sites, k ? 8 : 9);
        for (int i = 0; i < m->sites; i++) assert_int_equal(m->site[i]->calls, 1);
        tape_free(t);
        model_free(m);
    }
}

/* Ops that draw random numbers in a training pass. */
static int64_t draws(const char *preset, double dropout, double attention, double relu) {
    const data_shape shape = shape_of(50, 5);
    model_options o = options(preset, "ln");
    o.dropout = dropout, o.attention_dropout = attention, o.relu_dropout = relu;
    model *m = create(&o, &shape);
    tape *t = make_tape();
    sentences s;
    fill(&s, 5);
    pass p = {.tape = t, .batch = &s.b, .mode = NORM_TRAIN};
    tape_reset(t, rng_create(1), true, false);
    assert_non_null(m->row->forward(m, &p));
    const int64_t count = (int64_t)t->draws;
    tape_free(t);
    model_free(m);
    return count;
}

/* Dropout acts on the embedding and twice per layer, each other option once per layer. rt has four
 * layers; imdb has one, without positions. */
static void options_of_dropout(void **state) {
    (void)state;
    assert_int_equal(draws("rt", NAN, NAN, NAN), 9);
    assert_int_equal(draws("rt", 0, 0.1, 0), 4);
    assert_int_equal(draws("rt", 0, 0, 0.1), 4);
    assert_int_equal(draws("imdb", NAN, NAN, NAN), 5);
    assert_int_equal(draws("imdb", 0.1, 0, 0), 3);
    assert_int_equal(draws("imdb", 0, 0, 0), 0);
}

/* Zeros the layer's outputs: the logits are W mean(x) + b with x the embedding by hand. */
static void silence(model *m) {
    const char *const silent[] = {"encoder.0.attention.o.weight", "encoder.0.attention.o.bias",
                                  "encoder.0.ffn_block.out.weight", "encoder.0.ffn_block.out.bias"};
    for (int i = 0; i < 4; i++) {
        const tensor *x = weight(m, silent[i]);
        memset(x->value, 0, (size_t)x->count * sizeof *x->value);
    }
}

enum { D = 8 };

/* sqrt(d) E[word] + P[position], pooled. */
static void pool_by_hand(const model *m, const sentences *s, int64_t sentence, bool first,
                         bool positions, double *x) {
    const int64_t T = s->b.source_length;
    int64_t n = 0;
    real table[(WORDS + 8) * D];
    op_embedding_positions(table, WORDS + 8, D, TOKEN_PAD);
    memset(x, 0, D * sizeof *x);
    for (int64_t k = 0; k < (first ? 1 : T); k++) {
        if (!s->mask[sentence * T + k]) continue;
        const real *e = m->embedding->value + s->word[sentence * T + k] * D;
        n++;
        for (int j = 0; j < D; j++)
            x[j] += sqrt((double)D) * (double)e[j] +
                    (positions ? (double)table[(TOKEN_PAD + 1 + k) * D + j] : 0);
    }
    for (int j = 0; j < D; j++) x[j] /= (double)n;
}

static void check_pooling(const char *pooling, const char *positions) {
    const data_shape shape = shape_of(50, 5);
    sentences s;
    model_options o = options("rt", "none");
    o.embed_dim = D, o.heads = 2, o.layers = 1, o.ffn_dim = 4;
    strcpy(o.pooling, pooling), strcpy(o.positions, positions);
    model *m = create(&o, &shape);
    silence(m);
    tape *t = make_tape();
    fill(&s, 9);
    const tensor *y = forward(m, t, &s, NORM_RUNNING), *w = weight(m, "classify.weight"),
                 *b = weight(m, "classify.bias");
    assert_non_null(y);
    for (int64_t i = 0; i < SENTENCES; i++) {
        double x[D];
        pool_by_hand(m, &s, i, !strcmp(pooling, "cls"), !strcmp(positions, "sinusoidal"), x);
        for (int c = 0; c < 5; c++) {
            double want = (double)b->value[c];
            for (int j = 0; j < D; j++) want += x[j] * (double)w->value[c * D + j];
            check_within((double)y->value[i * 5 + c], want, 1e-5);
        }
    }
    tape_free(t);
    model_free(m);
}

static void pooling_by_hand(void **state) {
    (void)state;
    check_pooling("mean", "sinusoidal");
    check_pooling("mean", "none");
    check_pooling("cls", "sinusoidal");
    check_pooling("cls", "none");
}

/* -- rejected options */

static void refuse(const model_options *o, const char *part) {
    const data_shape shape = shape_of(50, 5);
    sr_failure why = {0};
    assert_null(model_create(o, &shape, &why));
    check_failure(&why, SR_USAGE, part);
}

static void what_is_refused(void **state) {
    (void)state;
    model_options o = options("rt", "ln");
    o.embed_dim = 130;
    refuse(&o, "embed-dim 130 is not divisible by heads 4");
    o = options("mini", "ln");
    refuse(&o,
           "preset 'mini' of model transformer_classifier is not one of rt|sst5|imdb|imdb-mini");
    o = options("rt", "ln");
    o.layers = 65;
    refuse(&o, "at most 64 layers, not 65");
    const data_shape shape = shape_of(50, 5);
    o = options("imdb", "ln");
    model *m = create(&o, &shape);
    tape *t = make_tape();
    sentences s;
    fill(&s, 5);
    s.word[0] = 7;
    assert_null(forward(m, t, &s, NORM_RUNNING));
    check_failure(tape_failure(t), SR_USAGE, "pooling cls: sentences have no <s> in front");
    tape_free(t);
    model_free(m);
}

/* A layer scale uses the method's eps, never 0: otherwise a zero row would be divided by 0. */
static void eps_of_layer_scale(void **state) {
    static const struct {
        const char *norm;
        double given, want;
    } cases[] = {{"dyt+ls", NAN, 1e-5}, {"none+ls", NAN, 1e-5}, {"dyt", NAN, 0},
                 {"brn+ls", NAN, 1e-3}, {"bn+ls", NAN, 1e-5},   {"dyt+ls", 0.25, 0.25}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const data_shape shape = shape_of(50, 5);
        model_options o = options("rt", cases[i].norm);
        o.norm_eps = cases[i].given;
        model *m = create(&o, &shape);
        if (m->site[0]->options.eps != cases[i].want)
            fail_msg("%s: eps %g", cases[i].norm, m->site[0]->options.eps);
        model_free(m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eps_of_layer_scale),
        cmocka_unit_test(counts),
        cmocka_unit_test(sites),
        cmocka_unit_test(initial_weights),
        cmocka_unit_test(initial_weights_of_pairs),
        cmocka_unit_test(heads_of_other_widths),
        cmocka_unit_test(padding_is_nothing),
        cmocka_unit_test(every_site),
        cmocka_unit_test(options_of_dropout),
        cmocka_unit_test(pooling_by_hand),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
