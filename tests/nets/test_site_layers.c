/* test_site_layers.c -- encoder and decoder layers and ResNet's basic block against the shared
 * vectors: output, gradient of the input and of every parameter. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/nets/site_layers.h"
#include "../check.h"
#include "../oracle_file.h"

/* One case of a file and the model that holds the layer's parameters and sites. */
typedef struct layer_case {
    const oracle_file *f;
    int k;
    model *m;
    model_options options;
    sr_failure why;
    tape *t;
    pass pass;
} layer_case;

static double *read_input(const layer_case *c, const char *name, int64_t dim[4], int64_t *count) {
    char path[64];
    snprintf(path, sizeof path, "in/%s", name);
    double *value = oracle_read(c->f, c->k, path, dim, count);
    if (!value) fail_msg("case %d: %s is missing", c->k, path);
    return value;
}

/* What model_create makes, without a model file's part. */
static layer_case begin(const oracle_file *f, int k, const char *model_name, const char *norm) {
    layer_case c = {.f = f, .k = k, .m = calloc(1, sizeof(model))};
    c.options = (model_options){.norm_eps = oracle_number(f, k, "eps", NAN), .norm_alpha = NAN};
    c.options.heads = (int64_t)oracle_number(f, k, "heads", 1);
    strcpy(c.options.norm, norm);
    strcpy(c.options.decoder_norm, norm);
    c.m->row = model_find(model_name);
    params_init(&c.m->params, 1);
    c.t = tape_create(1 + k % 3, &c.why);
    assert_non_null(c.t);
    tape_reset(c.t, rng_create(1), true, true);
    static const batch one_token = {.tokens = 1};
    c.pass = (pass){.tape = c.t, .batch = &one_token, .mode = NORM_TRAIN};
    return c;
}

static void end(layer_case *c) {
    tape_free(c->t);
    model_free(c->m);
}

/* A parameter's name and its name in the file. */
typedef struct name_row {
    const char *full, *file;
} name_row;

static const char *file_name(const name_row *row, const char *full) {
    for (; row->full; row++)
        if (!strcmp(row->full, full)) return row->file;
    fail_msg("%s has no vector", full);
    return NULL;
}

static void set_params(const layer_case *c, const name_row *names) {
    if (c->why.status != SR_OK) fail_msg("%s", c->why.text);
    for (int i = 0; i < c->m->params.count; i++) {
        tensor *p = &c->m->params.item[i]->t;
        int64_t count;
        double *value = read_input(c, file_name(names, c->m->params.item[i]->name), NULL, &count);
        assert_int_equal(count, p->count);
        for (int64_t j = 0; j < count; j++) p->value[j] = (real)value[j];
        free(value);
    }
}

/* in/NAME on the tape; padded rows of the file hold garbage that nothing may see. */
static tensor *input(const layer_case *c, const char *name) {
    int64_t dim[4], count;
    double *value = read_input(c, name, dim, &count);
    tensor *x = tape_tensor(c->t, dim[3] > 1 ? 4 : 3, dim);
    assert_non_null(x);
    x->wants_grad = true;
    for (int64_t i = 0; i < count; i++) x->value[i] = (real)value[i];
    free(value);
    return x;
}

static uint8_t *read_mask(const layer_case *c, const char *name) {
    int64_t count;
    double *value = read_input(c, name, NULL, &count);
    uint8_t *mask = malloc((size_t)count);
    for (int64_t i = 0; i < count; i++) mask[i] = value[i] != 0;
    free(value);
    return mask;
}

/* dL/dy = dy in the rows that count, the others have no gradient; then backward. */
static void backward(const layer_case *c, tensor *y, const uint8_t *mask) {
    if (tape_failure(c->t)) fail_msg("%s", tape_failure(c->t)->text);
    int64_t count, d = tensor_features(y);
    bool add;
    double *dy = read_input(c, "dy", NULL, &count);
    assert_int_equal(count, y->count);
    tensor *loss = tape_tensor(c->t, 1, (int64_t[]){1});
    real *g = tape_grad(c->t, y, &add);
    for (int64_t i = 0; i < count; i++) g[i] = mask && !mask[i / d] ? 0 : (real)dy[i];
    free(dy);
    loss->wants_grad = true;
    tape_backward(c->t, loss, 1);
    if (tape_failure(c->t)) fail_msg("%s", tape_failure(c->t)->text);
}

