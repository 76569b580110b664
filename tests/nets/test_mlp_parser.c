/* The parser's network: sizes, formula in double, activations, dropout. Each state is scored alone:
 * the same bytes for any other states, any number of threads and every normalization. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nets/models.h"
#include "testing/check.h"

enum {
    WORDS = 20,
    TAGS = 9,
    LABELS = 7,
    CLASSES = 7,
    ROWS = 37,
    FEATURES = 48,
    D = 6,
    HIDDEN = 24
};

static const data_shape labelled = {.task = TASK_TREES,
                                    .vocabulary = WORDS,
                                    .pos_tags = TAGS,
                                    .arc_labels = LABELS,
                                    .classes = CLASSES};

static model_options options(const char *preset, const char *norm) {
    model_options o = {
        .name = "mlp_parser", .norm_eps = NAN, .norm_alpha = NAN, .dropout = NAN, .seed = 3};
    strcpy(o.preset, preset);
    strcpy(o.norm, norm);
    return o;
}

static model *create(const model_options *o, const data_shape *shape) {
    sr_failure why = {0};
    model *m = model_create(o, shape, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

static void counts(void **state) {
    (void)state;
    model_options o = options("", "ln");
    model *m = create(&o, &labelled);
    assert_int_equal(params_total(&m->params), (WORDS + TAGS + LABELS) * 50 + 2400 * 512 + 512 +
                                                   2 * 512 + 512 * CLASSES + CLASSES);
    assert_int_equal(m->sites, 1);
    assert_string_equal(m->site[0]->name, "hidden");
    assert_int_equal(m->site[0]->features, 512);
    assert_ptr_equal(m->embedding, &m->params.item[0]->t);
    model_free(m);
    const data_shape plain = {
        .task = TASK_TREES, .vocabulary = WORDS, .pos_tags = TAGS, .classes = 3};
    o = options("chen-manning", "none");
    m = create(&o, &plain);
    assert_int_equal(params_total(&m->params),
                     (WORDS + TAGS) * 50 + 1800 * 200 + 200 + 200 * 3 + 3);
    model_free(m);
    o.hidden_dim = 8, o.embed_dim = 3;
    m = create(&o, &plain);
    assert_int_equal(params_total(&m->params), (WORDS + TAGS) * 3 + 36 * 3 * 8 + 8 + 8 * 3 + 3);
    model_free(m);
    sr_failure why = {0};
    strcpy(o.preset, "ptb");
    assert_null(model_create(&o, &plain, &why));
    check_failure(&why, SR_USAGE, "preset 'ptb' of model mlp_parser is not one of adanorm|");
}

static void initial_values(void **state) {
    (void)state;
    model_options o = options("", "none");
    model *m = create(&o, &labelled);
    static const struct {
        const char *name;
        double within;
    } want[] = {{"embedding.word", 0.01},
                {"embedding.pos", 0.01},
                {"embedding.label", 0.01},
                {"hidden_layer.weight", 0.02041241452319315},
                {"hidden_layer.bias", 0.02041241452319315},
                {"classify.weight", 0.04419417382415922},
                {"classify.bias", 0.04419417382415922}};
    assert_int_equal(m->params.count, 7);
    for (int i = 0; i < 7; i++) {
        const param *p = m->params.item[i];
        double largest = 0;
        assert_string_equal(p->name, want[i].name);
        for (int64_t k = 0; k < p->t.count; k++)
            largest = fmax(largest, fabs((double)p->t.value[k]));
        check_at_most(largest, want[i].within * 1.000001);
        check_above(largest, want[i].within * (p->t.count > 100 ? 0.9 : 0.3));
    }
    model_free(m);
}

/* -- the formula */

static int32_t feature[ROWS * FEATURES];

static void draw_features(void) {
    rng r = rng_create(9);
    for (int i = 0; i < ROWS * FEATURES; i++) {
        const int column = i % FEATURES;
        feature[i] = (int32_t)rng_below(&r, column < 18 ? WORDS : column < 36 ? TAGS : LABELS);
    }
}

static const batch all = {
    .task = TASK_TREES, .count = ROWS, .tokens = ROWS, .features = FEATURES, .feature = feature};

