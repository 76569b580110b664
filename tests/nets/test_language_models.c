/* The language models: sizes, initial weights, visible tokens, gradients of every parameter,
 * dropout sites, rejected options (docs/models.md 3). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "engine/ops/loss/loss_ops.h"
#include "engine/ops/ops.h"
#include "nets/models.h"
#include "testing/check.h"

static model_options options(const char *name, const char *preset) {
    model_options o = {.norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = NAN,
                       .attention_dropout = NAN,
                       .relu_dropout = NAN,
                       .norm = "ln",
                       .decoder_norm = "bn",
                       .seed = 1};
    strcpy(o.name, name);
    strcpy(o.preset, preset);
    return o;
}

static model *create(const model_options *o, int64_t vocabulary, int64_t window) {
    const data_shape shape = {.task = TASK_LM, .vocabulary = vocabulary, .longest = window};
    sr_failure why = {0};
    model *m = model_create(o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

/* -- sizes */

static void expect(const model_options *o, int64_t vocabulary, int64_t window, int64_t want,
                   int sites) {
    model *m = create(o, vocabulary, window);
    assert_int_equal(params_total(&m->params), want);
    assert_int_equal(m->sites, sites);
    for (int i = 0; i < m->sites; i++) assert_string_equal(m->site[i]->method->name, "ln");
    model_free(m);
}

/* The published 6,715,252 and, with 267,735 words, 85,356,626. Here fewer words; each word has 256
 * weights and a bias. */
static void tensorized_counts(void **state) {
    (void)state;
    model_options o = options("tensorized", "ptb");
    expect(&o, 10000, 32, 6715252, 6);
    strcpy(o.placement, "pre");
    expect(&o, 10000, 32, 6715252, 6);
    o.core_number = 3;
    expect(&o, 10000, 32, 6715252 + 3 * 2 * 40, 6);
    o = options("tensorized", "wikitext-103");
    strcpy(o.adaptive_cutoffs, "100,200,400");
    expect(&o, 1000, 80, 85356626 - (267735 - 1000) * 257, 12);
    o = options("tensorized", ""); /* ptb's */
    o.layers = 1;
    expect(&o, 50, 32, 1381724 + 50 * 257 + 80, 2);
}

static void transformer_lm_counts(void **state) {
    (void)state;
    const int64_t d = 256, layer = 4 * (d * d + d) + 2 * d * 2100 + 2100 + d + 4 * d;
    model_options o = options("transformer_lm", "ptb");
    expect(&o, 100, 32, 100 * d + 3 * layer + 2 * d, 7);
    strcpy(o.placement, "post");
    expect(&o, 100, 32, 100 * d + 3 * layer, 6);
}

static void site_index(void **state) {
    (void)state;
    static const char *const want[] = {"layer.0.norm1", "layer.0.norm2", "layer.1.norm1",
                                       "layer.1.norm2", "layer.final"};
    for (int plain = 0; plain < 2; plain++) {
        model_options o = options(plain ? "transformer_lm" : "tensorized", "ptb-mini");
        strcpy(o.norm_at, "layer.0.*=bn,layer.1.norm2=pn");
        model *m = create(&o, 40, 5);
        assert_int_equal(m->sites, 4 + plain);
        for (int i = 0; i < m->sites; i++) assert_string_equal(m->site[i]->name, want[i]);
        assert_string_equal(m->site[1]->method->name, "bn");
        assert_string_equal(m->site[3]->method->name, "pn");
        assert_true(m->site[0]->takes_positions == plain);
        assert_ptr_equal(m->embedding, &params_find(&m->params, "embedding")->t);
        model_free(m);
    }
}

/* -- initial weights of the tensorized transformer (3.2) */

static void spread(const tensor *x, double *mean, double *deviation) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < x->count; i++) sum += (double)x->value[i];
    *mean = sum / (double)x->count;
    for (int64_t i = 0; i < x->count; i++) square += pow((double)x->value[i] - *mean, 2);
    *deviation = sqrt(square / (double)x->count);
}

