/* layer_attention.c -- multi-head attention (docs/models.md 2.3):
 *
 *   q = x Wq^T + bq    k = m Wk^T + bk    v = m Wv^T + bv
 *   y = softmax(q k^T / sqrt(d/heads)) v Wo^T + bo
 *
 * A head has d/heads features of q, k and v, or the given numbers. The divisor is the root of the
 * features of q. With a norm of the heads (layer_head_norm.c)
 *
 *   q = n_q(x Wq^T + bq)    k = n_k(m Wk^T + bk)
 *
 * Initial values as in fairseq's releases (2.4): Wq, Wk, Wv Xavier with gain 1/sqrt(2), their
 * biases U(1/sqrt(d)), Wo Xavier, bo 0. */
#include <math.h>
#include <stdio.h>

#include "engine/ops/attention/attention_ops.h"
#include "nets/layers/layers.h"

static linear_layer projection(params *p, const char *name, const char *which, int64_t in,
                               int64_t out, double gain, double bias) {
    char full[2 * PARAM_NAME];
    snprintf(full, sizeof full, "%s.%s", name, which);
    return linear_init(p, full, in, out, layer_xavier(in, out, gain),
                       (layer_init){INIT_UNIFORM, bias});
}

attention_layer attention_init(params *p, const char *name, int64_t d, int64_t heads, int64_t key,
                               int64_t value, double dropout) {
    double bias = 1 / sqrt((double)d);
    return (attention_layer){
        .q = projection(p, name, "q", d, heads * key, sqrt(0.5), bias),
        .k = projection(p, name, "k", d, heads * key, sqrt(0.5), bias),
        .v = projection(p, name, "v", d, heads * value, sqrt(0.5), bias),
        .o = projection(p, name, "o", heads * value, d, 1, 0),
        .heads = (int)heads,
        .scale = 1 / sqrt((double)key),
        .dropout = dropout,
    };
}

tensor *attention_apply(const attention_layer *a, tape *t, attention_side asks,
                        attention_side answers, const uint8_t *key_valid, bool causal,
                        attention_report *report) {
    tensor *qkv[3];
    /* With one input, queries, keys and values are one product. */
    tensor *const w[3] = {a->q.w, a->k.w, a->v.w}, *const b[3] = {a->q.b, a->k.b, a->v.b};
    const int apart = asks.x == answers.x ? 0 : 1;
    if (apart) qkv[0] = linear_apply(&a->q, t, asks.x);
    op_linears(t, answers.x, 3 - apart, w + apart, b + apart, qkv + apart);
    tensor *q = attention_normalize_heads(a->norms.q, t, qkv[0], a->heads, asks.rows);
    tensor *k = attention_normalize_heads(a->norms.k, t, qkv[1], a->heads, answers.rows);
    tensor *y =
        op_attention(t, q, k, qkv[2], a->heads, a->scale, key_valid, causal, a->dropout, report);
    tensor *z = linear_apply(&a->o, t, y);
    tape_drop_value(t, y);
    return z;
}
