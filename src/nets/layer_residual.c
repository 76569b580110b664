/* layer_residual.c -- what the encoder and the decoder layer of a transformer share: the residual
 * branch around a sublayer f and the place of its norm n (docs/models.md 2.3),
 *
 *   pre   x + drop(f(n(x)))       post   n(x + drop(f(x)))
 *
 * with dropout on the sublayer's output alone.
 */
#include <stdio.h>
#include <string.h>

#include "model_rows.h"
#include "site_layers.h"

/* -- building */

/* "encoder", 0, "norm1" -> "encoder.0.norm1"; layer -1: "encoder.norm1" */
static void full_name(char name[PARAM_NAME], const char *side, int layer, const char *part) {
    if (layer < 0)
        snprintf(name, PARAM_NAME, "%s.%s", side, part);
    else
        snprintf(name, PARAM_NAME, "%s.%d.%s", side, layer, part);
}

void layer_size_choose(layer_size *s, const model_options *o) {
    s->d = model_size(o->embed_dim, s->d);
    s->ffn = model_size(o->ffn_dim, s->ffn);
    s->heads = model_size(o->heads, s->heads);
    s->dropout = model_default(o->dropout, s->dropout);
    s->attention_dropout = model_default(o->attention_dropout, s->attention_dropout);
    s->relu_dropout = model_default(o->relu_dropout, s->relu_dropout);
    if (*o->placement) s->pre = !strcmp(o->placement, "pre");
}

norm_site *layer_site(const site_builder *b, const layer_size *s, const char *side, int layer,
                      const char *part) {
    char name[PARAM_NAME];
    full_name(name, side, layer, part);
    const model_options *o = b->options;
    const char *norm = !strcmp(side, "decoder") ? o->decoder_norm : o->norm;
    return model_add_site(b->m, o, name, side, s->d, norm, b->why);
}

attention_layer layer_attention_init(const site_builder *b, const layer_size *s, const char *side,
                                     int layer, const char *part) {
    char name[PARAM_NAME];
    full_name(name, side, layer, part);
    const int64_t key = model_size(b->options->key_size, s->d / s->heads);
    const int64_t value = model_size(b->options->value_size, s->d / s->heads);
    return attention_init_sized(&b->m->params, name, s->d, s->heads, key, value,
                                s->attention_dropout);
}

ffn_layer layer_ffn_init(const site_builder *b, const layer_size *s, const char *side, int layer) {
    char name[PARAM_NAME];
    full_name(name, side, layer, "ffn_block");
    return ffn_init(&b->m->params, name, s->d, s->ffn, s->relu_dropout);
}

/* -- forward */

tensor *layer_normalize(const text_pass *p, norm_site *n, tensor *x, const norm_rows *rows) {
    const norm_rows *own = model_rows_for(n, p->pass->tape, rows);
    return own ? norm_apply(n, p->pass->tape, x, own) : NULL;
}

tensor *layer_before(const text_pass *p, norm_site *n, tensor *x, const norm_rows *rows) {
    return p->size->pre ? layer_normalize(p, n, x, rows) : x;
}

tensor *layer_after(const text_pass *p, norm_site *n, tensor *x, tensor *f, const norm_rows *rows) {
    tensor *sum = op_add(p->pass->tape, x, op_dropout(p->pass->tape, f, p->size->dropout));
    return p->size->pre ? sum : layer_normalize(p, n, sum, rows);
}
