/* Parameter counts and site names of the models (docs/models.md 1.1, 1.2, 2.1, 7). */
#include <math.h>
#include <string.h>

#include "nets/models.h"
#include "testing/check.h"

static model_options options(const char *name, const char *preset, const char *placement) {
    model_options o = {.norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = NAN,
                       .attention_dropout = NAN,
                       .relu_dropout = NAN,
                       .seed = 1};
    strcpy(o.name, name);
    strcpy(o.preset, preset);
    strcpy(o.placement, placement);
    strcpy(o.norm, "bn");
    strcpy(o.decoder_norm, "ln");
    return o;
}

static model *create(const model_options *o, const data_shape *shape) {
    sr_failure why = {0};
    model *m = model_create(o, shape, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

static const data_shape images = {
    .task = TASK_IMAGES, .height = 32, .width = 32, .channels = 3, .classes = 10};

static data_shape pairs(int64_t vocabulary) {
    return (data_shape){.task = TASK_PAIRS, .vocabulary = vocabulary, .longest = 30};
}

static void resnet20_counts(void **state) {
    (void)state;
    model_options o = options("resnet20", "", "");
    model *m = create(&o, &images);
    assert_int_equal(params_total(&m->params), 269722);
    assert_int_equal(m->sites, 19);
    assert_string_equal(m->site[0]->name, "stem");
    assert_string_equal(m->site[1]->name, "stage1.0.norm1");
    assert_string_equal(m->site[18]->name, "stage3.2.norm2");
    assert_int_equal(m->site[0]->features, 16);
    assert_int_equal(m->site[18]->features, 64);
    check_equals(m->site[0]->options.alpha, 0.9);
    model_free(m);
}

/* 6 n + 2 layers: 0.27, 0.46, 0.66, 0.85 and 1.7 million parameters in the paper. */
static void deeper_resnets(void **state) {
    (void)state;
    const struct {
        int layers;
        int64_t parameters;
    } row[] = {{20, 269722}, {32, 464154}, {44, 658586}, {56, 853018}, {110, 1727962}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        model_options o = options("resnet20", "", "");
        o.layers = row[i].layers;
        model *m = create(&o, &images);
        assert_int_equal(params_total(&m->params), row[i].parameters);
        assert_int_equal(m->sites, row[i].layers - 1);
        model_free(m);
    }
}

static void resnet18_counts(void **state) {
    (void)state;
    model_options o = options("resnet18", "", "");
    model *m = create(&o, &images);
    assert_int_equal(params_total(&m->params), 11173962);
    assert_int_equal(m->sites, 20);
    const char *const want[] = {"stem",           "stage1.0.norm1",   "stage1.0.norm2",
                                "stage1.1.norm1", "stage1.1.norm2",   "stage2.0.norm1",
                                "stage2.0.norm2", "stage2.0.shortcut"};
    const int width[] = {64, 64, 64, 64, 64, 128, 128, 128};
    for (int i = 0; i < 8; i++) {
        assert_string_equal(m->site[i]->name, want[i]);
        assert_int_equal(m->site[i]->features, width[i]);
    }
    assert_string_equal(m->site[19]->name, "stage4.1.norm2");
    assert_int_equal(m->site[19]->features, 512);
    check_equals(m->site[0]->options.alpha, 0.9);
    const tensor *w = &params_find(&m->params, "stage4.0.shortcut.weight")->t;
    assert_true(w->dim[0] == 512 && w->dim[1] == 1 && w->dim[2] == 1 && w->dim[3] == 256);
    model_free(m);
    data_shape hundred = images;
    hundred.classes = 100;
    m = create(&o, &hundred);
    assert_int_equal(params_total(&m->params), 11173962 + 90 * 513);
    model_free(m);
    strcpy(o.preset, "mini");
    m = create(&o, &images);
    assert_int_equal(params_total(&m->params), 701466);
    assert_int_equal(m->site[19]->features, 128);
    model_free(m);
}

static const data_shape digits = {
    .task = TASK_IMAGES, .height = 28, .width = 28, .channels = 1, .classes = 10};

static void mnist_cnn_counts(void **state) {
    (void)state;
    model_options o = options("mnist_cnn", "", "");
    strcpy(o.norm, "ln");
    model *m = create(&o, &digits);
    assert_int_equal(params_total(&m->params), 431080 + 1000);
    assert_int_equal(m->sites, 1);
    assert_string_equal(m->site[0]->name, "hidden");
    assert_string_equal(m->site[0]->kind, "linear");
    assert_int_equal(m->site[0]->features, 500);
    model_free(m);
    strcpy(o.norm, "none");
    m = create(&o, &digits);
    assert_int_equal(params_total(&m->params), 431080);
    model_free(m);
    strcpy(o.norm, "bn");
    o.conv_norms = true;
    m = create(&o, &digits);
    assert_int_equal(params_total(&m->params), 431080 + 2 * (20 + 50 + 500));
    assert_int_equal(m->sites, 3);
    assert_string_equal(m->site[0]->name, "conv1");
    assert_string_equal(m->site[1]->name, "conv2");
    assert_string_equal(m->site[1]->kind, "conv");
    assert_string_equal(m->site[2]->name, "hidden");
    model_free(m);
    o.conv_norms = false;
    data_shape wide = {.task = TASK_IMAGES, .height = 16, .width = 36, .channels = 3, .classes = 7};
    m = create(&o, &wide); /* 1 x 6 positions after the second pooling */
    assert_int_equal(params_total(&m->params),
                     (75 + 1) * 20 + (500 + 1) * 50 + (300 + 1) * 500 + 501 * 7 + 1000);
    model_free(m);
}

/* layers 0: the preset's. */
static void expect_pairs(const char *preset, const char *placement, int64_t layers,
                         int64_t vocabulary, int64_t want, int sites) {
    model_options o = options("transformer", preset, placement);
    o.encoder_layers = o.decoder_layers = layers;
    data_shape shape = pairs(vocabulary);
    model *m = create(&o, &shape);
    assert_int_equal(params_total(&m->params), want);
    assert_int_equal(m->sites, sites);
    model_free(m);
}

static void transformer_counts(void **state) {
    (void)state;
    expect_pairs("transformer_iwslt_de_en", "post", 0, 10152, 36741120, 30);
    expect_pairs("transformer_iwslt_de_en", "pre", 0, 10152, 36743168, 32);
    expect_pairs("transformer_iwslt_de_en", "", 0, 8, 31543296 + 512 * 8, 30);
    expect_pairs("transformer", "", 0, 8, 44138496 + 512 * 8, 30);
    /* big, one layer of six on each side: (176,361,472 - 4096)/6 + 4096 */
    expect_pairs("transformer_big", "", 1, 8, 29392896 + 4096 + 1024 * 8, 7);
}

static void transformer_site_names(void **state) {
    (void)state;
    model_options o = options("transformer", "mini", "");
    data_shape shape = pairs(40);
    model *m = create(&o, &shape);
    assert_int_equal(m->sites, 17);
    const char *const want[] = {"encoder.0.norm1", "encoder.0.norm2", "encoder.1.norm1",
                                "encoder.1.norm2", "encoder.2.norm1", "encoder.2.norm2",
                                "encoder.final",   "decoder.0.self",  "decoder.0.cross",
                                "decoder.0.ffn"};
    for (int i = 0; i < 10; i++) {
        assert_string_equal(m->site[i]->name, want[i]);
        assert_int_equal(m->site[i]->depth, i);
        assert_string_equal(m->site[i]->method->name, i < 7 ? "bn" : "ln");
    }
    assert_string_equal(m->site[16]->name, "decoder.final");
    check_equals(m->site[0]->options.alpha, 0.95);
    for (int k = 0; k < 128; k++) check_equals(m->embedding->value[TOKEN_PAD * 128 + k], 0);
    model_free(m);
}

static void norms_by_site(void **state) {
    (void)state;
    model_options o = options("transformer", "mini", "");
    data_shape shape = pairs(40);
    strcpy(o.norm_at, "encoder.0.*=pnv,encoder.*=ln,decoder.final=none");
    model *m = create(&o, &shape);
    for (int i = 0; i < m->sites; i++) {
        const char *want = i < 2 ? "pnv" : m->site[i]->depth == 16 ? "none" : "ln";
        assert_string_equal(m->site[i]->method->name, want);
    }
    model_free(m);
}

/* The text of an option for single methods. */
static char *text_of(model_options *o, const char *key) {
    for (int i = 0; norm_option_at(i); i++)
        if (!strcmp(norm_option_at(i)->key, key)) return o->norm_param[i];
    fail_msg("no option %s", key);
    return NULL;
}

static void norm_parameters(void **state) {
    (void)state;
    model_options o = options("transformer", "mini", "");
    data_shape shape = pairs(40);
    strcpy(o.norm, "pn+ls");
    strcpy(text_of(&o, "pn-alpha-bkw"), "0.75");
    model *m = create(&o, &shape);
    const norm_site *s = m->site[0];
    assert_string_equal(s->method->name, "pn");
    assert_int_equal(s->options.layer_scale, 4); /* as many groups as heads */
    check_equals(s->options.param[norm_param_find(s->method, "alpha_bwd")], 0.75);
    assert_int_equal(m->site[7]->options.layer_scale, 0);
    model_free(m);
}

/* The releases always scale their input (docs/norms.md 2, 12); --layer-scale overrides it. */
static void own_layer_scales(void **state) {
    (void)state;
    const struct {
        const char *norm;
        int64_t option, groups;
    } row[] = {{"pn-released", 0, 4}, {"pn-released", 2, 2}, {"bn-powernorm", 0, 1},
               {"bn", 0, 0},          {"bn", 8, 8},          {"bn+ls", 0, 4}};
    data_shape shape = pairs(40);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        model_options o = options("transformer", "mini", "");
        strcpy(o.norm, row[i].norm);
        o.layer_scale = row[i].option;
        model *m = create(&o, &shape);
        assert_int_equal(m->site[0]->options.layer_scale, row[i].groups);
        model_free(m);
    }
}

/* He: standard deviation sqrt(2/fan_in), mean 0; PyTorch: within 1/sqrt(fan_in), the bias too. */
static void initial_weights(void **state) {
    (void)state;
    for (int pytorch = 0; pytorch < 2; pytorch++) {
        model_options o = options("resnet20", "", "");
        strcpy(o.init, pytorch ? "pytorch" : "he");
        model *m = create(&o, &images);
        const tensor *w = &params_find(&m->params, "stage3.2.conv2.weight")->t;
        const tensor *bias = &params_find(&m->params, "classify.bias")->t;
        double most = 0, square = 0, biases = 0;
        const double fan_in = 9 * 64;
        for (int64_t i = 0; i < w->count; i++) {
            most = fmax(most, fabs((double)w->value[i]));
            square += (double)w->value[i] * (double)w->value[i] / (double)w->count;
        }
        for (int64_t i = 0; i < bias->count; i++) biases += fabs((double)bias->value[i]);
        const double deviation = pytorch ? sqrt(1 / (3 * fan_in)) : sqrt(2 / fan_in);
        check_within(sqrt(square) / deviation, 1, 0.02);
        assert_true(pytorch ? most <= 1 / sqrt(fan_in) : most > 2 / sqrt(fan_in));
        assert_true(pytorch == (biases > 0));
        model_free(m);
    }
}

static void expect_refusal(const model_options *o, const data_shape *shape, const char *part) {
    sr_failure why = {0};
    assert_null(model_create(o, shape, &why));
    check_failure(&why, SR_USAGE, part);
}

static void refusals(void **state) {
    (void)state;
    data_shape text = pairs(40);
    model_options o = options("resnet21", "", "");
    expect_refusal(&o, &images, "resnet21");
    o = options("resnet20", "", "");
    strcpy(o.norm, "bm");
    expect_refusal(&o, &images, "'bm'");
    o = options("transformer", "tiny", "");
    expect_refusal(&o, &text, "'tiny'");
    o = options("transformer", "mini", "");
    o.heads = 3;
    expect_refusal(&o, &text, "not divisible by heads 3");
    o.heads = 0;
    strcpy(o.norm_at, "encoder.0.norm1");
    expect_refusal(&o, &text, "'encoder.0.norm1' is not SITES=METHOD");
    strcpy(o.norm_at, "encoder.9.*=bn");
    expect_refusal(&o, &text, "'encoder.9.*' matches no site");
    strcpy(o.norm_at, "encoder.*=bm");
    expect_refusal(&o, &text, "--norm-at: unknown normalization 'bm'");
    *o.norm_at = 0;
    strcpy(text_of(&o, "adanorm-c"), "2");
    expect_refusal(&o, &text, "--adanorm-c: no site's");
    strcpy(o.norm, "adanorm");
    strcpy(text_of(&o, "adanorm-c"), "much");
    expect_refusal(&o, &text, "--adanorm-c: ");
    *text_of(&o, "adanorm-c") = 0;
    strcpy(o.norm, "groupnorm");
    strcpy(text_of(&o, "norm-groups"), "2.5");
    expect_refusal(&o, &text,
                   "--norm-groups: groupnorm: value '2.5' of groups is not a whole number");
    data_shape odd = images;
    odd.height = 30;
    o = options("resnet20", "", "");
    expect_refusal(&o, &odd, "images of 30 x 32; resnet20 needs multiples of 4");
    o.layers = 21;
    expect_refusal(&o, &images, "layers 21 of resnet20 is not one of 20, 32, 44, 56, 110");
    o = options("resnet18", "", "");
    expect_refusal(&o, &digits, "images of 28 x 28; resnet18 needs multiples of 8");
    o = options("resnet18", "tiny", "");
    expect_refusal(&o, &images, "'tiny' of model resnet18 is not one of resnet18|mini");
    o = options("mnist_cnn", "", "");
    expect_refusal(&o, &odd, "images of 30 x 32; mnist_cnn needs multiples of 4, at least 16");
    odd.height = 12;
    expect_refusal(&o, &odd, "images of 12 x 32; mnist_cnn needs multiples of 4, at least 16");
}

static void expect_methods(const model_options *o, const data_shape *shape, const char *first,
                           const char *between, const char *last) {
    sr_failure why = {0};
    model *m = model_create(o, shape, &why);
    if (!m) fail_msg("%s", why.text);
    for (int i = 0; i < m->sites; i++)
        assert_string_equal(m->site[i]->method->name, i == 0             ? first
                                                      : i + 1 < m->sites ? between
                                                                         : last);
    model_free(m);
}

/* Site names for --site, in forward order, for every model. */
static void places(void **state) {
    (void)state;
    const data_shape text = {.task = TASK_PAIRS, .vocabulary = 64, .longest = 16};
    model_options o = options("resnet20", "", "");
    strcpy(o.norm, "ln");
    strcpy(o.norm_at, "last=pnv,first=bn");
    expect_methods(&o, &images, "bn", "ln", "pnv");
    strcpy(o.norm_at, "first=bn,*=rbn");
    expect_methods(&o, &images, "bn", "rbn", "rbn");
    o = options("transformer", "mini", "");
    strcpy(o.norm_at, "last=none,*=ln");
    expect_methods(&o, &text, "ln", "ln", "none");
}

/* Globs of globs.h; a pattern that never applies is an error. */
static void globs(void **state) {
    (void)state;
    const data_shape text = {.task = TASK_PAIRS, .vocabulary = 64, .longest = 16};
    model_options o = options("transformer", "mini", "");
    strcpy(o.norm_at, "encoder.[02].*=bn,encoder.*=ln");
    sr_failure why = {0};
    model *m = model_create(&o, &text, &why);
    if (!m) fail_msg("%s", why.text);
    for (int i = 0; i < m->sites; i++) {
        const char *name = m->site[i]->name;
        const bool bn = !strncmp(name, "encoder.0.", 10) || !strncmp(name, "encoder.2.", 10);
        if (!strncmp(name, "encoder.", 8))
            assert_string_equal(m->site[i]->method->name, bn ? "bn" : "ln");
    }
    model_free(m);
    strcpy(o.norm_at, "encoder.*=bn,last-bn=ln");
    expect_refusal(&o, &text, "--norm-at: 'last-bn' matches no site");
    strcpy(o.norm_at, "encoder.0.norm1=bn,first=ln");
    expect_refusal(&o, &text, "--norm-at: 'first' never applies: an earlier pattern matches first");
    strcpy(o.norm_at, "decoder.*=bn,last=ln");
    expect_refusal(&o, &text, "--norm-at: 'last' never applies");
    strcpy(o.norm_at, "encoder.*=bn,encoder.0.*=ln");
    expect_refusal(&o, &text,
                   "--norm-at: 'encoder.0.*' never applies: an earlier pattern matches first");
    strcpy(o.norm_at, "encoder.0.*=bn,encoder.*=ln,encoder.0.norm1=pn");
    expect_refusal(&o, &text, "'encoder.0.norm1' never applies");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(resnet20_counts),
                                       cmocka_unit_test(deeper_resnets),
                                       cmocka_unit_test(resnet18_counts),
                                       cmocka_unit_test(mnist_cnn_counts),
                                       cmocka_unit_test(transformer_counts),
                                       cmocka_unit_test(transformer_site_names),
                                       cmocka_unit_test(norms_by_site),
                                       cmocka_unit_test(norm_parameters),
                                       cmocka_unit_test(own_layer_scales),
                                       cmocka_unit_test(initial_weights),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(places),
                                       cmocka_unit_test(globs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
