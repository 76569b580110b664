/* layer_residual.c -- shared by the layers of transformers: the residual branch around a sublayer
 * f, and the positions of its norms n and n' (docs/models.md 2.3, 2.9):
 *
 *   pre      x + drop(f(n(x)))              post   n(x + drop(f(x)))
 *   scaled   x + drop(f(n(x)/sqrt(l)))      peri   x + drop(n'(f(n(x))))
 *
 * l is the number of the layer, from 1. Dropout applies to the branch's output alone. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/ops/attention/attention_ops.h"
#include "nets/layers/text_layers.h"
#include "nets/model_rows.h"

/* -- building */

void layer_full_name(char name[PARAM_NAME], const char *side, int layer, const char *part) {
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
    layer_placement_choose(s, o);
}

void layer_placement_choose(layer_size *s, const model_options *o) {
    static const char *const words[] = {[PLACEMENT_POST] = "post",
                                        [PLACEMENT_PRE] = "pre",
                                        [PLACEMENT_PERI] = "peri",
                                        [PLACEMENT_SCALED] = "scaled"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(o->placement, words[i])) s->placement = (layer_placement)i;
}

sr_status layer_count_check(int64_t layers, sr_failure *why) {
    if (layers <= LAYERS_MAX) return SR_OK;
    return sr_fail(why, SR_USAGE, "at most %d layers, not %lld", LAYERS_MAX, (long long)layers);
}

sr_status layer_heads_check(const layer_size *s, sr_failure *why) {
    if (s->d % s->heads == 0) return SR_OK;
    return sr_fail(why, SR_USAGE, "embed-dim %lld is not divisible by heads %lld", (long long)s->d,
                   (long long)s->heads);
}

bool layer_leaves_sum(const layer_size *s) {
    return s->placement != PLACEMENT_POST;
}

norm_site *layer_site(const site_builder *b, const layer_size *s, const char *side, int layer,
                      const char *part) {
    char name[PARAM_NAME];
    layer_full_name(name, side, layer, part);
    const model_options *o = b->options;
    const char *norm = !strcmp(side, "decoder") ? o->decoder_norm : o->norm;
    return model_add_site(b->m, o, name, side, s->d, norm, b->why);
}

norm_site *layer_peri_site(const site_builder *b, const layer_size *s, const char *side,
                           const char *part) {
    return s->placement == PLACEMENT_PERI ? layer_site(b, s, side, -1, part) : NULL;
}

residual_norms residual_norms_init(const site_builder *b, const layer_size *s, const char *side,
                                   int layer, const char *part) {
    const bool scaled = s->placement == PLACEMENT_SCALED;
    norm_site *site = layer_site(b, s, side, layer, part);
    return (residual_norms){.before = layer_leaves_sum(s) ? site : NULL,
                            .sum = layer_leaves_sum(s) ? NULL : site,
                            .scale = scaled ? 1 / sqrt((double)layer + 1) : 1};
}

void residual_norms_end(const site_builder *b, const layer_size *s, const char *side, int layer,
                        const char *part, residual_norms *n) {
    char out[PARAM_NAME];
    snprintf(out, sizeof out, "%s_out", part);
    if (s->placement == PLACEMENT_PERI) n->branch = layer_site(b, s, side, layer, out);
}

norm_site *residual_norms_site(const residual_norms *n) {
    return n->before ? n->before : n->sum;
}

void layer_takes_positions(norm_site *embedding, const residual_norms *first) {
    norm_site *n = embedding ? embedding : residual_norms_site(first);
    if (n) n->takes_positions = true;
}

/* NAME.WHICH, NULL without norms of heads; key: width of a head. */
static norm_site *head_site(const site_builder *b, const char *name, const char *which,
                            int64_t key) {
    char full[2 * PARAM_NAME];
    const model_options *o = b->options;
    if (!*o->qk_norm || !strcmp(o->qk_norm, "none")) return NULL;
    snprintf(full, sizeof full, "%s.%s", name, which);
    return model_add_site(b->m, o, full, "attention", key, o->qk_norm, b->why);
}

static head_norms head_sites(const site_builder *b, const char *name, int64_t key) {
    norm_site *q = head_site(b, name, "q_norm", key); /* first in the order of the pass */
    return (head_norms){q, head_site(b, name, "k_norm", key)};
}

/* In the order of the forward pass: a norm after the sum follows the norms of the heads. */
head_norms layer_attention_sites(const site_builder *b, const layer_size *s, const char *side,
                                 int layer, const char *part, const char *norm, int64_t key,
                                 residual_norms *n) {
    char name[PARAM_NAME];
    head_norms heads = {NULL, NULL};
    layer_full_name(name, side, layer, part);
    if (!layer_leaves_sum(s)) heads = head_sites(b, name, key);
    *n = residual_norms_init(b, s, side, layer, norm);
    if (layer_leaves_sum(s)) heads = head_sites(b, name, key);
    return heads;
}