static void compare(const layer_case *c, const char *name, const real *got, int64_t count,
                    const uint8_t *mask, int64_t width) {
    double *wide = malloc((size_t)count * sizeof *wide);
    for (int64_t i = 0; i < count; i++) wide[i] = (double)got[i];
    bool same = oracle_check(c->f, c->k, name, wide, count, mask, width);
    free(wide);
    if (!same) fail_msg("%s: %s differs", oracle_text(c->f, c->k, "label"), name);
}

static void compare_params(const layer_case *c, const name_row *names) {
    for (int i = 0; i < c->m->params.count; i++) {
        const param *p = c->m->params.item[i];
        char out[64];
        snprintf(out, sizeof out, "d_%s", file_name(names, p->name));
        compare(c, out, p->t.grad, p->t.count, NULL, 1);
    }
}

/* -- transformer layers */

static layer_size size_of(const layer_case *c, const char *input_weight) {
    int64_t dim[4];
    free(read_input(c, input_weight, dim, NULL));
    return (layer_size){.d = dim[1],
                        .ffn = dim[0],
                        .heads = c->options.heads,
                        .pre = oracle_number(c->f, c->k, "pre", 0) != 0};
}

static norm_rows *rows_of(layer_case *c, const tensor *x, const uint8_t *mask) {
    norm_rows *r = pass_rows(&c->pass, x->dim[0], x->dim[1], mask);
    assert_non_null(r);
    return r;
}

static void encoder_case(const oracle_file *f, int k) {
    static const name_row names[] = {{"encoder.0.attention.q.weight", "Wq"},
                                     {"encoder.0.attention.k.weight", "Wk"},
                                     {"encoder.0.attention.v.weight", "Wv"},
                                     {"encoder.0.attention.o.weight", "Wo"},
                                     {"encoder.0.attention.q.bias", "bq"},
                                     {"encoder.0.attention.k.bias", "bk"},
                                     {"encoder.0.attention.v.bias", "bv"},
                                     {"encoder.0.attention.o.bias", "bo"},
                                     {"encoder.0.ffn_block.in.weight", "W1"},
                                     {"encoder.0.ffn_block.out.weight", "W2"},
                                     {"encoder.0.ffn_block.in.bias", "b1"},
                                     {"encoder.0.ffn_block.out.bias", "b2"},
                                     {"encoder.0.norm1.gamma", "g1"},
                                     {"encoder.0.norm1.beta", "c1"},
                                     {"encoder.0.norm2.gamma", "g2"},
                                     {"encoder.0.norm2.beta", "c2"},
                                     {NULL, NULL}};
    char norm[64];
    snprintf(norm, sizeof norm, "%s", oracle_text(f, k, "norm"));
    layer_case c = begin(f, k, "transformer", norm);
    layer_size size = size_of(&c, "W1");
    site_builder b = {c.m, &c.options, &c.why};
    encoder_layer l = encoder_layer_init(&b, &size, 0);
    set_params(&c, names);
    tensor *x = input(&c, "x");
    uint8_t *mask = read_mask(&c, "mask");
    text_pass p = {
        .pass = &c.pass, .size = &size, .source_mask = mask, .source = rows_of(&c, x, mask)};
    tensor *y = encoder_layer_apply(&l, &p, x);
    backward(&c, y, mask);
    compare(&c, "y", y->value, y->count, mask, size.d);
    compare(&c, "d_x", x->grad, x->count, mask, size.d);
    compare_params(&c, names);
    free(mask);
    end(&c);
}