static void initial_weights(void **state) {
    (void)state;
    model_options o = options("tensorized", "wikitext-2");
    strcpy(o.adaptive_cutoffs, "40,60");
    model *m = create(&o, 100, 8);
    for (int i = 0; i < m->params.count; i++) {
        const param *p = &*m->params.item[i];
        const char *last = strrchr(p->name, '.');
        double mean, deviation, want = 0, about = 0.02;
        spread(&p->t, &mean, &deviation);
        if (last && !strcmp(last, ".core")) want = 1.0 / 32, about = 0;
        if (last && (!strcmp(last, ".bias") || !strcmp(last, ".beta"))) about = 0;
        if (last && !strcmp(last, ".gamma")) want = 1;
        if (!(fabs(mean - want) < 0.012 && fabs(deviation - about) < 0.4 * about + 1e-9))
            fail_msg("%s: %g +- %g, not %g +- %g", p->name, mean, deviation, want, about);
    }
    model_free(m);
}

/* -- forward */

enum { WORDS = 23, WINDOW = 6, SEQS = 2, ROWS = SEQS * WINDOW };

typedef struct kind {
    const char *name, *placement, *cutoffs;
} kind;

static const kind kinds[] = {{"tensorized", "post", ""},
                             {"tensorized", "pre", ""},
                             {"tensorized", "post", "5,9"},
                             {"transformer_lm", "post", ""},
                             {"transformer_lm", "pre", ""}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* A small model; its large weights keep rounding from hiding a path. */
static model *small(const kind *k, const char *mask, double dropout) {
    model_options o = options(k->name, "ptb-mini");
    o.layers = 2, o.embed_dim = 8, o.ffn_dim = 10, o.dropout = dropout;
    if (!strcmp(k->name, "tensorized"))
        o.head_dim = 4, o.core_number = 2;
    else
        o.heads = 2;
    strcpy(o.placement, k->placement);
    strcpy(o.adaptive_cutoffs, k->cutoffs);
    strcpy(o.lm_mask, mask);
    model *m = create(&o, WORDS, WINDOW);
    rng r = rng_create(5);
    for (int i = 0; i < m->params.count; i++) {
        tensor *p = &m->params.item[i]->t;
        for (int64_t n = 0; n < p->count; n++) p->value[n] += (real)(0.4 * rng_normal(&r));
    }
    return m;
}

static const int32_t targets[ROWS] = {3, 22, 7, 0, 9, 5, 1, 8, 12, 4, 0, 6};
static const int32_t tokens[ROWS] = {2, 3, 22, 7, 0, 9, 14, 1, 8, 12, 4, 0};

/* A pass over `input`; the summed loss. */
static tensor *run(model *m, tape *t, const int32_t *input, pass *p, batch *b) {
    *b = (batch){.task = TASK_LM,
                 .count = SEQS,
                 .target_length = WINDOW,
                 .target_in = input,
                 .target_out = targets,
                 .unknown = -1,
                 .tokens = ROWS};
    *p = (pass){.tape = t, .batch = b, .mode = NORM_TRAIN};
    tensor *y = m->row->forward(m, p);
    if (!y) fail_msg("%s", tape_failure(t)->text);
    return y;
}

/* Returns the largest change of each position's output when the token at `changed` of each sequence
 * changes. */
static void changes(const kind *k, const char *mask, int changed, double change[WINDOW]) {
    model *m = small(k, mask, 0);
    int32_t other[ROWS];
    sr_failure why = {0};
    tape *t = tape_create(2, &why);
    pass p;
    batch b;
    tape_reset(t, rng_create(1), false, false);
    const tensor *y = run(m, t, tokens, &p, &b);
    memcpy(other, tokens, sizeof other);
    for (int s = 0; s < SEQS; s++) other[s * WINDOW + changed] = 11 + s;
    const tensor *z = run(m, t, other, &p, &b);
    const int64_t width = y->count / ROWS;
    for (int i = 0; i < WINDOW; i++) change[i] = 0;
    for (int64_t n = 0; n < y->count; n++) {
        const double d = fabs((double)y->value[n] - (double)z->value[n]);
        const int64_t i = n / width % WINDOW;
        if (d > change[i]) change[i] = d;
    }
    tape_free(t);
    model_free(m);
}

/* Causal: a token changes its own output and later ones, never an earlier one. Released: all. */
static void who_sees_what(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++)
        for (int changed = 0; changed < WINDOW; changed++) {
            double causal[WINDOW], released[WINDOW];
            changes(&kinds[k], "causal", changed, causal);
            changes(&kinds[k], "released", changed, released);
            for (int i = 0; i < WINDOW; i++) {
                if ((i < changed) != (causal[i] == 0) || released[i] == 0)
                    fail_msg("%s %s: token %d changes the output at %d by %g causal, %g released",
                             kinds[k].name, kinds[k].placement, changed, i, causal[i], released[i]);
            }
        }
}

