/* vectors_layers.c -- encoder_layer.h5 and decoder_layer.h5: output, gradient of every input and of
 * every parameter of one layer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_vectors.h"
#include "nets/layers/text_layers.h"
#include "vectors_layers.h"

/* -- any layer */

bool layer_case_open(layer_case *l, model_case *c, const char *model_name, const char *norm) {
    *l = (layer_case){.c = c, .m = calloc(1, sizeof(model)), .t = case_tape(c)};
    l->options = (model_options){.norm_eps = case_number(c, "eps"), .norm_alpha = NAN};
    snprintf(l->options.norm, sizeof l->options.norm, "%s", norm);
    snprintf(l->options.decoder_norm, sizeof l->options.decoder_norm, "%s", norm);
    l->batch.tokens = 1;
    l->pass = (pass){.tape = l->t, .batch = &l->batch, .mode = NORM_TRAIN};
    if (!l->m || !l->t) return false;
    l->m->row = model_find(model_name);
    params_init(&l->m->params, 1);
    if (!norm_named(norm, &(norm_value){0})) case_fail(c, "norm '%s' is not known", norm);
    return case_fine(c);
}

void layer_case_close(layer_case *l) {
    tape_free(l->t);
    if (l->m) model_free(l->m);
}

static const char *file_name(layer_case *l, const layer_name *row, const char *full) {
    for (; row->full; row++)
        if (!strcmp(row->full, full)) return row->file;
    case_fail(l->c, "parameter %s has no name in the file", full);
    return "?";
}

void layer_case_set(layer_case *l, const layer_name *names) {
    if (l->why.status != SR_OK) case_fail(l->c, "%s", l->why.text);
    for (int i = 0; i < l->m->params.count && case_fine(l->c); i++) {
        param *p = l->m->params.item[i];
        char path[64];
        snprintf(path, sizeof path, "in/%s", file_name(l, names, p->name));
        case_fill(l->c, path, &p->t);
    }
}

void layer_case_compare(layer_case *l, const layer_name *names, const tensor *x, const tensor *y,
                        const uint8_t *mask) {
    const int64_t d = tensor_features(y);
    case_compare_reals(l->c, "y", y->value, y->count, mask, d);
    case_compare_reals(l->c, "d_x", x->grad, x->count, mask, d);
    for (int i = 0; i < l->m->params.count; i++) {
        const param *p = l->m->params.item[i];
        char out[64];
        snprintf(out, sizeof out, "d_%s", file_name(l, names, p->name));
        case_compare_reals(l->c, out, p->t.grad, p->t.count, NULL, 1);
    }
}

/* -- transformer layers */

/* d and inner width from W1 [inner, d], the rest from attributes. */
static bool read_size(layer_case *l, layer_size *size) {
    int64_t dim[4];
    if (!case_read(l->c, "in/W1", 2, dim)) return false;
    const double heads = case_number(l->c, "heads"), pre = case_number(l->c, "pre");
    if (heads < 1 || dim[1] % (int64_t)heads)
        case_fail(l->c, "heads %g do not divide d %lld", heads, (long long)dim[1]);
    if (!case_fine(l->c)) return false;
    l->options.heads = (int64_t)heads;
    *size = (layer_size){.d = dim[1],
                         .ffn = dim[0],
                         .heads = (int64_t)heads,
                         .placement = pre != 0 ? PLACEMENT_PRE : PLACEMENT_POST};
    return true;
}

/* in/NAME [B, T, d]. */
static tensor *read_rows(layer_case *l, const char *path, const layer_size *size) {
    tensor *x = case_tensor(l->c, l->t, path, 3);
    if (!x || x->dim[2] == size->d) return x;
    case_fail(l->c, "%s: width %lld, not d = %lld", path, (long long)x->dim[2], (long long)size->d);
    return NULL;
}

static norm_rows *rows_of(layer_case *l, const tensor *x, const uint8_t *mask) {
    return pass_rows(&l->pass, x->dim[0], x->dim[1], mask);
}

static const layer_name encoder_names[] = {{"encoder.0.attention.q.weight", "Wq"},
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

static void run_encoder(layer_case *l) {
    model_case *c = l->c;
    layer_size size;
    if (!read_size(l, &size)) return;
    site_builder b = {l->m, &l->options, &l->why};
    encoder_layer layer = encoder_layer_init(&b, &size, "encoder", 0);
    layer_case_set(l, encoder_names);
    tensor *x = read_rows(l, "in/x", &size);
    uint8_t *mask = x ? case_mask(c, "in/mask", x->dim[0] * x->dim[1]) : NULL;
    if (!mask || !case_fine(c)) return;
    text_pass p = {
        .pass = &l->pass, .size = &size, .source_mask = mask, .source = rows_of(l, x, mask)};
    tensor *y = encoder_layer_apply(&layer, &p, x);
    case_backward(c, l->t, y, mask);
    if (case_fine(c)) layer_case_compare(l, encoder_names, x, y, mask);
}

void check_encoder_layer(model_case *c) {
    layer_case l;
    if (layer_case_open(&l, c, "transformer", case_text(c, "norm"))) run_encoder(&l);
    layer_case_close(&l);
}

static const layer_name decoder_names[] = {{"decoder.0.self_attention.q.weight", "sWq"},
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

/* Inputs of a decoder layer. */
typedef struct decoder_inputs {
    tensor *x, *memory;
    uint8_t *source, *target;
} decoder_inputs;

static bool read_decoder_inputs(layer_case *l, const layer_size *size, decoder_inputs *in) {
    model_case *c = l->c;
    *in = (decoder_inputs){read_rows(l, "in/x", size), read_rows(l, "in/enc", size), NULL, NULL};
    if (!in->x || !in->memory) return false;
    if (in->x->dim[0] != in->memory->dim[0])
        case_fail(c, "%lld sentences in x, %lld in enc", (long long)in->x->dim[0],
                  (long long)in->memory->dim[0]);
    in->source = case_mask(c, "in/src_mask", in->memory->dim[0] * in->memory->dim[1]);
    in->target = case_mask(c, "in/tgt_mask", in->x->dim[0] * in->x->dim[1]);
    return case_fine(c);
}

static void run_decoder(layer_case *l) {
    model_case *c = l->c;
    layer_size size;
    decoder_inputs in;
    if (!read_size(l, &size)) return;
    site_builder b = {l->m, &l->options, &l->why};
    decoder_layer layer = decoder_layer_init(&b, &size, 0);
    layer_case_set(l, decoder_names);
    if (!read_decoder_inputs(l, &size, &in)) return;
    text_pass p = {.pass = &l->pass,
                   .size = &size,
                   .source_mask = in.source,
                   .source = rows_of(l, in.memory, in.source),
                   .target = rows_of(l, in.x, in.target)};
    tensor *y = decoder_layer_apply(&layer, &p, in.x, in.memory);
    case_backward(c, l->t, y, in.target);
    if (!case_fine(c)) return;
    layer_case_compare(l, decoder_names, in.x, y, in.target);
    case_compare_reals(c, "d_enc", in.memory->grad, in.memory->count, in.source, size.d);
}

void check_decoder_layer(model_case *c) {
    layer_case l;
    if (layer_case_open(&l, c, "transformer", case_text(c, "norm"))) run_decoder(&l);
    layer_case_close(&l);
}
