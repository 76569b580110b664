/* Distributions of initial weights (docs/models.md 1.1, 2.2, 2.4): bounds, standard deviations,
 * dependence on the seed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/globs.h"
#include "nets/models.h"
#include "testing/check.h"

enum { WIDTH = 64, FFN = 96 };
typedef enum { CONSTANT, UNIFORM, NORMAL } kind;

/* Distribution of the parameters with matching names: constant, bound or standard deviation a. */
typedef struct rule {
    const char *names;
    kind kind;
    double a;
} rule;

static const data_shape images = {
    .task = TASK_IMAGES, .height = 32, .width = 32, .channels = 3, .classes = 10};
static const data_shape pairs = {.task = TASK_PAIRS, .vocabulary = 120, .longest = 30};

/* init: a value of --init for image models, an embedding standard deviation for text models; "":
 * the model's default. */
static model *create(const char *name, const char *init, uint64_t seed) {
    model_options o = {.norm = "bn",
                       .decoder_norm = "ln",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = NAN,
                       .attention_dropout = NAN,
                       .relu_dropout = NAN,
                       .seed = seed};
    bool text = !strcmp(name, "transformer");
    strcpy(o.name, name);
    strcpy(o.init, text ? "" : init);
    if (text) strcpy(o.preset, "mini"), o.embed_dim = WIDTH, o.ffn_dim = FFN;
    o.embed_std = text && *init ? strtod(init, NULL) : NAN;
    sr_failure why = {0};
    model *m = model_create(&o, text ? &pairs : &images, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

/* Checks the numbers from `first` on. */
static void check_values(const param *p, int64_t first, const rule *r) {
    double most = 0, square = 0, sum = 0, count = (double)(p->t.count - first);
    for (int64_t i = first; i < p->t.count; i++) {
        double v = (double)p->t.value[i];
        most = fmax(most, fabs(v)), square += v * v, sum += v;
    }
    double deviation = sqrt(square / count), slack = 4 / sqrt(count);
    double want = r->kind == UNIFORM ? r->a / sqrt(3) : r->a;
    bool right = fabs(deviation / want - 1) < slack && fabs(sum / count) < want * slack;
    if (r->kind == UNIFORM) right = right && most <= r->a * 1.000001;
    if (r->kind == NORMAL) right = right && most > 2 * r->a;
    if (r->kind == CONSTANT) right = most == fabs(r->a) && sum == count * r->a;
    if (!right)
        fail_msg("%s: deviation %g, not %g; up to %g, mean %g", p->name, deviation, want, most,
                 sum / count);
}

/* The first matching rule; every parameter has one. */
static void check_model(const model *m, const rule *rules) {
    for (int i = 0; i < m->params.count; i++) {
        const param *p = m->params.item[i];
        const rule *r = rules;
        while (r->names && !globs_match(r->names, p->name)) r++;
        if (!r->names) fail_msg("no rule for %s", p->name);
        check_values(p, &p->t == m->embedding ? (TOKEN_PAD + 1) * p->t.dim[1] : 0, r);
    }
}

static void check_transformer(const char *embed_std, double std) {
    const double d = WIDTH;
    const rule rules[] = {{"*attention.q.weight", UNIFORM, sqrt(1.5 / d)},
                          {"*attention.k.weight", UNIFORM, sqrt(1.5 / d)},
                          {"*attention.v.weight", UNIFORM, sqrt(1.5 / d)},
                          {"*attention.q.bias", UNIFORM, 1 / sqrt(d)},
                          {"*attention.k.bias", UNIFORM, 1 / sqrt(d)},
                          {"*attention.v.bias", UNIFORM, 1 / sqrt(d)},
                          {"*attention.o.weight", UNIFORM, sqrt(3 / d)},
                          {"*ffn_block.in.weight", UNIFORM, sqrt(6 / (d + FFN))},
                          {"*ffn_block.out.weight", UNIFORM, sqrt(6 / (d + FFN))},
                          {"*.bias", CONSTANT, 0},
                          {"*.gamma", CONSTANT, 1},
                          {"*.beta", CONSTANT, 0},
                          {"embedding", NORMAL, std},
                          {NULL, CONSTANT, 0}};
    model *m = create("transformer", embed_std, 1);
    check_model(m, rules);
    for (int64_t k = 0; k < WIDTH; k++) {
        check_equals(m->embedding->value[TOKEN_PAD * WIDTH + k], 0);
        check_differs(m->embedding->value[TOKEN_BOS * WIDTH + k], 0);
    }
    model_free(m);
}

static void transformer(void **state) {
    (void)state;
    check_transformer("", 1 / sqrt((double)WIDTH));
    check_transformer("3", 3);
}

static void resnet20(void **state) {
    (void)state;
    for (int pytorch = 0; pytorch < 2; pytorch++) {
        const kind k = pytorch ? UNIFORM : NORMAL;
        const double top = pytorch ? 1 : 2; /* variance: top/fan_in */
        const rule rules[] = {{"stem.weight", k, sqrt(top / 27)},
                              {"stage1.*.weight", k, sqrt(top / 144)},
                              {"stage2.0.conv1.weight", k, sqrt(top / 144)},
                              {"stage2.*.weight", k, sqrt(top / 288)},
                              {"stage3.0.conv1.weight", k, sqrt(top / 288)},
                              {"stage3.*.weight", k, sqrt(top / 576)},
                              {"classify.weight", UNIFORM, 1.0 / 8},
                              {"classify.bias", pytorch ? UNIFORM : CONSTANT, pytorch / 8.0},
                              {"*.gamma", CONSTANT, 1},
                              {"*.beta", CONSTANT, 0},
                              {NULL, CONSTANT, 0}};
        model *m = create("resnet20", pytorch ? "pytorch" : "he", 1);
        check_model(m, rules);
        model_free(m);
    }
}

/* Biases too are drawn where PyTorch draws them. */
static void mnist_cnn(void **state) {
    (void)state;
    const double fan_in[] = {75, 500, 1250, 500}; /* images 32 x 32 x 3: 5 x 5 x 50 remain */
    for (int pytorch = 0; pytorch < 2; pytorch++) {
        const kind k = pytorch ? UNIFORM : NORMAL, biases = pytorch ? UNIFORM : CONSTANT;
        const double top = pytorch ? 1 : 2;
        const rule rules[] = {{"conv1.weight", k, sqrt(top / fan_in[0])},
                              {"conv2.weight", k, sqrt(top / fan_in[1])},
                              {"hidden.weight", k, sqrt(top / fan_in[2])},
                              {"classify.weight", UNIFORM, sqrt(1 / fan_in[3])},
                              {"conv1.bias", biases, pytorch * sqrt(1 / fan_in[0])},
                              {"conv2.bias", biases, pytorch * sqrt(1 / fan_in[1])},
                              {"hidden.bias", biases, pytorch * sqrt(1 / fan_in[2])},
                              {"classify.bias", biases, pytorch * sqrt(1 / fan_in[3])},
                              {"*.gamma", CONSTANT, 1},
                              {"*.beta", CONSTANT, 0},
                              {NULL, CONSTANT, 0}};
        model *m = create("mnist_cnn", pytorch ? "pytorch" : "he", 1);
        check_model(m, rules);
        model_free(m);
    }
}

static bool equal(const tensor *a, const tensor *b) {
    for (int64_t i = 0; i < a->count; i++)
        if (a->value[i] != b->value[i]) return false;
    return true;
}

/* Random weights depend on the seed. */
static void seeds(void **state) {
    (void)state;
    static const char *const names[] = {"resnet20", "transformer"};
    for (int k = 0; k < 2; k++) {
        model *a = create(names[k], "", 1), *b = create(names[k], "", 2),
              *again = create(names[k], "", 1);
        for (int i = 0; i < a->params.count; i++) {
            const tensor *x = &a->params.item[i]->t;
            bool drawn = x->value[0] != x->value[x->count - 1];
            assert_true(equal(x, &again->params.item[i]->t));
            assert_true(equal(x, &b->params.item[i]->t) == !drawn);
        }
        model_free(a), model_free(b), model_free(again);
    }
}

/* Weights to be loaded from a file are not drawn; they start as 0. */
static void from_file(void **state) {
    (void)state;
    params p;
    const int64_t dim[] = {3};
    params_init(&p, 1);
    p.most = 3;
    const tensor *x = params_add(&p, "x", 1, dim, INIT_NORMAL, 1);
    assert_non_null(x);
    for (int i = 0; i < 3; i++) check_equals(x->value[i], 0);
    assert_null(params_add(&p, "y", 1, dim, INIT_NORMAL, 1));
    check_failure(&p.failure, SR_FORMAT, "the model has 6 numbers, the file 3");
    params_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(transformer), cmocka_unit_test(resnet20),
                                       cmocka_unit_test(mnist_cnn), cmocka_unit_test(seeds),
                                       cmocka_unit_test(from_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