/* Larger weights than the initial ones, so that every part has an effect. */
static model *small_model(const char *norm, const char *activation, double dropout) {
    model_options o = options("", norm);
    o.embed_dim = D, o.hidden_dim = HIDDEN, o.dropout = dropout;
    strcpy(o.activation, activation);
    model *m = create(&o, &labelled);
    rng r = rng_create(4);
    for (int i = 0; i < m->params.count; i++)
        for (int64_t k = 0; k < m->params.item[i]->t.count; k++)
            m->params.item[i]->t.value[k] += (real)(0.2 * rng_normal(&r));
    const norm_site *s = m->site[0];
    for (int i = 0; i < NORM_STATE_MAX && s->state[i]; i++)
        for (int64_t k = 0; k < s->state_count[i]; k++)
            s->state[i][k] = !strcmp(s->method->state[i].name, "mu") ? 0.3 * rng_normal(&r)
                                                                     : 0.5 + rng_uniform(&r);
    return m;
}

static const real *value_of(const model *m, const char *name) {
    for (int i = 0; i < m->params.count; i++)
        if (!strcmp(m->params.item[i]->name, name)) return m->params.item[i]->t.value;
    fail_msg("no parameter %s", name);
    return NULL;
}

/* Logits of one row, without a norm. */
static void plain_logits(const model *m, const int32_t *f, const char *activation, double *logit) {
    const real *table[] = {value_of(m, "embedding.word"), value_of(m, "embedding.pos"),
                           value_of(m, "embedding.label")};
    const real *w1 = value_of(m, "hidden_layer.weight"), *b1 = value_of(m, "hidden_layer.bias");
    const real *w2 = value_of(m, "classify.weight"), *b2 = value_of(m, "classify.bias");
    double h[HIDDEN];
    for (int k = 0; k < HIDDEN; k++) {
        double x = (double)b1[k];
        for (int c = 0; c < FEATURES * D; c++)
            x += (double)w1[k * FEATURES * D + c] * (double)table[c / D / 18][f[c / D] * D + c % D];
        h[k] = *activation == 'r' ? fmax(x, 0) : *activation == 'c' ? x * x * x : tanh(x);
    }
    for (int c = 0; c < CLASSES; c++) {
        logit[c] = (double)b2[c];
        for (int k = 0; k < HIDDEN; k++) logit[c] += (double)w2[c * HIDDEN + k] * h[k];
    }
}

static tensor *forward(model *m, tape *t, const batch *b, norm_mode mode, bool training) {
    tape_reset(t, rng_create(1), training, training);
    pass p = {.tape = t, .batch = b, .mode = mode};
    return m->row->forward(m, &p);
}

static void formula(void **state) {
    (void)state;
    static const char *const activation[] = {"relu", "cube", "tanh"};
    draw_features();
    for (int a = 0; a < 3; a++) {
        model *m = small_model("none", activation[a], 0.5);
        tape *t = tape_create(2, NULL);
        const tensor *y = forward(m, t, &all, NORM_RUNNING, false);
        assert_non_null(y);
        assert_true(y->dim[0] == ROWS && y->dim[1] == CLASSES);
        for (int i = 0; i < ROWS; i++) {
            double want[CLASSES], got[CLASSES];
            plain_logits(m, feature + i * FEATURES, activation[a], want);
            for (int c = 0; c < CLASSES; c++) got[c] = (double)y->value[i * CLASSES + c];
            check_near_double(activation[a], got, want, CLASSES, 1e-4, 1e-4);
        }
        tape_free(t);
        model_free(m);
    }
}

/* The presets' activations, and the option that overrides them. */
static void presets_differ(void **state) {
    (void)state;
    draw_features();
    static const char *const preset[] = {"adanorm", "chen-manning", "chen-manning"};
    static const char *const said[] = {"", "", "tanh"}, *const want[] = {"relu", "cube", "tanh"};
    for (int i = 0; i < 3; i++) {
        model_options o = options(preset[i], "none");
        o.embed_dim = D, o.hidden_dim = HIDDEN;
        strcpy(o.activation, said[i]);
        model *m = create(&o, &labelled);
        tape *t = tape_create(1, NULL);
        const tensor *y = forward(m, t, &all, NORM_RUNNING, false);
        double logit[CLASSES], got[CLASSES];
        plain_logits(m, feature, want[i], logit);
        for (int c = 0; c < CLASSES; c++) got[c] = (double)y->value[c];
        check_near_double(want[i], got, logit, CLASSES, 1e-5, 1e-6);
        tape_free(t);
        model_free(m);
    }
}