attention_branch layer_attention_init(const site_builder *b, const layer_size *s, const char *side,
                                      int layer, const char *part, const char *norm) {
    char name[PARAM_NAME];
    attention_branch a;
    layer_full_name(name, side, layer, part);
    const int64_t key = model_size(b->options->key_size, s->d / s->heads);
    const int64_t value = model_size(b->options->value_size, s->d / s->heads);
    const head_norms heads = layer_attention_sites(b, s, side, layer, part, norm, key, &a.norms);
    a.attention =
        attention_init(&b->m->params, name, s->d, s->heads, key, value, s->attention_dropout);
    a.attention.norms = heads;
    residual_norms_end(b, s, side, layer, norm, &a.norms);
    a.seen = model_add_attention(b->m, residual_norms_site(&a.norms), s->heads, b->why);
    return a;
}

ffn_layer layer_ffn_init(const site_builder *b, const layer_size *s, const char *side, int layer,
                         const char *norm, double dropout, double deviation, residual_norms *n) {
    char name[PARAM_NAME];
    layer_full_name(name, side, layer, "ffn_block");
    *n = residual_norms_init(b, s, side, layer, norm);
    const ffn_layer f = ffn_init(&b->m->params, name, s->d, s->ffn, dropout, deviation);
    residual_norms_end(b, s, side, layer, norm, n);
    return f;
}

/* -- forward */

tensor *layer_normalize(const text_pass *p, norm_site *n, tensor *x, const norm_rows *rows) {
    const norm_rows *own = model_rows_for(n, p->pass->tape, rows);
    return own ? norm_apply(n, p->pass->tape, x, own) : NULL;
}

tensor *layer_embedded(const text_pass *p, norm_site *n, tensor *x, const norm_rows *rows) {
    if (n) x = layer_normalize(p, n, x, rows);
    tape *t = p->pass->tape;
    return tape_release_input(t, x, op_dropout(t, x, p->size->dropout));
}

tensor *layer_before(const text_pass *p, const residual_norms *n, tensor *x,
                     const norm_rows *rows) {
    if (!n->before) return x;
    tensor *y = layer_normalize(p, n->before, x, rows);
    tape *t = p->pass->tape;
    return n->scale < 1 ? tape_release_input(t, y, op_scale(t, y, n->scale)) : y;
}

tensor *layer_join(const text_pass *p, const residual_norms *n, tensor *x, tensor *f,
                   const norm_rows *rows, double dropout) {
    tape *t = p->pass->tape;
    if (n->branch) f = layer_normalize(p, n->branch, f, rows);
    f = tape_release_input(t, f, op_dropout(t, f, dropout));
    tensor *sum = tape_release_input(t, f, op_add(t, x, f));
    return n->sum ? layer_normalize(p, n->sum, sum, rows) : sum;
}

tensor *layer_after(const text_pass *p, const residual_norms *n, tensor *x, tensor *f,
                    const norm_rows *rows) {
    return layer_join(p, n, x, f, rows, p->size->dropout);
}

tensor *layer_attention(const text_pass *p, const attention_branch *a, tensor *x,
                        const norm_rows *rows, const attention_side *source, attention_mask mask) {
    tape *t = p->pass->tape;
    attention_report *report = layer_report(p, a->seen, mask.query_valid);
    const attention_side asks = {layer_before(p, &a->norms, x, rows), rows};
    tensor *h = attention_apply(&a->attention, t, asks, source ? *source : asks, mask.key_valid,
                                mask.causal, report);
    layer_report_call_hook(a->seen, report);
    x = layer_after(p, &a->norms, x, h, rows);
    tape_drop_value(t, asks.x);
    return x;
}

tensor *layer_ffn(const text_pass *p, const ffn_layer *f, const residual_norms *n, tensor *x,
                  const norm_rows *rows) {
    tape *t = p->pass->tape;
    tensor *in = layer_before(p, n, x, rows);
    tensor *y = layer_after(p, n, x, ffn_apply(f, t, in), rows);
    tape_drop_value(t, in);
    return y;
}

/* -- observed values of an attention */

attention_report *layer_report(const text_pass *p, const model_attention *seen,
                               const uint8_t *query_valid) {
    if (!seen || !seen->hook || p->pass->mode != NORM_TRAIN || p->pass->absent) return NULL;
    attention_report *r = tape_alloc(p->pass->tape, sizeof *r);
    double *values = tape_alloc(p->pass->tape, 3 * (size_t)seen->heads * sizeof *values);
    if (!r || !values) return NULL;
    *r = (attention_report){query_valid, values, values + seen->heads, values + 2 * seen->heads};
    for (int h = 0; h < 3 * seen->heads; h++) values[h] = NAN;
    return r;
}

void layer_report_call_hook(const model_attention *seen, const attention_report *found) {
    if (found) seen->hook(seen->context, seen, found);
}
