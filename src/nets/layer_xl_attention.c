/* layer_xl_attention.c -- attention of Transformer-XL (docs/models.md 4):
 *
 *   q = x Wq^T, k = m Wk^T, v = m Wv^T, r = P Wr^T       m: memory and x; P: positions of distances
 *   y = op_xl_attention(q, k, v, r, u, z) Wo^T
 */
#include <stdio.h>

#include "statnet/layers.h"

static tensor *projection(params *p, const char *name, const char *which, int64_t out, int64_t in,
                          double deviation) {
    char full[2 * PARAM_NAME];
    snprintf(full, sizeof full, "%s.%s.weight", name, which);
    return params_add(p, full, 2, (int64_t[]){out, in}, INIT_NORMAL, deviation);
}

xl_attention_layer xl_attention_init(params *p, const char *name, int64_t d, int64_t heads,
                                     int64_t head_dim, double dropout, double deviation) {
    const int64_t width = heads * head_dim;
    return (xl_attention_layer){.q = projection(p, name, "q", width, d, deviation),
                                .k = projection(p, name, "k", width, d, deviation),
                                .v = projection(p, name, "v", width, d, deviation),
                                .r = projection(p, name, "r", width, d, deviation),
                                .o = projection(p, name, "o", d, width, deviation),
                                .heads = (int)heads,
                                .dropout = dropout};
}

tensor *xl_attention_apply(const xl_attention_layer *l, tape *t, tensor *x, tensor *keys,
                           const xl_shared *s, attention_report *report) {
    const xl_options o = {.heads = l->heads, .reach = s->reach, .p = l->dropout, .report = report};
    const xl_inputs in = {
        .q = op_linear(t, x, l->q, NULL),
        .k = op_linear(t, keys, l->k, NULL),
        .v = op_linear(t, keys, l->v, NULL),
        .r = op_linear(t, s->positions, l->r, NULL),
        .u = s->u,
        .z = s->z,
    };
    return op_linear(t, op_xl_attention(t, &in, &o), l->o, NULL);
}