/* Hidden units are dropped only in training. With relu and positive output weights, the expected
 * sum is unchanged. */
static void dropout(void **state) {
    (void)state;
    draw_features();
    double mean[3];
    for (int i = 0; i < 3; i++) {
        model *m = small_model("none", "relu", i == 2 ? 0 : 0.5);
        real *w = (real *)value_of(m, "classify.weight"), *b = (real *)value_of(m, "classify.bias");
        for (int k = 0; k < CLASSES * HIDDEN; k++) w[k] = 1;
        for (int k = 0; k < CLASSES; k++) b[k] = 0;
        tape *t = tape_create(1, NULL);
        const tensor *y = forward(m, t, &all, NORM_TRAIN, i > 0);
        mean[i] = 0;
        for (int k = 0; k < ROWS; k++) mean[i] += (double)y->value[k * CLASSES] / ROWS;
        tape_free(t);
        model_free(m);
    }
    check_equals(mean[0], mean[2]); /* evaluation, and training without dropout */
    check_differs(mean[1], mean[0]);
    check_within(mean[1] / mean[0], 1, 0.25);
}

static void wrong_features(void **state) {
    (void)state;
    model *m = small_model("none", "", 0);
    tape *t = tape_create(1, NULL);
    batch b = all;
    b.features = 36;
    assert_null(forward(m, t, &b, NORM_RUNNING, false));
    check_failure(tape_failure(t), SR_USAGE, "model mlp_parser has 48 features, not 36");
    tape_free(t);
    model_free(m);
}

/* -- each state alone */

static void score(const model *m, void *scorer, int64_t first, int64_t rows, real *logits) {
    sr_failure why = {0};
    check_ok(m->row->scorer->score(scorer, rows, feature + first * FEATURES, logits, &why), &why);
}

static void check_scorer(const char *norm) {
    sr_failure why = {0};
    model *m = small_model(norm, "relu", 0.5);
    tape *t = tape_create(1, &why);
    real whole[ROWS * CLASSES], part[ROWS * CLASSES];
    double want[ROWS * CLASSES], got[ROWS * CLASSES];
    const tensor *y = forward(m, t, &all, NORM_RUNNING, false);
    assert_non_null(y);
    for (int threads = 1; threads < 4; threads++) {
        void *s = m->row->scorer->create(m, threads, &why);
        if (!s) fail_msg("%s: %s", norm, why.text);
        if (threads == 1) score(m, s, 0, ROWS, whole);
        score(m, s, 0, ROWS, part);
        assert_memory_equal(part, whole, sizeof whole);
        for (int i = 0; i < ROWS; i++) score(m, s, i, 1, part + i * CLASSES);
        assert_memory_equal(part, whole, sizeof whole);
        for (int i = 0; i < ROWS; i += 9)
            score(m, s, i, i + 9 < ROWS ? 9 : ROWS - i, part + i * CLASSES);
        assert_memory_equal(part, whole, sizeof whole);
        m->row->scorer->free(s);
    }
    for (int i = 0; i < ROWS * CLASSES; i++)
        want[i] = (double)y->value[i], got[i] = (double)whole[i];
    check_near_double(norm, got, want, ROWS * CLASSES, 1e-4, 1e-4);
    tape_free(t);
    model_free(m);
}

static void scored_alone(void **state) {
    (void)state;
    draw_features();
    for (int i = 0; norm_at(i); i++) {
        char scaled[64];
        check_scorer(norm_at(i)->name);
        snprintf(scaled, sizeof scaled, "%s+ls", norm_at(i)->name);
        if (strcmp(norm_at(i)->name, "none") != 0) check_scorer(scaled);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),       cmocka_unit_test(initial_values),
        cmocka_unit_test(formula),      cmocka_unit_test(presets_differ),
        cmocka_unit_test(dropout),      cmocka_unit_test(wrong_features),
        cmocka_unit_test(scored_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