static double loss_of(model *m, tape *t, double seed) {
    pass p;
    batch b;
    tape_reset(t, rng_create(9), true, true);
    tensor *y = run(m, t, tokens, &p, &b);
    tensor *loss = m->gives_nll ? op_sum(t, y)
                                : op_cross_entropy(t, y, targets, -1, -1, 0, SMOOTHING_ALL, NULL);
    if (seed != 0) tape_backward(t, loss, (real)seed);
    if (tape_failure(t)) fail_msg("%s", tape_failure(t)->text);
    return (double)loss->value[0];
}

/* Along its gradient g every parameter changes the loss by |g| per step of length 1. */
static void gradients(void **state) {
    (void)state;
    sr_failure why = {0};
    tape *t = tape_create(2, &why);
    for (int k = 0; k < KINDS; k++) {
        model *m = small(&kinds[k], "causal", 0.1);
        params_zero_grad(&m->params);
        loss_of(m, t, 1);
        for (int i = 0; i < m->params.count; i++) {
            tensor *x = &m->params.item[i]->t;
            const char *name = m->params.item[i]->name;
            real *kept = malloc((size_t)x->count * sizeof *kept);
            double norm = 0, value[2];
            for (int64_t n = 0; n < x->count; n++) norm += pow((double)x->grad[n], 2);
            norm = sqrt(norm);
            /* the bias of all keys is the same for every key: no softmax over them sees it */
            const bool key_bias = strstr(name, "attention.k.bias") != NULL;
            if (!(norm > 1e-3) && !key_bias) fail_msg("%s: no gradient", name);
            memcpy(kept, x->value, (size_t)x->count * sizeof *kept);
            const double step = 0.001;
            for (int side = 0; side < 2 && !key_bias; side++) {
                for (int64_t n = 0; n < x->count; n++)
                    x->value[n] = (real)((double)kept[n] +
                                         (side ? 1 : -1) * step / norm * (double)x->grad[n]);
                value[side] = loss_of(m, t, 0);
            }
            memcpy(x->value, kept, (size_t)x->count * sizeof *kept);
            free(kept);
            const double slope = key_bias ? norm : (value[1] - value[0]) / (2 * step);
            if (!(fabs(slope - norm) < 0.03 * norm + 0.01))
                fail_msg("%s %s: %s: slope %g, gradient %g", kinds[k].name, kinds[k].cutoffs, name,
                         slope, norm);
        }
        model_free(m);
    }
    tape_free(t);
}

/* Dropout after the embedding, of the positions, before the output; in each layer after attention,
 * inside and after the FFN. */
static void dropout_sites(void **state) {
    (void)state;
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    pass p;
    batch b;
    model *m = small(&kinds[0], "causal", 0.5);
    tape_reset(t, rng_create(1), true, true);
    run(m, t, tokens, &p, &b);
    int count = 0;
    for (const tape_node *n = t->last; n; n = n->before) count += !strcmp(n->op, "dropout");
    assert_int_equal(count, 1 + 2 * 3 + 1); /* the positions' dropout leaves no node: no gradient */
    assert_int_equal(t->draws, count + 1);
    tape_free(t);
    model_free(m);
}