static void decoder_case(const oracle_file *f, int k) {
    static const name_row names[] = {{"decoder.0.self_attention.q.weight", "sWq"},
                                     {"decoder.0.self_attention.k.weight", "sWk"},
                                     {"decoder.0.self_attention.v.weight", "sWv"},
                                     {"decoder.0.self_attention.o.weight", "sWo"},
                                     {"decoder.0.self_attention.q.bias", "sbq"},
                                     {"decoder.0.self_attention.k.bias", "sbk"},
                                     {"decoder.0.self_attention.v.bias", "sbv"},
                                     {"decoder.0.self_attention.o.bias", "sbo"},
                                     {"decoder.0.cross_attention.q.weight", "xWq"},
                                     {"decoder.0.cross_attention.k.weight", "xWk"},
                                     {"decoder.0.cross_attention.v.weight", "xWv"},
                                     {"decoder.0.cross_attention.o.weight", "xWo"},
                                     {"decoder.0.cross_attention.q.bias", "xbq"},
                                     {"decoder.0.cross_attention.k.bias", "xbk"},
                                     {"decoder.0.cross_attention.v.bias", "xbv"},
                                     {"decoder.0.cross_attention.o.bias", "xbo"},
                                     {"decoder.0.ffn_block.in.weight", "W1"},
                                     {"decoder.0.ffn_block.out.weight", "W2"},
                                     {"decoder.0.ffn_block.in.bias", "b1"},
                                     {"decoder.0.ffn_block.out.bias", "b2"},
                                     {"decoder.0.self.gamma", "g1"},
                                     {"decoder.0.self.beta", "c1"},
                                     {"decoder.0.cross.gamma", "g2"},
                                     {"decoder.0.cross.beta", "c2"},
                                     {"decoder.0.ffn.gamma", "g3"},
                                     {"decoder.0.ffn.beta", "c3"},
                                     {NULL, NULL}};
    layer_case c = begin(f, k, "transformer", "ln");
    layer_size size = size_of(&c, "W1");
    site_builder b = {c.m, &c.options, &c.why};
    decoder_layer l = decoder_layer_init(&b, &size, 0);
    set_params(&c, names);
    tensor *x = input(&c, "x"), *memory = input(&c, "enc");
    uint8_t *source = read_mask(&c, "src_mask"), *target = read_mask(&c, "tgt_mask");
    text_pass p = {.pass = &c.pass,
                   .size = &size,
                   .source_mask = source,
                   .source = rows_of(&c, memory, source),
                   .target = rows_of(&c, x, target)};
    tensor *y = decoder_layer_apply(&l, &p, x, memory);
    backward(&c, y, target);
    compare(&c, "y", y->value, y->count, target, size.d);
    compare(&c, "d_x", x->grad, x->count, target, size.d);
    compare(&c, "d_enc", memory->grad, memory->count, source, size.d);
    compare_params(&c, names);
    free(source);
    free(target);
    end(&c);
}

/* -- images */

static void block_case(const oracle_file *f, int k) {
    static const name_row names[] = {{"block.conv1.weight", "w1"},
                                     {"block.conv2.weight", "w2"},
                                     {"block.norm1.gamma", "g1"},
                                     {"block.norm1.beta", "c1"},
                                     {"block.norm2.gamma", "g2"},
                                     {"block.norm2.beta", "c2"},
                                     {NULL, NULL}};
    layer_case c = begin(f, k, "resnet20", "bn");
    int64_t dim[4];
    free(read_input(&c, "w1", dim, NULL));
    site_builder b = {c.m, &c.options, &c.why};
    basic_block block = basic_block_init(&b, "block", dim[3], dim[0]);
    assert_int_equal(block.first.stride, (int)oracle_number(f, k, "stride", 0));
    set_params(&c, names);
    image_pass p = {.pass = &c.pass};
    tensor *x = input(&c, "x"), *y = basic_block_apply(&block, &p, x);
    backward(&c, y, NULL);
    compare(&c, "y", y->value, y->count, NULL, 1);
    compare(&c, "d_x", x->grad, x->count, NULL, 1);
    compare_params(&c, names);
    end(&c);
}

/* -- files */

/* Runs the cases of a file whose attribute `kind` is this (NULL: all). */
static void run_file(const char *below, const char *kind, int cases,
                     void (*run)(const oracle_file *f, int k)) {
    const char *path = check_shared(below);
    if (!path) skip();
    oracle_file *f = oracle_open(path);
    assert_non_null(f);
    int done = 0;
    for (int k = 0; k < oracle_cases(f); k++) {
        if (kind && strcmp(oracle_text(f, k, "kind"), kind)) continue;
        run(f, k);
        done++;
    }
    assert_int_equal(done, cases);
    oracle_close(f);
}

static void encoder_layers(void **state) {
    (void)state;
    run_file("reference/vectors/models/encoder_layer.h5", NULL, 10, encoder_case);
}

static void decoder_layers(void **state) {
    (void)state;
    run_file("reference/vectors/models/decoder_layer.h5", NULL, 4, decoder_case);
}

static void basic_blocks(void **state) {
    (void)state;
    run_file("reference/vectors/models/resnet.h5", "basic_block", 2, block_case);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(encoder_layers),
                                       cmocka_unit_test(decoder_layers),
                                       cmocka_unit_test(basic_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
