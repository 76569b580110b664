/* layer_xl_attention.c -- attention of Transformer-XL (docs/models.md 4):
 *
 *   q = x Wq^T, k = m Wk^T, v = m Wv^T, r = P Wr^T       m: memory and x; P: positions of distances
 *   y = op_xl_attention(q, k, v, r, u, z) Wo^T
 *
 * With norms of the heads (layer_head_norm.c; docs/models.md 2.9, our own choice)
 *
 *   q = n_q(x Wq^T), k = n_k(m Wk^T)      before u and z are added; r is not normalized
 *
 * Memory contains the inputs of keys, so every pass normalizes its keys. The valid rows of n_q and
 * n_k are the heads of x's rows. Only they enter statistics, advance running statistics and are
 * recorded. Keys of memory are normalized as in evaluation, by the running statistics from before
 * this pass, without gradient. A norm over rows treats both alike. */
#include "engine/ops/attention/attention_ops.h"
#include "nets/layers/layers.h"

static tensor *projection(params *p, const char *name, const char *which, int64_t out, int64_t in,
                          double deviation) {
    return params_add_part(p, name, which, 2, (int64_t[]){out, in}, INIT_NORMAL, deviation);
}

xl_attention_layer xl_attention_init(params *p, const char *name, int64_t d, int64_t heads,
                                     int64_t head_dim, double dropout, double deviation) {
    const int64_t width = heads * head_dim;
    return (xl_attention_layer){.q = projection(p, name, "q.weight", width, d, deviation),
                                .k = projection(p, name, "k.weight", width, d, deviation),
                                .v = projection(p, name, "v.weight", width, d, deviation),
                                .r = projection(p, name, "r.weight", width, d, deviation),
                                .o = projection(p, name, "o.weight", d, width, deviation),
                                .heads = (int)heads,
                                .dropout = dropout};
}

/* k [B, K, heads dh]: T keys of x, memory's in front. */
static tensor *normalized_keys(const xl_attention_layer *l, tape *t, tensor *k, int64_t T,
                               const xl_shared *s) {
    const int64_t M = k && l->norms.k ? k->dim[1] - T : 0;
    if (M == 0) return attention_normalize_heads(l->norms.k, t, k, l->heads, s->rows);
    tensor *own = op_slice(t, k, 1, M, T), *front = op_slice(t, k, 1, 0, M);
    front = attention_normalize_heads(l->norms.k, t, front, l->heads, s->memory);
    own = attention_normalize_heads(l->norms.k, t, own, l->heads, s->rows);
    return op_concat(t, (tensor *[]){front, own}, 2, 1);
}

tensor *xl_attention_apply(const xl_attention_layer *l, tape *t, tensor *x, tensor *keys,
                           const xl_shared *s, attention_report *report) {
    const xl_options o = {.heads = l->heads, .reach = s->reach, .p = l->dropout, .report = report};
    tensor *q = op_linear(t, x, l->q, NULL), *k = op_linear(t, keys, l->k, NULL);
    const xl_inputs in = {
        .q = attention_normalize_heads(l->norms.q, t, q, l->heads, s->rows),
        .k = x ? normalized_keys(l, t, k, x->dim[1], s) : NULL,
        .v = op_linear(t, keys, l->v, NULL),
        .r = op_linear(t, s->positions, l->r, NULL),
        .u = s->u,
        .z = s->z,
    };
    return op_linear(t, op_xl_attention(t, &in, &o), l->o, NULL);
}
