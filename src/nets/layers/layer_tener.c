/* layer_tener.c -- the layer of the entity tagger (docs/models.md 5):
 *
 *   post  x = n1(x + attention(x));  x = n2(x + drop(W2 drop(relu(W1 x + b1)) + b2))
 *   pre   x = x + attention(n1(x));  x = x + drop(W2 drop(relu(W1 n2(x) + b1)) + b2)
 *
 * and the other placements of layer_residual.c. attention is op_tener_attention of [q, k, v] = x
 * Wqkv^T, without bias, output projection, scaling and dropout before the sum.
 *
 * With norms of the heads (layer_head_norm.c; docs/models.md 2.9, our own choice) its input is
 *
 *   [n_q(q), n_k(k), v]
 *
 * u and z are added after n_q. The position term k.R uses the normalized k.
 *
 * Initial values: linear layers U(1/sqrt(in)) as in PyTorch; u and z Xavier-normal of
 * [heads, d/heads]. */
#include <math.h>

#include "engine/ops/attention/attention_ops.h"
#include "nets/layers/tener_layers.h"

linear_layer tener_linear(params *p, const char *name, int64_t in, int64_t out) {
    const layer_init init = {INIT_UNIFORM, 1 / sqrt((double)in)};
    return linear_init(p, name, in, out, init, init);
}

tener_layer tener_layer_init(const site_builder *b, const layer_size *s, const char *side, int i) {
    params *p = &b->m->params;
    const int64_t d = s->d, by_head[2] = {s->heads, d / s->heads};
    const double bias = sqrt(2.0 / (double)(by_head[0] + by_head[1]));
    char name[PARAM_NAME];
    tener_layer l;
    l.norms = layer_attention_sites(b, s, side, i, "attention", "norm1", by_head[1], &l.norm1);
    layer_full_name(name, side, i, "attention");
    l.qkv = params_add_part(p, name, "qkv.weight", 2, (int64_t[]){3 * d, d}, INIT_UNIFORM,
                            1 / sqrt((double)d));
    l.u = params_add_part(p, name, "u", 2, by_head, INIT_NORMAL, bias);
    l.z = params_add_part(p, name, "z", 2, by_head, INIT_NORMAL, bias);
    residual_norms_end(b, s, side, i, "norm1", &l.norm1);
    l.seen = model_add_attention(b->m, residual_norms_site(&l.norm1), s->heads, b->why);
    l.norm2 = residual_norms_init(b, s, side, i, "norm2");
    layer_full_name(name, side, i, "ffn_block.in");
    l.in = tener_linear(p, name, d, s->ffn);
    layer_full_name(name, side, i, "ffn_block.out");
    l.out = tener_linear(p, name, s->ffn, d);
    residual_norms_end(b, s, side, i, "norm2", &l.norm2);
    return l;
}

tensor *tener_layer_apply(const tener_layer *l, const text_pass *p, tensor *x) {
    tape *t = p->pass->tape;
    const int64_t d = p->size->d;
    const int heads = (int)p->size->heads;
    tensor *qkv = op_linear(t, layer_before(p, &l->norm1, x, p->source), l->qkv, NULL);
    if (l->norms.q) {
        tensor *q = op_slice(t, qkv, 2, 0, d), *k = op_slice(t, qkv, 2, d, d);
        q = attention_normalize_heads(l->norms.q, t, q, heads, p->source);
        k = attention_normalize_heads(l->norms.k, t, k, heads, p->source);
        qkv = op_concat(t, (tensor *[]){q, k, op_slice(t, qkv, 2, 2 * d, d)}, 3, 2);
    }
    attention_report *report = layer_report(p, l->seen, p->source_mask);
    tensor *y = op_tener_attention(t, qkv, l->u, l->z, heads, p->source_mask, false,
                                   p->size->attention_dropout, report);
    layer_report_call_hook(l->seen, report);
    x = layer_join(p, &l->norm1, x, y, p->source, 0);
    tensor *h = op_relu(t, linear_apply(&l->in, t, layer_before(p, &l->norm2, x, p->source)));
    h = linear_apply(&l->out, t, op_dropout(t, h, p->size->relu_dropout));
    return layer_after(p, &l->norm2, x, h, p->source);
}