/* The first site of transformer_lm sees the positions of the window. */
static void position_mean(void **state) {
    (void)state;
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    pass p;
    batch b;
    model *m = small(&kinds[3], "causal", 0);
    tape_reset(t, rng_create(1), true, true);
    run(m, t, tokens, &p, &b);
    double mean = 0, cosine = 0;
    for (int i = 0; i < WINDOW; i++) mean += sin(i) / WINDOW, cosine += cos(i) / WINDOW;
    for (const tape_node *n = t->last; n; n = n->before) {
        if (strcmp(n->op, "embedding") != 0) continue;
        const real *x = n->out->value, *e = m->embedding->value;
        double seen = 0, seen_cosine = 0;
        for (int r = 0; r < ROWS; r++) {
            seen += (double)x[r * 8] - sqrt(8) * (double)e[tokens[r] * 8];
            seen_cosine += (double)x[r * 8 + 4] - sqrt(8) * (double)e[tokens[r] * 8 + 4];
        }
        check_within(seen / ROWS, mean, 1e-5);
        check_within(seen_cosine / ROWS, cosine, 1e-5);
    }
    tape_free(t);
    model_free(m);
}

/* -- errors and messages */

static void conditions(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        model *m = small(&kinds[k], "", 0), *open = small(&kinds[k], "released", 0);
        assert_string_equal(model_condition(m), "mask causal");
        assert_non_null(strstr(model_condition(open), "every position sees its own target"));
        assert_true(m->gives_nll == (*kinds[k].cutoffs != 0));
        model_free(m);
        model_free(open);
    }
}

static void expect_refusal(const model_options *o, const char *part) {
    const data_shape shape = {.task = TASK_LM, .vocabulary = 100, .longest = 4};
    sr_failure why = {0};
    assert_null(model_create(o, &shape, &why));
    check_failure(&why, SR_USAGE, part);
}

static void refusals(void **state) {
    (void)state;
    model_options o = options("tensorized", "ptb-mini");
    static const char *const bad[] = {"5,3", "x", "5,", "0", "1,2,3,4,5,6,7,8,9", "5;6", "-4"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        strcpy(o.adaptive_cutoffs, bad[i]);
        if (strcmp(bad[i], "5,") != 0) expect_refusal(&o, "--adaptive-cutoffs: '");
    }
    strcpy(o.adaptive_cutoffs, "50,100");
    expect_refusal(&o, "100 is not below the 100 words");
    o = options("tensorized", "mini");
    expect_refusal(&o, "'mini' of model tensorized is not one of ptb|");
    o = options("transformer_lm", "mini");
    expect_refusal(&o, "'mini' of model transformer_lm is not one of ptb|");
    o = options("transformer_lm", "ptb-mini");
    o.heads = 3;
    expect_refusal(&o, "128 is not divisible by heads 3");
    o = options("tensorized", "wikitext-2"); /* its cut-offs are beyond the dictionary */
    model *m = create(&o, 4001, 4);
    assert_true(m->gives_nll);
    model_free(m);
    m = create(&o, 4000, 4);
    assert_false(m->gives_nll);
    model_free(m);
}

static void other_windows(void **state) {
    (void)state;
    sr_failure why = {0};
    model_options o = options("tensorized", "ptb-mini");
    model *m = create(&o, WORDS, WINDOW + 1);
    tape *t = tape_create(1, &why);
    const batch b = {.task = TASK_LM, .count = 1, .target_length = WINDOW, .target_in = tokens};
    pass p = {.tape = t, .batch = &b, .mode = NORM_TRAIN};
    tape_reset(t, rng_create(1), true, true);
    assert_null(m->row->forward(m, &p));
    check_failure(tape_failure(t), SR_USAGE, "windows of 7 tokens, not 6");
    tape_free(t);
    model_free(m);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensorized_counts), cmocka_unit_test(transformer_lm_counts),
        cmocka_unit_test(site_index),        cmocka_unit_test(initial_weights),
        cmocka_unit_test(who_sees_what),     cmocka_unit_test(gradients),
        cmocka_unit_test(dropout_sites),     cmocka_unit_test(position_mean),
        cmocka_unit_test(conditions),        cmocka_unit_test(refusals),
        cmocka_unit_test(other_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
